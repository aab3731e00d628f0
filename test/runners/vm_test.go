package runners

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubevirtv1 "kubevirt.io/api/core/v1"

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/test/fakes/kubevirt"
	"github.com/steading-dev/steading/test/harness"
)

// TestKubeVirtComesLater: without it a pool of machines makes and registers nothing, and says what is missing; it goes on when
// KubeVirt is installed, though its server is looked at once an hour. It runs before the tests that need KubeVirt.
func TestKubeVirtComesLater(t *testing.T) { //nolint:paralleltest // See above.
	w := newWorld(t, "later")
	w.queue(t, 1, "")
	p := w.machinePool(1, "")
	p.Spec.PollIntervalSeconds = 3600
	suite.Create(t, p)
	w.wait(t, p, "misses KubeVirt", says("RunnersMade", "KubeVirtMissing"))
	if all := w.forgejo.Registrations(); len(all) != 0 {
		t.Errorf("%d runners were registered all the same", len(all))
	}
	c := newCloud(t)
	w.waitJobs(t)
	suite.Delete(t, p)
	suite.WantGone(t, p)
	w.wantNoMachine(t, c)
}

// TestAJobRunsInAMachineOnce: each job runs in a machine of its own that is booted once, red jobs, too. The machine of one that
// ended is kept as history, with its instance and without its credential, and goes with the pool.
func TestAJobRunsInAMachineOnce(t *testing.T) {
	t.Parallel()
	c, w := newCloud(t), newWorld(t, "boots")
	w.queue(t, 2, "log: [hello]")
	w.queue(t, 1, "result: failure")
	p := w.machinePool(2, "")
	p.Spec.SuccessfulJobsHistoryLimit = 3
	suite.Create(t, p)
	w.waitJobs(t)
	if peak := w.forgejo.PeakRegistrations(); peak > 2 {
		t.Errorf("at most 2 runners were asked for, and %d were there at once", peak)
	}
	harness.Eventually(t, "history of machines", func(ctx context.Context) error {
		vms, vmis, err := w.machines(ctx, c)
		if err != nil || len(vms) != 3 {
			return fmt.Errorf("there are %d machines: %w", len(vms), err)
		}
		for name, vm := range vms {
			if s := vm.Spec.RunStrategy; s == nil || *s != kubevirtv1.RunStrategyOnce || vmis[name] == nil || vmis[name].Status.Phase != kubevirtv1.Succeeded {
				return fmt.Errorf("machine %s is %v, and its instance %+v", name, s, vmis[name])
			}
			if n := c.Boots(name); n != 1 {
				t.Errorf("machine %s was booted %d times", name, n)
			}
		}
		return nil
	})
	w.wantNoCredential(t)
	w.wait(t, p, "is idle", func(p *steading.RunnerPool) error {
		if s := p.Status; s.Live != 0 || s.ConsecutiveFailures != 0 {
			return errors.New("it is not idle")
		}
		return nil
	})
	suite.Delete(t, p)
	suite.WantGone(t, p)
	w.wantNoMachine(t, c)
	wantPower(t, 5)
}

