package local

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/ptr"
)

// modulePath is the module whose cluster/local/tools folder pins the tools.
const modulePath = "github.com/steading-dev/steading"

// A Tool is a program that a plane runs, built from a pinned Go module.
type Tool string

// The tools of a plane. Kubectl is not run by it, but is what a person wants
// next to it.
const (
	Etcd              Tool = "etcd"
	KubeAPIServer     Tool = "kube-apiserver"
	ControllerManager Tool = "kube-controller-manager"
	Scheduler         Tool = "kube-scheduler"
	Kubectl           Tool = "kubectl"
	KWOK              Tool = "kwok"
	Crossplane        Tool = "crossplane"
	// ExternalSecrets is the controller of the External Secrets operator, which no
	// plane runs by itself.
	ExternalSecrets Tool = "external-secrets"
	// Crank is Crossplane's command line tool, with which tests look at a plane.
	Crank Tool = "crank"
	// ArgoCD is all of Argo CD's processes: which one it is, the name says that it
	// is called by. It calls Kustomize and keeps what it knows in ArgoCDRedis.
	// ArgoCDHealth asks Argo CD's own code about objects. No plane runs them.
	ArgoCD       Tool = "argocd"
	ArgoCDHealth Tool = "argocd-health"
	ArgoCDRedis  Tool = "argocd-redis"
	Kustomize    Tool = "kustomize"
)

// The tools of a real node. The last four run there as pods.
const (
	Kubelet         Tool = "kubelet"
	KubeProxy       Tool = "kube-proxy"
	Pause           Tool = "pause"
	CoreDNS         Tool = "coredns"
	Provisioner     Tool = "provisioner"
	NetworkPolicies Tool = "kube-network-policies"
)

// AllTools lists every tool of a plane in the order in which they are built.
var AllTools = []Tool{Etcd, KubeAPIServer, ControllerManager, Scheduler, Kubectl, KWOK, Crossplane}

// NodeTools lists what a real node takes besides.
var NodeTools = []Tool{Kubelet, KubeProxy, Pause, CoreDNS, Provisioner, NetworkPolicies}

// crossplaneVersion is what its packages are told.
const crossplaneVersion = "v2.4.0"

const kubernetesLDFlags = "-s -w -X k8s.io/component-base/version.gitVersion=v1.35.4" +
	" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=35"

// recipe says how a tool is built. The linker flags carry the versions that the
// programs would otherwise report wrongly; Crossplane refuses packages without.
type recipe struct {
	module  string // folder below cluster/local/tools
	source  string // path of the module that holds the package
	command string // package of the program
	static  bool   // built without cgo, for an image with nothing else in it
	ldflags string
	assets  []string // folders of the source module which are kept beside the program
	cold    string   // how long the first build takes, as measured on two cores
}

