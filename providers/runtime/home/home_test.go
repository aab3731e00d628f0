package home

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/kubernetes/scheme"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// world is an API server, and what a Home's controller does there.
type world struct {
	t      *testing.T
	kube   client.Client
	clock  *clocktesting.FakeClock
	events *record.FakeRecorder
	c      *connector
	home   *v1alpha1.Home
}

func newWorld(t *testing.T, objs ...client.Object) *world {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, steading.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	kube := fake.NewClientBuilder().WithScheme(s).WithTypeConverters(managedfields.NewDeducedTypeConverter()).WithStatusSubresource(&steading.Tenant{}).WithObjects(objs...).Build()
	events := record.NewFakeRecorder(100)
	w := &world{t: t, kube: kube, clock: clocktesting.NewFakeClock(epoch), events: events}
	w.c = &connector{
		client: kube, reader: kube, clock: w.clock,
		claims:   kit.NewClaimReporter(kube, kube, events),
		youngers: kit.Youngers{Reader: kube, Kinds: youngerKinds, ByClaim: true},
		metadata: metadatafake.NewSimpleMetadataClient(metadatafake.NewTestScheme()), mapper: meta.NewDefaultRESTMapper(nil),
	}
	w.home = &v1alpha1.Home{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: "acme", Generation: 1},
		Spec: v1alpha1.HomeSpec{ForProvider: v1alpha1.HomeParameters{
			Identity:  v1alpha1.Identity{Tenant: "acme", UID: "xr-acme"},
			Claim:     v1alpha1.ClaimReference{Namespace: names.SystemNamespace, Name: "acme"},
			Namespace: "tenant-acme",
			Settings: steading.TenantSpec{
				Owners:         []steading.Subject{{Kind: "Group", Name: "acme-admins"}, {Kind: "ServiceAccount", Name: "ci", Namespace: "acme-ci"}},
				DeletionPolicy: steading.DeletionRetain,
			},
		}},
	}
	return w
}

// look is one pass of the managed reconciler. It reports whether the Home is done: up to date, or free to go.
func (w *world) look() (bool, error) {
	ctx := context.Background()
	e, err := w.c.Connect(ctx, w.home)
	if err != nil {
		return false, err
	}
	o, err := e.Observe(ctx, w.home)
	switch {
	case err != nil:
		return false, err
	case w.home.DeletionTimestamp != nil && !o.ResourceExists:
		return true, nil
	case w.home.DeletionTimestamp != nil:
		_, err = e.Delete(ctx, w.home)
	case !o.ResourceExists:
		_, err = e.Create(ctx, w.home)
	case !o.ResourceUpToDate:
		_, err = e.Update(ctx, w.home)
	default:
		return true, nil
	}
	return false, err
}

// settle looks until there is nothing left to do.
func (w *world) settle() *world {
	w.t.Helper()
	for range 5 {
		done, err := w.look()
		if err != nil {
			w.t.Fatal(err)
		}
		if done {
			return w
		}
	}
	w.t.Fatal("it does not settle")
	return w
}

// count plays the quota controller's first pass over the tenant's namespace.
func (w *world) count() *world {
	w.t.Helper()
	q := &corev1.ResourceQuota{}
	w.get(q, "tenant-acme", names.Quota)
	q.Status.Used = corev1.ResourceList{quotaOfEnvironments: resource.MustParse("0")}
	w.update(q)
	return w
}

// waits checks that the Home is not done after a look.
func (w *world) waits() {
	w.t.Helper()
	if done, err := w.look(); done || err != nil {
		w.t.Fatalf("done %t, error %v", done, err)
	}
}

func (w *world) get(o client.Object, namespace, name string) bool {
	w.t.Helper()
	err := w.kube.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: name}, o)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	return err == nil
}

func (w *world) namespace() *corev1.Namespace {
	ns := &corev1.Namespace{}
	if !w.get(ns, "", "tenant-acme") {
		return nil
	}
	return ns
}

func (w *world) create(o client.Object) *world {
	w.t.Helper()
	if err := w.kube.Create(context.Background(), o); err != nil {
		w.t.Fatal(err)
	}
	return w
}

func (w *world) update(o client.Object) {
	w.t.Helper()
	if err := w.kube.Update(context.Background(), o); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) delete(o client.Object) *world {
	w.t.Helper()
	if err := w.kube.Delete(context.Background(), o); err != nil {
		w.t.Fatal(err)
	}
	return w
}

func (w *world) goes(p steading.DeletionPolicy) *world {
	at := metav1.NewTime(epoch)
	w.home.DeletionTimestamp = &at
	w.home.Spec.ForProvider.Settings.DeletionPolicy = p
	return w
}

func (w *world) said(what string) bool {
	for len(w.events.Events) > 0 {
		if strings.Contains(<-w.events.Events, what) {
			return true
		}
	}
	return false
}

