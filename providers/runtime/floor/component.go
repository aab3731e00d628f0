package floor

import (
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
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
	// Init containers, in the order in which they are started before them.
	Init []Init
	// Whole is the limit of a pod as a whole, which counts instead of its containers'. Zero: it has none.
	Whole steading.Resources
	// Overhead of running a pod at all.
	Overhead steading.Resources
}

// An Init is a container that is started before others: it ends before they are, or is a sidecar and goes on beside them.
type Init struct {
	// Limits of it. A limit of zero is the namespace's default.
	Limits  steading.Resources
	Sidecar bool
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

// limits of one pod, unless it is limited as a whole: the larger one of its containers together with the sidecars, and of each
// init container with those sidecars that were started before it.
func (p Pods) limits(cpu, memory resource.Quantity) steading.Resources {
	zero := *steading.MustResources("0", "0", "0")
	most, sidecars, together := zero, zero, zero
	for _, c := range p.Init {
		limits := defaulted(c.Limits, cpu, memory)
		if c.Sidecar {
			sidecars = sidecars.Add(limits)
			continue
		}
		most = most.Max(sidecars.Add(limits))
	}
	for _, c := range p.Containers {
		together = together.Add(defaulted(c, cpu, memory))
	}
	most = most.Max(sidecars.Add(together))
	return defaulted(p.Whole, most.CPU, most.Memory).Add(p.Overhead)
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
	t := tally{least: map[string]int64{}}
	for _, add := range []func(*unstructured.Unstructured) error{t.scaler, t.add} {
		for _, o := range objects {
			if err := each(o, add); err != nil {
				return Needs{}, fmt.Errorf("cannot tell what %s %s needs: %w", o.GetKind(), o.GetName(), err)
			}
		}
	}
	return t.Needs, nil
}

// each object of a list, or the object itself.
func each(o *unstructured.Unstructured, f func(*unstructured.Unstructured) error) error {
	if o.GetKind() != "List" {
		return f(o)
	}
	return o.EachListItem(func(item runtime.Object) error {
		u, ok := item.(*unstructured.Unstructured)
		if !ok {
			return errors.New("it lists what is no object")
		}
		return each(u, f)
	})
}

// A tally of what objects need.
type tally struct {
	Needs
	// least replicas that an autoscaler keeps, by the kind and name of what it scales.
	least map[string]int64
}

// scaler keeps in mind what an autoscaler scales up at once.
func (t *tally) scaler(o *unstructured.Unstructured) error {
	if o.GetKind() != "HorizontalPodAutoscaler" {
		return nil
	}
	return typed(o, func(s *autoscalingv1.HorizontalPodAutoscaler) error {
		t.least[s.Spec.ScaleTargetRef.Kind+"/"+s.Spec.ScaleTargetRef.Name] = int64(ptr.Deref(s.Spec.MinReplicas, 1))
		return nil
	})
}

// replicas that run: an autoscaler leaves what has none as it is.
func (t *tally) replicas(kind, name string, asked *int32) int64 {
	replicas := int64(ptr.Deref(asked, 1))
	if replicas > 0 {
		replicas = max(replicas, t.least[kind+"/"+name])
	}
	return replicas
}

// add what an object needs. What an environment's charts may not make needs nothing: it is refused when it is deployed.
func (t *tally) add(o *unstructured.Unstructured) error {
	switch o.GetKind() {
	case "PersistentVolumeClaim":
		return typed(o, func(c *corev1.PersistentVolumeClaim) error {
			t.claims(1, c.Spec)
			return nil
		})
	case "Deployment":
		return typed(o, t.deployment)
	case "StatefulSet":
		return typed(o, t.statefulSet)
	case "Job":
		return typed(o, func(j *batchv1.Job) error {
			return t.pods(int64(ptr.Deref(j.Spec.Parallelism, 1)), j.Spec.Template.Spec)
		})
	case "CronJob":
		return typed(o, func(j *batchv1.CronJob) error {
			return t.pods(int64(ptr.Deref(j.Spec.JobTemplate.Spec.Parallelism, 1)), j.Spec.JobTemplate.Spec.Template.Spec)
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
func (t *tally) deployment(d *appsv1.Deployment) error {
	count := t.replicas("Deployment", d.Name, d.Spec.Replicas)
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
	return t.pods(count, d.Spec.Template.Spec)
}

func (t *tally) statefulSet(s *appsv1.StatefulSet) error {
	count := t.replicas("StatefulSet", s.Name, s.Spec.Replicas)
	for _, c := range s.Spec.VolumeClaimTemplates {
		t.claims(count, c.Spec)
	}
	return t.pods(count, s.Spec.Template.Spec)
}

func (t *tally) pods(count int64, pod corev1.PodSpec) error {
	if count < 0 {
		return fmt.Errorf("it asks for %d pods", count)
	}
	p := Pods{Count: count, Overhead: amountsOf(pod.Overhead)}
	if pod.Resources != nil {
		p.Whole = amountsOf(pod.Resources.Limits)
	}
	for _, c := range pod.Containers {
		p.Containers = append(p.Containers, amountsOf(c.Resources.Limits))
	}
	for _, c := range pod.InitContainers {
		sidecar := ptr.Deref(c.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways
		p.Init = append(p.Init, Init{Limits: amountsOf(c.Resources.Limits), Sidecar: sidecar})
	}
	for _, v := range pod.Volumes {
		if v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil {
			t.claims(count, v.Ephemeral.VolumeClaimTemplate.Spec)
		}
	}
	t.Pods = append(t.Pods, p)
	return nil
}

// claims are as many equal volume claims.
func (t *tally) claims(count int64, c corev1.PersistentVolumeClaimSpec) {
	storage := c.Resources.Requests.Storage().DeepCopy()
	storage.Mul(count)
	t.Storage.Add(storage)
}

func amountsOf(l corev1.ResourceList) steading.Resources {
	return steading.Resources{CPU: l.Cpu().DeepCopy(), Memory: l.Memory().DeepCopy()}
}
