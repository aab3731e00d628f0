package local

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	xpextensionsv1 "github.com/crossplane/crossplane/apis/v2/apiextensions/v1"
)

var clusterRole = schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}

const deployment = `apiVersion: v1
kind: Namespace
metadata: {name: work}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: home, namespace: work}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: work}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: example.com/web:1}]
      volumes: [{name: home, persistentVolumeClaim: {claimName: home}}]
`

const xrd = `apiVersion: apiextensions.crossplane.io/v1
kind: CompositeResourceDefinition
metadata: {name: xthings.test.example.org}
spec:
  group: test.example.org
  names: {kind: XThing, plural: xthings}
  claimNames: {kind: Thing, plural: things}
  versions:
  - name: v1
    served: true
    referenceable: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object}}}}
`

func startPlane(t *testing.T, o Options) *Plane {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a control plane; not under -short")
	}
	started := time.Now()
	o.Progress = func(line string) { t.Logf("%6.2fs %s", time.Since(started).Seconds(), line) }
	p, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	o.Progress("ready")
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func TestPlaneRunsWorkload(t *testing.T) {
	p := startPlane(t, Options{Name: "workload"})
	objects, err := parseObjects([]byte(deployment))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Apply(t.Context(), objects...); err != nil {
		t.Fatal(err)
	}
	d := &appsv1.Deployment{}
	eventually(t, 30*time.Second, "the deployment is available", func() bool {
		return p.Client().Get(t.Context(), client.ObjectKey{Namespace: "work", Name: "web"}, d) == nil && d.Status.AvailableReplicas == 1
	})
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "work"}}
	if err := p.Client().Delete(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	eventually(t, 60*time.Second, "the namespace is gone", func() bool {
		return kerrors.IsNotFound(p.Client().Get(t.Context(), client.ObjectKeyFromObject(ns), ns))
	})
}

// Without heartbeats the node is given up after 50 s, and its pods with it.
func TestNodeHasHeartbeat(t *testing.T) {
	p := startPlane(t, Options{Name: "heartbeat"})
	lease := &coordinationv1.Lease{}
	eventually(t, 15*time.Second, "the node holds its lease", func() bool {
		return p.Client().Get(t.Context(), client.ObjectKey{Namespace: "kube-node-lease", Name: NodeName}, lease) == nil && lease.Spec.RenewTime != nil
	})
	first := lease.Spec.RenewTime.Time
	eventually(t, 30*time.Second, "the node renews its lease", func() bool {
		return p.Client().Get(t.Context(), client.ObjectKeyFromObject(lease), lease) == nil && lease.Spec.RenewTime.After(first)
	})
}

func TestPlaneIsGuarded(t *testing.T) {
	p := startPlane(t, Options{Name: "guarded"})

	t.Run("a user has no power until it is given", func(t *testing.T) {
		config, err := p.ConfigFor("alice", "acme-admins")
		if err != nil {
			t.Fatal(err)
		}
		c, err := client.New(config, client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.List(t.Context(), &corev1.SecretList{}); !kerrors.IsForbidden(err) {
			t.Errorf("alice lists Secrets: got error %v, want forbidden", err)
		}
	})

	t.Run("a ServiceAccount is audited", func(t *testing.T) {
		path, err := p.ServiceAccountKubeconfig(t.Context(), "default", "default")
		if err != nil {
			t.Fatal(err)
		}
		config, err := clientcmd.BuildConfigFromFlags("", path)
		if err != nil {
			t.Fatal(err)
		}
		c, err := client.New(config, client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.List(t.Context(), &corev1.SecretList{}); !kerrors.IsForbidden(err) {
			t.Errorf("the default ServiceAccount lists Secrets: got error %v, want forbidden", err)
		}
		eventually(t, 10*time.Second, "the audit log names it", func() bool {
			b, err := os.ReadFile(p.AuditLog())
			return err == nil && strings.Contains(string(b), `"username":"system:serviceaccount:default:default"`)
		})
	})

	t.Run("kubeconfigs are their owner's only", func(t *testing.T) {
		info, err := os.Stat(p.Kubeconfig())
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != 0o600 {
			t.Errorf("mode of the admin's kubeconfig: got %o, want 600", got)
		}
	})
}

func TestPlaneSurvivesCrashOfTheAPIServer(t *testing.T) {
	p := startPlane(t, Options{Name: "crash"})
	if err := p.Supervisor.Kill("kube-apiserver"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := p.Supervisor.WaitReady(ctx, "kube-apiserver"); err != nil {
		t.Fatal(err)
	}
	if err := p.Client().List(t.Context(), &corev1.NodeList{}); err != nil {
		t.Error(err)
	}
}

func TestCrossplaneOffersXRD(t *testing.T) {
	p := startPlane(t, Options{Name: "crossplane", Crossplane: true})
	objects, err := parseObjects([]byte(xrd))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Apply(t.Context(), objects...); err != nil {
		t.Fatal(err)
	}
	got := &xpextensionsv1.CompositeResourceDefinition{}
	eventually(t, 30*time.Second, "the XRD is established and offered", func() bool {
		return p.Client().Get(t.Context(), client.ObjectKey{Name: "xthings.test.example.org"}, got) == nil &&
			got.Status.GetCondition(xpextensionsv1.TypeEstablished).Status == corev1.ConditionTrue &&
			got.Status.GetCondition(xpextensionsv1.TypeOffered).Status == corev1.ConditionTrue
	})
	eventually(t, 30*time.Second, "the RBAC manager made its role", func() bool {
		role := &metav1.PartialObjectMetadata{}
		role.SetGroupVersionKind(clusterRole)
		return p.Client().Get(t.Context(), client.ObjectKey{Name: "crossplane:composite:xthings.test.example.org:aggregate-to-edit"}, role) == nil
	})
}
