package harness

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
)

// fewestKinds is how many kinds a plane has at the least, so that a listing that failed does not look like nothing left.
const fewestKinds = 30

// CompositeUID is the identity of an environment: what is made for it carries this in a label.
func (s *Suite) CompositeUID(t *testing.T, tenant, environment string) string {
	t.Helper()
	p := Get(t, s, &runtimev1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: names.Environment(tenant, environment)}})
	return p.Labels[names.LabelComposite]
}

// WantNothingOwned lists every kind of a cluster and expects nothing with the identity but usage events.
func WantNothingOwned(t *testing.T, cfg *rest.Config, uid string) {
	t.Helper()
	if uid == "" {
		t.Fatal("no identity to look for")
	}
	all := everything(t.Context(), t, cfg, metav1.ListOptions{LabelSelector: names.LabelComposite + "=" + uid})
	for _, o := range all {
		if o.kind != runtimev1.UsageEventKind {
			t.Errorf("left behind: %s", o)
		}
	}
}

// ourNames are in the names, labels and annotations of all that is ours and of nothing else.
var ourNames = []string{"steading", names.ProviderRuntime, names.ProviderForgejo}

// testNode begins the names of what a local control plane brings along, as its provisioner of volumes.
const testNode = "steading-local:"

// WantNothingOfOurs lists every kind of a cluster until there is nothing of ours in it: no kind of ours, and no object with a name
// of ours, or one that is given, in its name, its namespace, or its labels and annotations. Events pass by themselves.
func WantNothingOfOurs(t *testing.T, cfg *rest.Config, given ...string) {
	t.Helper()
	Eventually(t, "nothing is left", func(ctx context.Context) error {
		var left []string
		for _, o := range everything(ctx, t, cfg, metav1.ListOptions{}) {
			if o.kind != "Event" && !strings.HasPrefix(o.Name, testNode) && o.mentions(slices.Concat(ourNames, given)) {
				left = append(left, o.String())
			}
		}
		if ctx.Err() != nil {
			return ctx.Err() // What it listed is not all.
		}
		if len(left) > 0 {
			return fmt.Errorf("left behind:\n%s", strings.Join(left, "\n"))
		}
		return nil
	})
}

// An object of any kind, by its metadata.
type object struct {
	group, kind string
	*metav1.PartialObjectMetadata
}

func (o object) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s.%s %s/%s", o.kind, o.group, o.Namespace, o.Name))
}

// mentions any of the words.
func (o object) mentions(words []string) bool {
	said := []string{o.group, o.Namespace, o.Name}
	for _, m := range []map[string]string{o.Labels, o.Annotations} {
		for k, v := range m {
			said = append(said, k, v)
		}
	}
	return slices.ContainsFunc(said, func(s string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(s, w) })
	})
}

// everything in a cluster that can be listed.
func everything(ctx context.Context, t *testing.T, cfg *rest.Config, o metav1.ListOptions) (all []object) {
	t.Helper()
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1 // There are many kinds.
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	m, err := metadata.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	lists, err := d.ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	listed := 0
	for _, l := range lists {
		gv, err := schema.ParseGroupVersion(l.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range l.APIResources {
			if !slices.Contains(r.Verbs, "list") || strings.Contains(r.Name, "/") {
				continue
			}
			items, err := m.Resource(gv.WithResource(r.Name)).List(ctx, o)
			if err != nil {
				continue // Some kinds cannot be listed as metadata, whatever their verbs say.
			}
			listed++
			for i := range items.Items {
				all = append(all, object{gv.Group, r.Kind, &items.Items[i]})
			}
		}
	}
	if ctx.Err() == nil && listed < fewestKinds {
		t.Errorf("only %d kinds could be listed, so this shows nothing", listed)
	}
	return all
}

// WantUsage waits until exactly these transitions are recorded for an identity, each as often as it is named. A claim may read
// ready for a moment longer than it is: Crossplane writes its status before its conditions.
func (s *Suite) WantUsage(t *testing.T, uid string, want ...runtimev1.Transition) {
	t.Helper()
	wanted := map[runtimev1.Transition]int{}
	for _, w := range want {
		wanted[w]++
	}
	Eventually(t, "usage events", func(ctx context.Context) error {
		events := &runtimev1.UsageEventList{}
		if err := s.Admin.List(ctx, events, client.InNamespace(names.SystemNamespace)); err != nil {
			return err
		}
		have := map[runtimev1.Transition]int{}
		for _, e := range events.Items {
			if string(e.Spec.Identity.UID) == uid {
				have[e.Spec.Transition]++
			}
		}
		if !maps.Equal(have, wanted) {
			return fmt.Errorf("have %v, want %v", have, wanted)
		}
		return nil
	})
}

// ContextUID is the identity of a context.
func (s *Suite) ContextUID(t *testing.T, tenant, context string) string {
	t.Helper()
	c := Get(t, s, &runtimev1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: names.Context(tenant, context)}})
	return c.Labels[names.LabelComposite]
}
