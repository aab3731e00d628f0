package render

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/client-go/rest"
)

// archive of a chart with one template.
func archive(t testing.TB, template string, change ...func(*chart.Chart)) []byte {
	t.Helper()
	c := &chart.Chart{
		Metadata:  &chart.Metadata{APIVersion: chart.APIVersionV2, Name: "c", Version: "1.0.0", AppVersion: "2"},
		Templates: []*chart.File{{Name: "templates/all.yaml", Data: []byte(template)}},
	}
	for _, f := range change {
		f(c)
	}
	file, err := chartutil.Save(c, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	a, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func jobOf(t testing.TB, template string, change ...func(*chart.Chart)) Job {
	t.Helper()
	return Job{Chart: archive(t, template, change...), Values: []byte(`{"a": "b"}`), Release: "acme-c", Namespace: "acme-dev", Revision: 1}
}

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}, namespace: {{ .Release.Namespace }}}\ndata: {a: {{ .Values.a }}}\n"

func TestRenders(t *testing.T) {
	j := jobOf(t, configMap+"---\napiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: listed}}]\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: h, annotations: {helm.sh/hook: test}}\n",
		func(c *chart.Chart) {
			c.Files = append(c.Files, &chart.File{Name: "crds/a.yaml", Data: []byte("kind: A")})
		})
	have, err := New(Limits{}).Render(t.Context(), "acme", j, nil)
	if err != nil {
		t.Fatal(err)
	}
	objs, err := have.Unstructured()
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, 0, len(objs))
	for _, o := range objs {
		names = append(names, o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName())
	}
	if diff := cmp.Diff([]string{"ConfigMap acme-dev/acme-c", "ConfigMap /listed"}, names); diff != "" {
		t.Errorf("-want +have:\n%s", diff)
	}
	have.Objects = nil
	want := &Rendered{Name: "c", Version: "1.0.0", AppVersion: "2", CRD: "c/crds/a.yaml", Hooks: []Hook{{Kind: "Pod", Name: "h", Path: "c/templates/all.yaml", Test: true}}}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("-want +have:\n%s", diff)
	}
}

// TestRequiredMayBeMissing where a chart is rendered for what it needs: what a Secret gives is not known there.
func TestRequiredMayBeMissing(t *testing.T) {
	j := jobOf(t, "apiVersion: v1\nkind: ConfigMap\ndata: {p: {{ required `password` .Values.password | quote }}}\n",
		func(c *chart.Chart) { c.Schema = []byte(`{"required": ["password"]}`) })
	r := New(Limits{})
	if _, err := r.Render(t.Context(), "acme", j, nil); err == nil || !strings.Contains(err.Error(), "the chart refuses its values") {
		t.Errorf("have %v, want it refused", err)
	}
	j.Loose = true
	if _, err := r.Render(t.Context(), "acme", j, nil); err != nil {
		t.Error(err)
	}
}

