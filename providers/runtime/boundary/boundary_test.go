package boundary

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/address"
	"github.com/steading-dev/steading/providers/internal/kit"
	"github.com/steading-dev/steading/providers/runtime/target"
)

var upToDate = managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}

// converge observes and updates, as the managed reconciler does, until there is nothing left to do.
func converge(t *testing.T, w *world, b *v1alpha1.Boundary) {
	t.Helper()
	for range 5 {
		w.e.namespace = nil
		obs, err := w.e.Observe(context.Background(), b)
		if err != nil {
			t.Fatalf("Observe: %v", err)
		}
		if obs.ResourceUpToDate {
			return
		}
		if _, err = w.e.Update(context.Background(), b); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatalf("it does not come to rest: %v", w.calls)
}

func TestMakesAndIsReady(t *testing.T) {
	w := newWorld(t, nil, claim(), pullSource())
	b := boundary(func(b *v1alpha1.Boundary) {
		b.Spec.ForProvider.PullSecretRef = &steading.LocalSecretReference{Name: "acme-pull"}
	})
	converge(t, w, b)
	want := []string{
		"create acme-dev", "apply steading-quota", "apply steading-limits", "apply steading-ingress", "apply steading-egress",
		"apply steading-deployer", "apply steading-deployer", "apply steading-owners", "apply steading-pull",
	}
	if diff := cmp.Diff(want, w.calls); diff != "" {
		t.Errorf("what limits comes before what may act: -want +got\n%s", diff)
	}
	ready := b.GetCondition(xpv2.TypeReady)
	if ready.Status != corev1.ConditionTrue || ready.ObservedGeneration != b.Generation {
		t.Errorf("got %+v, want ready as of generation %d", ready, b.Generation)
	}
	if b.Status.AtProvider.Namespace != "acme-dev" {
		t.Errorf("got namespace %q", b.Status.AtProvider.Namespace)
	}
}

// TestWaitsForTheQuota: until it is counted it refuses every claim and pod.
func TestWaitsForTheQuota(t *testing.T) {
	w := newWorld(t, nil, claim())
	w.uncounted = true
	b := boundary()
	converge(t, w, b)
	if kit.IsReady(b) {
		t.Fatal("ready with a quota that refuses everything")
	}
	must(t, w.count(context.Background(), w))
	converge(t, w, b)
	if !kit.IsReady(b) {
		t.Errorf("got %+v, want ready", b.Status.Conditions)
	}
	b.Spec.ForProvider.Caps.CPU = resource.MustParse("12")
	converge(t, w, b)
	if !kit.IsReady(b) {
		t.Error("a new size takes no readiness away")
	}
}

// TestTellsOfWhatIsInUseBeyondItsCaps: a quota that is lowered takes nothing away, and what is there is not free.
func TestTellsOfWhatIsInUseBeyondItsCaps(t *testing.T) {
	w := newWorld(t, nil, claim())
	b := boundary()
	converge(t, w, b)
	use := func(cpu, storage string) {
		t.Helper()
		q := &corev1.ResourceQuota{}
		must(t, w.Get(context.Background(), client.ObjectKey{Namespace: "acme-dev", Name: names.Quota}, q))
		q.Status.Used = corev1.ResourceList{corev1.ResourceLimitsCPU: resource.MustParse(cpu), corev1.ResourceRequestsStorage: resource.MustParse(storage)}
		must(t, w.Status().Update(context.Background(), q))
		converge(t, w, b)
	}
	wants := func(reason string, generation int64, inUse *steading.Resources) {
		t.Helper()
		if diff := cmp.Diff(&v1alpha1.CountedQuota{Generation: generation, InUse: inUse}, b.Status.AtProvider.Quota); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", reason, diff)
		}
	}
	use("7", "40Gi")
	wants("what fits changes nothing", 3, nil)

	w.uncounted = true
	b.Generation, b.Spec.ForProvider.Caps.Storage = 4, resource.MustParse("4Gi")
	converge(t, w, b)
	wants("the new caps are not counted with yet", 3, nil)

	must(t, w.count(context.Background(), w))
	converge(t, w, b)
	wants("more is in use", 4, steading.MustResources("0", "0", "40Gi"))
	use("7", "3Gi")
	wants("it fits again", 4, nil)
}

