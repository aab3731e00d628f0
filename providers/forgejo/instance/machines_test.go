package instance

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/util/workqueue"
	kubevirtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/forgejo/child"
)

// boots a guest.
func boots(mg *v1alpha1.RunnerInstance) {
	mg.Spec.ForProvider.Config.Pod = nil
	mg.Spec.ForProvider.Config.VM = &steading.RunnerVM{CredentialsDisk: "forgejo-runner", Template: runtime.RawExtension{
		Raw: []byte(`{"spec":{"template":{"spec":{"domain":{"devices":{}},"volumes":[{"name":"root","containerDisk":{"image":"openbsd"}}]}}}}`),
	}}
}

func (w *world) vm() *kubevirtv1.VirtualMachine {
	w.t.Helper()
	return read[kubevirtv1.VirtualMachine](w, inJob)
}

// guest is in a phase from now on.
func (w *world) guest(p kubevirtv1.VirtualMachineInstancePhase) {
	w.vmi = &kubevirtv1.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: inJob.Namespace, Name: inJob.Name}}
	w.vmi.Status.Phase = p
	w.vmi.Status.PhaseTransitionTimestamps = []kubevirtv1.VirtualMachineInstancePhaseTransitionTimestamp{{Phase: p, PhaseTransitionTimestamp: metav1.NewTime(w.clock.Now())}}
}

// TestAMachineIsConsumedAndHalted: the guest runs on after its job, and is stopped; the machine is history.
func TestAMachineIsConsumedAndHalted(t *testing.T) {
	w := newWorld(t)
	w.runner(boots)
	w.converge()
	var keys []string
	for k := range w.secret().Data {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	if diff := cmp.Diff([]string{"label", "token", "url", "uuid"}, keys); diff != "" {
		t.Errorf("files of the CDROM: -want, +got:\n%s", diff)
	}
	w.guest(kubevirtv1.Running)
	w.connect()
	w.later(time.Second)
	st := w.status()
	if st.Child == nil || st.Child.Kind != "VirtualMachine" || st.Child.UID != w.vm().UID || st.StartTime == nil || st.State != v1alpha1.StateIdle {
		t.Fatalf("%+v", st)
	}
	w.report(w.take(), "RESULT_SUCCESS")
	w.later(time.Second)
	if st := w.status(); st.Reason != v1alpha1.RunnerConsumed || st.Released {
		t.Fatalf("%+v", st)
	}
	w.later(grace)
	if s := w.vm().Spec.RunStrategy; s == nil || *s != kubevirtv1.RunStrategyHalted || w.status().Released {
		t.Errorf("it is not being stopped: %v", s)
	}
	w.vmi = nil
	w.converge()
	if !w.status().Released || w.vm() == nil {
		t.Errorf("it has stopped: %+v", w.status())
	}
}

// TestAGuestThatCrashesReportedNothing, be it that its machine failed or was deleted.
func TestAGuestThatCrashesReportedNothing(t *testing.T) {
	for name, crash := range map[string]func(*world){
		"Failed":   func(w *world) { w.guest(kubevirtv1.Failed) },
		"Deleted":  func(w *world) { must(w.t, w.Delete(w.t.Context(), w.vm())) },
		"Vanished": func(w *world) { w.vmi = nil },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.runner(boots)
			w.converge()
			w.guest(kubevirtv1.Running)
			w.connect()
			w.later(time.Second)
			crash(w)
			w.converge()
			if st := w.status(); st.Reason != v1alpha1.RunnerExited || !st.Released {
				t.Errorf("%+v", st)
			}
		})
	}
}

// TestWithoutKubeVirt a machine cannot be made, and one whose KubeVirt was taken away can be deleted.
func TestWithoutKubeVirt(t *testing.T) {
	w := newWorld(t)
	w.unserved = true
	w.runner(boots)
	w.converge()
	if st := w.status(); st.Reason != v1alpha1.CreateFailed || !strings.Contains(st.Message, `no matches for kind "VirtualMachine"`) || !st.Released || len(w.registrations()) > 0 {
		t.Errorf("%+v, registered %v", st, w.registrations())
	}

	w = newWorld(t)
	w.runner(boots)
	w.converge()
	w.unserved = true
	w.delete()
	w.converge()
	if w.record() != nil || len(w.registrations()) > 0 || w.secret() != nil {
		t.Errorf("left: %v, %v, %v", w.record(), w.registrations(), w.secret())
	}
}

// TestMachinesAreWatchedOnceTheyAreServed, without a restart.
func TestMachinesAreWatchedOnceTheyAreServed(t *testing.T) {
	s := fake.NewTestScheme()
	must(t, metav1.AddMetaToScheme(s))
	c := fake.NewSimpleMetadataClient(s)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	m := newMachines(c)
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	must(t, m.source().Start(ctx, q))
	go func() { _ = m.Start(ctx) }()

	machine := child.VirtualMachine.GroupVersion().WithResource("virtualmachines")
	for _, round := range []string{"a", "b"} {
		// In this order, since the fake has no event between a list and the watch after it.
		add(t, c, machine, "VirtualMachine", "acme-ci", round, map[string]string{names.LabelManagedBy: names.ManagedBy, names.LabelRunner: round})
		add(t, c, definitionsResource, "CustomResourceDefinition", "", "virtualmachines.kubevirt.io", nil)
		want := reconcile.Request{}
		want.Namespace, want.Name = names.SystemNamespace, round
		err := wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, 2*time.Minute, true, func(context.Context) (bool, error) {
			for q.Len() > 0 {
				r, _ := q.Get()
				q.Done(r)
				if r == want {
					return true, nil
				}
			}
			return false, nil
		})
		if err != nil {
			t.Fatalf("round %s: nobody was woken", round)
		}
		must(t, c.Resource(definitionsResource).Delete(ctx, "virtualmachines.kubevirt.io", metav1.DeleteOptions{}))
		err = wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, 2*time.Minute, true, func(context.Context) (bool, error) {
			m.mu.Lock()
			defer m.mu.Unlock()
			return len(m.watches) == 0, nil
		})
		if err != nil {
			t.Fatalf("round %s: what is not served any more is watched", round)
		}
	}
}

// add an object that somebody made.
func add(t *testing.T, c *fake.FakeMetadataClient, r schema.GroupVersionResource, kind, namespace, n string, labels map[string]string) {
	t.Helper()
	o := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: r.GroupVersion().String(), Kind: kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: n, Labels: labels},
	}
	must(t, c.Tracker().Create(r, o, namespace))
}
