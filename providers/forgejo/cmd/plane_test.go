package main

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/apis/names"
	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/cluster/local"
	"github.com/steading-dev/steading/providers/internal/kit"
	"github.com/steading-dev/steading/test/fakes/forgejo"
	"github.com/steading-dev/steading/test/fakes/runnernode"
	"github.com/steading-dev/steading/test/harness"
)

// root of the module.
const root = "../../../"

// A bench is a control plane with the provider as it is installed, a Forgejo, and a node that runs runners. Nothing is polled but
// the queue.
type bench struct {
	client.Client
	plane   *local.Plane
	forgejo *forgejo.Server
	url     string
}

// TestOnAPlane tells the story of a pool, by the provider's own power and under the policies that hold it in.
func TestOnAPlane(t *testing.T) {
	b := newBench(t)
	if !t.Run("every job is run once", b.testJobsAreRun) {
		return
	}
	t.Run("a record that is deleted kills its runner", b.testKill)
	t.Run("a new image drains what is idle", b.testDrain)
	t.Run("a pool that goes leaves nothing", b.testPoolGoes)
	t.Run("a namespace that was not given is refused", b.testNotGiven)
}

func newBench(t *testing.T) *bench {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a control plane; not under -short")
	}
	ctrl.SetLogger(logr.Discard())
	p, err := local.Start(t.Context(), local.Options{Name: "runners", Progress: func(line string) { t.Log(line) }})
	must(t, err)
	t.Cleanup(func() { must(t, p.Stop()) })
	s, err := provider(flags{}).Scheme()
	must(t, err)
	c, err := client.New(p.Config(), client.Options{Scheme: s})
	must(t, err)
	b := &bench{Client: c, plane: p, forgejo: forgejo.New(forgejo.Options{})}
	srv := httptest.NewServer(b.forgejo)
	t.Cleanup(srv.Close)
	b.url = srv.URL
	b.install(t)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	_, err = runnernode.Start(ctx, p.Config(), runnernode.Options{FetchInterval: 100 * time.Millisecond, ReportInterval: 100 * time.Millisecond})
	must(t, err)
	b.start(t)
	return b
}

// install what stands before the provider starts.
func (b *bench) install(t *testing.T) {
	t.Helper()
	must(t, b.plane.Apply(t.Context(), harness.Definition(steading.RunnerPoolKind)))
	base, err := filepath.Glob(root + "cluster/install/base/[0-9]*.yaml")
	if err != nil || len(base) == 0 {
		t.Fatalf("cannot find the manifests: %v", err)
	}
	must(t, b.plane.ApplyFiles(t.Context(), append([]string{root + "package/provider-forgejo/crds"}, base...)...))

	must(t, b.forgejo.AddUser("ann", false))
	must(t, b.forgejo.AddOrganization("acme", "ann"))
	must(t, b.forgejo.AddRepository("acme", "web", true))
	token, err := b.forgejo.AddToken("ann", "write:organization")
	must(t, err)

	tenant := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tenant-acme"}}
	kit.Stamp(tenant, runtimev1.Identity{Tenant: "acme", UID: "uid-acme"})
	jobs := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "acme-ci", Labels: map[string]string{names.LabelRunnersFor: "acme"}}}
	pat := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-acme", Name: "forgejo-pat"}, StringData: map[string]string{"token": token}}
	config := &v1alpha1.ClusterProviderConfig{
		ObjectMeta: metav1.ObjectMeta{Name: names.DefaultProviderConfig},
		Spec:       v1alpha1.ProviderConfigSpec{RunnerImage: "example.com/runner:1", AllowedServers: []string{"127.0.0.0/8"}},
	}
	claim := &unstructured.Unstructured{Object: map[string]any{}}
	claim.SetGroupVersionKind(steading.GroupVersion.WithKind(steading.RunnerPoolKind))
	claim.SetNamespace("tenant-acme")
	claim.SetName("linux")
	for _, o := range []client.Object{tenant, jobs, pat, config, claim} {
		must(t, b.Create(t.Context(), o))
	}
}

