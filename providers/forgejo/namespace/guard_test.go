package namespace

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/apis/names"
	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// A world is a cluster with a guard.
type world struct {
	t *testing.T
	client.WithWatch
	clock.Clock
	// slept is how long nothing happened.
	slept time.Duration
	g     *Guard
	calls []string
	// reads of single objects.
	reads int
	// forbidden is how often the provider's right is not known yet.
	forbidden int
	// noRight is whether it has none at all.
	noRight bool
}

func newWorld(t *testing.T, objs ...client.Object) *world {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, metav1.AddMetaToScheme} {
		must(t, add(s))
	}
	w := &world{t: t, Clock: clock.RealClock{}}
	w.WithWatch = clientfake.NewClientBuilder().WithScheme(s).WithObjects(objs...).WithTypeConverters(managedfields.NewDeducedTypeConverter()).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				w.reads++
				switch o.(type) {
				case *corev1.ResourceQuota, *corev1.ServiceAccount, *networkingv1.NetworkPolicy:
					if w.forbidden--; w.forbidden >= 0 || w.noRight {
						return kerrors.NewForbidden(schema.GroupResource{Resource: "resourcequotas"}, k.Name, errors.New("no right"))
					}
				}
				return c.Get(ctx, k, o, opts...)
			},
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				w.calls = append(w.calls, "create "+o.GetObjectKind().GroupVersionKind().Kind)
				return c.Create(ctx, o, opts...)
			},
			Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
				w.calls = append(w.calls, "apply")
				return c.Apply(ctx, o, opts...)
			},
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
				w.calls = append(w.calls, "delete "+o.GetName())
				return c.Delete(ctx, o, opts...)
			},
		}).Build()
	w.g = New(w, w, w)
	return w
}

// Now is later by what was slept through.
func (w *world) Now() time.Time { return w.Clock.Now().Add(w.slept) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ci is a namespace that was given to acme's runners.
func ci(name string, change ...func(*corev1.Namespace)) *corev1.Namespace {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{names.LabelRunnersFor: "acme"}}}
	for _, c := range change {
		c(ns)
	}
	return ns
}

func pool(name, ns string, most int32) *v1alpha1.Runner {
	r := &v1alpha1.Runner{ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: "acme-" + name, Labels: map[string]string{names.LabelTenant: "acme"}}}
	r.Spec.ForProvider = v1alpha1.RunnerParameters{
		Identity: runtimev1.Identity{Tenant: "acme", UID: "uid-1"},
		Settings: steading.RunnerPoolSpec{JobNamespace: ns, MaxRunners: most, Labels: []string{"docker"}},
	}
	return r
}

// runner of the pool linux, in acme-ci.
func runner() *v1alpha1.RunnerInstance {
	i := &v1alpha1.RunnerInstance{ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: "acme-linux-4kx9vb2m", Labels: map[string]string{names.LabelTenant: "acme"}}}
	i.Spec.ForProvider.Pool.Name, i.Spec.ForProvider.Config.JobNamespace = "acme-linux", "acme-ci"
	return i
}

// rails that stand in a namespace, as they are.
func (w *world) standing(ns string) []client.Object {
	w.t.Helper()
	var found []client.Object
	for _, r := range rails("acme", ns, 0) {
		err := w.Get(w.t.Context(), client.ObjectKeyFromObject(r.want), r.have)
		if client.IgnoreNotFound(err) != nil {
			w.t.Fatal(err)
		}
		if err == nil {
			found = append(found, r.have)
		}
	}
	return found
}

func (w *world) pods() int64 {
	w.t.Helper()
	q := &corev1.ResourceQuota{}
	must(w.t, w.Get(w.t.Context(), client.ObjectKey{Namespace: "acme-ci", Name: names.RunnerGuard}, q))
	return q.Spec.Hard.Pods().Value()
}