// claim of the tenant, which is being deleted.
func claim() *steading.Tenant {
	at := metav1.NewTime(epoch)
	return &steading.Tenant{ObjectMeta: metav1.ObjectMeta{
		Namespace: names.SystemNamespace, Name: "acme", UID: "claim", DeletionTimestamp: &at, Finalizers: []string{"finalizer.apiextensions.crossplane.io"},
	}}
}

func (w *world) claim() *steading.Tenant {
	w.t.Helper()
	c := &steading.Tenant{}
	if !w.get(c, names.SystemNamespace, "acme") {
		w.t.Fatal("no claim")
	}
	return c
}

func placement(tenant, env string) *v1alpha1.Placement {
	return &v1alpha1.Placement{ObjectMeta: metav1.ObjectMeta{
		Namespace: names.SystemNamespace, Name: tenant + "-" + env,
		Labels: map[string]string{names.LabelTenant: tenant, names.LabelEnvironment: env},
	}}
}

func environment(namespace, name string) *steading.Environment {
	return &steading.Environment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func TestAHomeIsMade(t *testing.T) {
	w := newWorld(t).settle()
	if c := w.home.GetCondition("Ready"); c.Status != "False" || !strings.Contains(c.Message, "does not count environments yet") {
		t.Errorf("before the API server counts: %+v", c)
	}
	w.count().settle()
	ns := w.namespace()
	if ns == nil || !kit.Stamped(ns, w.home.Spec.ForProvider.Identity) || ns.Labels["pod-security.kubernetes.io/enforce"] != "restricted" {
		t.Fatalf("namespace %+v", ns)
	}
	subjects := []rbacv1.Subject{
		{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "acme-admins"},
		{Kind: "ServiceAccount", Name: "ci", Namespace: "acme-ci"},
	}
	for at, role := range map[client.ObjectKey]string{
		{Namespace: "tenant-acme", Name: names.Owners}:                       names.TenantOwnerRole,
		{Namespace: names.SystemNamespace, Name: names.TenantReader("acme")}: names.TenantReader("acme"),
	} {
		b := &rbacv1.RoleBinding{}
		if !w.get(b, at.Namespace, at.Name) || b.RoleRef.Name != role {
			t.Errorf("no role binding %s", at)
		}
		if diff := cmp.Diff(subjects, b.Subjects); diff != "" {
			t.Errorf("%s: -want, +have:\n%s", at, diff)
		}
	}
	q := &corev1.ResourceQuota{}
	if w.get(q, "tenant-acme", names.Quota); q.Spec.Hard.Name(quotaOfEnvironments, "").Value() != 20 {
		t.Errorf("quota %+v", q.Spec)
	}
	if p := (&networkingv1.NetworkPolicy{}); !w.get(p, "tenant-acme", denyAll) || len(p.Spec.PolicyTypes) != 2 || len(p.Spec.Ingress)+len(p.Spec.Egress) != 0 {
		t.Errorf("network policy %+v", p.Spec)
	}
	if w.home.Status.AtProvider.Namespace != "tenant-acme" || !kit.IsReady(w.home) {
		t.Errorf("status %+v", w.home.Status)
	}
}

func TestAQuotaThatIsNeverCountedIsMadeAnew(t *testing.T) {
	w := newWorld(t).settle()
	before := &corev1.ResourceQuota{}
	w.get(before, "tenant-acme", names.Quota)
	before.CreationTimestamp = metav1.NewTime(w.clock.Now())
	metav1.SetMetaDataAnnotation(&before.ObjectMeta, "made", "first")
	w.update(before)

	w.clock.Step(recount - time.Second)
	if done, err := w.look(); !done || err != nil {
		t.Fatalf("impatient: done %t, %v", done, err)
	}
	w.clock.Step(time.Second)
	if done, err := w.look(); done || err != nil {
		t.Fatalf("patient for ever: done %t, %v", done, err)
	}
	after := &corev1.ResourceQuota{}
	if !w.get(after, "tenant-acme", names.Quota) || after.Annotations["made"] != "" {
		t.Errorf("the quota was not made anew: %+v", after.ObjectMeta)
	}
	if w.count().settle(); !kit.IsReady(w.home) {
		t.Errorf("conditions %+v", w.home.Status.Conditions)
	}
}

func TestOwnersOnlyReadTheirTenant(t *testing.T) {
	for _, rule := range readTenant("acme") {
		for _, r := range rule.Resources {
			if slices.Contains([]string{"*", "roles", "rolebindings", "resourcequotas", "networkpolicies", "pods", "serviceaccounts"}, r) {
				t.Errorf("owners may %v %s", rule.Verbs, r)
			}
			if strings.HasSuffix(r, "/status") && slices.ContainsFunc(rule.Verbs, func(v string) bool { return v != "get" && v != "list" && v != "watch" }) {
				t.Errorf("owners may %v %s", rule.Verbs, r)
			}
		}
	}
}

func TestDriftIsRepaired(t *testing.T) {
	cases := map[string]struct {
		reason string
		drift  func(*world)
	}{
		"Role": {"More rights than we gave are taken back.", func(w *world) {
			r := &rbacv1.Role{}
			w.get(r, names.SystemNamespace, names.TenantReader("acme"))
			r.Rules = append(r.Rules, rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}})
			w.update(r)
		}},
		"Subjects": {"So are subjects.", func(w *world) {
			b := &rbacv1.RoleBinding{}
			w.get(b, "tenant-acme", names.Owners)
			b.Subjects = nil
			w.update(b)
		}},
		"Quota": {"And quota.", func(w *world) {
			q := &corev1.ResourceQuota{}
			w.get(q, "tenant-acme", names.Quota)
			q.Spec.Hard = nil
			w.update(q)
		}},
		"NetworkPolicy": {"What is deleted is made again.", func(w *world) { p := &networkingv1.NetworkPolicy{}; w.get(p, "tenant-acme", denyAll); w.delete(p) }},
		"Labels":        {"Labels that were taken off the namespace come back.", func(w *world) { ns := w.namespace(); ns.Labels = map[string]string{"mine": "stays"}; w.update(ns) }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).settle()
			tc.drift(w)
			if done, err := w.look(); done || err != nil {
				t.Fatalf("%s: done %t, error %v", tc.reason, done, err)
			}
			if done, err := w.look(); !done || err != nil {
				t.Errorf("%s: one update is not enough: %v", tc.reason, err)
			}
			if stale, err := (&external{connector: w.c}).staleOf(context.Background(), w.home, partsOf(w.home)); err != nil || len(stale) > 0 || !stamped(w.namespace(), w.home) {
				t.Errorf("%s: stale %+v, %v", tc.reason, stale, err)
			}
		})
	}
}

