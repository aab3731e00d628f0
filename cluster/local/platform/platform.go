package platform

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/cluster/local"
	"github.com/steading-dev/steading/package/build"
)

// Names of the components that a Platform adds to its control plane. They can
// be killed, stopped and resumed by these names: Plane.Supervisor. Crossplane's
// are "crossplane" and "crossplane-rbac-manager".
const (
	Function = "function-steading"
	Provider = names.ProviderRuntime
	// RunnersProvider is the one of runner pools.
	RunnersProvider = names.ProviderForgejo
)

// providers by their names, each with the package of its program.
var providers = map[string]string{
	Provider:        "./providers/runtime/cmd",
	RunnersProvider: "./providers/forgejo/cmd",
}

// Processes are the function and the providers, by the names of their packages.
func Processes() []string { return append(slices.Sorted(maps.Keys(providers)), Function) }

// Options of a platform.
type Options struct {
	// Name appears in kubeconfigs and progress. Default "steading".
	Name string
	// Dir holds everything the platform writes; it must be empty or absent.
	// Default: a temporary folder, which Stop removes.
	Dir string
	// Node says what runs the pods of the control plane; the edge's are always
	// KWOK's. On a real node Crossplane and our packages run as pods, installed as
	// their users do. Default [local.NodeKWOK].
	Node local.Node
	// Source is the folder of the module that is installed. Default: the one that the
	// working folder is in.
	Source string
	// Edge starts a second control plane, a cluster for tenants to register.
	Edge bool
	// FunctionArgs and ProviderArgs, of every provider, follow the arguments the
	// platform gives, so that they win.
	FunctionArgs, ProviderArgs []string
	// CrossplaneArgs follow the arguments of Crossplane's core.
	CrossplaneArgs []string
	// ProviderEnv is added to the environment of every provider, as KEY=value.
	ProviderEnv []string
	// ImageTags of the canonical image in the registry: the versions that
	// environments may ask for. Default: 1.4.2 and 1.4.3.
	ImageTags []string
	// RunnerImage holds forgejo-runner, for runner pools that name none. Default:
	// Forgejo's own, which KWOK does not pull.
	RunnerImage string
	// RegistryCA is trusted by provider-runtime, besides the public ones, when it
	// reads charts: certificates, PEM. On a real node only. Optional.
	RegistryCA []byte
	// Progress gets a line for every step that takes time. Optional.
	Progress func(string)
	// Front of the control plane's API server for a ServiceAccount's process; see
	// [local.Options]. Optional.
	Front func(namespace, account, server string, ca []byte) (string, []byte, error)
}

// A Platform is a running Steading.
type Platform struct {
	// Plane is the control plane, and the platform's own cluster.
	Plane *local.Plane
	// Edge is the second control plane, nil unless asked for.
	Edge *local.Plane
	// Registry holds the packages, the runtime chart and the canonical image.
	Registry *local.Registry

	name    string
	source  string // folder of the module
	dir     string
	ownsDir bool
	options Options
	began   atomic.Pointer[time.Time] // When what is being done began.
	say     func(string)

	tools    *local.Toolchain
	mu       sync.Mutex // of what follows
	launched map[string]launch
	listens  map[string][2]string

	// On a real node only: what was published last, and how often that was.
	published *build.Artifacts
	serial    int
}