// TestCountsWithWhatTheServerSays: the cache may have the quota as it was when the caps had been the same before.
func TestCountsWithWhatTheServerSays(t *testing.T) {
	w := newWorld(t, nil, claim())
	b := boundary()
	converge(t, w, b)
	cache := newWorld(t, nil, claim())
	converge(t, cache, boundary())
	w.e.cache = cache
	q := &corev1.ResourceQuota{}
	must(t, w.Get(context.Background(), client.ObjectKey{Namespace: "acme-dev", Name: names.Quota}, q))
	q.Spec.Hard[corev1.ResourceLimitsCPU] = resource.MustParse("99")
	must(t, w.Update(context.Background(), q))
	must(t, w.count(context.Background(), w))
	b.Generation++
	converge(t, w, b)
	if got := b.Status.AtProvider.Quota.Generation; got == b.Generation {
		t.Error("an old quota passes for the new one")
	}
}

// TestRepairsDrift changes one thing after another behind the Boundary's back.
func TestRepairsDrift(t *testing.T) {
	cases := map[string]struct {
		reason string
		obj    client.Object
		change func(client.Object)
	}{
		"Quota":     {reason: "a larger quota", obj: &corev1.ResourceQuota{ObjectMeta: at(names.Quota)}, change: to(func(o *corev1.ResourceQuota) { o.Spec.Hard[corev1.ResourceLimitsCPU] = resource.MustParse("99") })},
		"QuotaGone": {reason: "no quota", obj: &corev1.ResourceQuota{ObjectMeta: at(names.Quota)}},
		"Limits":    {reason: "other defaults", obj: &corev1.LimitRange{ObjectMeta: at(names.Limits)}, change: to(func(o *corev1.LimitRange) { o.Spec.Limits = nil })},
		"Subject": {reason: "one more who may deploy", obj: &rbacv1.RoleBinding{ObjectMeta: at(names.Deployer)}, change: to(func(rb *rbacv1.RoleBinding) {
			rb.Subjects = append(rb.Subjects, rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: "eve"})
		})},
		"RoleRef":        {reason: "another role, which cannot be changed in place", obj: &rbacv1.RoleBinding{ObjectMeta: at(names.Owners)}, change: to(func(o *rbacv1.RoleBinding) { o.RoleRef.Name = "cluster-admin" })},
		"AccountGone":    {reason: "no deployer", obj: &corev1.ServiceAccount{ObjectMeta: at(names.Deployer)}},
		"PodSecurity":    {reason: "a weaker Pod Security level", obj: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "acme-dev"}}, change: func(o client.Object) { o.GetLabels()[podSecurityEnforce] = "privileged" }},
		"Label":          {reason: "an identity label", obj: &corev1.ResourceQuota{ObjectMeta: at(names.Quota)}, change: func(o client.Object) { o.SetLabels(nil) }},
		"PullSecret":     {reason: "another credential", obj: &corev1.Secret{ObjectMeta: at(names.PullSecret)}, change: to(func(o *corev1.Secret) { o.Data[corev1.DockerConfigJsonKey] = []byte("{}") })},
		"PullSecretGone": {reason: "no credential", obj: &corev1.Secret{ObjectMeta: at(names.PullSecret)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil, claim(), pullSource())
			b := boundary(func(b *v1alpha1.Boundary) {
				b.Spec.ForProvider.PullSecretRef = &steading.LocalSecretReference{Name: "acme-pull"}
			})
			converge(t, w, b)
			key := client.ObjectKeyFromObject(tc.obj)
			want := copyOf(t, tc.obj)
			if err := w.Get(context.Background(), key, want); err != nil {
				t.Fatal(err)
			}
			changed := copyOf(t, want)
			if tc.change == nil {
				if err := w.Delete(context.Background(), changed); err != nil {
					t.Fatal(err)
				}
			} else {
				tc.change(changed)
				if err := w.Update(context.Background(), changed); err != nil {
					t.Fatal(err)
				}
			}
			obs, err := w.e.Observe(context.Background(), b)
			if err != nil || obs.ResourceUpToDate {
				t.Fatalf("%s: got %+v, %v, want it noticed", tc.reason, obs, err)
			}
			converge(t, w, b)
			got := copyOf(t, tc.obj)
			if err := w.Get(context.Background(), key, got); err != nil {
				t.Fatal(err)
			}
			if drifted(want, got) {
				t.Errorf("%s was not repaired: %s", tc.reason, cmp.Diff(want, got))
			}
		})
	}
}