func TestAdoptionIsRefused(t *testing.T) {
	of := func(id v1alpha1.Identity) *corev1.Namespace {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tenant-acme"}}
		kit.Stamp(ns, id)
		return ns
	}
	adopting := claim()
	adopting.Annotations = map[string]string{names.AnnotationAdoptFrom: "old"}
	cases := map[string]struct {
		reason string
		objs   []client.Object
		want   string
	}{
		"NoIdentity": {
			"A namespace that somebody made is left alone.",
			[]client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tenant-acme"}}},
			"Namespace tenant-acme exists and was not made by Steading, so it is neither changed nor deleted: delete or rename it, or delete this claim",
		},
		"OlderComposite": {
			"One of an earlier tenant of the name is left alone, and the way out is named.",
			[]client.Object{of(v1alpha1.Identity{Tenant: "acme", UID: "old"})},
			"Namespace tenant-acme exists and belongs to another tenant acme (composite old, this one is xr-acme), so it is neither changed nor deleted: " +
				"to take it over, an operator sets the annotation steading.dev/adopt-from: old on the claim",
		},
		"Adopted": {
			"With the operator's leave it is taken over.",
			[]client.Object{of(v1alpha1.Identity{Tenant: "acme", UID: "old"}), adopting},
			"",
		},
		"AdoptionOfAnother": {
			"The leave is for the composite it names only.",
			[]client.Object{of(v1alpha1.Identity{Tenant: "acme", UID: "older"}), adopting},
			"Namespace tenant-acme exists and belongs to another tenant acme (composite older, this one is xr-acme), so it is neither changed nor deleted: " +
				"to take it over, an operator sets the annotation steading.dev/adopt-from: older on the claim",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.objs...)
			before := w.namespace().ResourceVersion
			if tc.want == "" {
				w.settle()
				if !kit.Stamped(w.namespace(), w.home.Spec.ForProvider.Identity) {
					t.Errorf("%s: labels %v", tc.reason, w.namespace().Labels)
				}
				return
			}
			_, err := w.look()
			if err == nil || err.Error() != tc.want || !errors.As(err, new(*kit.NotOursError)) {
				t.Fatalf("%s: error %v", tc.reason, err)
			}
			if w.namespace().ResourceVersion != before {
				t.Errorf("%s: it was changed", tc.reason)
			}
			if c := w.home.GetCondition(xpv2.TypeReady); c.Reason != steading.ReasonForeignNamespace {
				t.Errorf("%s: condition %+v", tc.reason, c)
			}
			w.goes(steading.DeletionDelete).settle()
			if w.namespace() == nil {
				t.Errorf("%s: it was deleted", tc.reason)
			}
		})
	}
}

func TestANamespaceMadeInBetweenIsNotAdopted(t *testing.T) {
	w := newWorld(t)
	e := &external{connector: w.c}
	if o, err := e.Observe(context.Background(), w.home); err != nil || o.ResourceExists {
		t.Fatalf("%+v, %v", o, err)
	}
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tenant-acme"}})
	if _, err := e.Create(context.Background(), w.home); err == nil {
		t.Error("no error")
	}
	if kit.Stamped(w.namespace(), w.home.Spec.ForProvider.Identity) {
		t.Error("adopted")
	}
}