// TestAMachineThatDoesNotRunFreesItsSlot: its runner fails in KubeVirt's own words, what was made of it is halted, its
// credential is gone, and the pool backs off.
func TestAMachineThatDoesNotRunFreesItsSlot(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		fault  kubevirt.FaultKind
		reason forgejov1.RunnerReason
		words  []string
	}{
		"nonode":  {kubevirt.FaultUnschedulable, forgejov1.StartupTimeout, []string{"no node takes its virtual machine", "Insufficient devices.kubevirt.io/kvm"}},
		"noimage": {kubevirt.FaultImagePull, forgejov1.StartupTimeout, []string{"ErrImagePull", "openbsd-runner:7.8"}},
		"noclaim": {kubevirt.FaultClaimMissing, forgejov1.StartupTimeout, []string{"FailedPvcNotFound", "didn't find PVC"}},
		"nodisk":  {kubevirt.FaultDataVolume, forgejov1.StartupTimeout, []string{"its virtual machine is DataVolumeError"}},
		"crash":   {kubevirt.FaultCrashes, forgejov1.RunnerExited, []string{"its virtual machine failed before its guest ran"}},
		"silent":  {kubevirt.FaultSilent, forgejov1.StartupTimeout, []string{"the server has not heard of it"}},
		"off":     {kubevirt.FaultPowersOff, forgejov1.RunnerExited, []string{"its guest shut down"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, w := newCloud(t), newWorld(t, "vm"+name)
			c.SetFault(kubevirt.Fault{Kind: tc.fault, Machines: w.ofPool()})
			w.queue(t, 1, "")
			p := w.machinePool(1, "")
			p.Spec.StartupTimeoutSeconds = 10
			suite.Create(t, p)
			w.wait(t, p, "says why", ended(string(tc.reason), tc.words...))
			w.wait(t, p, "backs off", phase(steading.RunnerPoolBackingOff))
			w.wantNoCredential(t)
			harness.Eventually(t, "nothing runs", func(ctx context.Context) error {
				vms, vmis, err := w.machines(ctx, c)
				if err != nil || len(vms) != 1 {
					return fmt.Errorf("there are %d machines: %w", len(vms), err)
				}
				for name, vmi := range vmis {
					if !vmi.IsFinal() {
						return fmt.Errorf("instance %s is %s", name, vmi.Status.Phase)
					}
				}
				return nil
			})
			suite.Delete(t, p)
			suite.WantGone(t, p)
			w.wantNoMachine(t, c)
		})
	}
}

// TestAMachineThatStaysOnIsHalted a while after its job: it is history, and holds nothing of the namespace's.
func TestAMachineThatStaysOnIsHalted(t *testing.T) {
	t.Parallel()
	c, w := newCloud(t), newWorld(t, "stayson")
	c.SetFault(kubevirt.Fault{Kind: kubevirt.FaultStaysOn, Machines: w.ofPool()})
	w.queue(t, 1, "sleep: 12s") // Longer than a poll: what nobody saw work, and does not end, was never there.
	p := w.machinePool(1, "")
	suite.Create(t, p)
	w.waitJobs(t)
	w.wait(t, p, "is told", ended(string(forgejov1.RunnerConsumed)))
	harness.Eventually(t, "the machine is halted, and kept", func(ctx context.Context) error {
		vms, vmis, err := w.machines(ctx, c)
		if err != nil || len(vms) != 1 || len(vmis) != 0 {
			return fmt.Errorf("there are %d machines and %d instances: %w", len(vms), len(vmis), err)
		}
		for _, vm := range vms {
			if s := vm.Spec.RunStrategy; s == nil || *s != kubevirtv1.RunStrategyHalted {
				return fmt.Errorf("it is %v", s)
			}
		}
		return nil
	})
	w.wantNoCredential(t)
	suite.Delete(t, p)
	suite.WantGone(t, p)
	w.wantNoMachine(t, c)
	wantPower(t, 4)
}

// TestAMachineLostWithAJobIsNoSecondChance: the guest's kernel panics, or somebody deletes the instance, which KubeVirt starts
// again. The runner had its job, and is lost.
func TestAMachineLostWithAJobIsNoSecondChance(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		lose  func(t *testing.T, c *cloud, w *world)
		fault kubevirt.FaultKind
		words string
	}{
		"panic": {fault: kubevirt.FaultPanics, words: "its virtual machine failed"},
		"deleted": {words: "its virtual machine", lose: func(t *testing.T, c *cloud, w *world) {
			t.Helper()
			_, vmis, err := w.machines(t.Context(), c)
			if err != nil || len(vmis) != 1 {
				t.Fatalf("%d instances: %v", len(vmis), err)
			}
			for _, vmi := range vmis {
				if err := c.admin.Delete(t.Context(), vmi); err != nil {
					t.Fatal(err)
				}
			}
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, w := newCloud(t), newWorld(t, "lost"+name+"vm")
			if tc.fault != "" {
				c.SetFault(kubevirt.Fault{Kind: tc.fault, Machines: w.ofPool()})
			}
			w.queue(t, 1, "result: hang")
			p := w.machinePool(1, "")
			suite.Create(t, p)
			if tc.lose != nil {
				w.wait(t, p, "has a runner", func(p *steading.RunnerPool) error {
					if p.Status.Active == 0 {
						return errors.New("none is active")
					}
					return nil
				})
				tc.lose(t, c, w)
			}
			w.wait(t, p, "lost it", ended(string(forgejov1.RunnerLost), tc.words))
			w.wantNoCredential(t)
			harness.Eventually(t, "nothing runs", func(ctx context.Context) error {
				_, vmis, err := w.machines(ctx, c)
				if err != nil {
					return err
				}
				for name, vmi := range vmis {
					if !vmi.IsFinal() {
						return fmt.Errorf("instance %s is %s", name, vmi.Status.Phase)
					}
				}
				return nil
			})
			for _, j := range w.forgejo.Jobs() {
				if len(j.Runs) != 1 {
					t.Errorf("job %d ran %d times", j.ID, len(j.Runs))
				}
			}
			suite.Delete(t, p)
			suite.WantGone(t, p)
			w.wantNoMachine(t, c)
		})
	}
}

