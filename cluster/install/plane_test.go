package install

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	xpextensionsv1 "github.com/crossplane/crossplane/apis/v2/apiextensions/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/xcrd"

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	"github.com/steading-dev/steading/cluster/local"
	"github.com/steading-dev/steading/test/fakes/kubevirt"
)

// A user of the cluster, as authentication would find him.
type user struct {
	name   string
	groups []string
}

var (
	admin = user{name: "admin", groups: []string{"system:masters"}}
	// operator is a cluster administrator too, as far as RBAC goes. pureOperator is none.
	operator     = user{name: "opal", groups: []string{"steading:operators"}}
	pureOperator = user{name: "otto", groups: []string{"steading:operators"}}
	owner        = user{name: "olga", groups: []string{"acme-admins"}}
	// argocd may do everything, as far as RBAC goes.
	argocd     = user{name: "argocd"}
	crossplane = account(local.CrossplaneNamespace, "crossplane")
	provider   = account("steading-system", "provider-runtime")
	// packaged is the provider installed as a package, to which Crossplane's RBAC manager gives all Secrets and more.
	packaged = account(local.CrossplaneNamespace, "provider-runtime")
	// forgejo is the provider of runner pools, and packagedForgejo the same installed as a package.
	forgejo             = account("steading-system", "provider-forgejo")
	packagedForgejo     = account(local.CrossplaneNamespace, "provider-forgejo")
	function            = account("steading-system", "function-steading")
	deployer            = account("acme-dev", "steading-deployer")
	garbageCollector    = account("kube-system", "generic-garbage-collector")
	namespaceController = account("kube-system", "namespace-controller")
)

func account(namespace, name string) user {
	return user{
		name:   "system:serviceaccount:" + namespace + ":" + name,
		groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace},
	}
}

// A cluster has what base installs, and the fixtures.
type cluster struct {
	plane *local.Plane
}

// as is a client of somebody, by impersonation. What it does is asked for and not done.
func (c *cluster) as(t *testing.T, u user) client.Client {
	t.Helper()
	config := c.plane.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: u.name, Groups: append([]string{"system:authenticated"}, u.groups...)}
	cl, err := client.New(config, client.Options{Scheme: testScheme})
	if err != nil {
		t.Fatal(err)
	}
	return client.NewDryRunClient(cl)
}

var testScheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, runtimev1.AddToScheme, forgejov1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err) // Two kinds of one name: a mistake of ours.
		}
	}
	return s
}()

// startCluster starts a plane as an operator would set it up, but for Crossplane, which the tests play.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a control plane; not under -short")
	}
	p, err := local.Start(t.Context(), local.Options{Name: "install", Progress: func(line string) { t.Log(line) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	c := &cluster{plane: p}
	machines, err := kubevirt.Definitions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Apply(t.Context(), append(claimCRDs(t), machines...)...); err != nil {
		t.Fatal(err)
	}
	all := files(t)
	namespaces := slices.IndexFunc(all, func(f string) bool { return !strings.HasPrefix(filepath.Base(f), "00-") })
	for _, paths := range [][]string{{"../../package/provider-runtime/crds", "../../package/provider-forgejo/crds", "testdata/httproutes.yaml"}, all[:namespaces], {"testdata/fixtures.yaml"}} {
		if err := p.ApplyFiles(t.Context(), paths...); err != nil {
			t.Fatal(err)
		}
	}
	c.writeStatus(t)
	c.deleteHeld(t)
	if err := p.ApplyFiles(t.Context(), all[namespaces:]...); err != nil {
		t.Fatal(err)
	}
	return c
}

// writeStatus of the fixtures that have one: it is a subresource.
func (c *cluster) writeStatus(t *testing.T) {
	t.Helper()
	for _, o := range read(t, "testdata/fixtures.yaml") {
		status, ok := o.Object["status"]
		if !ok {
			continue
		}
		got := o.DeepCopy()
		if err := c.plane.Client().Get(t.Context(), client.ObjectKeyFromObject(o), got); err != nil {
			t.Fatal(err)
		}
		got.Object["status"] = status
		if err := c.plane.Client().Status().Update(t.Context(), got); err != nil {
			t.Fatal(err)
		}
	}
}

// deleteHeld deletes the fixtures that somebody else's finalizer holds.
func (c *cluster) deleteHeld(t *testing.T) {
	t.Helper()
	for _, o := range read(t, "testdata/fixtures.yaml") {
		if !slices.Contains(o.GetFinalizers(), "example.com/load-balancer") {
			continue
		}
		if err := c.plane.Client().Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// claimCRDs are what Crossplane makes of the XRDs.
func claimCRDs(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	xrds, err := filepath.Glob("../../xrds/*.yaml")
	if err != nil || len(xrds) == 0 {
		t.Fatalf("cannot find XRDs: %v", err)
	}
	var crds []*unstructured.Unstructured
	for _, f := range xrds {
		for _, xrd := range objectsOf[xpextensionsv1.CompositeResourceDefinition](t, f, "CompositeResourceDefinition") {
			for _, derive := range []func(*xpextensionsv1.CompositeResourceDefinition) (*apiextensionsv1.CustomResourceDefinition, error){
				xcrd.ForCompositeResource, xcrd.ForCompositeResourceClaim,
			} {
				crd, err := derive(&xrd)
				if err != nil {
					t.Fatalf("%s: %v", f, err)
				}
				crd.SetOwnerReferences(nil)
				o, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
				if err != nil {
					t.Fatalf("%s: %v", f, err)
				}
				u := &unstructured.Unstructured{Object: o}
				u.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
				unstructured.RemoveNestedField(u.Object, "status")
				unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
				crds = append(crds, u)
			}
		}
	}
	return crds
}
