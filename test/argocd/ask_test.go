package argocd

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/steading-dev/steading/cluster/local"
)

const (
	settingsFolder = "../../cluster/argocd/settings"

	healthy     = "Healthy"
	progressing = "Progressing"
	degraded    = "Degraded"
	suspended   = "Suspended"
)

// health of an object.
type health struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

// answer of Argo CD about an object.
type answer struct {
	// Lua is what our script says, and Shown what Argo CD makes of it. Nil: it has no health.
	Lua, Shown *health
	Error      string
	Excluded   bool
}

// answers of Argo CD, in the order of the objects asked about.
type answers struct {
	Keys     []string
	Tracking string
	Objects  []answer
}

// settings are the keys of argocd-cm that cluster/argocd gives.
func settings(t *testing.T) map[string]string {
	t.Helper()
	built := kustomize(t, settingsFolder)
	if len(built) != 1 {
		t.Fatalf("the settings are %d objects, not one", len(built))
	}
	out, err := yaml.Marshal(built[0])
	if err != nil {
		t.Fatal(err)
	}
	cm := &corev1.ConfigMap{}
	if err := yaml.UnmarshalStrict(out, cm); err != nil {
		t.Fatalf("the settings are no ConfigMap: %v", err)
	}
	if cm.Namespace != "argocd" || cm.Name != "argocd-cm" || cm.Labels["app.kubernetes.io/part-of"] != "argocd" {
		t.Fatalf("Argo CD reads argocd/argocd-cm with its label, not %s/%s with %v", cm.Namespace, cm.Name, cm.Labels)
	}
	return cm.Data
}

// runner is the program that asks Argo CD's code. It is built once.
var runner = sync.OnceValues(func() (string, error) {
	ctx, cancel := buildTimeout()
	defer cancel()
	tools, err := local.BuildTools(ctx, nil, local.ArgoCDHealth)
	if err != nil {
		return "", err
	}
	return tools.Path(local.ArgoCDHealth), nil
})

// ask Argo CD about objects, with these settings.
func ask(t *testing.T, settings map[string]string, objects ...*unstructured.Unstructured) answers {
	t.Helper()
	if testing.Short() {
		t.Skip("Argo CD has to be built for this, and -short is set")
	}
	program, err := runner()
	if err != nil {
		t.Fatal(err)
	}
	raw := make([]map[string]any, 0, len(objects))
	for _, o := range objects {
		raw = append(raw, o.Object)
	}
	in, err := json.Marshal(map[string]any{"settings": settings, "objects": raw})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	a := answers{}
	if err := json.Unmarshal(stdout.Bytes(), &a); err != nil {
		t.Fatal(err)
	}
	if len(a.Objects) != len(objects) {
		t.Fatalf("asked about %d objects and got %d answers", len(objects), len(a.Objects))
	}
	return a
}

// load the objects of a folder's files, by the files' names without their ending.
func load(t *testing.T, folder string) map[string]*unstructured.Unstructured {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no objects in %s: %v", folder, err)
	}
	objects := map[string]*unstructured.Unstructured{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		o := map[string]any{}
		if err := yaml.Unmarshal(b, &o); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		// As from the API server: whole numbers are integers.
		j, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(j); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		name := filepath.Base(f)
		objects[name[:len(name)-len(".yaml")]] = u
	}
	return objects
}

func keys[T any](m map[string]T) []string {
	all := make([]string, 0, len(m))
	for k := range m {
		all = append(all, k)
	}
	slices.Sort(all)
	return all
}