// Start a platform and wait until it takes claims. Stop it when done; it also
// ends with this process.
func Start(ctx context.Context, o Options) (*Platform, error) {
	p, err := newPlatform(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := p.start(ctx); err != nil {
		p.ownsDir = false // Its logs are kept for whoever looks.
		return nil, errors.Join(fmt.Errorf("cannot start platform %q: %w", p.name, err), p.Stop())
	}
	return p, nil
}

func newPlatform(ctx context.Context, o Options) (*Platform, error) {
	p := &Platform{name: o.Name, dir: o.Dir, source: o.Source, options: o, launched: map[string]launch{}, listens: map[string][2]string{}}
	if p.name == "" {
		p.name = "steading"
	}
	if len(o.ImageTags) == 0 {
		p.options.ImageTags = []string{"1.4.2", "1.4.3"}
	}
	if p.options.RunnerImage == "" {
		p.options.RunnerImage = "code.forgejo.org/forgejo/runner:12"
	}
	p.began.Store(new(time.Now()))
	p.say = p.progress(o.Progress)
	var err error
	if p.source == "" {
		if p.source, err = local.ModuleDir(ctx); err != nil {
			return nil, err
		}
	}
	if p.dir == "" {
		if p.dir, err = os.MkdirTemp("", "steading-platform-"); err != nil {
			return nil, fmt.Errorf("cannot make the platform's folder: %w", err)
		}
		p.ownsDir = true
	}
	return p, nil
}

// progress puts before each line the time since the start, or since the last [Platform.Install].
func (p *Platform) progress(to func(string)) func(string) {
	var mu sync.Mutex
	return func(line string) {
		if to == nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		to(fmt.Sprintf("%6.1fs  %s", time.Since(*p.began.Load()).Seconds(), line))
	}
}

func (p *Platform) start(ctx context.Context) error {
	if p.real() {
		return p.startReal(ctx)
	}
	var err error
	if p.Registry, err = local.StartRegistry(filepath.Join(p.dir, "registry")); err != nil {
		return err
	}
	if p.tools, err = local.BuildTools(ctx, p.say, local.AllTools...); err != nil {
		return err
	}
	var built built
	err = together(
		func() error { return p.startPlanes(ctx) },
		func() (err error) { built, err = p.build(ctx); return err },
	)
	if err != nil {
		return err
	}
	if err := p.install(ctx, built); err != nil {
		return err
	}
	return p.teachCollector(ctx)
}

// startPlanes starts the control plane and, if asked for, the edge.
func (p *Platform) startPlanes(ctx context.Context) error {
	plane := func() (err error) {
		p.Plane, err = local.Start(ctx, local.Options{Name: p.name, Dir: filepath.Join(p.dir, "plane"), Crossplane: true, Progress: p.say, Front: p.options.Front, CrossplaneArgs: p.options.CrossplaneArgs})
		return err
	}
	if !p.options.Edge {
		return plane()
	}
	return together(plane, func() error { return p.startEdge(ctx, "") })
}

// startEdge starts the edge at an address of this machine that the provider reaches.
func (p *Platform) startEdge(ctx context.Context, address string) (err error) {
	say := func(line string) { p.say("edge: " + line) }
	p.Edge, err = local.Start(ctx, local.Options{Name: p.name + "-edge", Dir: filepath.Join(p.dir, "edge"), Address: address, Progress: say})
	return err
}

// built is what is made from the source tree.
type built struct {
	programs programs
	pushed   pushed
}

// build programs and packages; the packages go to the registry.
func (p *Platform) build(ctx context.Context) (b built, err error) {
	if b.programs, err = p.buildPrograms(ctx); err != nil {
		return b, err
	}
	b.pushed, err = p.publish(ctx)
	return b, err
}

// Install what this source tree holds, or bring what runs up to it: programs,
// packages, manifests, processes. It may be called again at any time.
func (p *Platform) Install(ctx context.Context) error {
	p.began.Store(new(time.Now()))
	if p.real() {
		return p.installPackages(ctx)
	}
	b, err := p.build(ctx)
	if err != nil {
		return err
	}
	return p.install(ctx, b)
}

func (p *Platform) install(ctx context.Context, b built) error {
	for _, folder := range []string{"cluster/install/base", "xrds", "compositions"} {
		p.say("applying " + folder)
		files, err := manifests(filepath.Join(p.source, filepath.FromSlash(folder)))
		if err != nil {
			return err
		}
		if err := p.Plane.ApplyFiles(ctx, files...); err != nil {
			return err
		}
	}
	err := together(
		func() error { return p.runFunction(ctx, b) },
		func() error { return p.runProviders(ctx, b) },
		func() error { return p.waitOffered(ctx) },
	)
	if err != nil {
		return err
	}
	p.say("the platform takes claims")
	return nil
}

// manifests are the file itself, or the YAML files of a folder, but not of
// folders below it.
func manifests(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("cannot find manifests: %w", err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("cannot find manifests: %w", err)
	}
	var files []string
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".yaml" && e.Name() != "kustomization.yaml" {
			files = append(files, filepath.Join(path, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("cannot find manifests: no YAML file in %s", path)
	}
	return files, nil
}

// Kubectl is the path of a kubectl of the version that the planes run.
func (p *Platform) Kubectl() string { return p.tools.Path(local.Kubectl) }

// Stop ends all processes of the platform. A temporary folder is removed.
func (p *Platform) Stop() error {
	var stops []func() error
	for _, plane := range []*local.Plane{p.Plane, p.Edge} {
		if plane != nil {
			stops = append(stops, plane.Stop)
		}
	}
	err := together(stops...)
	if p.Registry != nil && !p.real() { // A real node's ends with its plane.
		err = errors.Join(err, p.Registry.Stop())
	}
	if p.ownsDir {
		err = errors.Join(err, os.RemoveAll(p.dir))
	}
	return err
}

// together runs steps at the same time.
func together(steps ...func() error) error {
	errs := make([]error, len(steps))
	var wg sync.WaitGroup
	for i, step := range steps {
		wg.Go(func() { errs[i] = step() })
	}
	wg.Wait()
	return errors.Join(errs...)
}
