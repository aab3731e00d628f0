package boundary

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
)

// mostObjects that are named among what holds up a deletion.
const mostObjects = 3

// patience is how long content may take to go before it is called a blocker. Pods stop within thirty seconds unless they
// ask for longer.
const patience = 30 * time.Second

// transient finalizers are Kubernetes' own, and go away by themselves.
var transient = []string{
	"kubernetes.io/pvc-protection", "foregroundDeletion", "orphan", "batch.kubernetes.io/job-tracking",
	"service.kubernetes.io/load-balancer-cleanup",
}

// The words of the namespace controller.
var (
	remainingKinds      = regexp.MustCompile(`([a-z0-9-]+)\.([a-z0-9.-]*) has \d+ resource instances`)
	remainingFinalizers = regexp.MustCompile(`([^\s,:]+) in \d+ resource instances`)
)

// A resourceMapper finds a resource's version.
type resourceMapper interface {
	ResourceFor(schema.GroupVersionResource) (schema.GroupVersionResource, error)
}

// A finding is what holds up the deletion of a namespace.
type finding struct {
	// Lines are the namespace's conditions, verbatim, and objects with their finalizers.
	lines []string
	// blocked is whether this will not go away by itself.
	blocked bool
	// settled is when it has to be looked at again even if nothing changes, zero if never.
	settled time.Duration
}

// message of a finding in one sentence.
func (f finding) message(namespace string) string {
	return fmt.Sprintf("namespace %s cannot be deleted yet: %s", namespace, strings.Join(f.lines, "; "))
}

// find out what holds up the deletion of a namespace that is being deleted.
func find(ctx context.Context, ns *corev1.Namespace, m metadata.Interface, mapper resourceMapper, now time.Time) finding {
	var f finding
	foreign, waiting := false, false
	var kinds []schema.GroupVersionResource
	for _, c := range sorted(ns.Status.Conditions) {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		f.lines = append(f.lines, fmt.Sprintf("%s: %s", c.Type, c.Message))
		waiting = true
		switch c.Type {
		case corev1.NamespaceFinalizersRemaining:
			foreign = foreign || hasForeign(finalizersIn(c.Message))
		case corev1.NamespaceContentRemaining:
			kinds = kindsIn(c.Message)
		default:
		}
	}
	if own := ns.GetFinalizers(); hasForeign(own) {
		waiting, foreign = true, true
		f.lines = append(f.lines, fmt.Sprintf("namespaces %q (finalizers: %s)", ns.Name, strings.Join(own, ", ")))
	}
	f.lines = append(f.lines, objectsLeft(ctx, ns.Name, kinds, m, mapper)...)
	if !waiting {
		return f
	}
	age := now.Sub(ns.DeletionTimestamp.Time)
	f.blocked = foreign || age >= patience
	if !f.blocked {
		f.settled = patience - age
	}
	return f
}

func sorted(cs []corev1.NamespaceCondition) []corev1.NamespaceCondition {
	cs = slices.Clone(cs)
	slices.SortFunc(cs, func(a, b corev1.NamespaceCondition) int { return strings.Compare(string(a.Type), string(b.Type)) })
	return cs
}

func finalizersIn(message string) []string {
	var out []string
	for _, m := range remainingFinalizers.FindAllStringSubmatch(message, -1) {
		out = append(out, m[1])
	}
	return out
}

func kindsIn(message string) []schema.GroupVersionResource {
	var out []schema.GroupVersionResource
	for _, m := range remainingKinds.FindAllStringSubmatch(message, -1) {
		out = append(out, schema.GroupVersionResource{Resource: m[1], Group: m[2]})
	}
	return out
}

func hasForeign(finalizers []string) bool {
	return slices.ContainsFunc(finalizers, func(f string) bool { return !slices.Contains(transient, f) })
}

// objectsLeft names what is left of the kinds: first what has finalizers. Kinds that may not be listed are left out; the
// conditions name them.
func objectsLeft(ctx context.Context, namespace string, kinds []schema.GroupVersionResource, m metadata.Interface, mapper resourceMapper) []string {
	var held, free []string
	for _, kind := range kinds {
		gvr, err := mapper.ResourceFor(kind)
		if err != nil {
			continue
		}
		list, err := m.Resource(gvr).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: 50})
		if err != nil {
			continue
		}
		for i := range list.Items {
			o := &list.Items[i]
			if fs := o.GetFinalizers(); len(fs) > 0 {
				held = append(held, fmt.Sprintf("%s %q (finalizers: %s)", kind.GroupResource(), o.GetName(), strings.Join(fs, ", ")))
			} else {
				free = append(free, fmt.Sprintf("%s %q", kind.GroupResource(), o.GetName()))
			}
		}
	}
	slices.Sort(held)
	slices.Sort(free)
	all := slices.Concat(held, free)
	return all[:min(len(all), mostObjects)]
}
