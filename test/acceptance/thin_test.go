package acceptance

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// TestEnvironmentFromClaimToGone is the main job: a tenant and an environment are applied, it runs in a bounded namespace,
// and deleting it leaves nothing behind but the record that it was.
func TestEnvironmentFromClaimToGone(t *testing.T) {
	newTenant(t, "thin", steading.TenantSpec{Owners: []steading.Subject{{Kind: "Group", Name: "thin-owners"}}})
	e := environment("thin", "web")
	create(t, e)
	waitFor(t, e, "ready", isReady)

	s := e.Status
	if s.Phase != steading.EnvironmentRunning || s.Power != steading.PowerRunning || s.DeployedVersion != "1.4.2" || s.Namespace != "thin-web" {
		t.Errorf("status %+v", s)
	}
	if s.Context == nil || s.Context.Name != "platform" || s.Context.Reason != steading.PlacementPlatformFallback {
		t.Errorf("context %+v", s.Context)
	}
	if s.Image == nil || s.Image.Choice != steading.ImageCanonical {
		t.Errorf("image %+v", s.Image)
	}
	wantReadyPod(t, "thin-web")
	wantBounded(t, "thin-web", e)

	uid := get(t, &runtimev1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: "thin-web"}}).Labels[names.LabelComposite]
	if err := admin.Delete(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	wantGone(t, e)
	wantNothingOwned(t, uid)
	wantUsage(t, uid, runtimev1.TransitionProvisioned, runtimev1.TransitionDeleted)
}

// wantReadyPod expects a pod of the runtime that is ready.
func wantReadyPod(t *testing.T, namespace string) {
	t.Helper()
	pods := &corev1.PodList{}
	if err := admin.List(t.Context(), pods, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	for _, p := range pods.Items {
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				return
			}
		}
	}
	t.Errorf("no ready pod among %d in namespace %s", len(pods.Items), namespace)
}

// wantBounded expects the namespace to carry the environment's identity and a quota of its caps.
func wantBounded(t *testing.T, namespace string, e *steading.Environment) {
	t.Helper()
	ns := get(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	if ns.Labels[names.LabelTenant] == "" || ns.Labels[names.LabelEnvironment] != e.Name {
		t.Errorf("labels of namespace %s: %v", namespace, ns.Labels)
	}
	q := get(t, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: names.Quota}})
	for name, want := range map[corev1.ResourceName]string{corev1.ResourceLimitsCPU: e.Spec.Size.CPU.String(), corev1.ResourceLimitsMemory: e.Spec.Size.Memory.String(), corev1.ResourceRequestsStorage: e.Spec.Size.Storage.String()} {
		if have := q.Spec.Hard[name]; have.String() != want {
			t.Errorf("quota %s of namespace %s: have %s, want %s", name, namespace, &have, want)
		}
	}
}

// wantGone waits until an object is gone.
func wantGone(t *testing.T, o client.Object) {
	t.Helper()
	eventually(t, fmt.Sprintf("%T %s gone", o, o.GetName()), func(ctx context.Context) error {
		err := admin.Get(ctx, client.ObjectKeyFromObject(o), o)
		if kerrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if e, ok := o.(*steading.Environment); ok {
			return fmt.Errorf("it is still there, phase %s, conditions %+v", e.Status.Phase, e.Status.Conditions)
		}
		return fmt.Errorf("it is still there, finalizers %v", o.GetFinalizers())
	})
}

// wantNothingOwned lists every kind there is and expects nothing with the identity but usage events.
func wantNothingOwned(t *testing.T, uid string) {
	t.Helper()
	if uid == "" {
		t.Fatal("no identity to look for")
	}
	d, err := discovery.NewDiscoveryClientForConfig(shared.Plane.Config())
	if err != nil {
		t.Fatal(err)
	}
	m, err := metadata.NewForConfig(shared.Plane.Config())
	if err != nil {
		t.Fatal(err)
	}
	lists, err := d.ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	listed := 0
	for _, l := range lists {
		for _, r := range l.APIResources {
			if !strings.Contains(r.Verbs.String(), "list") || strings.Contains(r.Name, "/") || r.Kind == runtimev1.UsageEventKind {
				continue
			}
			gvr := groupVersion(t, l.GroupVersion).WithResource(r.Name)
			items, err := m.Resource(gvr).List(t.Context(), metav1.ListOptions{LabelSelector: names.LabelComposite + "=" + uid})
			if err != nil {
				continue // Some kinds answer to create only, whatever their verbs say.
			}
			listed++
			for _, i := range items.Items {
				t.Errorf("left behind: %s %s/%s", r.Kind, i.Namespace, i.Name)
			}
		}
	}
	if listed < 30 {
		t.Errorf("only %d kinds could be listed, so this shows nothing", listed)
	}
}

// wantUsage expects exactly these transitions to be recorded, each once.
func wantUsage(t *testing.T, uid string, want ...runtimev1.Transition) {
	t.Helper()
	events := &runtimev1.UsageEventList{}
	if err := admin.List(t.Context(), events, client.InNamespace(names.SystemNamespace)); err != nil {
		t.Fatal(err)
	}
	count := map[runtimev1.Transition]int{}
	for _, e := range events.Items {
		if string(e.Spec.Identity.UID) == uid {
			count[e.Spec.Transition]++
		}
	}
	wanted := map[runtimev1.Transition]int{}
	for _, w := range want {
		wanted[w]++
	}
	if fmt.Sprint(count) != fmt.Sprint(wanted) {
		t.Errorf("usage events: have %v, want %v", count, wanted)
	}
}
