package target

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// lists are those of what is watched, by resource.
var lists = map[string]string{
	"namespaces": "NamespaceList", "resourcequotas": "ResourceQuotaList", "limitranges": "LimitRangeList", "serviceaccounts": "ServiceAccountList",
	"networkpolicies": "NetworkPolicyList", "ingresses": "IngressList", "rolebindings": "RoleBindingList", "pods": "PodList",
	"persistentvolumeclaims": "PersistentVolumeClaimList", "deployments": "DeploymentList", "replicasets": "ReplicaSetList", "statefulsets": "StatefulSetList",
}

// empty answers a request as an API server does that has nothing, and no streams of lists.
func empty(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	list, known := lists[path.Base(r.URL.Path)]
	switch q := r.URL.Query(); {
	case q.Get("sendInitialEvents") != "":
		w.WriteHeader(http.StatusUnprocessableEntity)
		say(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
	case q.Get("watch") != "":
		flush(w)
		<-r.Context().Done()
	case known:
		version := "v1"
		if group, ok := strings.CutPrefix(r.URL.Path, "/apis/"); ok {
			version, _, _ = strings.Cut(group, "/")
			version += "/v1"
		}
		say(w, `{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"1"},"items":[]}`, list, version)
	default:
		http.NotFound(w, r)
	}
}

func say(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }

func flush(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }

// onAndOn writes so often, which is far too much, or until nobody listens.
func onAndOn(r *http.Request, times int, write func() error) {
	for n := 0; n < times && r.Context().Err() == nil && write() == nil; n++ {
	}
}

// wrote what is said.
func wrote(w io.Writer, what string) error {
	_, err := io.WriteString(w, what)
	return err
}

// hostile answers are about namespaces, of which every cluster is asked for all. They report whether they are one.
var hostile = map[string]struct {
	answer func(w http.ResponseWriter, r *http.Request) bool
	says   string
}{
	"ABomb": {func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("watch") != "" {
			return false
		}
		w.Header().Set("Content-Encoding", "gzip")
		z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
		spaces := strings.Repeat(" ", 1<<20)
		onAndOn(r, 1<<8, func() error { return wrote(z, spaces) }) // 256 MiB
		return true
	}, "gives answers that would take more than 32 MiB"},
	"NothingManyTimes": {func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("watch") != "" {
			return false
		}
		say(w, `{"kind":"NamespaceList","apiVersion":"v1","items":[{}`)
		onAndOn(r, 1<<20, func() error { return wrote(w, ",{}") })
		return true
	}, "gives answers that would take more than 32 MiB"},
	"PagesWithoutEnd": {func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("watch") != "" {
			return false
		}
		more := r.URL.Query().Get("continue") + "." // 50 pages
		say(w, `{"kind":"NamespaceList","apiVersion":"v1","metadata":{"resourceVersion":"1","continue":%q},"items":[{}%s]}`,
			more[:len(more)*min(1, 50/len(more))], strings.Repeat(`,{"metadata":{"name":"a"}}`, 4999))
		return true
	}, "has namespaces and objects with an environment's label that would take more than 64 MiB"},
	"AnEventWithoutEnd": {func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("watch") == "" || r.URL.Query().Get("sendInitialEvents") != "" {
			return false
		}
		say(w, `{"type":"ADDED","object":{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"`)
		onAndOn(r, 1<<12, func() error { return wrote(w, strings.Repeat("a", 1<<16)) })
		return true
	}, "sends a watch an event that would take more than 4 MiB"},
	"EventsWithoutEnd": {func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("watch") == "" || r.URL.Query().Get("sendInitialEvents") != "" {
			return false
		}
		events(w, r)
		return true
	}, "has namespaces and objects with an environment's label that would take more than 64 MiB"},
	"FirstEventsWithoutEnd": {func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("sendInitialEvents") == "" {
			return false
		}
		events(w, r)
		return true
	}, "has namespaces and objects with an environment's label that would take more than 64 MiB"},
	"AnotherMediaType": {func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-Type", "application/yaml")
		return r.URL.Query().Get("sendInitialEvents") != ""
	}, "answers with application/yaml"},
}

// events of namespaces, always others.
func events(w http.ResponseWriter, r *http.Request) {
	n := 0
	onAndOn(r, 1<<18, func() error {
		n++
		return wrote(w, fmt.Sprintf(`{"type":"ADDED","object":{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"n-%d","resourceVersion":"%d"}}}`+"\n", n, n))
	})
}

// mostGrowth of the heap: 32 MiB are read into a slice that is copied as it grows, and are not collected at once.
const mostGrowth = 192 << 20

// growth watches the heap, and returns how much it has grown at most.
func growth(t *testing.T) func() uint64 {
	t.Helper()
	runtime.GC()
	t.Cleanup(func(percent int) func() { return func() { debug.SetGCPercent(percent) } }(debug.SetGCPercent(30)))
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, most, done := heap(), heap(), make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-time.After(2 * time.Millisecond):
				most = max(most, heap())
			}
		}
	}()
	return func() uint64 {
		close(done)
		<-ended
		return most - min(most, before)
	}
}

