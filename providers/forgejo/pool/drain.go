package pool

import (
	"encoding/json"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// configOf a pool is the part of its settings that runners are made with. The image is the pool's own, or else the operator's.
func configOf(s steading.RunnerPoolSpec, image string) forgejov1.RunnerConfig {
	s = *s.DeepCopy()
	c := forgejov1.RunnerConfig{
		Forgejo: s.Forgejo, Labels: s.Labels, JobNamespace: s.JobNamespace, Assignment: s.Assignment,
		StartupTimeoutSeconds: s.StartupTimeoutSeconds, JobTimeoutSeconds: s.JobTimeoutSeconds, Pod: s.Pod, VM: s.VM,
	}
	slices.Sort(c.Labels)
	if c.Forgejo.TokenSecretRef.Key == "" {
		c.Forgejo.TokenSecretRef.Key = steading.DefaultTokenKey
	}
	if c.Pod != nil && c.Pod.RunnerImage == "" {
		c.Pod.RunnerImage = image
	}
	return c
}

// alike reports whether two runners of these configs are.
func alike(a, b forgejov1.RunnerConfig) bool {
	a, b = *a.DeepCopy(), *b.DeepCopy()
	if !reflect.DeepEqual(templateOf(&a), templateOf(&b)) {
		return false
	}
	slices.Sort(a.Labels)
	slices.Sort(b.Labels)
	return equality.Semantic.DeepEqual(a, b)
}

// templateOf a config, taken out of it and decoded: the same template may be written in several ways.
func templateOf(c *forgejov1.RunnerConfig) any {
	var raw runtime.RawExtension
	switch {
	case c.Pod != nil:
		raw, c.Pod.Template = c.Pod.Template, raw
	case c.VM != nil:
		raw, c.VM.Template = c.VM.Template, raw
	}
	var decoded any
	if json.Unmarshal(raw.Raw, &decoded) != nil {
		return string(raw.Raw)
	}
	return decoded
}

// drained are the runners that the pool does not want any more: all of a suspended pool, and those with another config. One
// that has a job in hand is left to finish it.
func drained(s State) []string {
	snap := snapshotOf(s)
	var names []string
	for n := range s.Instances {
		i := &s.Instances[n]
		p := i.Spec.ForProvider
		if judged(i) || p.Drain || i.DeletionTimestamp != nil || snap.busy(i) {
			continue
		}
		if s.Settings.Suspend || s.Config != nil && !alike(p.Config, *s.Config) {
			names = append(names, i.Name)
		}
	}
	return names
}
