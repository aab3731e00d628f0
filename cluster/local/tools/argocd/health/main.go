// Command argocd-health asks Argo CD what it makes of objects. It reads, as JSON, the data of a ConfigMap argocd-cm and
// objects from its standard input, and writes an answer an object to its standard output. Settings are read, scripts run and
// exclusions matched by Argo CD's own code.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/argoproj/gitops-engine/pkg/health"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/argoproj/argo-cd/v3/util/lua"
	"github.com/argoproj/argo-cd/v3/util/settings"
)

const namespace = "argocd"

// question is what is asked.
type question struct {
	Settings map[string]string `json:"settings"`
	Objects  []map[string]any  `json:"objects"`
}

// answers to it.
type answers struct {
	// Keys that have a health script in the settings: "group/kind".
	Keys     []string `json:"keys"`
	Tracking string   `json:"tracking"`
	Objects  []answer `json:"objects"`
}

// answer about an object.
type answer struct {
	// Lua is what the script of the object's kind returns, absent when the kind has none.
	Lua *health.HealthStatus `json:"lua,omitempty"`
	// Shown is what Argo CD makes of it: of an object that is being deleted it does not ask the script.
	Shown *health.HealthStatus `json:"shown,omitempty"`
	Error string               `json:"error,omitempty"`
	// Excluded is whether the kind is not looked at.
	Excluded bool `json:"excluded"`
}

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "cannot tell the health of objects:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	q := question{}
	if err := json.NewDecoder(in).Decode(&q); err != nil {
		return err
	}
	a, err := ask(q)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(a)
}

func ask(q question) (answers, error) {
	mgr := settings.NewSettingsManager(context.Background(), fake.NewClientset(
		&corev1.ConfigMap{ObjectMeta: argocd("argocd-cm"), Data: q.Settings},
		&corev1.Secret{ObjectMeta: argocd("argocd-secret"), Data: map[string][]byte{"admin.password": {}, "server.secretkey": {}}},
	), namespace)
	overrides, err := mgr.GetResourceOverrides()
	if err != nil {
		return answers{}, err
	}
	filter, err := mgr.GetResourcesFilter()
	if err != nil {
		return answers{}, err
	}
	tracking, err := mgr.GetTrackingMethod()
	if err != nil {
		return answers{}, err
	}
	a := answers{Tracking: tracking}
	for _, key := range slices.Sorted(maps.Keys(overrides)) {
		if overrides[key].HealthLua != "" {
			a.Keys = append(a.Keys, key)
		}
	}
	for _, o := range q.Objects {
		u := &unstructured.Unstructured{Object: o}
		gvk := u.GroupVersionKind()
		next := about(u, lua.ResourceHealthOverrides(overrides))
		next.Excluded = filter.IsExcludedResource(gvk.Group, gvk.Kind, "https://kubernetes.default.svc")
		a.Objects = append(a.Objects, next)
	}
	return a, nil
}

func about(u *unstructured.Unstructured, overrides lua.ResourceHealthOverrides) answer {
	said, err := overrides.GetResourceHealth(u)
	if err != nil {
		return answer{Error: err.Error()}
	}
	shown, err := health.GetResourceHealth(u, overrides)
	if err != nil {
		return answer{Lua: said, Error: err.Error()}
	}
	return answer{Lua: said, Shown: shown}
}

func argocd(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app.kubernetes.io/part-of": "argocd"}}
}