func TestGuardRailsAreMadeAndLeftAlone(t *testing.T) {
	w := newWorld(t, ci("acme-ci"), pool("linux", "acme-ci", 20))
	w.forbidden = 3
	must(t, w.g.Ensure(t.Context(), pool("linux", "acme-ci", 20)))
	want := []string{"create RoleBinding", "create ServiceAccount", "create ResourceQuota", "create NetworkPolicy"}
	if diff := cmp.Diff(want, w.calls); diff != "" || w.forbidden >= 0 {
		t.Errorf("the right that the others take is first, and waited for: -want, +got:\n%s", diff)
	}
	all := w.standing("acme-ci")
	for _, o := range all {
		if o.GetLabels()[names.LabelTenant] != "acme" || o.GetLabels()[names.LabelManagedBy] != names.ManagedBy {
			t.Errorf("%s is not labelled: %v", o.GetName(), o.GetLabels())
		}
		if _, one := o.GetLabels()[names.LabelComposite]; one {
			t.Errorf("%s belongs to one pool", o.GetName())
		}
	}
	b, ok := all[0].(*rbacv1.RoleBinding)
	if !ok || b.RoleRef.Name != names.RunnerSpawnerRole || len(b.Subjects) != 2 || b.Subjects[0].Name != names.ProviderForgejo {
		t.Errorf("binding %+v", b)
	}
	if sa, ok := all[1].(*corev1.ServiceAccount); !ok || sa.AutomountServiceAccountToken == nil || *sa.AutomountServiceAccountToken {
		t.Errorf("account %+v", sa)
	}
	p, ok := all[3].(*networkingv1.NetworkPolicy)
	if !ok || len(p.Spec.Ingress) > 0 || len(p.Spec.PolicyTypes) != 2 || len(p.Spec.Egress) != 2 {
		t.Errorf("policy %+v", p)
	}
	w.calls = nil
	must(t, w.g.Ensure(t.Context(), pool("linux", "acme-ci", 20)))
	if len(w.calls) > 0 {
		t.Errorf("what stands is left alone: %v", w.calls)
	}
}

// TestPoolsShareTheQuota: it has room for the runners of all that name the namespace, until the last one goes.
func TestPoolsShareTheQuota(t *testing.T) {
	linux, bsd := pool("linux", "acme-ci", 20), pool("bsd", "acme-ci", 4)
	w := newWorld(t, ci("acme-ci"), linux, bsd, pool("other", "acme-other", 100), runner())
	must(t, w.g.Ensure(t.Context(), linux))
	if got := w.pods(); got != 24 {
		t.Errorf("room for %d pods, want 24", got)
	}
	must(t, w.g.Ensure(t.Context(), pool("linux", "acme-ci", 30)))
	if got := w.pods(); got != 34 {
		t.Errorf("room for %d pods, want 34: the pool at hand is as it is now, whatever the cache has", got)
	}
	must(t, w.g.Release(t.Context(), linux))
	if got := w.pods(); got != 4 {
		t.Errorf("room for %d pods, want 4", got)
	}
	must(t, w.Delete(t.Context(), linux))
	must(t, w.Delete(t.Context(), runner()))
	w.calls = nil
	must(t, w.g.Release(t.Context(), bsd))
	if diff := cmp.Diff([]string{"delete steading-runner", "delete steading-runners", "delete steading-runners", "delete steading-runners"}, w.calls); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if left := w.standing("acme-ci"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestNamespacesAreRefused(t *testing.T) {
	terminating := func(ns *corev1.Namespace) {
		ns.DeletionTimestamp, ns.Finalizers = ptr.To(metav1.NewTime(time.Unix(1, 0))), []string{"kubernetes"}
	}
	cases := map[string]struct {
		reason string
		ns     *corev1.Namespace
		want   string
	}{
		"None":    {"there is nothing to run in", ci("other"), "namespace acme-ci of spec.jobNamespace does not exist: ask an operator to make it, with the label steading.dev/runners-for: acme"},
		"Nobodys": {"a tenant does not choose", ci("acme-ci", func(ns *corev1.Namespace) { ns.Labels = nil }), "namespace acme-ci of spec.jobNamespace was given to nobody's runners: ask an operator to label it steading.dev/runners-for: acme"},
		"Others": {
			"another tenant's is another tenant's, and is not named", ci("acme-ci", func(ns *corev1.Namespace) { ns.Labels[names.LabelRunnersFor] = "globex" }),
			"namespace acme-ci of spec.jobNamespace was not given to the runners of tenant acme: ask an operator for one that is labelled steading.dev/runners-for: acme",
		},
		"Steadings":   {"an environment is held in otherwise", ci("acme-ci", func(ns *corev1.Namespace) { ns.Labels[names.LabelManagedBy] = names.ManagedBy }), "namespace acme-ci of spec.jobNamespace is one of Steading's own: runners need one of theirs"},
		"Terminating": {"nothing can be made in it", ci("acme-ci", terminating), "namespace acme-ci of spec.jobNamespace is being deleted"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.ns)
			err := w.g.Ensure(t.Context(), pool("linux", "acme-ci", 1))
			var no *RefusedError
			if !errors.As(err, &no) || no.Reason() != steading.ReasonJobNamespaceRefused || err.Error() != tc.want {
				t.Errorf("%s: %v", tc.reason, err)
			}
			if len(w.calls) > 0 {
				t.Errorf("%s: %v", tc.reason, w.calls)
			}
		})
	}
}

