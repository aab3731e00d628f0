package edge_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/cluster/local"
	"github.com/steading-dev/steading/providers/internal/kit"
	"github.com/steading-dev/steading/providers/runtime/edge"
	"github.com/steading-dev/steading/providers/runtime/target"
	"github.com/steading-dev/steading/test/fakes/edgeoperators"
	"github.com/steading-dev/steading/test/harness"
)

// root of the module.
const root = "../../../"

// A bench is a control plane on which edges are reconciled with the provider's own power, by watches alone: the polls are an
// hour apart.
type bench struct {
	client.Client
	plane *local.Plane
	clock *skewed

	dns   *edgeoperators.DNS
	certs *edgeoperators.CertManager
	gates *edgeoperators.Gateways
}

// A skewed clock can be put forward, and back.
type skewed struct {
	clock.RealClock
	by atomic.Int64
}

func (s *skewed) forward(d time.Duration)         { s.by.Store(int64(d)) }
func (s *skewed) Now() time.Time                  { return time.Now().Add(time.Duration(s.by.Load())) }
func (s *skewed) Since(t time.Time) time.Duration { return s.Now().Sub(t) }

func newBench(t *testing.T) *bench {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a control plane; not under -short")
	}
	ctrl.SetLogger(logr.Discard())
	p, err := local.Start(t.Context(), local.Options{Name: "edge", Progress: func(line string) { t.Log(line) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, steading.AddToScheme, v1alpha1.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(p.Config(), client.Options{Scheme: s})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{Client: c, plane: p, clock: &skewed{}}
	b.install(t)
	b.start(t, s)
	return b
}

// install what stands before the provider starts.
func (b *bench) install(t *testing.T) {
	t.Helper()
	if err := b.plane.Apply(t.Context(), harness.Definition(steading.EnvironmentKind)); err != nil {
		t.Fatal(err)
	}
	base, err := filepath.Glob(root + "cluster/install/base/[0-9]*.yaml")
	if err != nil || len(base) == 0 {
		t.Fatalf("cannot find the manifests: %v", err)
	}
	if err := b.plane.ApplyFiles(t.Context(), append([]string{root + "package/provider-runtime/crds"}, base...)...); err != nil {
		t.Fatal(err)
	}
	tenant := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tenant-acme"}}
	kit.Stamp(tenant, v1alpha1.Identity{Tenant: "acme", UID: "uid-acme"})
	b.create(t, tenant)
	b.create(t, &v1alpha1.ClusterProviderConfig{
		ObjectMeta: metav1.ObjectMeta{Name: names.DefaultProviderConfig},
		Spec: v1alpha1.ProviderConfigSpec{
			RuntimeChart: v1alpha1.ChartSource{Repository: "example.com/charts/runtime", Version: "1.0.0"}, CanonicalImage: "example.com/devops",
			Certificates: &v1alpha1.Certificates{IssuerRef: v1alpha1.IssuerReference{Name: "letsencrypt"}},
		},
	})
}

// start the provider, as its own account.
func (b *bench) start(t *testing.T, s *runtime.Scheme) {
	t.Helper()
	kubeconfig, err := b.plane.ServiceAccountKubeconfig(t.Context(), names.SystemNamespace, "provider-runtime")
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	f := kit.Flags{
		PollInterval: time.Hour, PollIntervalNotReady: time.Hour, DeletionBackoff: time.Hour, MaxDeletionBackoff: time.Hour,
		MaxReconciles: 5, MaxReconcileRate: 100, MetricsAddress: "0", HealthAddress: "0",
	}
	mo := kit.ManagerOptions{Name: "provider-runtime", Scheme: s}
	mgr, err := kit.NewManager(cfg, f, mo)
	if err != nil {
		t.Fatal(err)
	}
	o := kit.NewOptions(mgr, f, mo, logging.NewNopLogger())
	o.Clock = b.clock
	targets := target.New()
	if err := targets.Add(steading.PlatformContext, target.Platform, cfg); err != nil {
		t.Fatal(err)
	}
	if err := mgr.Add(targets); err != nil {
		t.Fatal(err)
	}
	if err := edge.Setup(mgr, o, targets); err != nil {
		t.Fatal(err)
	}
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

func (b *bench) create(t *testing.T, obj client.Object) {
	t.Helper()
	if err := b.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
}

// define the kinds of an operator.
func (b *bench) define(t *testing.T, m edgeoperators.Module) {
	t.Helper()
	crds, err := edgeoperators.Definitions(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.plane.Apply(t.Context(), crds...); err != nil {
		t.Fatal(err)
	}
}

// environment makes what stands of an environment before its Edge, as claim and Boundary would.
func (b *bench) environment(t *testing.T, name string) v1alpha1.Identity {
	t.Helper()
	claim := &unstructured.Unstructured{Object: map[string]any{}}
	claim.SetGroupVersionKind(steading.GroupVersion.WithKind(steading.EnvironmentKind))
	claim.SetNamespace("tenant-acme")
	claim.SetName(name)
	b.create(t, claim)
	id := v1alpha1.Identity{Tenant: "acme", Environment: name, UID: types.UID("uid-" + name)}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "acme-" + name}}
	deployer := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: names.Deployer}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: names.Deployer},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "steading:environment-deployer"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns.Name, Name: names.Deployer}},
	}
	for _, obj := range []client.Object{ns, deployer, binding} {
		kit.Stamp(obj, id)
		b.create(t, obj)
	}
	return id
}

