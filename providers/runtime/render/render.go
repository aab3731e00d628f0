package render

import (
	"bytes"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
)

// executable is this process's own binary.
const executable = "/proc/self/exe"

// A Job is a chart to render.
type Job struct {
	// Chart is its archive.
	Chart []byte
	// Values as JSON.
	Values []byte
	// Release and Namespace that the chart is told, and the revision, which an upgrade makes.
	Release, Namespace string
	Revision           int
	Upgrade            bool
	// Capabilities of the cluster. Nil: those that Helm knows of, and whatever Kubernetes the chart wants.
	Capabilities *chartutil.Capabilities
	// Loose rendering does without what the chart, or its schema, requires. Nothing can be looked up then.
	Loose bool
	// Document is YAML to read, instead of a chart to render.
	Document []byte
	// LooksUp is set where there is a cluster.
	LooksUp bool
}

// Rendered is what a chart makes.
type Rendered struct {
	Name       string `json:"name"`
	Version    string `json:"version"`
	AppVersion string `json:"appVersion,omitempty"`
	// CRD is the file of one that the chart brings along. Empty: it brings none.
	CRD   string `json:"crd,omitempty"`
	Hooks []Hook `json:"hooks,omitempty"`
	// Objects in the order in which they are installed.
	Objects []json.RawMessage `json:"objects,omitempty"`
}

// A Hook is an object that is not part of the release.
type Hook struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	Path string `json:"path"`
	// Test hooks are run by hand only.
	Test bool `json:"test,omitempty"`
}

// Unstructured objects, to be changed at will.
func (r *Rendered) Unstructured() ([]*unstructured.Unstructured, error) {
	objs := make([]*unstructured.Unstructured, len(r.Objects))
	for i, raw := range r.Objects {
		objs[i] = &unstructured.Unstructured{}
		if err := objs[i].UnmarshalJSON(raw); err != nil {
			return nil, fmt.Errorf("cannot read what the chart renders: %w", err)
		}
	}
	return objs, nil
}

// A RefusedError says what is wrong with a chart, or with a document. To render it again is of no use.
type RefusedError struct{ msg string }

// Error says it to the one who can change the chart, or what it is given.
func (e *RefusedError) Error() string { return e.msg }

func refuse(format string, args ...any) error { return &RefusedError{fmt.Sprintf(format, args...)} }

// A Renderer renders charts, each in a process of its own.
type Renderer struct {
	limits Limits
	slots  *slots
}

// New returns a renderer with these limits.
func New(l Limits) *Renderer {
	l = l.withDefaults()
	return &Renderer{limits: l, slots: newSlots(l.Together, l.OfTenant)}
}

// Render a tenant's chart. What it looks up is looked up with config. Nil: nothing is found.
func (r *Renderer) Render(ctx context.Context, tenant string, j Job, config *rest.Config) (*Rendered, error) {
	l := &lookups{}
	if j.LooksUp = config != nil && !j.Loose; j.LooksUp {
		var err error
		if l, err = lookupsWith(config); err != nil {
			return nil, err
		}
	}
	a, err := r.run(ctx, tenant, r.limits, j, l)
	if err != nil {
		return nil, err
	}
	if a.Rendered == nil {
		return nil, errors.New("the process that renders charts gave no answer")
	}
	return a.Rendered, nil
}

// maxValues that a document may hold, as JSON, in bytes.
const maxValues = 1 << 20

// Values in a document of a tenant's. Only aliases make a document larger than it is.
func (r *Renderer) Values(ctx context.Context, tenant string, document []byte) ([]byte, error) {
	l := r.limits
	l.Output = maxValues
	a, err := r.run(ctx, tenant, l, Job{Document: document}, &lookups{})
	return a.Values, err
}

// run a process when it is the tenant's turn.
func (r *Renderer) run(ctx context.Context, tenant string, l Limits, j Job, lookups *lookups) (answer, error) {
	giveBack, err := r.slots.take(ctx, tenant)
	if err != nil {
		return answer{}, fmt.Errorf("cannot render the chart yet: others are being rendered: %w", err)
	}
	defer giveBack()
	return (&process{limits: l, lookups: lookups}).do(ctx, j)
}

// A process renders one chart.
type process struct {
	limits  Limits
	lookups *lookups
	cmd     *exec.Cmd
	stderr  head
}

func (p *process) do(ctx context.Context, j Job) (answer, error) {
	within, cancel := context.WithTimeout(ctx, p.limits.Wall)
	defer cancel()
	// The kernel ends the process when the thread that started it does.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p.cmd = exec.CommandContext(within, executable, argument)
	p.cmd.Dir = "/"
	p.cmd.Env = []string{"GOMAXPROCS=1", "GOTRACEBACK=none"}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p.cmd.WaitDelay = time.Second
	p.cmd.Stderr = &p.stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return answer{}, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return answer{}, err
	}
	if err := p.cmd.Start(); err != nil {
		return answer{}, fmt.Errorf("cannot start the process that renders charts: %w", err)
	}
	a, talkErr := p.talk(within, j, in, out)
	if talkErr != nil {
		_ = in.Close()
		if errors.Is(talkErr, errTooMuch) {
			_ = p.cmd.Process.Kill()
		}
	}
	waitErr := p.cmd.Wait()
	switch {
	case talkErr == nil && a.Refused != "":
		return answer{}, refuse("%s", a.Refused)
	case talkErr == nil:
		return a, nil
	case errors.Is(talkErr, errTooMuch):
		return answer{}, refuse("the chart renders more than %s: have it make less, or split it into several components", size(p.limits.Output))
	}
	return answer{}, p.died(ctx, within, errors.Join(talkErr, waitErr))
}

