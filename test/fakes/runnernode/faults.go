package runnernode

import (
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// A FaultKind is what goes wrong with a pod.
type FaultKind string

const (
	// FaultImagePull keeps the pod pending: the image of its runner's container is not there.
	FaultImagePull FaultKind = "image-pull"
	// FaultExits ends the runner with 1 before it has said a word to Forgejo.
	FaultExits FaultKind = "exits"
	// FaultDies kills the runner once it has reported that its job runs, which is a report interval after it took it. A job
	// that is over with that report is reported all the same.
	FaultDies FaultKind = "dies"
	// FaultIgnoresStop has the runner go on when its pod is deleted, as on a node that is cut off from the control plane.
	FaultIgnoresStop FaultKind = "ignores-stop"
)

// A Fault happens to pods when they start.
type Fault struct {
	Kind FaultKind
	// Pods that it happens to, by their labels. Nil: all.
	Pods labels.Selector
	// Times that it happens. 0: until the faults are unset.
	Times int
}

type fault struct {
	Fault
	left int
}

// SetFault from the next pod on. Of several that fit, the one that was set first happens.
func (n *Node) SetFault(f Fault) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults = append(n.faults, &fault{Fault: f, left: f.Times})
}

// UnsetFaults for pods that start from now on.
func (n *Node) UnsetFaults() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults = nil
}

// strike a pod with its fault, if it has one.
func (n *Node) strike(pod *corev1.Pod) FaultKind {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, f := range n.faults {
		if f.Pods != nil && !f.Pods.Matches(labels.Set(pod.Labels)) {
			continue
		}
		if f.left--; f.left == 0 {
			n.faults = slices.Delete(n.faults, i, i+1)
		}
		return f.Kind
	}
	return ""
}

// A mortal is a runner's way to Forgejo that kills it after its first report on a task.
type mortal struct {
	http.RoundTripper
	kill func()
}

// RoundTrip sends the request. A report is the last.
func (m mortal) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := m.RoundTripper.RoundTrip(r)
	if err == nil && strings.HasSuffix(r.URL.Path, "/UpdateTask") {
		m.kill()
	}
	return res, err
}