var recipes = map[Tool]recipe{
	Etcd:              {module: "etcd", source: "go.etcd.io/etcd/server/v3", command: "go.etcd.io/etcd/server/v3", cold: "1 min"},
	KubeAPIServer:     {module: "kubernetes", source: "k8s.io/kubernetes", command: "k8s.io/kubernetes/cmd/kube-apiserver", ldflags: kubernetesLDFlags, cold: "5 min"},
	ControllerManager: {module: "kubernetes", source: "k8s.io/kubernetes", command: "k8s.io/kubernetes/cmd/kube-controller-manager", ldflags: kubernetesLDFlags, cold: "1 min"},
	Scheduler:         {module: "kubernetes", source: "k8s.io/kubernetes", command: "k8s.io/kubernetes/cmd/kube-scheduler", ldflags: kubernetesLDFlags, cold: "30 s"},
	Kubectl:           {module: "kubernetes", source: "k8s.io/kubernetes", command: "k8s.io/kubernetes/cmd/kubectl", ldflags: kubernetesLDFlags, cold: "30 s"},
	KWOK: {module: "kwok", source: "sigs.k8s.io/kwok", command: "sigs.k8s.io/kwok/cmd/kwok", ldflags: "-s -w", cold: "4 min",
		assets: []string{"kustomize/crd/bases", "kustomize/rbac", "kustomize/stage"}},
	// The RBAC manager has no flag for its metrics address: on a fixed port
	// only one plane could run, so the default is linked to "0", disabled.
	Crossplane: {module: "crossplane", source: "github.com/crossplane/crossplane/v2", command: "github.com/crossplane/crossplane/v2/cmd/crossplane", static: true, cold: "4 min",
		ldflags: "-s -w -X github.com/crossplane/crossplane-runtime/v2/pkg/version.version=" + crossplaneVersion + " -X sigs.k8s.io/controller-runtime/pkg/metrics/server.DefaultBindAddress=0",
		assets:  []string{"cluster/crds", "cluster/webhookconfigurations", "cluster/charts/crossplane"}},
	ExternalSecrets: {module: "external-secrets", source: "github.com/external-secrets/external-secrets", command: "github.com/external-secrets/external-secrets", cold: "8 min",
		ldflags: "-s -w", assets: []string{"config/crds/bases"}},
	ArgoCD: {module: "argocd", source: "github.com/argoproj/argo-cd/v3", command: "github.com/argoproj/argo-cd/v3/cmd", cold: "7 min",
		ldflags: "-s -w -X github.com/argoproj/argo-cd/v3/common.version=3.2.1",
		assets:  []string{"manifests/crds", "manifests/base", "manifests/cluster-rbac"}},
	ArgoCDHealth:    {module: "argocd", command: modulePath + "/cluster/local/tools/argocd/health", cold: "3 min", ldflags: "-s -w"},
	ArgoCDRedis:     {module: "argocd", command: modulePath + "/cluster/local/tools/argocd/redis", cold: "10 s", ldflags: "-s -w"},
	Kustomize:       {module: "argocd", command: "sigs.k8s.io/kustomize/kustomize/v5", cold: "30 s", ldflags: "-s -w"},
	Kubelet:         {module: "node", source: "k8s.io/kubernetes", command: "k8s.io/kubernetes/cmd/kubelet", ldflags: kubernetesLDFlags, cold: "1 min"},
	KubeProxy:       {module: "node", source: "k8s.io/kubernetes", command: "k8s.io/kubernetes/cmd/kube-proxy", ldflags: kubernetesLDFlags, cold: "30 s"},
	Pause:           {module: "addons", command: modulePath + "/cluster/local/tools/addons/pause", static: true, ldflags: "-s -w", cold: "1 s"},
	CoreDNS:         {module: "addons", command: modulePath + "/cluster/local/tools/addons/coredns", static: true, ldflags: "-s -w", cold: "2 min"},
	Provisioner:     {module: "addons", command: modulePath + "/cluster/local/tools/addons/provisioner", static: true, ldflags: "-s -w", cold: "10 s"},
	NetworkPolicies: {module: "addons", command: "sigs.k8s.io/kube-network-policies/cmd", static: true, ldflags: "-s -w", cold: "10 s"},
	Crank:           {module: "crank", source: "github.com/crossplane/crossplane/v2", command: "github.com/crossplane/crossplane/v2/cmd/crank", ldflags: "-s -w", cold: "2 min"},
}

// A Toolchain holds built tools.
type Toolchain struct {
	dirs map[Tool]string
}

// Path of the tool's program.
func (t *Toolchain) Path(tool Tool) string { return filepath.Join(t.dirs[tool], string(tool)) }

// Asset is the path of a folder of the tool's module, such as its CRDs.
func (t *Toolchain) Asset(tool Tool, path string) string {
	return filepath.Join(t.dirs[tool], "assets", filepath.FromSlash(path))
}

// BuildTools returns the tools, building those that the user's cache folder
// does not hold yet. It may be called by any number of processes at once: they
// wait for each other. Progress gets a line for every tool that is built.
func BuildTools(ctx context.Context, progress func(string), tools ...Tool) (*Toolchain, error) {
	if progress == nil {
		progress = func(string) {}
	}
	root, err := ModuleDir(ctx)
	if err != nil {
		return nil, err
	}
	cache, err := CacheDir("tools")
	if err != nil {
		return nil, err
	}
	t := &Toolchain{dirs: map[Tool]string{}}
	for i, tool := range tools {
		r, ok := recipes[tool]
		if !ok {
			return nil, fmt.Errorf("cannot build %q: no such tool", tool)
		}
		modDir := filepath.Join(root, "cluster", "local", "tools", r.module)
		key, err := r.key(ctx, modDir)
		if err != nil {
			return nil, fmt.Errorf("cannot build %s: %w", tool, err)
		}
		dir := filepath.Join(cache, string(tool)+"-"+key)
		t.dirs[tool] = dir
		if exists(dir) {
			continue
		}
		say := func(format string, args ...any) {
			progress(fmt.Sprintf("%s (%d of %d): ", tool, i+1, len(tools)) + fmt.Sprintf(format, args...))
		}
		if err := r.buildOnce(ctx, tool, modDir, dir, say); err != nil {
			return nil, fmt.Errorf("cannot build %s: %w", tool, err)
		}
	}
	return t, nil
}

