package main

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"k8s.io/utils/ptr"
)

var (
	started = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	acmeDev = identity{Tenant: "acme", Environment: "dev", Namespace: "acme-dev", Version: "1.4.2"}
)

// start a runtime on free ports. It ends with the test, and end ends it before and returns what it ended with.
func start(t *testing.T) (mcpURL, metricsURL string, end func() error) {
	t.Helper()
	e := &environment{
		identity: acmeDev,
		cgroup:   files(map[string]string{"cpu.max": "400000 100000", "memory.max": "17179869184", "memory.current": "4096", "cpu.stat": "usage_usec 250000"}),
		home:     t.TempDir(),
		now:      func() time.Time { return started.Add(90 * time.Second) },
		started:  started,
	}
	s := newServer(e, slog.New(slog.DiscardHandler))
	if err := s.listen(addresses{mcp: "127.0.0.1:0", metrics: "127.0.0.1:0"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.serve(ctx) }()
	once := false
	end = func() error {
		if once {
			return nil
		}
		once = true
		cancel()
		select {
		case err := <-ended:
			return err
		case <-time.After(10 * time.Second):
			t.Fatal("the runtime does not end")
			return nil
		}
	}
	t.Cleanup(func() { _ = end() })
	metricsURL = "http://" + s.listeners[s.metrics].Addr().String()
	waitReady(t, metricsURL)
	return "http://" + s.listeners[s.mcp].Addr().String(), metricsURL, end
}

func waitReady(t *testing.T, metricsURL string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if code, _ := get(t, metricsURL+"/readyz"); code == http.StatusOK {
			return
		}
	}
	t.Fatal("the runtime does not become ready")
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // Only read.
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func connect(t *testing.T, url string) *mcp.ClientSession {
	t.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url + "/mcp"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

func TestToolsOnlyRead(t *testing.T) {
	url, _, _ := start(t)
	tools, err := connect(t, url).ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range tools.Tools {
		names = append(names, tool.Name)
		if !tool.Annotations.ReadOnlyHint {
			t.Errorf("tool %s does not say that it only reads", tool.Name)
		}
	}
	if diff := cmp.Diff([]string{"environment", "usage"}, names); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestEnvironment(t *testing.T) {
	want := description{
		identity:      acmeDev,
		StartedAt:     started,
		UptimeSeconds: 90,
		Limits:        limits{CPU: ptr.To(4.0), MemoryBytes: ptr.To[int64](16 << 30)},
	}
	url, _, _ := start(t)
	session := connect(t, url)

	called, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "environment"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, decode[description](t, called.StructuredContent), cmp.AllowUnexported(description{})); diff != "" {
		t.Errorf("tool environment: -want, +got:\n%s", diff)
	}

	read, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: environmentURI})
	if err != nil {
		t.Fatal(err)
	}
	got := decode[description](t, json.RawMessage(read.Contents[0].Text))
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(description{})); diff != "" {
		t.Errorf("resource %s: -want, +got:\n%s", environmentURI, diff)
	}
}

func TestUsage(t *testing.T) {
	url, _, _ := start(t)
	called, err := connect(t, url).CallTool(t.Context(), &mcp.CallToolParams{Name: "usage"})
	if err != nil {
		t.Fatal(err)
	}
	got := decode[usage](t, called.StructuredContent)
	want := usage{CPUSeconds: ptr.To(0.25), MemoryBytes: ptr.To[int64](4096), Limits: limits{CPU: ptr.To(4.0), MemoryBytes: ptr.To[int64](16 << 30)}}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(usage{}, "Home")); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if got.Home == nil || got.Home.SizeBytes == 0 {
		t.Errorf("the home has no size: %v", got.Home)
	}
}

func TestToolsTakeNoArguments(t *testing.T) {
	url, _, _ := start(t)
	res, err := connect(t, url).CallTool(t.Context(), &mcp.CallToolParams{Name: "usage", Arguments: map[string]any{"path": "/etc"}})
	if err == nil && !res.IsError {
		t.Error("an argument that the tool does not have was taken")
	}
}