// TestHostileCharts end their own process and nothing else, and are told what they took too much of.
func TestHostileCharts(t *testing.T) {
	brief, patient := New(Limits{CPU: 2 * time.Second}), New(Limits{CPU: time.Minute})
	if _, err := brief.Render(t.Context(), "acme", jobOf(t, configMap), nil); err != nil {
		t.Fatal("even a harmless one is refused: ", err)
	}
	cases := map[string]struct {
		reason   string
		template string
		change   func(*chart.Chart)
		want     string
	}{
		"Repeat":  {reason: "a letter, a billion times", template: `{{ repeat 1000000000 "x" }}`, want: "of memory to render"},
		"Until":   {reason: "a list of a hundred million numbers", template: `{{ range until 100000000 }}x{{ end }}`, want: "of memory to render"},
		"Count":   {reason: "loops in loops", template: `{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}`, want: "takes more than 2s of CPU time to render"},
		"Include": {reason: "what includes itself", template: `{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}`, want: "the chart"},
		"Stack":   {reason: "what calls itself", template: `{{ define "a" }}{{ template "a" . }}{{ end }}{{ template "a" . }}`, want: "the chart"},
		"Double":  {reason: "a text that doubles", template: `{{ $x := "xxxxxxxxxxxxxxxx" }}{{ range until 40 }}{{ $x = print $x $x }}{{ end }}{{ $x }}`, want: "of memory to render"},
		"Tpl":     {reason: "templates that make templates", template: `{{ tpl (repeat 200000 "{{ repeat 1000 \"y\" }}") . }}`, want: "to render"},
		"Aliases": {reason: "YAML that refers to itself", template: "a: &a [" + strings.Repeat("x", 1000000) + "]\nb: [" + strings.Repeat("*a,", 100000) + "]\n", want: "the chart"},
		"Values": {reason: "such YAML among the defaults", template: configMap, change: func(c *chart.Chart) {
			c.Raw = append(c.Raw, &chart.File{Name: "values.yaml", Data: []byte("a: &a " + strings.Repeat("x", 1000000) + "\nb: [" + strings.Repeat("*a,", 100000) + "]\n")})
		}, want: "the chart takes more than"},
		"Large":    {reason: "more than may be installed", template: "apiVersion: v1\nkind: ConfigMap\ndata: {a: {{ repeat 4500000 `x` }}}\n", want: "renders more than 4 MiB"},
		"Swarm":    {reason: "more objects than may be installed", template: "{{ range until 2001 }}---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n{{ end }}", want: "renders more than 2000 objects"},
		"Deep":     {reason: "what is as large as it is deep when it is written down", template: "apiVersion: v1\nkind: ConfigMap\ndata: " + strings.Repeat("{a: ", 500) + "1" + strings.Repeat("}", 500), want: "deeper than 64 levels"},
		"Indented": {reason: "likewise in breadth", template: "apiVersion: v1\nkind: ConfigMap\ndata: " + strings.Repeat("{a: ", 55) + "[{{ repeat 60000 `1,` }}]" + strings.Repeat("}", 55), want: "renders more than 4 MiB"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			change := tc.change
			if change == nil {
				change = func(*chart.Chart) {}
			}
			j := jobOf(t, tc.template, change)
			r := brief
			if strings.Contains(tc.want, "memory") {
				r = patient // On a slow machine its time would be up first.
			}
			before := allocated()
			_, err := r.Render(t.Context(), "acme", j, nil)
			if took := allocated() - before; took > 64<<20 {
				t.Errorf("%s: rendering it took %d MiB here", tc.reason, took>>20)
			}
			if !errors.As(err, new(*RefusedError)) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: have %v, want it refused with %q", tc.reason, err, tc.want)
			}
			if err != nil && len(err.Error()) > maxMessage+100 {
				t.Errorf("%s: is refused with %d bytes", tc.reason, len(err.Error()))
			}
		})
	}
}

// allocated bytes of this process since it began.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

func TestValuesOfADocument(t *testing.T) {
	r := New(Limits{CPU: 2 * time.Second})
	have, err := r.Values(t.Context(), "acme", []byte("a: &x {b: 1}\nc: *x\n"))
	if err != nil || string(have) != `{"a":{"b":1},"c":{"b":1}}` {
		t.Errorf("have %s, %v", have, err)
	}
	bomb := "a: &a " + strings.Repeat("x", 500000) + "\nb: [" + strings.Repeat("*a,", 100000) + "]\n"
	for document, want := range map[string]string{
		"a: [": "it is not YAML",
		bomb:   "takes more than",
		"a: &a " + strings.Repeat("x", 500000) + "\nb: [*a, *a, *a]\n": "larger than 1 MiB",
	} {
		if _, err := r.Values(t.Context(), "acme", []byte(document)); !errors.As(err, new(*RefusedError)) || !strings.Contains(err.Error(), want) {
			t.Errorf("have %v, want %q", err, want)
		}
	}
}

// TestLooksUpThroughTheProvider: what is looked up is looked up with the config, and read only.
func TestLooksUpThroughTheProvider(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization"))
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/api/v1":
			_, _ = fmt.Fprint(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"secrets","namespaced":true,"kind":"Secret","verbs":["get"]}]}`)
		case "/api/v1/namespaces/acme-dev/secrets/there":
			_, _ = fmt.Fprint(w, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"there"},"data":{"a":"Yg=="}}`)
		case "/api/v1/namespaces/acme-dev/secrets/large":
			_, _ = w.Write(bytes.Repeat([]byte{' '}, maxLookedUp+1))
		default:
			w.WriteHeader(http.StatusForbidden)
			_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"secrets \"denied\" is forbidden","reason":"Forbidden","code":403}`)
		}
	}))
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL, BearerToken: "deployer"}
	look := func(name string) (*Rendered, error) {
		return New(Limits{Lookups: 3}).Render(t.Context(), "acme", jobOf(t, `{{ $s := lookup "v1" "Secret" "acme-dev" "`+name+`" }}apiVersion: v1
