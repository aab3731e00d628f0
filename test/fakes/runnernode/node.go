package runnernode

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/steading-dev/steading/apis/names"
)

const (
	// DefaultName of a node.
	DefaultName = "runners-0"
	// Role is the label of the nodes of this package, which nothing but what was placed is scheduled to.
	Role = "steading.test/runners"
	// heartbeat is how often a kubelet renews its lease, of which four may be missed.
	heartbeat = 10 * time.Second
	// retry is how long after a request that failed it is sent again.
	retry = 200 * time.Millisecond
)

// Options of a node.
type Options struct {
	// Name of the node. Default [DefaultName].
	Name string
	// FetchInterval and ReportInterval of its runners. 0: as the stock runner has them, 2 s and 1 s.
	FetchInterval, ReportInterval time.Duration
}

// A Node plays the pods that are bound to it. It is safe for many goroutines.
type Node struct {
	name      string
	options   Options
	client    kubernetes.Interface
	transport http.RoundTripper // Of all its runners.

	mu      sync.Mutex
	runs    map[types.UID]*run // Of the pods that there are.
	running map[string]int     // Runners, by their pods' names.
	faults  []*fault
}

// Place a pod on the nodes of this package.
func Place(s *corev1.PodSpec) {
	if s.NodeSelector == nil {
		s.NodeSelector = map[string]string{}
	}
	s.NodeSelector[Role] = "true"
	s.Tolerations = append(s.Tolerations, corev1.Toleration{Key: Role, Operator: corev1.TolerationOpExists})
}

// Start a node on a control plane. When ctx is done it is as one whose power failed: its runners end, and nobody says so.
func Start(ctx context.Context, cfg *rest.Config, o Options) (*Node, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.Burst = -1, -1
	c, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("cannot start a node: %w", err)
	}
	n := &Node{
		name: cmp.Or(o.Name, DefaultName), options: o, client: c, transport: &http.Transport{MaxIdleConnsPerHost: 1000, IdleConnTimeout: time.Minute},
		runs: map[types.UID]*run{}, running: map[string]int{},
	}
	if err := errors.Join(n.register(ctx), n.renew(ctx)); err != nil {
		return nil, fmt.Errorf("cannot start node %s: %w", n.name, err)
	}
	go n.beat(ctx)
	return n, n.watch(ctx)
}

// Running are the names of the pods whose runner runs, sorted. It may outlive its pod: see [FaultIgnoresStop].
func (n *Node) Running() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []string
	for name := range n.running {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// register the Node, big enough for anything, or take the one that is there.
func (n *Node) register(ctx context.Context) error {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: map[string]string{
			corev1.LabelHostname: n.name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64", Role: "true",
		}},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: Role, Value: "true", Effect: corev1.TaintEffectNoSchedule}}},
	}
	if _, err := n.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil && !kerrors.IsAlreadyExists(err) {
		return err
	}
	all := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("100000"), corev1.ResourceMemory: resource.MustParse("1000Ti"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1000Ti"), corev1.ResourcePods: resource.MustParse("100000"),
	}
	now := metav1.Now()
	patch, err := json.Marshal(map[string]any{"status": corev1.NodeStatus{
		Capacity: all, Allocatable: all,
		Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: now, LastTransitionTime: now,
		}},
	}})
	if err != nil {
		return err
	}
	_, err = n.client.CoreV1().Nodes().Patch(ctx, n.name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// beat until ctx is done, or the node's pods are taken from it.
func (n *Node) beat(ctx context.Context) {
	ticks := time.NewTicker(heartbeat)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			_ = n.renew(ctx) // What is missed now is made up for by the next.
		}
	}
}

// renew the node's lease.
func (n *Node) renew(ctx context.Context) error {
	leases := n.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	lease, err := leases.Get(ctx, n.name, metav1.GetOptions{})
	switch {
	case kerrors.IsNotFound(err):
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: n.name}}
	case err != nil:
		return err
	}
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = &n.name, ptr.To(int32(4*heartbeat/time.Second))
	lease.Spec.RenewTime = ptr.To(metav1.NowMicro())
	if lease.ResourceVersion == "" {
		_, err = leases.Create(ctx, lease, metav1.CreateOptions{})
	} else {
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	}
	return err
}

// watch the runners' pods that are bound to the node.
func (n *Node) watch(ctx context.Context) error {
	factory := informers.NewSharedInformerFactoryWithOptions(n.client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.LabelSelector = labels.Set{names.LabelManagedBy: names.ManagedBy}.String() + "," + names.LabelRunner
		o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", n.name).String()
	}))
	pods := factory.Core().V1().Pods().Informer()
	_, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { n.seen(ctx, o) },
		UpdateFunc: func(before, now any) {
			if b, ok := before.(*corev1.Pod); ok && b.UID != uid(now) {
				n.gone(before)
			}
			n.seen(ctx, now)
		},
		DeleteFunc: n.gone,
	})
	if err != nil {
		return fmt.Errorf("cannot watch the pods of node %s: %w", n.name, err)
	}
	factory.Start(ctx.Done())
	for _, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("cannot watch the pods of node %s: %w", n.name, ctx.Err())
		}
	}
	return nil
}

// seen is a pod as it is now. One that has not run yet is played.
func (n *Node) seen(ctx context.Context, o any) {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.runs[pod.UID]
	if r == nil {
		if ended(pod) {
			return
		}
		r = newRun(ctx, pod)
		n.runs[pod.UID] = r
		go n.play(ctx, r)
	}
	if pod.DeletionTimestamp != nil {
		r.stop(time.Duration(ptr.Deref(pod.DeletionGracePeriodSeconds, 0)) * time.Second)
	}
}

// gone is a pod, and its runner with it.
func (n *Node) gone(o any) {
	if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = last.Obj
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if r := n.runs[uid(o)]; r != nil {
		r.stop(0)
		delete(n.runs, uid(o))
	}
}

func uid(o any) types.UID {
	if pod, ok := o.(*corev1.Pod); ok {
		return pod.UID
	}
	return ""
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