// edge of an environment. It is made by hand, which is what the annotation is for.
func (b *bench) edge(t *testing.T, name string, change ...func(*v1alpha1.Edge)) *v1alpha1.Edge {
	t.Helper()
	id := b.environment(t, name)
	e := &v1alpha1.Edge{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: names.SystemNamespace, Name: names.Environment(id.Tenant, id.Environment),
			Annotations: map[string]string{names.AnnotationBreakGlass: "a test"},
			Labels:      map[string]string{names.LabelTenant: id.Tenant, names.LabelEnvironment: id.Environment, names.LabelComposite: string(id.UID)},
		},
		Spec: v1alpha1.EdgeSpec{ForProvider: v1alpha1.EdgeParameters{
			Identity: id, Claim: v1alpha1.ClaimReference{Namespace: "tenant-acme", Name: name}, Context: steading.PlatformContext, Namespace: "acme-" + name,
			Exposure:          v1alpha1.Exposure{Zone: "services.example.com", Ingress: steading.ContextIngress{Addresses: []string{"203.0.113.7", "2001:db8::7"}, ClassName: "traefik"}},
			CertificateSecret: names.TLSSecret(id.Tenant, id.Environment),
			Services:          []v1alpha1.ExposedService{{Name: "mcp", Host: host(name), Service: "acme-mcp"}},
		}},
	}
	for _, c := range change {
		c(e)
	}
	b.create(t, e)
	return e
}

func host(environment string) string {
	return names.Host("mcp", "acme", environment, "services.example.com")
}

// wait until an Edge has these verdicts.
func (b *bench) wait(t *testing.T, e *v1alpha1.Edge, exposed, certificate string) {
	t.Helper()
	harness.Eventually(t, fmt.Sprintf("%s is %s, %s", e.Name, exposed, certificate), func(context.Context) error {
		if err := b.Get(t.Context(), client.ObjectKeyFromObject(e), e); err != nil {
			return err
		}
		if o := e.Status.AtProvider; o.Exposed.Reason != exposed || o.Certificate.Reason != certificate {
			return fmt.Errorf("%+v", e.Status)
		}
		return nil
	})
}

// delete an Edge, and its environment's namespace no sooner than it is gone.
func (b *bench) deleteEdge(t *testing.T, e *v1alpha1.Edge) {
	t.Helper()
	if err := b.Delete(t.Context(), e); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) waitGone(t *testing.T, obj client.Object) {
	t.Helper()
	harness.Eventually(t, obj.GetName()+" is gone", func(context.Context) error {
		err := b.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)
		if kerrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it has the finalizers %v: %w", obj.GetFinalizers(), err)
	})
}

// wantNothingOwned lists what an Edge makes, by identity.
func (b *bench) wantNothingOwned(t *testing.T, id v1alpha1.Identity) {
	t.Helper()
	for _, kind := range []string{
		"externaldns.k8s.io/v1alpha1/DNSEndpoint", "cert-manager.io/v1/Certificate", "cert-manager.io/v1/CertificateRequest",
		"acme.cert-manager.io/v1/Order", "v1/Secret", "networking.k8s.io/v1/Ingress", "gateway.networking.k8s.io/v1/HTTPRoute",
	} {
		i := strings.LastIndex(kind, "/")
		l := &unstructured.UnstructuredList{}
		l.SetAPIVersion(kind[:i])
		l.SetKind(kind[i+1:] + "List")
		if err := b.List(t.Context(), l, client.MatchingLabels{names.LabelComposite: string(id.UID)}); err != nil {
			continue // An operator that is gone.
		}
		for _, o := range l.Items {
			t.Errorf("left behind: %s %s/%s", o.GetKind(), o.GetNamespace(), o.GetName())
		}
	}
}

// records of an Edge.
func records(e *v1alpha1.Edge) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetAPIVersion("externaldns.k8s.io/v1alpha1")
	u.SetKind("DNSEndpoint")
	u.SetNamespace(names.EdgeNamespace)
	u.SetName(e.Name)
	return u
}
