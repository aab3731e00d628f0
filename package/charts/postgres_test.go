package charts

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/runtime/floor"
	renderer "github.com/steading-dev/steading/providers/runtime/render"
)

func postgres(t *testing.T) *chart.Chart {
	t.Helper()
	files, err := Files(os.DirFS("."), "components/postgres")
	if err != nil {
		t.Fatal(err)
	}
	c, err := loader.LoadFiles(files)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestPostgresKeepsItsPassword in a Secret, which is all that may hold it.
func TestPostgresKeepsItsPassword(t *testing.T) {
	const password = "correct-horse"
	objects, err := Render(postgres(t), names.ComponentRelease("acme", "db"), "acme-dev", map[string]any{"password": password})
	if err != nil {
		t.Fatal(err)
	}
	kept := false
	for _, o := range objects {
		if o.GetName() != "acme-db" {
			t.Errorf("%s is called %s, not after the release", o.GetKind(), o.GetName())
		}
		raw, err := o.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		inside, _, _ := unstructured.NestedString(o.Object, "data", "password")
		switch {
		case o.GetKind() == "Secret":
			kept = inside == "Y29ycmVjdC1ob3JzZQ=="
		case strings.Contains(string(raw), password):
			t.Errorf("%s holds the password", o.GetKind())
		}
	}
	if !kept {
		t.Error("the Secret does not hold the password")
	}
}

func TestPostgresWantsAPassword(t *testing.T) {
	for name, v := range map[string]map[string]any{"None": {}, "Short": {"password": "short"}, "Unknown": {"password": "long-enough", "paswordd": "x"}} {
		if _, err := Render(postgres(t), "acme-db", "acme-dev", v); err == nil {
			t.Errorf("%s: %v is taken", name, v)
		}
	}
}

// TestPostgresNeedsAreKnownWithoutItsPassword, which a Secret gives: admission counts them.
func TestPostgresNeedsAreKnownWithoutItsPassword(t *testing.T) {
	file, err := chartutil.Save(postgres(t), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	archive, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := renderer.New(renderer.Limits{}).Render(t.Context(), "acme", renderer.Job{
		Chart: archive, Values: []byte(`{"storage": {"size": "3Gi"}}`), Release: floor.Release, Namespace: floor.Namespace, Revision: 1, Loose: true,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := rendered.Unstructured()
	if err != nil {
		t.Fatal(err)
	}
	n, err := floor.OfComponent(objects)
	if err != nil {
		t.Fatal(err)
	}
	have := n.Within(*steading.MustResources("8", "20Gi", "40Gi"))
	if diff := cmp.Diff(steading.MustResources("500m", "512Mi", "3Gi").Amounts(), have.Amounts()); diff != "" {
		t.Errorf("-want, +have:\n%s", diff)
	}
}

// TestPostgresRunsRestricted: environments hold pods to baseline and tell of what restricted would refuse.
func TestPostgresRunsRestricted(t *testing.T) {
	objects, err := Render(postgres(t), "acme-db", "acme-dev", map[string]any{"password": "correct-horse"})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if o.GetKind() != "Deployment" {
			continue
		}
		nonRoot, _, _ := unstructured.NestedBool(o.Object, "spec", "template", "spec", "securityContext", "runAsNonRoot")
		profile, _, _ := unstructured.NestedString(o.Object, "spec", "template", "spec", "securityContext", "seccompProfile", "type")
		if !nonRoot || profile != string(corev1.SeccompProfileTypeRuntimeDefault) {
			t.Errorf("non-root %t, seccomp profile %q", nonRoot, profile)
		}
		return
	}
	t.Error("there is no Deployment")
}