// TestAFieldThatKubeVirtDoesNotKnowIsNamed, and no runner is registered whose machine would be made without it.
func TestAFieldThatKubeVirtDoesNotKnowIsNamed(t *testing.T) {
	t.Parallel()
	c, w := newCloud(t), newWorld(t, "unknown")
	w.queue(t, 1, "")
	p := w.machinePool(1, `"aFieldOfTomorrow":1,`)
	suite.Create(t, p)
	w.wait(t, p, "names the field", func(p *steading.RunnerPool) error {
		if !strings.Contains(p.Status.Message, "aFieldOfTomorrow") {
			return fmt.Errorf("it says %q", p.Status.Message)
		}
		return says("RunnersMade", "TemplateRefused")(p)
	})
	if all := w.forgejo.Registrations(); len(all) != 0 {
		t.Errorf("%d runners were registered all the same", len(all))
	}
	if vms, _, err := w.machines(t.Context(), c); err != nil || len(vms) != 0 {
		t.Errorf("%d machines were made: %v", len(vms), err)
	}
	suite.Delete(t, p)
	suite.WantGone(t, p)
	w.wantNoMachine(t, c)
}

// TestADeletedPoolWaitsForItsMachines: while a node does not let go of an instance its record stays, and with it the pool.
func TestADeletedPoolWaitsForItsMachines(t *testing.T) {
	t.Parallel()
	c, w := newCloud(t), newWorld(t, "held")
	unset := c.SetFault(kubevirt.Fault{Kind: kubevirt.FaultHolds, Machines: w.ofPool()})
	w.queue(t, 1, "result: hang")
	p := w.machinePool(1, "")
	suite.Create(t, p)
	w.wait(t, p, "has a runner", func(p *steading.RunnerPool) error {
		if p.Status.Active == 0 {
			return errors.New("none is active")
		}
		return nil
	})
	suite.Delete(t, p)
	harness.Eventually(t, "the instance is over and held", func(ctx context.Context) error {
		vms, vmis, err := w.machines(ctx, c)
		for name, vmi := range vmis {
			if vm := vms[name]; vm != nil && vm.DeletionTimestamp != nil && vmi.IsFinal() && vmi.DeletionTimestamp != nil {
				return nil
			}
		}
		return fmt.Errorf("there are %d machines and %d instances: %w", len(vms), len(vmis), err)
	})
	w.wantNoCredential(t)
	if all, err := w.instances(t.Context(), "bsd"); err != nil || len(all) != 1 || all[0].DeletionTimestamp == nil {
		t.Errorf("the record does not wait: %+v, %v", all, err)
	}
	unset()
	suite.WantGone(t, p)
	w.wantNoMachine(t, c)
}

// TestAQuotaThatRefusesPodsIsNamed: a Job whose pods are refused says so by an event, and a machine by its instance. The runner
// that is given up says it, too.
func TestAQuotaThatRefusesPodsIsNamed(t *testing.T) {
	t.Parallel()
	c, w := newCloud(t), newWorld(t, "noquota")
	suite.Create(t, &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace(), Name: "none-at-all"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
	})
	w.queue(t, 1, "")
	for _, p := range []*steading.RunnerPool{w.pool(1), w.machinePool(1, "")} {
		p.Spec.StartupTimeoutSeconds, p.Spec.MinRunners = 10, 1
		suite.Create(t, p)
		w.wait(t, p, "says why", ended(string(forgejov1.StartupTimeout), "exceeded quota: none-at-all"))
		suite.Delete(t, p)
		suite.WantGone(t, p)
	}
	w.wantNoMachine(t, c)
	wantPower(t, 1)
}
