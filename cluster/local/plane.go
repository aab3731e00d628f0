package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	xpextensionsv1 "github.com/crossplane/crossplane/apis/v2/apiextensions/v1"
	xppkgv1 "github.com/crossplane/crossplane/apis/v2/pkg/v1"
	xppkgv1beta1 "github.com/crossplane/crossplane/apis/v2/pkg/v1beta1"
)

// startTimeout is for a plane whose tools are built, on a busy machine.
const startTimeout = 3 * time.Minute

// Options of a plane.
type Options struct {
	// Name appears in kubeconfigs and progress. Default "local".
	Name string
	// Dir holds everything the plane writes; it must be empty or absent.
	// Default: a temporary folder, which Stop removes.
	Dir string
	// Node says what runs the pods. Default NodeKWOK.
	Node Node
	// Address of this machine that the API server listens on. Default 127.0.0.1; a
	// plane with a real node listens where the node finds it, whatever is said here.
	Address string
	// Crossplane is installed in the plane too: as processes of the machine, which
	// leave packages with a runtime to whoever asked for the plane, or on a real
	// node as its own chart does it.
	Crossplane bool
	// CrossplaneArgs follow the arguments that the plane gives to Crossplane's
	// core, so that they win.
	CrossplaneArgs []string
	// Progress gets a line for every step that takes time. Optional.
	Progress func(string)
	// Front gives the address and authority at which a ServiceAccount's process
	// finds the API server, which is at server and verified by ca. Tests put
	// proxies there. Nil: what it is given.
	Front func(namespace, account, server string, ca []byte) (string, []byte, error)
}

// A Plane is a running control plane.
type Plane struct {
	// Supervisor runs the plane's components, named like their programs;
	// Crossplane's are "crossplane" and "crossplane-rbac-manager". More may be
	// added. They all end with the plane.
	Supervisor *Supervisor

	name     string
	dir      string
	ownsDir  bool
	progress func(string)
	tools    *Toolchain
	ports    *ports
	ca       *authority
	host     string // address that the API server listens on
	server   string
	config   *rest.Config
	client   client.Client
	tokens   *tokens
	runtimes *runtimes
	front    func(namespace, account, server string, ca []byte) (string, []byte, error)

	// Of a plane with a real node only.
	subnet   *subnet
	registry *Registry
	images   map[Tool]string

	ending  sync.Once
	ended   chan struct{} // closed when the plane ends
	workers sync.WaitGroup
}

// Start a plane, building its tools if need be, and wait until it is usable.
// Stop it when done; it also ends with this process.
func Start(ctx context.Context, o Options) (*Plane, error) {
	p, err := newPlane(o)
	if err != nil {
		return nil, err
	}
	if err := p.start(ctx, o); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot start control plane %q: %w", p.name, err), p.abandon())
	}
	return p, nil
}

func newPlane(o Options) (*Plane, error) {
	p := &Plane{name: o.Name, dir: o.Dir, progress: o.Progress, front: o.Front, host: cmp.Or(o.Address, "127.0.0.1")}
	if p.name == "" {
		p.name = "local"
	}
	if p.progress == nil {
		p.progress = func(string) {}
	}
	if p.dir == "" {
		dir, err := os.MkdirTemp("", "steading-"+p.name+"-")
		if err != nil {
			return nil, fmt.Errorf("cannot make the plane's folder: %w", err)
		}
		p.dir, p.ownsDir = dir, true
	}
	if entries, err := os.ReadDir(p.dir); err == nil && len(entries) > 0 {
		return nil, fmt.Errorf("cannot start a plane in %s: the folder is not empty", p.dir)
	}
	var err error
	if p.Supervisor, err = NewSupervisor(p.file("logs")); err != nil {
		return nil, err
	}
	if p.ports, err = newPorts(); err != nil {
		return nil, err
	}
	p.ended = make(chan struct{})
	return p, nil
}

func (p *Plane) start(ctx context.Context, o Options) error {
	if o.Node == NodeContainerd {
		return p.startReal(ctx, o)
	}
	tools := []Tool{Etcd, KubeAPIServer, ControllerManager, Scheduler, KWOK}
	if o.Crossplane {
		tools = append(tools, Crossplane)
	}
	var err error
	if p.tools, err = BuildTools(ctx, p.progress, tools...); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := p.startKubernetes(ctx); err != nil {
		return err
	}
	if !o.Crossplane {
		return p.together(func() error { return p.startWorkload(ctx) })
	}
	return p.together(func() error { return p.startWorkload(ctx) }, func() error { return p.startCrossplane(ctx, o.CrossplaneArgs) })
}

