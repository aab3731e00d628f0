package floor

import (
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
)

// Needs of a component's chart, as the quota of a namespace counts them.
type Needs struct {
	// Pods that run at the same time.
	Pods []Pods
	// Storage that its volume claims request.
	Storage resource.Quantity
}

// Pods are a number of equal pods.
type Pods struct {
	Count int64
	// Containers that run at the same time, each with its limits. A limit of zero is the namespace's default.
	Containers []steading.Resources
	// Init containers run one after another before them.
	Init []steading.Resources
}

// Within a namespace with these caps, which its default limits depend on, is what is needed.
func (n *Needs) Within(caps steading.Resources) steading.Resources {
	sum := *steading.MustResources("0", "0", "0")
	sum.Storage = n.Storage.DeepCopy()
	cpu, memory := v1alpha1.DefaultLimits(caps)
	for _, p := range n.Pods {
		pod := p.limits(cpu, memory)
		pod.CPU.Mul(p.Count)
		pod.Memory.Mul(p.Count)
		sum = sum.Add(pod)
	}
	return sum
}

// limits of one pod: the larger one of its containers together and its init containers in turn.
func (p Pods) limits(cpu, memory resource.Quantity) steading.Resources {
	sum := *steading.MustResources("0", "0", "0")
	for _, c := range p.Containers {
		sum = sum.Add(defaulted(c, cpu, memory))
	}
	for _, c := range p.Init {
		c = defaulted(c, cpu, memory)
		if c.CPU.Cmp(sum.CPU) > 0 {
			sum.CPU = c.CPU
		}
		if c.Memory.Cmp(sum.Memory) > 0 {
			sum.Memory = c.Memory
		}
	}
	return sum
}

func defaulted(c steading.Resources, cpu, memory resource.Quantity) steading.Resources {
	if c.CPU.IsZero() {
		c.CPU = cpu.DeepCopy()
	}
	if c.Memory.IsZero() {
		c.Memory = memory.DeepCopy()
	}
	return c
}

// OfComponent is what a component's chart needs, which rendered these objects with the values of its claim.
func OfComponent(objects []*unstructured.Unstructured) (Needs, error) {
	var n Needs
	for _, o := range objects {
		if err := n.add(o); err != nil {
			return Needs{}, fmt.Errorf("cannot tell what %s %s needs: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return n, nil
}

// add what an object needs. What an environment's charts may not make needs nothing: it is refused when it is deployed.
func (n *Needs) add(o *unstructured.Unstructured) error {
	switch o.GetKind() {
	case "List":
		return o.EachListItem(func(item runtime.Object) error {
			u, ok := item.(*unstructured.Unstructured)
			if !ok {
				return errors.New("it lists what is no object")
			}
			return n.add(u)
		})
	case "PersistentVolumeClaim":
		return typed(o, func(c *corev1.PersistentVolumeClaim) error {
			n.Storage.Add(*c.Spec.Resources.Requests.Storage())
			return nil
		})
	case "Deployment":
		return typed(o, n.deployment)
	case "StatefulSet":
		return typed(o, n.statefulSet)
	case "Job":
		return typed(o, func(j *batchv1.Job) error {
			return n.pods(int64(ptr.Deref(j.Spec.Parallelism, 1)), j.Spec.Template.Spec)
		})
	case "CronJob":
		return typed(o, func(j *batchv1.CronJob) error {
			return n.pods(int64(ptr.Deref(j.Spec.JobTemplate.Spec.Parallelism, 1)), j.Spec.JobTemplate.Spec.Template.Spec)
		})
	}
	return nil
}

func typed[T any](o *unstructured.Unstructured, f func(*T) error) error {
	if err := kit.CheckAmounts(o.Object); err != nil {
		return err
	}
	to := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, to); err != nil {
		return err
	}
	return f(to)
}

// deployment needs its replicas, and those that a rolling update starts before it stops others: without room for them it
// could never be upgraded.
func (n *Needs) deployment(d *appsv1.Deployment) error {
	count := int64(ptr.Deref(d.Spec.Replicas, 1))
	if count > 0 && d.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
		surge := intstr.FromString("25%")
		if r := d.Spec.Strategy.RollingUpdate; r != nil && r.MaxSurge != nil {
			surge = *r.MaxSurge
		}
		more, err := intstr.GetScaledValueFromIntOrPercent(&surge, int(count), true)
		if err != nil {
			return err
		}
		count += int64(more)
	}
	return n.pods(count, d.Spec.Template.Spec)
}

func (n *Needs) statefulSet(s *appsv1.StatefulSet) error {
	count := int64(ptr.Deref(s.Spec.Replicas, 1))
	for _, c := range s.Spec.VolumeClaimTemplates {
		storage := c.Spec.Resources.Requests.Storage().DeepCopy()
		storage.Mul(count)
		n.Storage.Add(storage)
	}
	return n.pods(count, s.Spec.Template.Spec)
}

func (n *Needs) pods(count int64, pod corev1.PodSpec) error {
	if count < 0 {
		return fmt.Errorf("it asks for %d pods", count)
	}
	p := Pods{Count: count}
	for _, c := range pod.Containers {
		p.Containers = append(p.Containers, limitsOf(c))
	}
	for _, c := range pod.InitContainers {
		if ptr.Deref(c.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways {
			p.Containers = append(p.Containers, limitsOf(c)) // It is a sidecar.
			continue
		}
		p.Init = append(p.Init, limitsOf(c))
	}
	n.Pods = append(n.Pods, p)
	return nil
}

func limitsOf(c corev1.Container) steading.Resources {
	return steading.Resources{CPU: c.Resources.Limits.Cpu().DeepCopy(), Memory: c.Resources.Limits.Memory().DeepCopy()}
}
