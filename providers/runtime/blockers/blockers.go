// Package blockers finds what holds up the deletion of a namespace, in its own words and by the names of what is left.
package blockers

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

// Patience is how long content may take to go before it is called a blocker. Pods stop within thirty seconds unless they
// ask for longer.
const Patience = 30 * time.Second

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

// A ResourceMapper finds a resource's version.
type ResourceMapper interface {
	ResourceFor(schema.GroupVersionResource) (schema.GroupVersionResource, error)
}

// A Finding is what holds up the deletion of a namespace.
type Finding struct {
	// Lines are the namespace's conditions, verbatim, and objects with their finalizers.
	Lines []string
	// Blocked is whether this will not go away by itself.
	Blocked bool
	// Settled is when it has to be looked at again even if nothing changes, zero if never.
	Settled time.Duration
}

// Message of a finding in one sentence.
func (f Finding) Message(namespace string) string {
	return fmt.Sprintf("namespace %s cannot be deleted yet: %s", namespace, strings.Join(f.Lines, "; "))
}

// Find out what holds up the deletion of a namespace that is being deleted.
func Find(ctx context.Context, ns *corev1.Namespace, m metadata.Interface, mapper ResourceMapper, now time.Time) Finding {
	var f Finding
	foreign, waiting := false, false
	var kinds []schema.GroupVersionResource
	for _, c := range sorted(ns.Status.Conditions) {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		f.Lines = append(f.Lines, fmt.Sprintf("%s: %s", c.Type, c.Message))
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
		f.Lines = append(f.Lines, fmt.Sprintf("namespaces %q (finalizers: %s)", ns.Name, strings.Join(own, ", ")))
	}
	f.Lines = append(f.Lines, objectsLeft(ctx, ns.Name, kinds, m, mapper)...)
	if !waiting {
		return f
	}
	age := now.Sub(ns.DeletionTimestamp.Time)
	f.Blocked = foreign || age >= Patience
	if !f.Blocked {
		f.Settled = Patience - age
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
func objectsLeft(ctx context.Context, namespace string, kinds []schema.GroupVersionResource, m metadata.Interface, mapper ResourceMapper) []string {
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