// startKubernetes starts the API and gives us clients for it.
func (p *Plane) startKubernetes(ctx context.Context) error {
	p.progress("starting etcd and kube-apiserver")
	if err := p.makeCertificates(); err != nil {
		return err
	}
	etcd, err := p.startEtcd(ctx)
	if err != nil {
		return err
	}
	if err := p.startAPIServer(ctx, etcd); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", p.Kubeconfig())
	if err != nil {
		return fmt.Errorf("cannot read the admin's kubeconfig: %w", err)
	}
	p.config = unlimited(config)
	// Crossplane warns of every legacy XRD; a person sees that from kubectl.
	p.config.WarningHandlerWithContext = rest.NoWarnings{}
	if p.client, err = client.New(p.config, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("cannot make a client: %w", err)
	}
	p.tokens = newTokens(ctx, p)
	p.runtimes = newRuntimes(p)
	return nil
}

// startWorkload starts the controllers, the scheduler and the fake node.
func (p *Plane) startWorkload(ctx context.Context) error {
	return p.together(func() error { return p.startControllers(ctx) }, func() error { return p.startKWOK(ctx) })
}

// startControllers starts the controllers and the scheduler.
func (p *Plane) startControllers(ctx context.Context) error {
	p.progress("starting kube-controller-manager and kube-scheduler")
	err := p.together(func() error { return p.startControllerManager(ctx) }, func() error { return p.startScheduler(ctx) })
	if err != nil {
		return err
	}
	return p.waitControllers(ctx)
}

// waitControllers waits until the controllers have begun: the first thing to be
// seen of them is the ServiceAccount without which no pod is admitted.
func (p *Plane) waitControllers(ctx context.Context) error {
	account := client.ObjectKey{Namespace: "default", Name: "default"}
	err := p.waitFor(ctx, time.Minute, func(ctx context.Context) (bool, error) {
		return true, p.client.Get(ctx, account, &corev1.ServiceAccount{})
	})
	if err != nil {
		return fmt.Errorf("cannot wait for ServiceAccount %s: %w", account, err)
	}
	return nil
}

// Stop ends the plane's processes in order. A temporary folder is removed.
func (p *Plane) Stop() error {
	p.ending.Do(func() { close(p.ended) })
	p.workers.Wait()
	p.Supervisor.Close()
	p.ports.release()
	err := p.endNode()
	if p.ownsDir {
		err = errors.Join(err, os.RemoveAll(p.dir))
	}
	return err
}

// abandon a plane that did not start. Its logs are kept for whoever looks.
func (p *Plane) abandon() error {
	p.ownsDir = false
	return p.Stop()
}

// Config is the administrator's.
func (p *Plane) Config() *rest.Config { return rest.CopyConfig(p.config) }

// ConfigFor is the config of a user with a client certificate of its own.
func (p *Plane) ConfigFor(user string, groups ...string) (*rest.Config, error) {
	c, err := p.ca.client(user, groups...)
	if err != nil {
		return nil, fmt.Errorf("cannot make a certificate for %s: %w", user, err)
	}
	config := rest.AnonymousClientConfig(p.config)
	config.CertData, config.KeyData = c.cert, c.key
	return unlimited(config), nil
}

// Client is the administrator's, uncached. It knows the kinds of Kubernetes,
// CustomResourceDefinitions, and Crossplane's packages and XRDs.
func (p *Plane) Client() client.Client { return p.client }

// Kubeconfig is the path of the administrator's kubeconfig.
func (p *Plane) Kubeconfig() string { return p.file("admin.kubeconfig") }

// AuditLog is the path of the log of what ServiceAccounts outside kube-system
// asked the API server for, one JSON event a line.
func (p *Plane) AuditLog() string { return p.file("audit/audit.log") }

// CA is the PEM certificate of the authority that signed the API server's.
func (p *Plane) CA() []byte { return p.ca.pem }

// Address of this machine that the API server listens on. Pods of a real node
// reach the machine by it.
func (p *Plane) Address() string { return p.host }

// Registry is what a real node pulls from. A plane without one has none.
func (p *Plane) Registry() *Registry { return p.registry }

// Dir is where the plane keeps everything.
func (p *Plane) Dir() string { return p.dir }

// ReservePort returns a port of 127.0.0.1 that nobody listens on and that no
// other plane takes while this one runs.
func (p *Plane) ReservePort() (int, error) { return p.ports.reserve() }

func (p *Plane) file(path string) string { return filepath.Join(p.dir, filepath.FromSlash(path)) }

// together runs steps at the same time.
func (p *Plane) together(steps ...func() error) error {
	errs := make([]error, len(steps))
	var wg sync.WaitGroup
	for i, step := range steps {
		wg.Go(func() { errs[i] = step() })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// work runs something until the plane ends, whatever becomes of ctx.
func (p *Plane) work(ctx context.Context, f func(context.Context)) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p.workers.Go(func() {
		defer cancel()
		go func() {
			<-p.ended
			cancel()
		}()
		f(ctx)
	})
}

var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, xpextensionsv1.AddToScheme, xppkgv1.AddToScheme, xppkgv1beta1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err) // Two kinds of one name: a mistake of ours.
		}
	}
	return s
}()
