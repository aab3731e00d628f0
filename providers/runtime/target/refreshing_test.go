package target

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
)

// growing is an API server that says which kinds it knows, and is given more.
type growing struct {
	mu    sync.Mutex
	kinds map[string]metav1.APIResourceList // by group and version
	asked int                               // for its groups
}

func (g *growing) install(gv, kind, plural string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.kinds[gv] = metav1.APIResourceList{GroupVersion: gv, APIResources: []metav1.APIResource{{Name: plural, Kind: kind, Namespaced: true, Verbs: metav1.Verbs{"list"}}}}
}

func (g *growing) times() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.asked
}

func (g *growing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	var out any
	switch r.URL.Path {
	case "/version":
		out = map[string]string{"gitVersion": "v1.35.0", "major": "1", "minor": "35"}
	case "/api":
		out = metav1.APIVersions{}
	case "/apis":
		g.asked++
		groups := metav1.APIGroupList{}
		for name := range g.kinds {
			gv, _ := schema.ParseGroupVersion(name)
			version := metav1.GroupVersionForDiscovery{GroupVersion: name, Version: gv.Version}
			groups.Groups = append(groups.Groups, metav1.APIGroup{Name: gv.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version})
		}
		out = groups
	default:
		list, ok := g.kinds[r.URL.Path[len("/apis/"):]]
		if !ok {
			http.NotFound(w, r)
			return
		}
		out = list
	}
	_ = json.NewEncoder(w).Encode(out) //nolint:errchkjson // A test's own.
}

// serving returns a target that a growing server answers for, and the clock that the target has.
func serving(t *testing.T) (*Target, *growing, *clocktesting.FakePassiveClock) {
	t.Helper()
	g := &growing{kinds: map[string]metav1.APIResourceList{}}
	g.install("apps/v1", "Deployment", "deployments")
	s := httptest.NewServer(g)
	t.Cleanup(s.Close)
	tg, err := newTarget("acme-edge", Context, &rest.Config{Host: s.URL}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := clocktesting.NewFakePassiveClock(time.Now())
	tg.Mapper.clock = c
	return tg, g, c
}

var (
	deployment = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	route      = schema.GroupKind{Group: "gateway.networking.k8s.io", Kind: "HTTPRoute"}
	widgets    = schema.GroupVersionResource{Group: "example.org", Resource: "widgets"}
)

// TestAKindThatWasInstalledLaterIsFound: a cluster is given the Gateway API, or an operator, after its kinds were read.
func TestAKindThatWasInstalledLaterIsFound(t *testing.T) {
	tg, g, c := serving(t)
	if _, err := tg.Mapper.RESTMapping(deployment); err != nil {
		t.Fatal(err)
	}
	g.install("gateway.networking.k8s.io/v1", "HTTPRoute", "httproutes")
	if _, err := tg.Mapper.RESTMapping(route, "v1"); err != nil {
		t.Errorf("it is not found: %v", err)
	}
	read := g.times()
	g.install("example.org/v1", "Widget", "widgets")
	if _, err := tg.Mapper.ResourceFor(widgets); !meta.IsNoMatchError(err) {
		t.Errorf("got %v, want it not known", err)
	}
	if g.times() != read {
		t.Error("a server is asked for its kinds as often as somebody wants one that it has not")
	}
	c.SetTime(c.Now().Add(refreshPause))
	if r, err := tg.Mapper.ResourceFor(widgets); err != nil || r.Version != "v1" {
		t.Errorf("half a minute later it is %v, %v", r, err)
	}
}

// TestChartsAreToldOfKindsThatWereInstalledLater, in .Capabilities.
func TestChartsAreToldOfKindsThatWereInstalledLater(t *testing.T) {
	tg, g, c := serving(t)
	has := func(gv string) bool {
		t.Helper()
		caps, err := tg.Capabilities()
		if err != nil {
			t.Fatal(err)
		}
		return caps.APIVersions.Has(gv)
	}
	if !has("apps/v1") || has("example.org/v1") {
		t.Fatal("they are told what is not so")
	}
	g.install("example.org/v1", "Widget", "widgets")
	read := g.times()
	if has("example.org/v1") || g.times() != read {
		t.Error("a server is asked for its kinds each time")
	}
	c.SetTime(c.Now().Add(versionAge))
	if !has("example.org/v1") {
		t.Error("five minutes later they are not told")
	}
	g.install("gateway.networking.k8s.io/v1", "HTTPRoute", "httproutes")
	c.SetTime(c.Now().Add(refreshPause))
	if _, err := tg.Mapper.RESTMapping(route); err != nil {
		t.Fatal(err)
	}
	if !has("gateway.networking.k8s.io/v1") {
		t.Error("they are not told what the mapper found")
	}
}
