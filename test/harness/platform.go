// Package harness is what the suites that drive a whole platform share: one platform a test binary, an administrator's
// client, claims to apply and conditions to wait for.
package harness

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/cluster/local/platform"
)

// startup is how long a platform may take to start, its tools not being built yet.
const startup = 30 * time.Minute

// parallel is how many tests run at a time unless the command line says otherwise: they wait for the platform most of the
// time, however few cores there are.
const parallel = "8"

// Suite is the platform that all tests of a test binary share. Each test has tenants of its own.
type Suite struct {
	// Platform that runs. Nil until Main has started it.
	*platform.Platform
	// Admin is the administrator's client of the control plane.
	Admin client.Client
}

// Main runs the tests of m on a platform that is started with o, and ends it. Without a platform, under -short, it says
// that the suite is skipped.
func (s *Suite) Main(m *testing.M, o platform.Options) {
	_ = flag.Set("test.parallel", parallel) // What the command line says comes after.
	flag.Parse()
	if testing.Short() {
		fmt.Printf("suite %s is skipped: it starts a platform, and -short is set\n", o.Name)
		return
	}
	ctrl.SetLogger(logr.Discard())
	os.Exit(s.run(m, o))
}

func (s *Suite) run(m *testing.M, o platform.Options) int {
	ctx, cancel := context.WithTimeout(context.Background(), startup)
	defer cancel()
	started := time.Now()
	o.Progress = func(line string) { fmt.Printf("%6.1fs %s\n", time.Since(started).Seconds(), line) }
	p, err := platform.Start(ctx, o)
	if err != nil {
		fmt.Println("cannot start the platform:", err)
		return 1
	}
	defer p.Stop() //nolint:errcheck // The process ends, and with it all that the platform runs.
	s.Platform = p
	if s.Admin, err = Client(p.Plane.Config()); err != nil {
		fmt.Println("cannot make a client:", err)
		return 1
	}
	fmt.Printf("%6.1fs the platform takes claims\n", time.Since(started).Seconds())
	return m.Run()
}

// NoPolling are the provider's arguments that leave everything to its watches, deletion that is held up too.
func NoPolling() []string {
	return []string{"--poll-interval=1h", "--poll-interval-not-ready=1h", "--deletion-backoff=1h", "--max-deletion-backoff=1h"}
}

// Client of an API server, uncached, that knows our kinds and Kubernetes' own.
func Client(cfg *rest.Config) (client.Client, error) {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	utilruntime.Must(steading.AddToScheme(s))
	utilruntime.Must(runtimev1.AddToScheme(s))
	utilruntime.Must(forgejov1.AddToScheme(s))
	return client.New(cfg, client.Options{Scheme: s})
}