// TestOthersObjectsAreRefused, not taken over, and not taken down either.
func TestOthersObjectsAreRefused(t *testing.T) {
	for i, kind := range []string{"RoleBinding", "ServiceAccount", "ResourceQuota", "NetworkPolicy"} {
		for of, tenant := range map[string]string{"Nobody": "", "AnotherTenant": "globex"} {
			t.Run(kind+"/"+of, func(t *testing.T) {
				theirs := rails("globex", "acme-ci", 7)[i].want
				if tenant == "" {
					theirs.SetLabels(nil)
					theirs.SetAnnotations(nil)
				}
				w := newWorld(t, ci("acme-ci"), theirs)
				err := w.g.Ensure(t.Context(), pool("linux", "acme-ci", 1))
				if err == nil || errors.As(err, new(*RefusedError)) || !strings.Contains(err.Error(), kind+" acme-ci/"+theirs.GetName()+" exists and was not made for the runners of tenant acme") {
					t.Errorf("error %v", err)
				}
				must(t, w.g.Release(t.Context(), pool("linux", "acme-ci", 1)))
				if left := w.standing("acme-ci"); len(left) != 1 || left[0].GetName() != theirs.GetName() {
					t.Errorf("left are %v", left)
				}
			})
		}
	}
}

func TestGuardRailsAreRepaired(t *testing.T) {
	cases := map[string]struct {
		reason string
		rail   int
		change func(client.Object)
	}{
		"Subjects": {"somebody else was given the right", 0, func(o client.Object) {
			b, _ := o.(*rbacv1.RoleBinding)
			b.Subjects = append(b.Subjects, rbacv1.Subject{Kind: "User", Name: "eve"})
		}},
		"Role": {"it was bound to more", 0, func(o client.Object) {
			b, _ := o.(*rbacv1.RoleBinding)
			b.RoleRef.Name = "admin"
		}},
		"Token": {"tokens would be mounted", 1, func(o client.Object) {
			sa, _ := o.(*corev1.ServiceAccount)
			sa.AutomountServiceAccountToken = nil
		}},
		"Quota": {"more pods would be let in", 2, func(o client.Object) {
			q, _ := o.(*corev1.ResourceQuota)
			q.Spec.Hard[corev1.ResourcePods] = resource.MustParse("1000")
		}},
		"Policy": {"runners could be reached", 3, func(o client.Object) {
			p, _ := o.(*networkingv1.NetworkPolicy)
			p.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{}}
		}},
		"Gone": {"somebody deleted it", 3, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, ci("acme-ci"))
			r := pool("linux", "acme-ci", 20)
			must(t, w.g.Ensure(t.Context(), r))
			before := w.standing("acme-ci")
			o, _ := before[tc.rail].DeepCopyObject().(client.Object)
			if tc.change == nil {
				must(t, w.Delete(t.Context(), o))
			} else {
				tc.change(o)
				must(t, w.Update(t.Context(), o))
			}
			w.slept += again
			must(t, w.g.Ensure(t.Context(), r))
			after := w.standing("acme-ci")
			if len(after) != len(before) {
				t.Fatalf("%s: there are %d", tc.reason, len(after))
			}
			clean := func(o client.Object) client.Object {
				o.SetResourceVersion("")
				o.SetManagedFields(nil)
				return o
			}
			if diff := cmp.Diff(clean(before[tc.rail]), clean(after[tc.rail])); diff != "" {
				t.Errorf("%s: -before, +after:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestWhatStandsIsLookedAtSeldom: a look at the queue costs no request, until something suggests one.
func TestWhatStandsIsLookedAtSeldom(t *testing.T) {
	w := newWorld(t, ci("acme-ci"), ci("acme-unused"))
	r := pool("linux", "acme-ci", 20)
	must(t, w.g.Ensure(t.Context(), r))
	reads := func(r *v1alpha1.Runner) int {
		t.Helper()
		w.reads = 0
		must(t, w.g.Ensure(t.Context(), r))
		return w.reads - 1 // The namespace is read from the cache.
	}
	for range 3 {
		w.slept += 30 * time.Second
		if n := reads(r); n != 0 {
			t.Errorf("%d reads, though nothing changed", n)
		}
	}
	if n := reads(pool("linux", "acme-ci", 30)); n != 4 || w.pods() != 30 {
		t.Errorf("%d reads for another maximum, and room for %d pods", n, w.pods())
	}
	i := runner()
	i.Status.AtProvider.Phase, i.Status.AtProvider.Reason = v1alpha1.RunnerFailed, v1alpha1.CreateFailed
	i.Status.AtProvider.CompletionTime = new(metav1.NewTime(w.Now()))
	must(t, w.Create(t.Context(), i))
	if n := reads(pool("linux", "acme-ci", 30)); n != 4 {
		t.Errorf("%d reads after a runner that could not be made", n)
	}
	w.slept += again
	if n := reads(pool("linux", "acme-ci", 30)); n != 4 {
		t.Errorf("%d reads after a while", n)
	}
}

// TestAFormerNamespaceStandsUntilItIsSwept: by the guard rails the provider may take what is left away.
func TestAFormerNamespaceStandsUntilItIsSwept(t *testing.T) {
	w := newWorld(t, ci("acme-ci"), ci("acme-new"))
	must(t, w.g.Ensure(t.Context(), pool("linux", "acme-ci", 20)))
	r := pool("linux", "acme-new", 20)
	r.Status.Namespaces = []string{"acme-ci", "acme-new"}
	must(t, w.g.Ensure(t.Context(), r))
	if n := len(w.standing("acme-ci")); n != 4 {
		t.Errorf("%d guard rails stand where something may be left", n)
	}
	swept := r.DeepCopy()
	swept.Status.Namespaces = []string{"acme-new"}
	must(t, w.g.Ensure(t.Context(), swept))
	if n := len(w.standing("acme-ci")); n != 0 {
		t.Errorf("%d guard rails stand where nothing is left", n)
	}

	must(t, w.g.Ensure(t.Context(), pool("linux", "acme-ci", 20)))
	must(t, w.g.Release(t.Context(), r))
	if a, b := len(w.standing("acme-ci")), len(w.standing("acme-new")); a != 0 || b != 0 {
		t.Errorf("the pool is gone, and %d and %d guard rails stand", a, b)
	}
}

// TestANamespaceThatIsLeftIsTidied: when a pool names another one the guard rails stay until its last runner is gone from there.
func TestANamespaceThatIsLeftIsTidied(t *testing.T) {
	w := newWorld(t, ci("acme-ci"), ci("acme-new"), runner())
	must(t, w.g.Ensure(t.Context(), pool("linux", "acme-ci", 20)))
	must(t, w.g.Ensure(t.Context(), pool("linux", "acme-new", 20)))
	if n := len(w.standing("acme-ci")); n != 4 {
		t.Errorf("%d guard rails stand around a runner", n)
	}
	must(t, w.Delete(t.Context(), runner()))
	must(t, w.g.Ensure(t.Context(), pool("linux", "acme-new", 20)))
	if a, b := len(w.standing("acme-ci")), len(w.standing("acme-new")); a != 0 || b != 4 {
		t.Errorf("%d and %d guard rails stand", a, b)
	}
}

// TestANamespaceThatIsTakenBack is left, once no runner is in it.
func TestANamespaceThatIsTakenBack(t *testing.T) {
	w := newWorld(t, ci("acme-ci"), runner())
	r := pool("linux", "acme-ci", 20)
	must(t, w.g.Ensure(t.Context(), r))
	ns := ci("acme-ci")
	must(t, w.Get(t.Context(), client.ObjectKeyFromObject(ns), ns))
	ns.Labels = nil
	must(t, w.Update(t.Context(), ns))
	if err := w.g.Ensure(t.Context(), r); err == nil || len(w.standing("acme-ci")) != 4 {
		t.Errorf("error %v, and %d guard rails", err, len(w.standing("acme-ci")))
	}
	must(t, w.Delete(t.Context(), runner()))
	if err := w.g.Ensure(t.Context(), r); !errors.As(err, new(*RefusedError)) || len(w.standing("acme-ci")) != 0 {
		t.Errorf("error %v, and %d guard rails", err, len(w.standing("acme-ci")))
	}
}

// TestReleaseOfANamespaceThatIsGone, or in which the provider has no right any more, holds nobody up (actions-runner-controller#4484).
func TestReleaseOfANamespaceThatIsGone(t *testing.T) {
	w := newWorld(t)
	must(t, w.g.Release(t.Context(), pool("linux", "acme-ci", 20)))

	w = newWorld(t, ci("acme-ci"))
	must(t, w.g.Ensure(t.Context(), pool("linux", "acme-ci", 20)))
	w.noRight = true
	must(t, w.g.Release(t.Context(), pool("linux", "acme-ci", 20)))

	w = newWorld(t, pool("bsd", "acme-ci", 1))
	must(t, w.g.Release(t.Context(), pool("linux", "acme-ci", 20)))
}
