package security

import (
	"context"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/test/fakes/edgeoperators"
	"github.com/steading-dev/steading/test/harness"
)

// A world in which there is somebody to harm.
type world struct {
	clients map[who]client.Client
	planes  []client.Client // the control plane, and the edge
}

// newWorld has tenant esc, with environment dev here and far on the edge, and tenant vic with environment web.
func newWorld(t *testing.T) *world {
	t.Helper()
	edgeAdmin, err := harness.Client(suite.Edge.Config())
	if err != nil {
		t.Fatal(err)
	}
	suite.Define(t, edgeoperators.SecretsModule)
	suite.NewTenant(t, "vic", steading.TenantSpec{Owners: []steading.Subject{{Kind: "Group", Name: "vic-owners"}}})
	suite.NewTenant(t, "esc", steading.TenantSpec{Owners: []steading.Subject{{Kind: "Group", Name: "esc-owners"}}, PlatformCluster: steading.PlatformClusterAllowed})
	suite.Create(t, registered(t, "esc", "edge")...)
	suite.Create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "esc-ci", Labels: map[string]string{names.LabelRunnersFor: "esc"}}})
	web, dev, far := harness.Environment("vic", "web"), harness.Environment("esc", "dev"), harness.Environment("esc", "far")
	dev.Spec.ContextRef = &steading.ContextReference{Name: steading.PlatformContext}
	far.Spec.ContextRef = &steading.ContextReference{Name: "edge"}
	suite.Create(t, web, dev)
	waitContext(t, "esc", "edge", harness.ContextRunning)
	suite.Create(t, far)
	for _, e := range []*steading.Environment{web, dev, far} {
		suite.WaitFor(t, e, "ready", harness.Ready)
	}
	asOwner, err := suite.Plane.ConfigFor("esther", "esc-owners")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{planes: []client.Client{suite.Admin, edgeAdmin}, clients: map[who]client.Client{}}
	for as, cfg := range map[who]*rest.Config{
		owner:    asOwner,
		deployer: deployerOf(t, suite.Admin, suite.Plane.Config(), "esc-dev"),
		onEdge:   deployerOf(t, edgeAdmin, suite.Edge.Config(), "esc-far"),
	} {
		if w.clients[as], err = harness.Client(cfg); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// client of somebody. It changes nothing, unless the real thing is asked for.
func (w *world) client(as who, realThing bool) client.Client {
	if realThing {
		return w.clients[as]
	}
	return client.NewDryRunClient(w.clients[as])
}

// deployerOf is how the deployer of a namespace reaches its cluster.
func deployerOf(t *testing.T, admin client.Client, cfg *rest.Config, namespace string) *rest.Config {
	t.Helper()
	r := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(3600))}}
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: names.Deployer}}
	if err := admin.SubResource("token").Create(t.Context(), sa, r); err != nil {
		t.Fatalf("cannot get a token of the deployer of %s: %v", namespace, err)
	}
	as := rest.AnonymousClientConfig(cfg)
	as.BearerToken = r.Status.Token
	return as
}

// withoutRBAC lets everybody who attempts do everything, as far as RBAC goes.
func (w *world) withoutRBAC(t *testing.T) {
	t.Helper()
	subjects := []rbacv1.Subject{
		{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "esther"},
		{Kind: rbacv1.ServiceAccountKind, Namespace: "esc-dev", Name: names.Deployer},
		{Kind: rbacv1.ServiceAccountKind, Namespace: "esc-far", Name: names.Deployer},
	}
	for _, admin := range w.planes {
		everything(t, admin, "security-everything", subjects...)
	}
	for as, c := range w.clients {
		harness.Eventually(t, string(as)+" may do everything", func(ctx context.Context) error { return c.List(ctx, &corev1.NodeList{}) })
	}
}

// everything is let to subjects, until the test is over.
func everything(t *testing.T, admin client.Client, name string, subjects ...rbacv1.Subject) {
	t.Helper()
	all := []string{"*"}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{{APIGroups: all, Resources: all, Verbs: all}}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
	}
	for _, o := range []client.Object{role, binding} {
		if err := admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = admin.Delete(context.Background(), o) })
	}
}

// without takes the binding of a policy away on all planes, until the test is over.
func (w *world) without(t *testing.T, policy string) {
	t.Helper()
	for i, admin := range w.planes {
		b := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: policy + ".steading.dev"}}
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(b), b); err != nil {
			if i > 0 && client.IgnoreNotFound(err) == nil {
				continue // Targets have some of the policies only.
			}
			t.Fatal(err)
		}
		if err := admin.Delete(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			again := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: b.Name, Labels: b.Labels, Annotations: b.Annotations}, Spec: b.Spec}
			if err := admin.Create(context.Background(), again); err != nil {
				t.Error(err)
			}
		})
	}
}
