package pool

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// TestWithoutTheKindsOfMachinesNoneIsMade, and the pool says so; once they are defined it asks until they are served, and when
// they are taken away again it stops.
func TestWithoutTheKindsOfMachinesNoneIsMade(t *testing.T) {
	w := newWorld(t, func(s *steading.RunnerPoolSpec) {
		s.Pod, s.VM = nil, &steading.RunnerVM{CredentialsDisk: "forgejo-runner"}
	})
	w.queue(1)
	w.look()
	w.have(0)
	c := w.written().GetCondition(steading.ConditionRunnersMade)
	if c.Status != corev1.ConditionFalse || c.Reason != steading.ReasonKubeVirtMissing || !strings.Contains(c.Message, "machines.example.com") || !strings.Contains(c.Message, "install KubeVirt") {
		t.Fatalf("RunnersMade is %+v", c)
	}
	if after := w.pass().RequeueAfter; after < time.Minute {
		t.Errorf("it is looked again in %s, although it is told when they are defined", after)
	}

	crd := definition("machines.example.com")
	w.must(w.kube.Create(context.Background(), &metav1.PartialObjectMetadata{TypeMeta: crd.TypeMeta, ObjectMeta: crd.ObjectMeta}))
	if after := w.pass().RequeueAfter; after > served {
		t.Errorf("they are defined and not served yet, and it is looked again in %s", after)
	}
	w.have(0)
	w.kinds.served = true
	w.pass()
	w.have(1)
	if c := w.written().GetCondition(steading.ConditionRunnersMade); c.Status != corev1.ConditionTrue {
		t.Errorf("RunnersMade is %+v", c)
	}

	w.must(w.kube.Delete(context.Background(), crd))
	w.pass()
	if c := w.written().GetCondition(steading.ConditionRunnersMade); c.Reason != steading.ReasonKubeVirtMissing {
		t.Errorf("RunnersMade is %+v", c)
	}
}
