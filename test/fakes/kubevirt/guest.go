package kubevirt

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	kubevirtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/steading-dev/steading/test/fakes/forgejo/onejob"
)

const (
	// defaultGrace is how long KubeVirt waits for a guest to power off, in seconds, where an instance does not say.
	defaultGrace = int64(180)
	// callTimeout is the stock runner's, of one call.
	callTimeout = time.Minute
)

// An ending of a guest.
type ending int

const (
	// poweredOff by itself.
	poweredOff ending = iota
	// crashed by itself.
	crashed
	// destroyed by KubeVirt.
	destroyed
)

// A guest of an instance: an image for runners that runs one job and powers off.
type guest struct {
	name string
	// asked is closed when the guest is asked to power off, and done when it is over.
	asked, done chan struct{}
	ask         sync.Once
	kill        context.CancelFunc
	// ending is to be read when it is over.
	ending ending
}

// guest of an instance, nil if none was started.
func (k *KubeVirt) guest(vmi *kubevirtv1.VirtualMachineInstance) *guest {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.guests[vmi.UID]
}

// forget the guest of an instance that is over.
func (k *KubeVirt) forget(vmi *kubevirtv1.VirtualMachineInstance) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.guests, vmi.UID)
}

// start the guest of an instance with a disc in its drive, unless it runs.
func (k *KubeVirt) start(vmi *kubevirtv1.VirtualMachineInstance, disc map[string]string) {
	fault := k.faultOf(vmi)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.guests[vmi.UID] != nil {
		return
	}
	ctx, kill := context.WithCancel(context.Background())
	g := &guest{name: vmi.Name, asked: make(chan struct{}), done: make(chan struct{}), kill: kill}
	k.guests[vmi.UID] = g
	k.boots[vmi.Name]++
	instance := &kubevirtv1.VirtualMachineInstance{}
	instance.Namespace, instance.Name = vmi.Namespace, vmi.Name
	go func() {
		defer kill()
		g.ending = k.live(ctx, g, disc, fault)
		close(g.done)
		k.ended <- event.GenericEvent{Object: instance}
	}()
}

// live the guest's life.
func (k *KubeVirt) live(ctx context.Context, g *guest, disc map[string]string, fault FaultKind) ending {
	switch fault { //nolint:exhaustive // The others strike elsewhere.
	case FaultPowersOff:
		return poweredOff
	case FaultSilent:
		return g.idle(ctx)
	}
	ctx, panics := context.WithCancelCause(ctx)
	defer panics(nil)
	o := runnerOf(disc)
	o.FetchInterval, o.ReportInterval, o.Stop = k.options.FetchInterval, k.options.ReportInterval, g.asked
	o.Client = &http.Client{Transport: k.transport, Timeout: callTimeout}
	if fault == FaultPanics {
		o.Client.Transport = mortal{k.transport, func() { panics(errPanic) }}
	}
	// Whatever came of the job, the guest powers off.
	_ = onejob.Run(ctx, o)
	switch {
	case errors.Is(context.Cause(ctx), errPanic):
		return crashed
	case ctx.Err() != nil:
		return destroyed
	case fault == FaultStaysOn:
		return g.idle(ctx)
	default:
		return poweredOff
	}
}

// idle until the guest is asked to power off, or destroyed.
func (g *guest) idle(ctx context.Context) ending {
	select {
	case <-g.asked:
		return poweredOff
	case <-ctx.Done():
		return destroyed
	}
}

// leave because the instance is deleted. Without grace it is destroyed at once; with grace it is asked first.
func (g *guest) leave(grace time.Duration) {
	if grace == 0 {
		g.kill()
		return
	}
	g.ask.Do(func() {
		close(g.asked)
		time.AfterFunc(grace, g.kill)
	})
}

// over reports whether the guest runs no more.
func (g *guest) over() bool {
	select {
	case <-g.done:
		return true
	default:
		return false
	}
}

// runnerOf the files on a disc, as the contract for guest images has them. One of an empty disc has no settings, and fails.
func runnerOf(disc map[string]string) onejob.Options {
	o := onejob.Options{URL: disc["url"], UUID: disc["uuid"], Token: disc["token"], Handle: disc["handle"], Wait: disc["handle"] == ""}
	if disc["label"] != "" {
		o.Labels = strings.Split(disc["label"], "\n")
	}
	return o
}

// errPanic is what a guest's kernel panics with.
var errPanic = errors.New("kernel panic")

// A mortal is a guest's way to Forgejo that has it panic after its runner's first report on a task.
type mortal struct {
	http.RoundTripper
	panics func()
}

// RoundTrip sends the request. A report is the last.
func (m mortal) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := m.RoundTripper.RoundTrip(r)
	if err == nil && strings.HasSuffix(r.URL.Path, "/UpdateTask") {
		m.panics()
	}
	return res, err
}
