// Package floor tells what the runtime chart, and the charts of components, need at least, by rendering them.
package floor

import (
	"errors"
	"fmt"

	"helm.sh/helm/v3/pkg/chart"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// Of a runtime chart is the least that an environment's namespace must be allowed for the runtime to run in it.
func Of(c *chart.Chart, docker bool) (steading.Resources, error) {
	objects, err := Render(c, Release, Namespace, Values(docker))
	if err != nil {
		return steading.Resources{}, err
	}
	return Sum(objects)
}

// Release and Namespace that charts are told when they are rendered for what they need.
const (
	Release   = "floor-devops"
	Namespace = "floor-floor"
)

// Values that a runtime chart is rendered with for what it needs.
func Values(docker bool) map[string]any {
	return map[string]any{
		"tenant":      "floor",
		"environment": "floor",
		"version":     "floor",
		"image":       "floor:floor",
		"docker":      map[string]any{"enabled": docker},
	}
}

// Sum of what rendered objects need of a namespace's quota, as the quota counts: limits of pods, each the larger
// one of its containers together and its init containers in turn, and requests of volume claims. It knows Deployments
// that are recreated, since that is what the runtime chart makes; for others it would have to count surges.
func Sum(objects []*unstructured.Unstructured) (steading.Resources, error) {
	var sum steading.Resources
	for _, o := range objects {
		need, err := needs(o)
		if err != nil {
			return steading.Resources{}, fmt.Errorf("cannot tell what %s %s needs: %w", o.GetKind(), o.GetName(), err)
		}
		sum = sum.Add(need)
	}
	return sum, nil
}

func needs(o *unstructured.Unstructured) (steading.Resources, error) {
	switch o.GetKind() {
	case "PersistentVolumeClaim":
		claim := &corev1.PersistentVolumeClaim{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, claim); err != nil {
			return steading.Resources{}, err
		}
		return steading.Resources{Storage: *claim.Spec.Resources.Requests.Storage()}, nil
	case "Deployment":
		d := &appsv1.Deployment{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, d); err != nil {
			return steading.Resources{}, err
		}
		return deploymentNeeds(d)
	case "Pod", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob":
		return steading.Resources{}, errors.New("only Deployments and PersistentVolumeClaims are counted")
	}
	return steading.Resources{}, nil
}

func deploymentNeeds(d *appsv1.Deployment) (steading.Resources, error) {
	if d.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
		return steading.Resources{}, fmt.Errorf("its strategy is %q, only %q is counted", d.Spec.Strategy.Type, appsv1.RecreateDeploymentStrategyType)
	}
	pod, err := podNeeds(d.Spec.Template.Spec)
	if err != nil {
		return steading.Resources{}, err
	}
	sum := steading.Resources{}
	for range ptr.Deref(d.Spec.Replicas, 1) {
		sum = sum.Add(pod)
	}
	return sum, nil
}

func podNeeds(pod corev1.PodSpec) (steading.Resources, error) {
	var sum steading.Resources
	for _, c := range pod.Containers {
		limits, err := containerNeeds(c)
		if err != nil {
			return steading.Resources{}, err
		}
		sum = sum.Add(limits)
	}
	for _, c := range pod.InitContainers {
		if c.RestartPolicy != nil {
			return steading.Resources{}, fmt.Errorf("init container %s is a sidecar: only those that end are counted", c.Name)
		}
		limits, err := containerNeeds(c)
		if err != nil {
			return steading.Resources{}, err
		}
		if limits.CPU.Cmp(sum.CPU) > 0 {
			sum.CPU = limits.CPU
		}
		if limits.Memory.Cmp(sum.Memory) > 0 {
			sum.Memory = limits.Memory
		}
	}
	return sum, nil
}

func containerNeeds(c corev1.Container) (steading.Resources, error) {
	limits := steading.Resources{CPU: *c.Resources.Limits.Cpu(), Memory: *c.Resources.Limits.Memory()}
	if limits.CPU.IsZero() || limits.Memory.IsZero() {
		return steading.Resources{}, fmt.Errorf("container %s has no limit for cpu or memory", c.Name)
	}
	return limits, nil
}
