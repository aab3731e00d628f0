package cluster

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/providers/runtime/target"
)

func guardAs(t *testing.T, s *apiServer, context, user string) guard {
	t.Helper()
	c, err := newGuardClient(s.endpoint().Config())
	if err != nil {
		t.Fatal(err)
	}
	return guard{client: c, context: context, user: user}
}

// installed has what is stale installed, and expect that nothing is stale then.
func installed(t *testing.T, g guard) {
	t.Helper()
	stale, err := g.stale(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := g.install(t.Context(), stale); err != nil {
		t.Fatal(err)
	}
	if stale, err = g.stale(t.Context()); err != nil || len(stale) > 0 {
		t.Fatalf("stale after it was installed: %v, %v", stale, err)
	}
}

// passes is whom the policy takes for Steading's provider.
func passes(t *testing.T, s *apiServer) string {
	t.Helper()
	u := s.objects.named("refuse-changing-namespaces.steading.dev")
	if u == nil {
		t.Fatal("there is no such policy")
	}
	variables, _, _ := unstructured.NestedSlice(u.Object, "spec", "variables")
	for _, v := range variables {
		if m := v.(map[string]any); m["name"] == "provider" { //nolint:forcetypeassert // A test.
			return m["expression"].(string) //nolint:forcetypeassert // A test.
		}
	}
	return ""
}

func TestGuardIsSharedAndGoesWithTheLast(t *testing.T) {
	s := newAPIServer(t, nil)
	acme, globex := guardAs(t, s, "acme-edge", "edge-admin"), guardAs(t, s, "globex-edge", `quo"ted`)
	installed(t, acme)
	if n := s.objects.count(); n != 12 {
		t.Errorf("%d objects", n)
	}
	if want := `request.userInfo.username in ["edge-admin"]`; passes(t, s) != want {
		t.Errorf("want %s, have %s", want, passes(t, s))
	}
	installed(t, globex)
	if want := `request.userInfo.username in ["edge-admin", "quo\"ted"]`; passes(t, s) != want {
		t.Errorf("want %s, have %s", want, passes(t, s))
	}
	if err := acme.remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := `request.userInfo.username in ["quo\"ted"]`; passes(t, s) != want || s.objects.count() != 12 {
		t.Errorf("want %s, have %s", want, passes(t, s))
	}
	if err := acme.remove(t.Context()); err != nil {
		t.Errorf("a second time: %v", err)
	}
	if err := globex.remove(t.Context()); err != nil || s.objects.count() != 0 {
		t.Errorf("%d objects are left: %v", s.objects.count(), err)
	}
}

func TestGuardIsRepaired(t *testing.T) {
	s := newAPIServer(t, nil)
	g := guardAs(t, s, "acme-edge", "edge-admin")
	installed(t, g)
	for name, edit := range map[string]func(*unstructured.Unstructured){
		"refuse-foreign-hosts.steading.dev": func(u *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(u.Object, "Ignore", "spec", "failurePolicy")
		},
		"steading:environment-deployer": func(u *unstructured.Unstructured) {
			u.Object["rules"] = append(u.Object["rules"].([]any), map[string]any{"apiGroups": []any{"*"}, "resources": []any{"*"}, "verbs": []any{"*"}}) //nolint:forcetypeassert // A test.
		},
		"steading:environment-owner": func(u *unstructured.Unstructured) { u.SetAnnotations(nil) },
	} {
		s.objects.change(name, edit)
		stale, err := g.stale(t.Context())
		if err != nil || len(stale) != 1 || stale[0].GetName() != name {
			t.Errorf("%s: stale %v, %v", name, stale, err)
		}
		installed(t, g)
	}
}

func TestGuardOfSomebodyElse(t *testing.T) {
	s := newAPIServer(t, nil)
	g := guardAs(t, s, "acme-edge", "edge-admin")
	installed(t, g)
	s.objects.change("steading:environment-owner", func(u *unstructured.Unstructured) { u.SetLabels(nil) })
	if stale, err := g.stale(t.Context()); err != nil || len(stale) > 0 {
		t.Errorf("the same by somebody else does as well: %v, %v", stale, err)
	}
	s.objects.change("steading:environment-owner", func(u *unstructured.Unstructured) { u.Object["rules"] = []any{} })
	_, err := g.stale(t.Context())
	if err == nil || !strings.Contains(err.Error(), "ClusterRole steading:environment-owner exists on the cluster, was not made by Steading") {
		t.Errorf("have %v", err)
	}
	if err := g.remove(t.Context()); err != nil || s.objects.named("steading:environment-owner") == nil || s.objects.count() != 1 {
		t.Errorf("%d objects are left: %v", s.objects.count(), err)
	}
}

func TestGuardThatMayNotBeInstalled(t *testing.T) {
	s := newAPIServer(t, nil)
	s.objects.refuse = true
	g := guardAs(t, s, "acme-edge", "edge-admin")
	stale, err := g.stale(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = g.install(t.Context(), stale)
	why, may := refused(err)
	if !may || !strings.Contains(why, `User "edge-admin" cannot post`) {
		t.Errorf("have %q, %v", why, err)
	}
}

func TestAnnotationsOfGuardsFit(t *testing.T) {
	key := names.AnnotationGuards + names.Context(strings.Repeat("t", 20), strings.Repeat("c", 42))
	if _, name, _ := strings.Cut(key, "/"); len(name) > 63 {
		t.Errorf("%s has a name of %d characters", key, len(name))
	}
}

// TestTheGuardIsReadWithinBounds: what a tenant's server says of it is decoded too.
func TestTheGuardIsReadWithinBounds(t *testing.T) {
	s := newAPIServer(t, nil)
	s.answerWith(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "application/yaml") })
	c, err := (&line{endpoint: s.endpoint()}).client()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (guard{client: c}).stale(t.Context()); !errors.As(err, new(*target.ExcessError)) {
		t.Errorf("got %v", err)
	}
}