// buildOnce builds the tool into dir unless another process does it first.
func (r recipe) buildOnce(ctx context.Context, tool Tool, modDir, dir string, say func(format string, args ...any)) error {
	unlock, err := Lock(ctx, dir+".lock", func() { say("waiting for another process that builds it") })
	if err != nil {
		return err
	}
	defer unlock()
	if exists(dir) {
		return nil
	}
	say("building, about %s the first time on two cores", r.cold)
	started := time.Now()
	tmp, err := os.MkdirTemp(filepath.Dir(dir), ".build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp) //nolint:errcheck // A leftover is harmless.
	if _, err := runGoWith(ctx, modDir, r.env(), "build", "-trimpath", "-buildvcs=false", "-ldflags", r.ldflags, "-o", filepath.Join(tmp, string(tool)), r.command); err != nil {
		return err
	}
	if err := r.copyAssets(ctx, modDir, tmp); err != nil {
		return err
	}
	if err := os.Rename(tmp, dir); err != nil {
		return err
	}
	say("built in %s", time.Since(started).Round(time.Second))
	return nil
}

// copyAssets keeps folders of the source module beside the program, so that a
// warm start needs neither the module cache nor the network.
func (r recipe) copyAssets(ctx context.Context, modDir, to string) error {
	if len(r.assets) == 0 {
		return nil
	}
	out, err := runGo(ctx, modDir, "list", "-m", "-json", r.source)
	if err != nil {
		return err
	}
	mod := struct {
		Dir string `json:"Dir"`
	}{}
	if err := json.Unmarshal(out, &mod); err != nil || mod.Dir == "" {
		return fmt.Errorf("cannot find module %s in the module cache: %w", r.source, err)
	}
	for _, a := range r.assets {
		if err := os.CopyFS(filepath.Join(to, "assets", filepath.FromSlash(a)), os.DirFS(filepath.Join(mod.Dir, filepath.FromSlash(a)))); err != nil {
			return fmt.Errorf("cannot copy %s: %w", a, err)
		}
	}
	return nil
}

// key changes whenever the built program could.
func (r recipe) key(ctx context.Context, modDir string) (string, error) {
	h := sha256.New()
	for _, f := range []string{"go.mod", "go.sum"} {
		b, err := os.ReadFile(filepath.Join(modDir, f)) //nolint:gosec // A file of our source tree.
		if err != nil {
			return "", err
		}
		h.Write(b)
	}
	if own, ok := strings.CutPrefix(r.command, modulePath+"/"); ok {
		b, err := os.ReadFile(filepath.Join(modDir, filepath.Base(own), "main.go")) //nolint:gosec // A file of our source tree.
		if err != nil {
			return "", err
		}
		h.Write(b)
	}
	env, err := goEnv(ctx)
	if err != nil {
		return "", err
	}
	h.Write([]byte(strings.Join(slices.Concat([]string{env, r.command, r.ldflags}, r.assets, r.env()), "\x00")))
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

// env is what the go command's environment has besides.
func (r recipe) env() []string {
	if r.static {
		return []string{"CGO_ENABLED=0"}
	}
	return nil
}

// goEnv is what decides, besides flags and sources, what the go command builds.
var goEnv = func() func(context.Context) (string, error) {
	var mu sync.Mutex
	var known *string
	return func(ctx context.Context) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if known != nil {
			return *known, nil
		}
		out, err := runGo(ctx, "", "env", "GOVERSION", "GOOS", "GOARCH", "CGO_ENABLED")
		if err != nil {
			return "", err
		}
		known = ptr.To(string(out))
		return *known, nil
	}
}()

// ModuleDir is the folder of Steading's module: tools, manifests and our own
// programs are built from it.
func ModuleDir(ctx context.Context) (string, error) {
	out, err := runGo(ctx, "", "list", "-m", "-f", "{{.Dir}}", modulePath)
	if err != nil {
		return "", fmt.Errorf("cannot find the source of %s: run this inside a clone of it: %w", modulePath, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// CacheDir is a folder of ours in the user's cache folder; it is made if need be.
func CacheDir(name string) (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("cannot find a cache folder: set HOME or XDG_CACHE_HOME: %w", err)
	}
	dir := filepath.Join(base, "steading", name)
	return dir, os.MkdirAll(dir, 0o700)
}

// runGo runs the go command in a folder and returns what it prints.
func runGo(ctx context.Context, dir string, args ...string) ([]byte, error) {
	return runGoWith(ctx, dir, nil, args...)
}

func runGoWith(ctx context.Context, dir string, env []string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // Our own arguments.
	cmd.Dir = dir
	// The tools are modules of their own; what a user sets for another module
	// must not bend their build.
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	cmd.Env = append(cmd.Env, env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("go %s: %w: %s", args[0], err, tail(stderr.String(), 20))
	}
	return stdout.Bytes(), nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// tail is the last lines of a text.
func tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
