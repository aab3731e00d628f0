package runnernode

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/steading-dev/steading/test/fakes/forgejo/onejob"
)

const (
	// callTimeout is the stock runner's, of one call.
	callTimeout = time.Minute
	// remount is how long after a volume could not be mounted it is tried again.
	remount = 500 * time.Millisecond
)

// Exit codes of containers that did not end by themselves.
const (
	killed     = 137
	notStarted = 128
)

// An ending of a runner's container.
type ending struct {
	code    int
	reason  string
	message string
}

// A run is a pod on the node.
type run struct {
	pod *corev1.Pod // As it was seen first.
	// leaving is closed when the pod is being deleted, and asked when that leaves the runner time to end.
	leaving, asked chan struct{}
	leave, ask     sync.Once
	killed         <-chan struct{}
	kill           context.CancelFunc
}

func newRun(ctx context.Context, pod *corev1.Pod) *run {
	ctx, kill := context.WithCancel(ctx)
	return &run{pod: pod, leaving: make(chan struct{}), asked: make(chan struct{}), killed: ctx.Done(), kill: kill}
}

// stop the runner: it is asked to end, and killed after a while if it has not. Without a while it is not asked.
func (r *run) stop(grace time.Duration) {
	r.leave.Do(func() { close(r.leaving) })
	if grace == 0 {
		r.kill()
		return
	}
	r.ask.Do(func() { close(r.asked) })
	time.AfterFunc(grace, r.kill)
}

// play a pod to its end. A pod that is being deleted goes with it.
func (n *Node) play(ctx context.Context, r *run) {
	defer r.kill()
	e := n.live(ctx, r)
	n.report(ctx, r.pod, terminated(r.pod, e))
	select {
	case <-r.leaving:
		n.remove(ctx, r.pod)
	default:
	}
}

// live as long as the runner does.
func (n *Node) live(ctx context.Context, r *run) ending {
	if r.pod.Status.Phase == corev1.PodRunning { // Somebody else's node of this name ended.
		return ending{killed, "ContainerStatusUnknown", "The container could not be located when the pod was terminated"}
	}
	kind := n.strike(r.pod)
	if kind == FaultImagePull {
		n.report(ctx, r.pod, unpulled(r.pod))
		select {
		case <-r.leaving:
		case <-r.killed:
		}
		return ending{code: killed, reason: "Error"}
	}
	o, err := n.prepare(ctx, r)
	if err != nil {
		return ending{notStarted, "StartError", err.Error()}
	}
	e := n.run(ctx, r, o, kind)
	n.report(ctx, r.pod, exiting(r.pod, e))
	return e
}

// run the runner, and say that it runs.
func (n *Node) run(ctx context.Context, r *run, o onejob.Options, kind FaultKind) ending {
	defer n.counted(r.pod.Name)() // Before anybody reads that it runs.
	n.report(ctx, r.pod, running(r.pod))
	if kind == FaultExits {
		return ending{code: 1, reason: "Error"}
	}
	return n.execute(ctx, r, o, kind)
}

// execute the runner.
func (n *Node) execute(ctx context.Context, r *run, o onejob.Options, kind FaultKind) ending {
	ctx, kill := context.WithCancel(ctx)
	defer kill()
	o.Client = &http.Client{Transport: n.transport, Timeout: callTimeout}
	if kind == FaultDies {
		o.Client.Transport = mortal{n.transport, kill}
	}
	if kind != FaultIgnoresStop {
		o.Stop = r.asked
		go func() {
			<-r.killed
			kill()
		}()
	}
	err := onejob.Run(ctx, o)
	switch {
	case ctx.Err() != nil:
		return ending{code: killed, reason: "Error"}
	case err != nil:
		return ending{onejob.ExitCode(err), "Error", err.Error()}
	default:
		return ending{reason: "Completed"}
	}
}

// counted as running, until the function that it returns is called.
func (n *Node) counted(name string) func() {
	n.count(name, 1)
	return func() { n.count(name, -1) }
}

func (n *Node) count(name string, more int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.running[name] += more; n.running[name] == 0 {
		delete(n.running, name)
	}
}

// prepare a runner: its command line, and the token from its volume, which may not be there yet.
func (n *Node) prepare(ctx context.Context, r *run) (onejob.Options, error) {
	i := slices.IndexFunc(r.pod.Spec.Containers, isRunner)
	if i < 0 {
		return onejob.Options{}, errors.New("cannot start a runner: no container has the arguments of one")
	}
	c := &r.pod.Spec.Containers[i]
	o, tokenURL, err := onejob.Parse(c.Args)
	if err != nil {
		return o, fmt.Errorf("cannot start a runner: %w", err)
	}
	if n.options.FetchInterval > 0 {
		o.FetchInterval = n.options.FetchInterval
	}
	o.ReportInterval = n.options.ReportInterval
	for waits := false; ; waits = true {
		token, err := n.mounted(ctx, r.pod, c, tokenURL)
		o.Token = strings.TrimSpace(string(token))
		if err == nil || !errors.Is(err, errNotMounted) {
			return o, err
		}
		if !waits {
			n.report(ctx, r.pod, creating(r.pod))
		}
		select {
		case <-r.leaving:
			return o, err
		case <-r.killed:
			return o, err
		case <-time.After(remount):
		}
	}
}

func isRunner(c corev1.Container) bool { return len(c.Args) > 0 && c.Args[0] == "one-job" }

// errNotMounted is of a volume that is not there yet.
var errNotMounted = errors.New("cannot mount the volume")

// mounted is what a container finds in a file of one of its Secrets.
func (n *Node) mounted(ctx context.Context, pod *corev1.Pod, c *corev1.Container, fileURL string) ([]byte, error) {
	u, err := url.Parse(fileURL)
	if err != nil || u.Scheme != "file" {
		return nil, fmt.Errorf("cannot read the token: %q is no file", fileURL)
	}
	for _, m := range c.VolumeMounts {
		below, inside := strings.CutPrefix(u.Path, path.Clean(m.MountPath)+"/")
		i := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name && v.Secret != nil })
		if !inside || i < 0 {
			continue
		}
		v := pod.Spec.Volumes[i].Secret
		secret, err := n.client.CoreV1().Secrets(pod.Namespace).Get(ctx, v.SecretName, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errNotMounted, err)
		}
		raw, ok := secret.Data[keyOf(v, below)]
		if !ok {
			return nil, fmt.Errorf("%w: Secret %s has nothing for %s", errNotMounted, v.SecretName, below)
		}
		return raw, nil
	}
	return nil, fmt.Errorf("cannot read the token: no Secret is mounted at %s", u.Path)
}

// keyOf a file in a Secret that is a volume.
func keyOf(v *corev1.SecretVolumeSource, file string) string {
	if len(v.Items) == 0 {
		return file
	}
	for _, i := range v.Items {
		if i.Path == file {
			return i.Key
		}
	}
	return ""
}

// remove a pod that is being deleted, now that nothing of it runs.
func (n *Node) remove(ctx context.Context, pod *corev1.Pod) {
	n.again(ctx, func() error {
		return n.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: ptr.To[int64](0), Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
		})
	})
}

// again and again, until it is done or there is nothing left to do.
func (n *Node) again(ctx context.Context, do func() error) {
	for {
		err := do()
		if err == nil || kerrors.IsNotFound(err) || kerrors.IsConflict(err) || kerrors.IsInvalid(err) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(retry):
		}
	}
}
