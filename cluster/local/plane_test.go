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
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
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

// One plane for all that does not disturb each other: starting one takes longer
// than most of what is looked at.
func TestPlane(t *testing.T) {
	p := startPlane(t, Options{Name: "plane"})
	t.Run("undisturbed", func(t *testing.T) {
		for name, behaviour := range map[string]func(*testing.T, *Plane){
			"pods run, claims are bound, namespaces go": runsWorkload,
			"the node has a heartbeat":                  hasHeartbeat,
			"a user has no power until it is given":     powerless,
			"what a ServiceAccount asks for is audited": audited,
			"kubeconfigs are their owner's only":        private,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				behaviour(t, p)
			})
		}
	})
	t.Run("it survives a crash of the API server", func(t *testing.T) { survivesCrash(t, p) })
}

func runsWorkload(t *testing.T, p *Plane) {
	apply(t, p, deployment)
	d := &appsv1.Deployment{}
	eventually(t, time.Minute, "the deployment is available", func() bool {
		return p.Client().Get(t.Context(), client.ObjectKey{Namespace: "work", Name: "web"}, d) == nil && d.Status.AvailableReplicas == 1
	})
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "work"}}
	if err := p.Client().Delete(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, "the namespace is gone", func() bool {
		return kerrors.IsNotFound(p.Client().Get(t.Context(), client.ObjectKeyFromObject(ns), ns))
	})
}

// Without heartbeats a node is given up after a while, and its pods with it.
func hasHeartbeat(t *testing.T, p *Plane) {
	lease := &coordinationv1.Lease{}
	key := client.ObjectKey{Namespace: "kube-node-lease", Name: NodeName}
	eventually(t, time.Minute, "the node holds its lease", func() bool {
		return p.Client().Get(t.Context(), key, lease) == nil && lease.Spec.RenewTime != nil
	})
	first := lease.Spec.RenewTime.Time
	eventually(t, time.Minute, "the node renews its lease", func() bool {
		return p.Client().Get(t.Context(), key, lease) == nil && lease.Spec.RenewTime.After(first)
	})
}

func powerless(t *testing.T, p *Plane) {
	config, err := p.ConfigFor("alice", "acme-admins")
	if err != nil {
		t.Fatal(err)
	}
	refusedSecrets(t, config)
}

func audited(t *testing.T, p *Plane) {
	path, err := p.ServiceAccountKubeconfig(t.Context(), "default", "default")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	refusedSecrets(t, config)
	eventually(t, 10*time.Second, "the audit log names it", func() bool {
		b, err := os.ReadFile(p.AuditLog())
		return err == nil && strings.Contains(string(b), `"username":"system:serviceaccount:default:default"`)
	})
}

func refusedSecrets(t *testing.T, config *rest.Config) {
	t.Helper()
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.List(t.Context(), &corev1.SecretList{}); !kerrors.IsForbidden(err) {
		t.Errorf("listing Secrets: got error %v, want forbidden", err)
	}
}

func private(t *testing.T, p *Plane) {
	var token string
	eventually(t, time.Minute, "the namespace has its ServiceAccount", func() bool {
		var err error
		token, err = p.ServiceAccountKubeconfig(t.Context(), "kube-system", "default")
		return err == nil
	})
	for _, path := range []string{p.Kubeconfig(), token} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != 0o600 {
			t.Errorf("mode of %s: got %o, want 600", path, got)
		}
	}
}

func survivesCrash(t *testing.T, p *Plane) {
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