func TestTakesAwayWhatIsNotWantedAnyMore(t *testing.T) {
	w := newWorld(t, nil, claim(), pullSource())
	b := boundary(func(b *v1alpha1.Boundary) {
		b.Spec.ForProvider.PullSecretRef = &steading.LocalSecretReference{Name: "acme-pull"}
	})
	converge(t, w, b)
	b.Spec.ForProvider.PullSecretRef, b.Spec.ForProvider.Owners = nil, nil
	converge(t, w, b)
	for _, obj := range []client.Object{&corev1.Secret{ObjectMeta: at(names.PullSecret)}, &rbacv1.RoleBinding{ObjectMeta: at(names.Owners)}} {
		if err := w.Get(context.Background(), client.ObjectKeyFromObject(obj), obj); client.IgnoreNotFound(err) != nil || err == nil {
			t.Errorf("%s: got %v, want it gone", obj.GetName(), err)
		}
	}
}

func TestRefusesNamespaces(t *testing.T) {
	other := func(i v1alpha1.Identity) func(*corev1.Namespace) {
		return func(ns *corev1.Namespace) { kit.Stamp(ns, i) }
	}
	old := v1alpha1.Identity{Tenant: "acme", Environment: "dev", UID: "uid-old"}
	cases := map[string]struct {
		reason string
		ns     *corev1.Namespace
		claim  *steading.Environment
		want   xpv2.ConditionReason
		says   string
	}{
		"Foreign":           {reason: "a namespace that somebody made", ns: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "acme-dev"}}, want: steading.ReasonForeignNamespace, says: "not made by Steading"},
		"Another":           {reason: "another tenant's", ns: standing(other(v1alpha1.Identity{Tenant: "globex", Environment: "dev", UID: "x"})), want: steading.ReasonForeignNamespace, says: "globex/dev"},
		"Predecessor":       {reason: "of an environment of the same name", ns: standing(other(old)), want: steading.ReasonForeignNamespace, says: "steading.dev/adopt-from: uid-old"},
		"PredecessorLeaves": {reason: "of an environment of the same name that is being deleted", ns: standing(other(old), terminating(finalizersRemain)), want: steading.ReasonNamespaceBlocked, says: "example.com/hold"},
		"OursLeaves":        {reason: "deleted behind our back", ns: standing(terminating()), want: steading.ReasonNamespaceBlocked, says: "made anew once it is gone"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil, claim(), tc.ns)
			b := boundary()
			obs, err := w.e.Observe(context.Background(), b)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(upToDate, obs); diff != "" {
				t.Errorf("%s must be left alone: -want +got\n%s", tc.reason, diff)
			}
			ready := b.GetCondition(xpv2.TypeReady)
			if ready.Status != corev1.ConditionFalse || ready.Reason != tc.want || !strings.Contains(ready.Message, tc.says) {
				t.Errorf("%s: got %+v, want reason %s and %q", tc.reason, ready, tc.want, tc.says)
			}
			if len(w.calls) > 0 {
				t.Errorf("%s was touched: %v", tc.reason, w.calls)
			}
		})
	}
}

