package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
	"github.com/steading-dev/steading/providers/internal/referred"
	"github.com/steading-dev/steading/providers/runtime/cluster/seal"
	"github.com/steading-dev/steading/providers/runtime/target"
)

// A world is a control plane with one Cluster, acme's edge, and the API server behind it.
type world struct {
	t      *testing.T
	kube   client.Client
	server *apiServer
	events *record.FakeRecorder
	c      *connector
	mapper *meta.DefaultRESTMapper
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, steading.AddToScheme, v1alpha1.AddToScheme, metav1.AddMetaToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{t: t, server: newAPIServer(t, nil), events: record.NewFakeRecorder(100), mapper: meta.NewDefaultRESTMapper(nil)}
	objects = append(objects, w.cluster(), &steading.Context{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-acme", Name: "edge"}},
		&v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: names.DefaultProviderConfig}, Spec: v1alpha1.ProviderConfigSpec{AllowedTargets: []string{"127.0.0.1/32"}}})
	w.kube = fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).
		WithStatusSubresource(&v1alpha1.Cluster{}, &v1alpha1.Placement{}, &steading.Context{}).WithReturnManagedFields().Build()
	held := newLines(quick)
	t.Cleanup(func() { held.drop("acme-edge") })
	told := referred.NewWatches(metadatafake.NewSimpleMetadataClient(s), func(string) {})
	t.Cleanup(func() { told.Of(context.Background(), "acme-edge") })
	w.c = &connector{
		o: kit.Options{Log: logging.NewNopLogger(), Clock: clock.RealClock{}, Deletion: kit.Backoff{First: time.Hour},
			Claims: kit.NewClaimReporter(w.kube, w.kube, w.events)},
		client: w.kube, reader: w.kube, keeper: keeper{client: w.kube, reader: w.kube}, offers: offers{reader: w.kube, mapper: w.mapper},
		lines: held, informed: told, targets: target.New(), registered: &registry{keys: map[string]string{}},
		tracker:      resource.ModernTrackerFn(func(context.Context, resource.ModernManaged) error { return nil }),
		controlPlane: "https://10.96.0.1:443",
	}
	return w
}

var edgeIdentity = v1alpha1.Identity{Tenant: "acme", UID: "uid-of-the-context"}

// cluster as the claim asks for it, with the credential in Secret edge-admin.
func (w *world) cluster() *v1alpha1.Cluster {
	return &v1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: "acme-edge", UID: "uid-of-the-cluster", Generation: 1,
			Finalizers: []string{managed.FinalizerName}, Labels: map[string]string{names.LabelTenant: "acme"}},
		Spec: v1alpha1.ClusterSpec{ForProvider: v1alpha1.ClusterParameters{
			Identity: edgeIdentity, Claim: v1alpha1.ClaimReference{Namespace: "tenant-acme", Name: "edge"}, Context: "edge",
			Server: w.server.URL, CABundle: w.server.ca.pem, MaxEnvironments: 20,
			Credentials: steading.ContextCredentials{SecretRef: &steading.LocalSecretReference{Name: "edge-admin"}},
		}},
	}
}

// tokenIn is a Secret of the tenant's that holds a token.
func tokenIn(name, token string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-acme", Name: name}, Data: map[string][]byte{"token": []byte(token)}}
}

// get the Cluster as it is now.
func (w *world) get() *v1alpha1.Cluster {
	w.t.Helper()
	mg := &v1alpha1.Cluster{}
	if err := w.kube.Get(w.t.Context(), client.ObjectKey{Namespace: names.SystemNamespace, Name: "acme-edge"}, mg); err != nil {
		w.t.Fatal(err)
	}
	return mg
}

// change the Cluster.
func (w *world) change(edit func(*v1alpha1.Cluster)) {
	w.t.Helper()
	mg := w.get()
	edit(mg)
	mg.Generation++
	if err := w.kube.Update(w.t.Context(), mg); err != nil {
		w.t.Fatal(err)
	}
}

// put an object, in place of what is there.
func (w *world) put(o client.Object) {
	w.t.Helper()
	err := w.kube.Create(w.t.Context(), o)
	if err != nil {
		have, _ := o.DeepCopyObject().(client.Object)
		if err = w.kube.Get(w.t.Context(), client.ObjectKeyFromObject(o), have); err == nil {
			o.SetResourceVersion(have.GetResourceVersion())
			err = w.kube.Update(w.t.Context(), o)
		}
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// gone is what a look found when nothing is left of the Cluster.
var errGone = errors.New("nothing is left")

// look does what the managed reconciler does in one pass, and returns its error.
func (w *world) look() error {
	w.t.Helper()
	mg := w.get()
	e, err := w.c.Connect(w.t.Context(), mg)
	if err != nil {
		return err
	}
	o, err := e.Observe(w.t.Context(), mg)
	switch {
	case err != nil:
		mg.SetConditions(synced(err))
	case mg.DeletionTimestamp != nil && !o.ResourceExists:
		return errGone
	case mg.DeletionTimestamp != nil:
		_, err = e.Delete(w.t.Context(), mg)
	case !o.ResourceExists:
		_, err = e.Create(w.t.Context(), mg)
	case !o.ResourceUpToDate:
		_, err = e.Update(w.t.Context(), mg)
	}
	if err == nil {
		mg.SetConditions(synced(nil))
	}
	if uerr := w.kube.Status().Update(w.t.Context(), mg); uerr != nil {
		w.t.Fatal(uerr)
	}
	return err
}

// until looks again and again until the Cluster is as wanted.
func (w *world) until(what string, so func(mg *v1alpha1.Cluster, err error) bool) *v1alpha1.Cluster {
	w.t.Helper()
	var mg *v1alpha1.Cluster
	var err error
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		err = w.look()
		if mg = w.get(); so(mg, err) {
			return mg
		}
	}
	w.t.Fatalf("%s: not within 10s: error %v, status %+v", what, err, mg.Status)
	return nil
}

// kept Secret, nil if there is none.
func (w *world) kept() *corev1.Secret {
	w.t.Helper()
	s := &corev1.Secret{}
	err := w.kube.Get(w.t.Context(), client.ObjectKey{Namespace: names.SystemNamespace, Name: "acme-edge-credential"}, s)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return s
}

// told are the events on the claim so far.
func (w *world) told() string {
	var all []string
	for {
		select {
		case e := <-w.events.Events:
			all = append(all, e)
		default:
			return strings.Join(all, "\n")
		}
	}
}

// sealed is ciphertext of a token for a tenant's context on the world's server.
func (w *world) sealed(id *age.X25519Identity, tenant, context, token string) string {
	w.t.Helper()
	hash, err := seal.CASHA256(w.server.ca.pem)
	if err != nil {
		w.t.Fatal(err)
	}
	var out bytes.Buffer
	p := seal.Plaintext{Binding: seal.Binding{Tenant: tenant, Context: context, Server: w.server.URL, CASHA256: hash}, Token: token}
	if err := seal.Seal(&out, p, id.Recipient()); err != nil {
		w.t.Fatal(err)
	}
	return out.String()
}

// externalSecrets are served from now on.
func (w *world) externalSecrets() {
	w.mapper.Add(schema.GroupVersionKind{Group: "external-secrets.io", Version: "v1", Kind: "ExternalSecret"}, meta.RESTScopeNamespace)
}

func describe(mg *v1alpha1.Cluster) string { return fmt.Sprintf("%+v", mg.Status) }