// TestATenantsServerExhaustsNothing: the server of a Context is a tenant's, and what it says is held in the memory of a provider
// that all tenants share. It is left alone, it is said why, and it is watched again when it has had its rest.
func TestATenantsServerExhaustsNothing(t *testing.T) {
	for name, tc := range hostile {
		t.Run(name, func(t *testing.T) {
			mended := &atomic.Bool{}
			s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if mended.Load() || path.Base(r.URL.Path) != "namespaces" || !tc.answer(w, r) {
					empty(w, r)
				}
			}))
			t.Cleanup(s.Close)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			targets := New()
			rested := make(chan struct{})
			targets.rest = func(ctx context.Context) {
				select {
				case <-ctx.Done():
				case <-rested:
				}
			}
			told := make(chan string, 100)
			targets.OnExcess(func(name string) { told <- name })
			go func() { _ = targets.Start(ctx) }()
			grown := growth(t)
			if err := targets.Add("acme-edge", Context, trusting(s)); err != nil {
				t.Fatal(err)
			}
			select {
			case name := <-told:
				if name != "acme-edge" {
					t.Errorf("it is said of %s", name)
				}
			case <-time.After(3 * time.Minute):
				t.Error("nothing is said")
			}
			if most := grown(); most > mostGrowth {
				t.Errorf("the heap has grown by %d MiB", most>>20)
			}
			if over := targets.Excess("acme-edge"); over == nil || !strings.Contains(over.Error(), tc.says) {
				t.Errorf("it is said that %v", over)
			}
			_, err := targets.Get(ctx, "acme-edge")
			if !errors.As(err, new(*UnreachableError)) || ReasonOf(err) != steading.ReasonWrongAnswer || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("who uses it is told %s: %v", ReasonOf(err), err)
			}
			mended.Store(true)
			close(rested)
			for targets.Excess("acme-edge") != nil && !t.Failed() {
				<-told
			}
			if _, err := targets.Get(ctx, "acme-edge"); err != nil {
				t.Errorf("mended, it is not reached: %v", err)
			}
		})
	}
}

// trusting reaches a server of a test's.
func trusting(s *httptest.Server) *rest.Config {
	return &rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})}}
}

// TestWhoAsksATenantsServerIsTold that there was too much, by all clients, and holds little of it.
func TestWhoAsksATenantsServerIsTold(t *testing.T) {
	for _, name := range []string{"ABomb", "NothingManyTimes"} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				hostile[name].answer(w, r)
			}))
			t.Cleanup(s.Close)
			tg, err := newTarget("acme-edge", Context, trusting(s), nil)
			if err != nil {
				t.Fatal(err)
			}
			grown := growth(t)
			err = tg.Client.List(t.Context(), &corev1.NamespaceList{})
			if over := (*ExcessError)(nil); !errors.As(err, &over) {
				t.Errorf("got %v", err)
			}
			if most := grown(); most > mostGrowth {
				t.Errorf("the heap has grown by %d MiB", most>>20)
			}
		})
	}
}

// TestOnlyJSONIsTakenFromATenantsServer, for of nothing else it is known what it becomes. The server is asked for nothing else.
func TestOnlyJSONIsTakenFromATenantsServer(t *testing.T) {
	for kind, want := range map[string]string{
		"application/json":                    "application/json",
		"application/json; charset=utf-8":     "application/json; charset=utf-8",
		"text/html":                           "text/plain",
		"":                                    "text/plain",
		"application/yaml":                    "",
		"application/vnd.kubernetes.protobuf": "",
		"application/cbor":                    "",
	} {
		rt := Bounded(roundTrip(func(r *http.Request) (*http.Response, error) {
			if got := r.Header.Get("Accept"); got != "application/json;as=Table,application/json" {
				t.Errorf("it is asked for %s", got)
			}
			res, err := answer(http.StatusOK)
			res.Header = http.Header{"Content-Type": {kind}}
			return res, err
		}))
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://127.0.0.1:1", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", "application/vnd.kubernetes.protobuf, application/json;as=Table,application/json, */*")
		res, err := rt.RoundTrip(req)
		switch {
		case want == "" && !errors.As(err, new(*ExcessError)):
			t.Errorf("%q: got %v, want it refused", kind, err)
		case want != "" && err != nil:
			t.Errorf("%q: %v", kind, err)
		case want != "":
			if got := res.Header.Get("Content-Type"); got != want {
				t.Errorf("%q is taken for %q", kind, got)
			}
			_ = res.Body.Close()
		}
	}
}

// TestWhatJSONTakes is told from its bytes, whatever is in its strings.
func TestWhatJSONTakes(t *testing.T) {
	for in, want := range map[string]int64{
		`{}`:               2 + memberCost,
		`{"a":"[,{\",\\"}`: 16 + memberCost,
		`[{},{}]`:          7 + 2*elementCost + 2*memberCost,
		`{"a":1,"b":2}`:    13 + 2*memberCost,
		`}}]]`:             4,
		`[null,null,null]`: 16 + 3*elementCost,
	} {
		j, have := &jsonCost{}, int64(0)
		for _, c := range []byte(in) {
			cost, _ := j.next(c)
			have += cost
		}
		if have != want {
			t.Errorf("%s: %d, want %d", in, have, want)
		}
	}
}

// TestAWatchMayLastForEver: what is done with is not counted.
func TestAWatchMayLastForEver(t *testing.T) {
	event, _ := json.Marshal(map[string]any{"type": "ADDED", "object": map[string]string{"a": strings.Repeat("a", 1<<16)}}) //nolint:errchkjson // It is plain.
	b := &budget{}
	a := &answerBody{bounded: &bounded{budget: b}, watch: true, json: &jsonCost{}, body: http.NoBody}
	for range 2 * mostAnswers / len(event) {
		if over := a.count(event); over != nil {
			t.Fatal(over)
		}
	}
	_ = a.Close()
	if left := b.used.Load(); left != 0 {
		t.Errorf("%d bytes are held for nothing", left)
	}
}
