//go:build long

package argocd

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/cluster/local"
	"github.com/steading-dev/steading/package/build"
	"github.com/steading-dev/steading/providers/runtime/cluster/seal"
	"github.com/steading-dev/steading/test/harness"
)

const (
	argo    = "argocd"
	account = "argocd-application-controller"
	// firstRelease is what the example asks for.
	firstRelease = "v0.1.0"
	// repository in the registry below which everything is.
	repository = "steading-dev"
)

// A world is a bare Crossplane, a cluster for acme, a registry, Argo CD, and the two repositories that it syncs.
type world struct {
	plane, edge *local.Plane
	admin       client.Client
	registry    *local.Registry
	tools       *local.Toolchain
	dir         string
	project     *gitRepository // Steading itself
	platform    *gitRepository // the example
	counters    string         // URL of the metrics of Argo CD's controller
}

// newWorld runs all but Steading, and has nothing synced yet.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{dir: t.TempDir()}
	var err error
	if w.tools, err = local.BuildTools(t.Context(), func(line string) { t.Log(line) }, append([]local.Tool{local.ArgoCD, local.ArgoCDRedis, local.Kustomize}, local.AllTools...)...); err != nil {
		t.Fatal(err)
	}
	if w.registry, err = local.StartRegistry(filepath.Join(w.dir, "registry")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.registry.Stop() })
	w.plane = startPlane(t, local.Options{Name: "argocd", Crossplane: true})
	w.edge = startPlane(t, local.Options{Name: "argocd-edge"})
	if w.admin, err = harness.Client(w.plane.Config()); err != nil {
		t.Fatal(err)
	}
	w.makeRepositories(t)
	w.installArgoCD(t)
	return w
}

func startPlane(t *testing.T, o local.Options) *local.Plane {
	t.Helper()
	p, err := local.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Stop() })
	return p
}

// makeRepositories out of this source tree: as a new user would have them, but that packages, chart and image come from our
// registry, and that acme's cluster is there.
func (w *world) makeRepositories(t *testing.T) {
	t.Helper()
	root, err := local.ModuleDir(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.project = newRepository(t, filepath.Join(w.dir, "steading.git"), filepath.Join(root, "cluster/install"), "cluster/install")
	w.release(t, root, firstRelease)

	w.platform = newRepository(t, filepath.Join(w.dir, "platform.git"), filepath.Join(root, "cluster/argocd/example"), ".")
	w.platform.replace(t,
		"https://github.com/steading-dev/steading", w.project.url(),
		"https://git.example.com/platform.git", w.platform.url(),
		"ghcr.io/"+repository, path.Join(w.registry.Host(), repository),
	)
	config := "platform/clusterproviderconfig.yaml"
	// The runtime's comes first in the file.
	runtime, others, found := strings.Cut(w.platform.read(t, config), "---\n")
	if !found || !strings.Contains(runtime, "runtimeChart") {
		t.Fatalf("%s does not begin with the config of provider-runtime", config)
	}
	w.platform.write(t, config, runtime+fmt.Sprintf("  insecureRegistries: [%q]\n  allowedTargets: [127.0.0.1/32]\n---\n", w.registry.Host())+others)
	w.sealContext(t)
	w.platform.commit(t, "The example")
}

// release what is in this source tree, as a version.
func (w *world) release(t *testing.T, root, version string) {
	t.Helper()
	_, err := build.PushAll(t.Context(), build.Options{
		RepoDir: root, Registry: w.registry.Host(), Repository: repository, Version: version,
		ImageTags: []string{"1.4.2", "1.4.3"}, External: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	w.project.commit(t, version)
	w.project.git(t, "tag", version)
}

// sealContext has acme's context be the edge, by a credential that git may hold.
func (w *world) sealContext(t *testing.T) {
	t.Helper()
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	host := w.edge.Config().Host
	hash, err := seal.CASHA256(w.edge.CA())
	if err != nil {
		t.Fatal(err)
	}
	credentials := harness.Sealed(t, identity, seal.Plaintext{
		Binding: seal.Binding{Tenant: "acme", Context: "edge", Server: host, CASHA256: hash}, Token: edgeToken(t, w.edge),
	})
	const file = "tenants/acme/tenant/context.yaml"
	c := &unstructured.Unstructured{}
	read(t, filepath.Join(w.platform.dir, file), &c.Object)
	set(c, host, "spec", "server")
	set(c, base64.StdEncoding.EncodeToString(w.edge.CA()), "spec", "caBundle")
	set(c, credentials.Age, "spec", "credentials", "age")
	b, err := c.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	w.platform.write(t, file, string(b))
	w.identity(t, identity)
}

// identity is put where the provider finds it, as soon as its namespace is synced.
func (w *world) identity(t *testing.T, id *age.X25519Identity) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			err := w.admin.Create(ctx, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: names.AgeIdentity},
				StringData: map[string]string{"identity.txt": id.String()},
			})
			if err == nil {
				return
			}
			time.Sleep(time.Second)
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
}

// edgeToken is of an account that may do everything on the edge.
func edgeToken(t *testing.T, edge *local.Plane) string {
	t.Helper()
	sa := metav1.ObjectMeta{Namespace: "kube-system", Name: "acme-admin"}
	for _, o := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: sa},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: sa.Name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: sa.Namespace, Name: sa.Name}},
		},
	} {
		if err := edge.Client().Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	kubeconfig, err := edge.ServiceAccountKubeconfig(t.Context(), sa.Namespace, sa.Name)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(filepath.Dir(kubeconfig), "token"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