func TestMetricsCountRequestsByKnownMethods(t *testing.T) {
	url, metricsURL, _ := start(t)
	session := connect(t, url)
	if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "environment"}); err != nil {
		t.Fatal(err)
	}
	if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "nope"}); err == nil {
		t.Error("a tool that does not exist was called")
	}
	_, got := get(t, metricsURL+"/metrics")
	for _, want := range []string{
		`steading_devops_info{environment="dev",tenant="acme",version="1.4.2"} 1`,
		`steading_devops_mcp_requests_total{method="tools/call",outcome="ok"} 1`,
		`steading_devops_mcp_requests_total{method="tools/call",outcome="error"} 1`,
		`process_resident_memory_bytes`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in:\n%s", want, got)
		}
	}
}

func TestBrowsersOfOtherSitesAreRefused(t *testing.T) {
	url, _, _ := start(t)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Sec-Fetch-Site", "cross-site")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // Only its status matters.
	if resp.StatusCode != http.StatusForbidden {
		t.Errorf("got %s", resp.Status)
	}
}

func TestHealth(t *testing.T) {
	_, metricsURL, end := start(t)
	for _, path := range []string{"/healthz", "/readyz"} {
		if code, body := get(t, metricsURL+path); code != http.StatusOK {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	if err := end(); err != nil {
		t.Errorf("cannot end: %v", err)
	}
}

// A request in flight is answered, while readiness already says no.
func TestShutdownLetsRequestsEnd(t *testing.T) {
	s := newServer(&environment{identity: acmeDev, cgroup: files(nil), now: time.Now}, slog.New(slog.DiscardHandler))
	entered, leave := make(chan struct{}), make(chan struct{})
	s.mcp.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(entered)
		<-leave
	})
	if err := s.listen(addresses{mcp: "127.0.0.1:0", metrics: "127.0.0.1:0"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended, answered := make(chan error, 1), make(chan int, 1)
	go func() { ended <- s.serve(ctx) }()
	go func() {
		code, _ := get(t, "http://"+s.listeners[s.mcp].Addr().String())
		answered <- code
	}()
	<-entered
	cancel()
	for s.ready.Load() {
		time.Sleep(time.Millisecond)
	}
	if code, _ := get(t, "http://"+s.listeners[s.metrics].Addr().String()+"/readyz"); code != http.StatusServiceUnavailable {
		t.Errorf("ready at the end: %d", code)
	}
	close(leave)
	if code := <-answered; code != http.StatusOK {
		t.Errorf("the request in flight got %d", code)
	}
	if err := <-ended; err != nil {
		t.Errorf("cannot end: %v", err)
	}
}

func TestSettingsAreChecked(t *testing.T) {
	good := map[string]string{"STEADING_TENANT": "acme", "STEADING_ENVIRONMENT": "dev", "STEADING_NAMESPACE": "acme-dev", "STEADING_VERSION": "1.4.2"}
	cases := map[string]struct {
		reason      string
		name, value string
		want        string
	}{
		"NoTenant":    {"it would not know whose it is", "STEADING_TENANT", "", "STEADING_TENANT is not set"},
		"NoVersion":   {"it would not know which it is", "STEADING_VERSION", "", "STEADING_VERSION is not set"},
		"PortName":    {"a Service's link, not a port", "STEADING_MCP_PORT", "tcp://10.0.0.1:80", `STEADING_MCP_PORT is "tcp://10.0.0.1:80"`},
		"PortTooHigh": {"no port", "STEADING_METRICS_PORT", "65536", "STEADING_METRICS_PORT"},
		"PortZero":    {"a free port is of no use to the Service", "STEADING_METRICS_PORT", "0", "STEADING_METRICS_PORT"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			getenv := func(n string) string {
				if n == tc.name {
					return tc.value
				}
				return good[n]
			}
			err := run(t.Context(), slog.New(slog.DiscardHandler), getenv)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: want an error that says %q, got: %v", tc.reason, tc.want, err)
			}
		})
	}
}

func decode[T any](t *testing.T, v any) T {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out T
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
