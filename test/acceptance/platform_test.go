package acceptance

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/go-logr/logr"

	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/cluster/local/platform"
)

// shared is the platform that all tests of the package use. Each test has tenants of its own.
var shared *platform.Platform

// admin is the administrator's client of the shared platform.
var admin client.Client

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("acceptance tests are skipped: they start a platform, and -short is set")
		return
	}
	ctrl.SetLogger(logr.Discard())
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	started := time.Now()
	p, err := platform.Start(ctx, platform.Options{
		Name:         "acceptance",
		ProviderArgs: []string{"--poll-interval=1h", "--poll-interval-not-ready=1h"},
		Progress:     func(line string) { fmt.Printf("%6.1fs %s\n", time.Since(started).Seconds(), line) },
	})
	if err != nil {
		fmt.Println("cannot start the platform:", err)
		return 1
	}
	defer p.Stop() //nolint:errcheck // The process ends, and with it all that the platform runs.
	shared = p
	if admin, err = newClient(p); err != nil {
		fmt.Println("cannot make a client:", err)
		return 1
	}
	return m.Run()
}

func newClient(p *platform.Platform) (client.Client, error) {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	utilruntime.Must(steading.AddToScheme(s))
	utilruntime.Must(runtimev1.AddToScheme(s))
	return client.New(p.Plane.Config(), client.Options{Scheme: s})
}

// within is how long a condition may take. It is generous, since it is only reached when something is wrong.
const within = 2 * time.Minute

// eventually waits until check returns nil.
func eventually(t *testing.T, what string, check func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not within %s: %v", what, within, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// create makes objects and removes them when the test is over.
func create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := admin.Create(t.Context(), o); err != nil {
			t.Fatalf("cannot create %T %s: %v", o, o.GetName(), err)
		}
		t.Cleanup(func() {
			_ = admin.Delete(context.Background(), o) //nolint:usetesting // The test's own context is over.
		})
	}
}

// get reads an object anew.
func get[T client.Object](t *testing.T, o T) T {
	t.Helper()
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatalf("cannot get %T %s: %v", o, o.GetName(), err)
	}
	return o
}

// change edits an object until the API server takes it.
func change[T client.Object](t *testing.T, o T, edit func(T)) {
	t.Helper()
	eventually(t, "change "+o.GetName(), func(ctx context.Context) error {
		if err := admin.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		edit(o)
		return admin.Update(ctx, o)
	})
}

// tenant is a Tenant claim.
func tenant(name string, spec steading.TenantSpec) *steading.Tenant {
	return &steading.Tenant{ObjectMeta: metav1.ObjectMeta{Namespace: "steading-system", Name: name}, Spec: spec}
}

// environment is an Environment claim that asks to run, in the smallest size.
func environment(tenant, name string) *steading.Environment {
	return &steading.Environment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-" + tenant, Name: name},
		Spec: steading.EnvironmentSpec{
			Type: steading.TypeRuntime, Version: "1.4.2", State: steading.StateRunning,
			Size: steading.MustResources("8", "20Gi", "40Gi"),
		},
	}
}

// newTenant makes a tenant and waits until it takes environments.
func newTenant(t *testing.T, name string, spec steading.TenantSpec) *steading.Tenant {
	t.Helper()
	x := tenant(name, spec)
	create(t, x)
	eventually(t, "tenant "+name+" ready", func(ctx context.Context) error {
		if err := admin.Get(ctx, client.ObjectKeyFromObject(x), x); err != nil {
			return err
		}
		if x.Status.Phase != steading.TenantReady {
			return fmt.Errorf("phase %s, conditions %v", x.Status.Phase, x.Status.Conditions)
		}
		return nil
	})
	return x
}

// waitFor waits until an environment is as check wants it.
func waitFor(t *testing.T, e *steading.Environment, what string, check func(*steading.Environment) bool) *steading.Environment {
	t.Helper()
	eventually(t, "environment "+e.Name+" "+what, func(ctx context.Context) error {
		if err := admin.Get(ctx, client.ObjectKeyFromObject(e), e); err != nil {
			return err
		}
		if !check(e) {
			return fmt.Errorf("phase %s, power %s, message %q, conditions %+v", e.Status.Phase, e.Status.Power, e.Status.Message, e.Status.Conditions)
		}
		return nil
	})
	return e
}

// isReady reports whether Crossplane finds the claim ready as it is written now.
func isReady(e *steading.Environment) bool {
	c := e.Status.GetCondition("Ready")
	return c.Status == corev1.ConditionTrue && c.ObservedGeneration == e.Generation
}