// start the provider, as its own account.
func (b *bench) start(t *testing.T) {
	t.Helper()
	kubeconfig, err := b.plane.ServiceAccountKubeconfig(t.Context(), names.SystemNamespace, name)
	must(t, err)
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	must(t, err)
	f := flags{DeregisterFor: 2 * time.Minute, Flags: kit.Flags{
		PollInterval: time.Hour, PollIntervalNotReady: time.Hour, DeletionBackoff: time.Hour, MaxDeletionBackoff: time.Hour,
		MaxReconciles: 5, MaxReconcileRate: 100, MetricsAddress: "0", HealthAddress: "0",
	}}
	mgr, err := provider(f).Manager(cfg, f.Flags, logging.NewNopLogger())
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// pool as Crossplane makes it. It is made by hand, which is what the annotation is for.
func (b *bench) pool(t *testing.T, pool, ns string, change ...func(*steading.RunnerPoolSpec)) *v1alpha1.Runner {
	t.Helper()
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "job", Image: "example.com/job:1"}}}}
	runnernode.Place(&template.Spec)
	raw, err := yaml.Marshal(template)
	must(t, err)
	raw, err = yaml.YAMLToJSON(raw)
	must(t, err)
	r := &v1alpha1.Runner{ObjectMeta: metav1.ObjectMeta{
		Namespace: names.SystemNamespace, Name: names.Runner("acme", pool), Finalizers: []string{names.Finalizer},
		Annotations: map[string]string{names.AnnotationBreakGlass: "a test"},
		Labels:      map[string]string{names.LabelTenant: "acme", names.LabelComposite: "uid-" + pool},
	}}
	r.Spec.ForProvider = v1alpha1.RunnerParameters{
		Identity: runtimev1.Identity{Tenant: "acme", UID: "uid-pool"},
		Claim:    runtimev1.ClaimReference{Namespace: "tenant-acme", Name: pool},
		Settings: steading.RunnerPoolSpec{
			Forgejo: steading.ForgejoServer{
				URL: b.url, Scope: steading.ForgejoScope{Organization: "acme"}, TokenSecretRef: steading.TokenSecretReference{Name: "forgejo-pat", Key: "token"},
			},
			Labels: []string{"docker"}, JobNamespace: ns, MaxRunners: 2, PollIntervalSeconds: 5, StartupTimeoutSeconds: 60, JobTimeoutSeconds: 600,
			SuccessfulJobsHistoryLimit: 2, FailedJobsHistoryLimit: 1, Assignment: steading.AssignAny, Fairness: steading.FairnessNone,
			Pod: &steading.RunnerPod{JobContainer: "job", Template: runtime.RawExtension{Raw: raw}},
		},
	}
	for _, c := range change {
		c(&r.Spec.ForProvider.Settings)
	}
	must(t, b.Create(t.Context(), r))
	return r
}

func (b *bench) testJobsAreRun(t *testing.T) {
	for range 5 {
		_, err := b.forgejo.Queue(forgejo.NewJob{Repository: "acme/web", Labels: []string{"docker"}})
		must(t, err)
	}
	r := b.pool(t, "linux", "acme-ci")
	harness.Eventually(t, "all jobs are run", func(context.Context) error {
		for _, j := range b.forgejo.Jobs() {
			if j.Status != "success" {
				return b.told(t, r, fmt.Errorf("job %d is %s", j.ID, j.Status))
			}
		}
		return nil
	})
	for _, j := range b.forgejo.Jobs() {
		if len(j.Runs) != 1 {
			t.Errorf("job %d was run %d times", j.ID, len(j.Runs))
		}
	}
	if peak := b.forgejo.PeakRegistrations(); peak > 2 {
		t.Errorf("%d runners were registered at once", peak)
	}
	harness.Eventually(t, "two runners are kept as history", func(context.Context) error {
		all := b.instances(t)
		released := slices.IndexFunc(all, func(i v1alpha1.RunnerInstance) bool {
			o := i.Status.AtProvider
			return o.Reason != v1alpha1.RunnerConsumed || !o.Released || o.Child == nil
		}) < 0
		if len(all) != 2 || !released {
			return fmt.Errorf("there are %d: %s", len(all), b.said(t))
		}
		return b.stand(t, 2, 0)
	})
	if got := b.registered(); len(got) > 0 {
		t.Errorf("registered are %v", got)
	}
}

// stand reports by an error whether there are not so many Jobs and credentials.
func (b *bench) stand(t *testing.T, jobs, secrets int) error {
	t.Helper()
	js, ss := &batchv1.JobList{}, &corev1.SecretList{}
	must(t, b.List(t.Context(), js, client.InNamespace("acme-ci")))
	must(t, b.List(t.Context(), ss, client.InNamespace("acme-ci")))
	if len(js.Items) != jobs || len(ss.Items) != secrets {
		return fmt.Errorf("there are %d Jobs and %d Secrets", len(js.Items), len(ss.Items))
	}
	return nil
}

func (b *bench) testKill(t *testing.T) {
	b.settings(t, func(s *steading.RunnerPoolSpec) { s.MinRunners = 1 })
	first := b.spare(t, "")
	must(t, b.Delete(t.Context(), &first))
	second := b.spare(t, first.Name)
	harness.Eventually(t, "the first is gone", func(context.Context) error {
		if got := b.registered(); !slices.Equal(got, []string{second.Name}) {
			return fmt.Errorf("registered are %v", got)
		}
		return b.stand(t, 3, 1)
	})
}