func TestAdoptsWithLeave(t *testing.T) {
	ns := standing(func(ns *corev1.Namespace) {
		kit.Stamp(ns, v1alpha1.Identity{Tenant: "acme", Environment: "dev", UID: "uid-old"})
	})
	w := newWorld(t, nil, ns, claim(func(c *steading.Environment) {
		c.Annotations = map[string]string{names.AnnotationAdoptFrom: "uid-old"}
	}))
	b := boundary()
	converge(t, w, b)
	got := &corev1.Namespace{}
	if err := w.Get(context.Background(), client.ObjectKey{Name: "acme-dev"}, got); err != nil {
		t.Fatal(err)
	}
	if !kit.Stamped(got, id) || !kit.IsReady(b) {
		t.Errorf("got labels %v, ready %v; want the namespace taken over", got.Labels, kit.IsReady(b))
	}
}

// TestCreateTakesOverNothing has somebody make the namespace between the look and the leap.
func TestCreateTakesOverNothing(t *testing.T) {
	w := newWorld(t, nil, claim(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "acme-dev"}})
	if _, err := w.e.Create(context.Background(), boundary()); err == nil {
		t.Error("got no error for a namespace that exists")
	}
	for _, c := range w.calls {
		if strings.HasPrefix(c, "apply") {
			t.Errorf("something was made in a namespace that is not ours: %v", w.calls)
		}
	}
}

func TestMissingPullSecretIsSaid(t *testing.T) {
	w := newWorld(t, nil, claim(), standing())
	b := boundary(func(b *v1alpha1.Boundary) {
		b.Spec.ForProvider.PullSecretRef = &steading.LocalSecretReference{Name: "acme-pull"}
	})
	_, err := w.e.Observe(context.Background(), b)
	if err == nil || !strings.Contains(err.Error(), "spec.registry.pullSecretRef of the Tenant") {
		t.Errorf("got %v, want an error that says what to do", err)
	}
}

func TestLimitsLeaveRoomForASecondPod(t *testing.T) {
	for _, caps := range []steading.Resources{
		{CPU: resource.MustParse("500m"), Memory: resource.MustParse("512Mi")},
		{CPU: resource.MustParse("8"), Memory: resource.MustParse("20Gi")},
		{CPU: resource.MustParse("128"), Memory: resource.MustParse("1Ti")},
	} {
		l := limits(v1alpha1.BoundaryParameters{Caps: caps}).Spec.Limits[0]
		cpu, mem := l.Default[corev1.ResourceCPU], l.Default[corev1.ResourceMemory]
		if 4*cpu.MilliValue() > caps.CPU.MilliValue() || 4*mem.Value() > caps.Memory.Value() {
			t.Errorf("caps %s %s: a container that says nothing gets %s, %s", &caps.CPU, &caps.Memory, &cpu, &mem)
		}
	}
}

var finalizersRemain = corev1.NamespaceCondition{
	Type: corev1.NamespaceFinalizersRemaining, Status: corev1.ConditionTrue, Reason: "SomeFinalizersRemain",
	Message: "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances",
}

var contentRemains = corev1.NamespaceCondition{
	Type: corev1.NamespaceContentRemaining, Status: corev1.ConditionTrue, Reason: "SomeResourcesRemain",
	Message: "Some resources are remaining: configmaps. has 1 resource instances, widgets.example.com has 5 resource instances",
}