kind: ConfigMap
metadata: {name: {{ $s.data.a }}}
`), config)
	}
	have, err := look("there")
	if err != nil || !strings.Contains(string(have.Objects[0]), `"name":"Yg=="`) {
		t.Errorf("have %v, %v", have, err)
	}
	if diff := cmp.Diff([]string{"GET /api/v1 Bearer deployer", "GET /api/v1/namespaces/acme-dev/secrets/there Bearer deployer"}, asked); diff != "" {
		t.Errorf("-want +have:\n%s", diff)
	}
	for name, want := range map[string]string{"denied": `secrets "denied" is forbidden`, "large": "larger than 4 MiB: look it up by name"} {
		if _, err := look(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: have %v, want %q", name, err, want)
		}
	}
	_, err = New(Limits{Lookups: 3}).Render(t.Context(), "acme", jobOf(t, `{{ range until 9 }}{{ lookup "v1" "Secret" "acme-dev" "there" }}{{ end }}`), config)
	if err == nil || !strings.Contains(err.Error(), "looks up too much") {
		t.Errorf("have %v, want it refused", err)
	}
}

// TestKnowsNothing: what renders charts has no environment.
func TestKnowsNothing(t *testing.T) {
	t.Setenv("KUBECONFIG", "/secret")
	p := &process{limits: Limits{}.withDefaults(), lookups: &lookups{}}
	if _, err := p.do(t.Context(), jobOf(t, configMap)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"GOMAXPROCS=1", "GOTRACEBACK=none"}, p.cmd.Env); diff != "" {
		t.Error(diff)
	}
}

// TestStopsWhenItIsNotWanted any more.
func TestStopsWhenItIsNotWanted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(200*time.Millisecond, cancel)
	_, err := New(Limits{}).Render(ctx, "acme", jobOf(t, `{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}`), nil)
	if !errors.Is(err, context.Canceled) || errors.As(err, new(*RefusedError)) {
		t.Errorf("have %v, want it canceled", err)
	}
	_, err = New(Limits{Wall: 200 * time.Millisecond}).Render(t.Context(), "acme", jobOf(t, `{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}`), nil)
	if err == nil || errors.As(err, new(*RefusedError)) || !strings.Contains(err.Error(), "was not rendered within 200ms") {
		t.Errorf("have %v, want it tried again", err)
	}
}

// TestSlotsAreShared: a tenant waits for its own charts, others do not wait for it.
func TestSlotsAreShared(t *testing.T) {
	s := newSlots(3, 2)
	ctx, cancel := context.WithCancel(t.Context())
	take := func(tenant string) func() {
		giveBack, err := s.take(ctx, tenant)
		if err != nil {
			t.Fatal(err)
		}
		return giveBack
	}
	first := take("evil")
	take("evil")
	waits := make(chan error)
	go func() { _, err := s.take(ctx, "evil"); waits <- err }()
	for waiting := 0; waiting == 0; runtime.Gosched() {
		s.mu.Lock()
		waiting = len(s.waiting)
		s.mu.Unlock()
	}
	good := take("acme") // At once, though evil came first.
	first()
	if err := <-waits; err != nil {
		t.Fatal(err)
	}
	good()
	cancel()
	if _, err := s.take(ctx, "evil"); !errors.Is(err, context.Canceled) {
		t.Errorf("have %v, want the context's end", err)
	}
	if s.free != 1 || len(s.waiting) != 0 {
		t.Errorf("%d are free and %d wait, want 1 and 0", s.free, len(s.waiting))
	}
}

func BenchmarkRender(b *testing.B) {
	r, j := New(Limits{}), jobOf(b, configMap)
	for b.Loop() {
		if _, err := r.Render(b.Context(), "acme", j, nil); err != nil {
			b.Fatal(err)
		}
	}
}