func (b *bench) testDrain(t *testing.T) {
	first := b.spare(t, "")
	b.settings(t, func(s *steading.RunnerPoolSpec) { s.Pod.RunnerImage = "example.com/runner:2" })
	b.spare(t, first.Name)
	harness.Eventually(t, "the first is drained", func(context.Context) error {
		i := &v1alpha1.RunnerInstance{}
		if err := b.Get(t.Context(), client.ObjectKeyFromObject(&first), i); err != nil {
			return client.IgnoreNotFound(err)
		}
		if o := i.Status.AtProvider; o.Reason != v1alpha1.Drained || !o.Released {
			return fmt.Errorf("%+v", o)
		}
		return nil
	})
}

func (b *bench) testPoolGoes(t *testing.T) {
	r := &v1alpha1.Runner{}
	must(t, b.Get(t.Context(), client.ObjectKey{Namespace: names.SystemNamespace, Name: "acme-linux"}, r))
	must(t, b.Delete(t.Context(), r))
	harness.Eventually(t, "nothing is left", func(context.Context) error {
		if err := b.Get(t.Context(), client.ObjectKeyFromObject(r), r); !kerrors.IsNotFound(err) {
			return fmt.Errorf("the pool is there, %+v: %w", r.Status, errors.Join(err, errors.New("want it gone")))
		}
		key := client.ObjectKey{Namespace: "acme-ci", Name: names.RunnerGuard}
		for _, o := range []client.Object{&rbacv1.RoleBinding{}, &corev1.ResourceQuota{}, &networkingv1.NetworkPolicy{}} {
			if err := b.Get(t.Context(), key, o); !kerrors.IsNotFound(err) {
				return fmt.Errorf("%T is there: %w", o, err)
			}
		}
		if got := b.registered(); len(got) > 0 || len(b.instances(t)) > 0 {
			return fmt.Errorf("registered are %v, records: %s", got, b.said(t))
		}
		return b.stand(t, 0, 0)
	})
}

func (b *bench) testNotGiven(t *testing.T) {
	must(t, b.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere"}}))
	r := b.pool(t, "linux", "elsewhere", func(s *steading.RunnerPoolSpec) { s.MinRunners = 1 })
	harness.Eventually(t, "it says so", func(context.Context) error {
		must(t, b.Get(t.Context(), client.ObjectKeyFromObject(r), r))
		if c := r.GetCondition(steading.ConditionRunnersMade); c.Reason != steading.ReasonJobNamespaceRefused || !strings.Contains(c.Message, "steading.dev/runners-for: acme") {
			return fmt.Errorf("%+v", r.Status)
		}
		return nil
	})
	if got := b.registered(); len(got) > 0 {
		t.Errorf("registered are %v", got)
	}
}

// settings of the pool, changed.
func (b *bench) settings(t *testing.T, change func(*steading.RunnerPoolSpec)) {
	t.Helper()
	r := &v1alpha1.Runner{}
	must(t, b.Get(t.Context(), client.ObjectKey{Namespace: names.SystemNamespace, Name: "acme-linux"}, r))
	before := r.DeepCopy()
	change(&r.Spec.ForProvider.Settings)
	must(t, b.Patch(t.Context(), r, client.MergeFrom(before)))
}

// spare runner that waits for a job, another one than that.
func (b *bench) spare(t *testing.T, but string) v1alpha1.RunnerInstance {
	t.Helper()
	var found v1alpha1.RunnerInstance
	harness.Eventually(t, "a spare waits", func(context.Context) error {
		for _, i := range b.instances(t) {
			if o := i.Status.AtProvider; i.Name != but && o.Reason == "" && o.State == v1alpha1.StateIdle && kit.IsReady(&i) {
				found = i
				return nil
			}
		}
		return errors.New("none is idle")
	})
	return found
}

func (b *bench) instances(t *testing.T) []v1alpha1.RunnerInstance {
	t.Helper()
	l := &v1alpha1.RunnerInstanceList{}
	must(t, b.List(t.Context(), l))
	return l.Items
}

// registered runners, by name.
func (b *bench) registered() []string {
	var all []string
	for _, r := range b.forgejo.Registrations() {
		if r.Deleted.IsZero() {
			all = append(all, r.Name)
		}
	}
	return all
}

// told is an error with what the pool says.
func (b *bench) told(t *testing.T, r *v1alpha1.Runner, err error) error {
	t.Helper()
	must(t, b.Get(t.Context(), client.ObjectKeyFromObject(r), r))
	return fmt.Errorf("%w; the pool: %+v; its runners: %s", err, r.Status, b.said(t))
}

// said by the records of runners.
func (b *bench) said(t *testing.T) string {
	t.Helper()
	var said []string
	for _, i := range b.instances(t) {
		said = append(said, fmt.Sprintf("%s: %+v", i.Name, i.Status))
	}
	return strings.Join(said, "; ")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