func TestDeletionWaits(t *testing.T) {
	release := &v1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: "acme-dev", Labels: map[string]string{names.LabelComposite: string(id.UID)}}}
	w := newWorld(t, nil, claim(claimDeleted), standing(), release)
	b := boundary(deleted)
	obs, err := w.e.Observe(context.Background(), b)
	if err != nil || !obs.ResourceExists {
		t.Fatalf("got %+v, %v, want it to wait", obs, err)
	}
	if _, err := w.e.Delete(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(w.calls, "delete acme-dev") {
		t.Fatal("the namespace was deleted while its release stands")
	}
	if !slices.Contains(w.calls, "apply steading-deployer") {
		t.Error("the release needs its deployer until it is gone; it was missing and was not made")
	}

	must(t, w.Delete(context.Background(), release))
	observed, err := w.e.Observe(context.Background(), b)
	if err != nil || !observed.ResourceExists {
		t.Fatalf("got %+v, %v", observed, err)
	}
	if _, err := w.e.Delete(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(w.calls, "delete acme-dev") {
		t.Errorf("got %v, want the namespace deleted", w.calls)
	}
	if obs, err = w.e.Observe(context.Background(), b); err != nil || obs.ResourceExists {
		t.Errorf("got %+v, %v, want it gone once the namespace is", obs, err)
	}
}

func TestDeletionLeavesWhatIsNotOurs(t *testing.T) {
	w := newWorld(t, nil, claim(claimDeleted), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "acme-dev"}})
	obs, err := w.e.Observe(context.Background(), boundary(deleted))
	if err != nil || obs.ResourceExists {
		t.Errorf("got %+v, %v, want the Boundary gone and the namespace left", obs, err)
	}
}

func TestDeletionSaysWhatBlocks(t *testing.T) {
	cases := map[string]struct {
		reason     string
		conditions []corev1.NamespaceCondition
		after      time.Duration
		blocked    bool
		want       []string
	}{
		"Foreign": {
			reason:     "a foreign finalizer blocks at once, with the namespace's words and the objects' names",
			conditions: []corev1.NamespaceCondition{finalizersRemain, contentRemains},
			blocked:    true,
			want: []string{
				"NamespaceContentRemaining: " + contentRemains.Message,
				"NamespaceFinalizersRemaining: " + finalizersRemain.Message,
				`configmaps "blocker" (finalizers: example.com/hold)`,
				`widgets.example.com "w1"`, `widgets.example.com "w2"`,
			},
		},
		"Pods": {
			reason:     "what goes away by itself is no blocker yet",
			conditions: []corev1.NamespaceCondition{contentRemains},
			want:       []string{"NamespaceContentRemaining: " + contentRemains.Message, `configmaps "blocker" (finalizers: example.com/hold)`, `widgets.example.com "w1"`, `widgets.example.com "w2"`},
		},
		"PodsForLong": {
			reason:     "what has not gone for long is one",
			conditions: []corev1.NamespaceCondition{contentRemains},
			after:      time.Minute, blocked: true,
			want: []string{"NamespaceContentRemaining: " + contentRemains.Message, `configmaps "blocker" (finalizers: example.com/hold)`, `widgets.example.com "w1"`, `widgets.example.com "w2"`},
		},
		"Nothing": {reason: "a namespace that just terminates", want: nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, leftovers(), claim(claimDeleted), standing(terminating(tc.conditions...)))
			w.clock.Step(tc.after)
			b := boundary(deleted)
			obs, err := w.e.Observe(context.Background(), b)
			if err != nil || !obs.ResourceExists {
				t.Fatalf("got %+v, %v, want it to wait", obs, err)
			}
			if diff := cmp.Diff(tc.want, b.Status.AtProvider.Blockers); diff != "" {
				t.Errorf("%s: -want +got\n%s", tc.reason, diff)
			}
			got := &steading.Environment{}
			if err := w.Get(context.Background(), client.ObjectKey{Namespace: "tenant-acme", Name: "dev"}, got); err != nil {
				t.Fatal(err)
			}
			if said := got.Status.Phase == steading.EnvironmentDeletionBlocked; said != tc.blocked {
				t.Errorf("%s: claim has phase %q, want blocked %v", tc.reason, got.Status.Phase, tc.blocked)
			}
			if said := b.GetCondition(steading.ConditionDeletionBlocked).Status == corev1.ConditionTrue; said != tc.blocked {
				t.Errorf("%s: Boundary blocked %v, want %v", tc.reason, said, tc.blocked)
			}
			if said := len(w.events.Events) > 0; said != tc.blocked {
				t.Errorf("%s: event on the claim %v, want %v", tc.reason, said, tc.blocked)
			}
		})
	}
}