var errTooMuch = errors.New("too much is printed")

// talk with the process: it is given the job, is answered what it asks, and answers.
func (p *process) talk(ctx context.Context, j Job, in io.WriteCloser, out io.Reader) (answer, error) {
	to := gob.NewEncoder(in)
	if err := to.Encode(p.limits); err != nil {
		return answer{}, err
	}
	if err := to.Encode(j); err != nil {
		return answer{}, err
	}
	// What is rendered is weighed as YAML, of which JSON may take twice as much.
	bounded := &io.LimitedReader{R: out, N: 2*int64(p.limits.Output) + 1<<20}
	from := json.NewDecoder(bounded)
	for {
		var a answer
		if err := from.Decode(&a); err != nil {
			if bounded.N <= 0 {
				return answer{}, errTooMuch
			}
			return answer{}, err
		}
		if a.Lookup == nil {
			return a, in.Close()
		}
		if err := to.Encode(p.lookups.ask(ctx, *a.Lookup)); err != nil {
			return answer{}, err
		}
	}
}

// died says what the process died of.
func (p *process) died(ctx, within context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("cannot render the chart: %w", ctx.Err())
	}
	const what = "have it make less, or split it into several components"
	state := p.cmd.ProcessState
	status, ok := state.Sys().(syscall.WaitStatus)
	killed := ok && status.Signaled() && status.Signal() == syscall.SIGKILL
	used := state.UserTime() + state.SystemTime()
	said := p.stderr.String()
	switch {
	case within.Err() != nil:
		return fmt.Errorf("the chart was not rendered within %s: it is tried again; if that goes on, %s, or ask the operator for what slows down the provider", p.limits.Wall, what)
	case strings.Contains(said, "stack exceeds"):
		return refuse("the chart takes too much memory to render: its templates include one another without end: correct them")
	// Go's collector, which a chart cannot make crash otherwise, does so when it is refused memory.
	case strings.HasPrefix(said, "SIGSEGV: "), strings.Contains(said, "out of memory"), strings.Contains(said, "cannot allocate memory"), strings.Contains(said, "failed to create new OS thread"), strings.Contains(said, "failed to commit pages"):
		return refuse("the chart takes more than %s of memory to render: %s", size(int(p.limits.Memory)), what)
	case killed && used >= p.limits.CPU/2:
		// The kernel counts otherwise than it tells.
		return refuse("the chart takes more than %s of CPU time to render: %s", p.limits.CPU, what)
	case killed:
		return errors.New("the process that rendered the chart was killed, most likely since memory is short: it is tried again")
	case state.ExitCode() == 2:
		// A chart that makes Helm panic. What it says may quote values.
		return refuse("the chart cannot be rendered: Helm crashes with it: correct it")
	}
	return fmt.Errorf("cannot render the chart: the process ended with %s: %w", state, err)
}

// lookups are what charts look up.
type lookups struct {
	http *http.Client
	base *url.URL
}

func lookupsWith(config *rest.Config) (*lookups, error) {
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("cannot make the client that charts look up with: %w", err)
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("cannot make the client that charts look up with: %w", err)
	}
	plain := *c
	plain.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &lookups{http: &plain, base: base}, nil
}

// maxLookedUp bytes are read of one answer of the API server.
const maxLookedUp = 4 << 20

// ask the API server.
func (l *lookups) ask(ctx context.Context, q question) reply {
	if l.http == nil {
		return reply{Error: "there is nothing to look up"}
	}
	u := *l.base
	u.Path, u.RawQuery = strings.TrimSuffix(u.Path, "/")+q.Path, q.Query
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return reply{Error: err.Error()}
	}
	req.Header.Set("Accept", q.Accept)
	res, err := l.http.Do(req)
	if err != nil {
		return reply{Error: err.Error()}
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxLookedUp+1))
	switch {
	case err != nil:
		return reply{Error: err.Error()}
	case len(body) > maxLookedUp:
		return reply{Error: fmt.Sprintf("what is looked up is larger than %s: look it up by name", size(maxLookedUp))}
	}
	return reply{Status: res.StatusCode, ContentType: res.Header.Get("Content-Type"), Body: body}
}

// A head keeps the beginning of what is written to it.
type head struct{ bytes.Buffer }

// Write takes everything.
func (h *head) Write(b []byte) (int, error) {
	if room := maxMessage - h.Len(); room > 0 {
		h.Buffer.Write(b[:min(room, len(b))])
	}
	return len(b), nil
}

func size(bytes int) string { return fmt.Sprintf("%d MiB", bytes>>20) }