// TestDeletionGoesOn has the blocker removed.
func TestDeletionGoesOn(t *testing.T) {
	w := newWorld(t, leftovers(), claim(claimDeleted), standing(terminating(finalizersRemain, contentRemains)))
	b := boundary(deleted)
	if _, err := w.e.Observe(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	ns := &corev1.Namespace{}
	if err := w.Get(context.Background(), client.ObjectKey{Name: "acme-dev"}, ns); err != nil {
		t.Fatal(err)
	}
	ns.Finalizers = nil
	if err := w.Update(context.Background(), ns); err != nil {
		t.Fatal(err)
	}
	obs, err := w.e.Observe(context.Background(), b)
	if err != nil || obs.ResourceExists {
		t.Fatalf("got %+v, %v, want it gone", obs, err)
	}
	got := &steading.Environment{}
	if err := w.Get(context.Background(), client.ObjectKey{Namespace: "tenant-acme", Name: "dev"}, got); err != nil {
		t.Fatal(err)
	}
	if got.Status.Phase != steading.EnvironmentDeleting {
		t.Errorf("claim has phase %q, want Deleting", got.Status.Phase)
	}
}

// TestARefusedAddressIsSaid: a cluster whose address is refused may well answer, and the claim says what is in the way.
func TestARefusedAddressIsSaid(t *testing.T) {
	w := newWorld(t, nil, claim(claimDeleted))
	b := boundary(deleted)
	err := &target.UnreachableError{Context: "acme-edge", Err: address.Policy{}.Check(netip.MustParseAddr("127.0.0.1"))}
	if _, have := (unreached{w.e, err}).Observe(t.Context(), b); !errors.Is(have, err) {
		t.Errorf("got %v", have)
	}
	got := &steading.Environment{}
	must(t, w.Get(t.Context(), client.ObjectKey{Namespace: "tenant-acme", Name: "dev"}, got))
	for on, c := range map[string]xpv2.Condition{"Boundary": b.GetCondition(steading.ConditionDeletionBlocked), "claim": got.Status.GetCondition(steading.ConditionDeletionBlocked)} {
		if c.Reason != steading.ReasonAddressRefused || !strings.Contains(c.Message, "127.0.0.1 is a loopback address") {
			t.Errorf("the %s says %+v", on, c)
		}
	}
}

func at(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "acme-dev", Name: name} }

func pullSource() *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: "acme-pull"}, Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{}}`)},
	}
}

func leftovers() []runtime.Object {
	left := func(apiVersion, kind, name string, finalizers ...string) runtime.Object {
		return &metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: apiVersion, Kind: kind},
			ObjectMeta: metav1.ObjectMeta{Namespace: "acme-dev", Name: name, Finalizers: finalizers},
		}
	}
	return []runtime.Object{
		left("example.com/v1", "Widget", "w1"), left("example.com/v1", "Widget", "w2"), left("example.com/v1", "Widget", "w3"),
		left("v1", "ConfigMap", "blocker", "example.com/hold"),
	}
}

// to changes objects of one type.
func to[T client.Object](change func(T)) func(client.Object) {
	return func(o client.Object) {
		if typed, ok := o.(T); ok {
			change(typed)
		}
	}
}

func copyOf(t *testing.T, o client.Object) client.Object {
	t.Helper()
	c, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		t.Fatalf("%T is no object", o)
	}
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
