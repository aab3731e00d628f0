package kubevirt

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	kubevirtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/steading-dev/steading/test/fakes/forgejo"
)

var key = client.ObjectKey{Namespace: "acme-ci", Name: "acme-bsd-4kx9vb2m"}

// A world is a control plane with KubeVirt, whose controllers run when they are told to, and a Forgejo.
type world struct {
	t *testing.T
	client.Client
	*KubeVirt
	forgejo *forgejo.Server
	url     string
	// phases that the instances went through, and statuses that the machine was printed with.
	phases  []kubevirtv1.VirtualMachineInstancePhase
	printed []kubevirtv1.VirtualMachinePrintableStatus
	made    int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	s := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	if err := kubevirtv1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, forgejo: forgejo.New(forgejo.Options{})}
	w.Client = clientfake.NewClientBuilder().WithScheme(s).WithStatusSubresource(&kubevirtv1.VirtualMachine{}, &corev1.Pod{}).
		WithTypeConverters(byJSON{managedfields.NewDeducedTypeConverter()}).
		WithInterceptorFuncs(interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			w.made++
			o.SetUID(types.UID(fmt.Sprintf("uid-%03d", w.made)))
			return c.Create(ctx, o, opts...)
		}}).Build()
	w.KubeVirt = &KubeVirt{
		options: Options{FetchInterval: 10 * time.Millisecond, ReportInterval: 10 * time.Millisecond}, client: w.Client, reader: w.Client,
		transport: http.DefaultTransport, ended: make(chan event.GenericEvent, 64),
		struck: map[types.UID]FaultKind{}, guests: map[types.UID]*guest{}, boots: map[string]int{},
	}
	srv := httptest.NewServer(w.forgejo)
	t.Cleanup(srv.Close)
	w.url = srv.URL
	return w
}

// byJSON converts objects by what they are in JSON. The fake API server's own way knows no unsigned numbers, which instances have.
type byJSON struct{ managedfields.TypeConverter }

func (c byJSON) ObjectToTyped(o runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	raw, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		return nil, err
	}
	return c.TypeConverter.ObjectToTyped(u, opts...)
}

// register a runner, whose credential is on the machine's CDROM.
func (w *world) register() {
	w.t.Helper()
	must(w.t, w.forgejo.AddUser("root", true))
	must(w.t, w.forgejo.AddRepository("root", "web", false))
	token, err := w.forgejo.AddToken("root", "all")
	must(w.t, err)
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.url+"/api/v1/admin/actions/runners", strings.NewReader(`{"name":"bsd","ephemeral":true}`))
	must(w.t, err)
	req.Header.Set("Authorization", "token "+token)
	res, err := http.DefaultClient.Do(req)
	must(w.t, err)
	defer res.Body.Close() //nolint:errcheck // It is read.
	var r struct{ UUID, Token string }
	must(w.t, json.NewDecoder(res.Body).Decode(&r))
	must(w.t, w.Create(w.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "credentials"},
		Data:       map[string][]byte{"url": []byte(w.url), "uuid": []byte(r.UUID), "token": []byte(r.Token), "label": []byte("bsd:host\n")},
	}))
}

// queue a job.
func (w *world) queue(payload string) {
	w.t.Helper()
	_, err := w.forgejo.Queue(forgejo.NewJob{Repository: "root/web", Labels: []string{"bsd"}, Payload: payload})
	must(w.t, err)
}

// make a machine.
func (w *world) make(strategy kubevirtv1.VirtualMachineRunStrategy, edit ...func(*kubevirtv1.VirtualMachineInstanceSpec)) {
	w.t.Helper()
	vm := &kubevirtv1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	vm.Spec.RunStrategy = &strategy
	vm.Spec.Template = &kubevirtv1.VirtualMachineInstanceTemplateSpec{}
	spec := &vm.Spec.Template.Spec
	spec.TerminationGracePeriodSeconds = ptr.To[int64](0)
	spec.Domain.Devices.Disks = []kubevirtv1.Disk{{Name: "cd", DiskDevice: kubevirtv1.DiskDevice{CDRom: &kubevirtv1.CDRomTarget{}}}}
	spec.Volumes = []kubevirtv1.Volume{{Name: "cd", VolumeSource: kubevirtv1.VolumeSource{Secret: &kubevirtv1.SecretVolumeSource{SecretName: "credentials"}}}}
	for _, e := range edit {
		e(spec)
	}
	must(w.t, w.Create(w.t.Context(), vm))
}

// vm and its instance as they are, nil if they are not.
func (w *world) vm() *kubevirtv1.VirtualMachine { return read[kubevirtv1.VirtualMachine](w) }

func (w *world) vmi() *kubevirtv1.VirtualMachineInstance {
	return read[kubevirtv1.VirtualMachineInstance](w)
}

func read[T any, P interface {
	*T
	client.Object
}](w *world) P {
	w.t.Helper()
	o := P(new(T))
	err := w.Get(w.t.Context(), key, o)
	if kerrors.IsNotFound(err) {
		return nil
	}
	must(w.t, err)
	return o
}

// until has the controllers run until something holds.
func (w *world) until(what string, holds func() bool) {
	w.t.Helper()
	deadline := time.After(time.Minute)
	for !holds() {
		for _, r := range []reconcile.Reconciler{&machines{w.KubeVirt}, &instances{w.KubeVirt}} {
			// What it lost against another is tried again.
			if _, err := r.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: key}); !kerrors.IsConflict(err) {
				must(w.t, err)
			}
		}
		if vmi := w.vmi(); vmi != nil && (len(w.phases) == 0 || w.phases[len(w.phases)-1] != vmi.Status.Phase) {
			w.phases = append(w.phases, vmi.Status.Phase)
		}
		if vm := w.vm(); vm != nil && (len(w.printed) == 0 || w.printed[len(w.printed)-1] != vm.Status.PrintableStatus) {
			w.printed = append(w.printed, vm.Status.PrintableStatus)
		}
		select {
		case <-deadline:
			w.t.Fatalf("never: %s; phases %v, printed %v", what, w.phases, w.printed)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// ended reports whether the instance has run and is over.
func (w *world) ended(phase kubevirtv1.VirtualMachineInstancePhase) func() bool {
	return func() bool {
		vmi, vm := w.vmi(), w.vm()
		return vmi != nil && vmi.Status.Phase == phase && !slices.Contains(vmi.Finalizers, kubevirtv1.VirtualMachineControllerFinalizer) && vm.Status.Created
	}
}

// TestOnce: a machine that is to run once goes through KubeVirt's phases, its guest runs the job that the files on its CDROM
// lead to, powers off, and is not started again; and when the machine is deleted nothing is left.
func TestOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register()
	w.queue("result: failure")
	w.make(kubevirtv1.RunStrategyOnce)
	w.until("it succeeded", w.ended(kubevirtv1.Succeeded))
	want := []kubevirtv1.VirtualMachineInstancePhase{kubevirtv1.Pending, kubevirtv1.Scheduling, kubevirtv1.Scheduled, kubevirtv1.Running, kubevirtv1.Succeeded}
	var through []kubevirtv1.VirtualMachineInstancePhase
	for _, p := range w.vmi().Status.PhaseTransitionTimestamps {
		through = append(through, p.Phase)
	}
	if diff := cmp.Diff(want, through); diff != "" {
		t.Errorf("phases: -want, +got:\n%s", diff)
	}
	if jobs := w.forgejo.Jobs(); len(jobs[0].Runs) != 1 || jobs[0].Status != "failure" || w.Boots(key.Name) != 1 {
		t.Errorf("job %+v, %d boots", jobs[0], w.Boots(key.Name))
	}
	if s := w.vm().Status; s.PrintableStatus != kubevirtv1.VirtualMachineStatusStopped || s.RunStrategy != kubevirtv1.RunStrategyOnce {
		t.Errorf("the machine is %+v", s)
	}
	l := &corev1.PodList{}
	must(t, w.List(t.Context(), l))
	if len(l.Items) != 1 || l.Items[0].Status.Phase != corev1.PodSucceeded {
		t.Errorf("its pods are %+v", l.Items)
	}
	must(t, w.Delete(t.Context(), w.vm()))
	w.until("it is gone", func() bool { return w.vm() == nil && w.vmi() == nil })
	must(t, w.List(t.Context(), l))
	if len(l.Items) > 0 {
		t.Errorf("there is pod %s still", l.Items[0].Name)
	}
}

// TestRunStrategies: what becomes of a machine whose guest powered off or crashed, by its strategy.
func TestRunStrategies(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		strategy kubevirtv1.VirtualMachineRunStrategy
		fault    FaultKind
		boots    int
		stays    bool // with its instance
	}{
		"OncePowersOff":     {strategy: kubevirtv1.RunStrategyOnce, fault: FaultPowersOff, boots: 1, stays: true},
		"OncePanics":        {strategy: kubevirtv1.RunStrategyOnce, fault: FaultPanics, boots: 1, stays: true},
		"RerunPowersOff":    {strategy: kubevirtv1.RunStrategyRerunOnFailure, fault: FaultPowersOff, boots: 1},
		"RerunPanics":       {strategy: kubevirtv1.RunStrategyRerunOnFailure, fault: FaultPanics, boots: 2},
		"AlwaysPowersOff":   {strategy: kubevirtv1.RunStrategyAlways, fault: FaultPowersOff, boots: 3},
		"HaltedNeverStarts": {strategy: kubevirtv1.RunStrategyHalted},
		"ManualIsNotAsked":  {strategy: kubevirtv1.RunStrategyManual},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.register()
			w.queue("result: hang")
			w.SetFault(Fault{Kind: tc.fault})
			w.make(tc.strategy)
			w.until("it was booted as often", func() bool { return w.Boots(key.Name) >= tc.boots && w.vm().Status.PrintableStatus != "" })
			if tc.boots > 1 {
				return // And again and again.
			}
			w.until("it is over", func() bool {
				return len(w.Running()) == 0 && w.vm().Status.PrintableStatus == kubevirtv1.VirtualMachineStatusStopped && (w.vmi() != nil) == tc.stays
			})
			if n := w.Boots(key.Name); n != tc.boots {
				t.Errorf("it was booted %d times, not %d", n, tc.boots)
			}
		})
	}
}

// TestADeletedInstanceIsStartedAgain, by the strategy Once, too, which is KubeVirt's way.
func TestADeletedInstanceIsStartedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register()
	w.make(kubevirtv1.RunStrategyOnce)
	running := func() bool { vmi := w.vmi(); return vmi != nil && vmi.Status.Phase == kubevirtv1.Running }
	w.until("it runs", running)
	before := w.vmi()
	must(t, w.Delete(t.Context(), before))
	w.until("another runs", func() bool { return running() && w.vmi().UID != before.UID })
	if n := w.Boots(key.Name); n != 2 {
		t.Errorf("%d boots", n)
	}
	// One that is destroyed without having been asked is said to have ended well.
	if !slices.Contains(w.phases, kubevirtv1.Succeeded) || slices.Contains(w.phases, kubevirtv1.Failed) {
		t.Errorf("phases %v", w.phases)
	}
}

// TestFaultsOfMachines are said in KubeVirt's words.
func TestFaultsOfMachines(t *testing.T) {
	t.Parallel()
	cases := map[FaultKind]struct {
		printed kubevirtv1.VirtualMachinePrintableStatus
		kind    kubevirtv1.VirtualMachineConditionType
		reason  string
	}{
		FaultUnschedulable: {kubevirtv1.VirtualMachineStatusUnschedulable, "PodScheduled", "Unschedulable"},
		FaultImagePull:     {kubevirtv1.VirtualMachineStatusErrImagePull, "Synchronized", "ErrImagePull"},
		FaultClaimMissing:  {kubevirtv1.VirtualMachineStatusPvcNotFound, "Synchronized", "FailedPvcNotFound"},
		FaultDataVolume:    {kubevirtv1.VirtualMachineStatusDataVolumeError, "Ready", "VMINotExists"},
		FaultCrashes:       {kubevirtv1.VirtualMachineStatusCrashLoopBackOff, "Ready", "GuestNotRunning"},
	}
	for kind, want := range cases {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.register()
			w.SetFault(Fault{Kind: kind})
			w.make(kubevirtv1.RunStrategyOnce)
			w.until("it says so", func() bool {
				vm := w.vm()
				return vm.Status.PrintableStatus == want.printed && slices.ContainsFunc(vm.Status.Conditions, func(c kubevirtv1.VirtualMachineCondition) bool {
					return c.Type == want.kind && c.Status == corev1.ConditionFalse && c.Reason == want.reason
				})
			})
			if w.Boots(key.Name) != 0 {
				t.Error("its guest was booted all the same")
			}
		})
	}
}

// TestAHeldInstanceKeepsItsMachine, until the fault is over.
func TestAHeldInstanceKeepsItsMachine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register()
	unset := w.SetFault(Fault{Kind: FaultHolds})
	w.make(kubevirtv1.RunStrategyOnce)
	w.until("it runs", func() bool { return len(w.Running()) == 1 })
	must(t, w.Delete(t.Context(), w.vm()))
	w.until("its guest is over", func() bool { return len(w.Running()) == 0 && w.vmi().IsFinal() })
	looked := 0
	w.until("it was looked at often", func() bool { looked++; return looked > 10 })
	if w.vm() == nil || w.vmi() == nil {
		t.Fatal("it is not held")
	}
	unset()
	w.until("it is gone", func() bool { return w.vm() == nil && w.vmi() == nil })
}

// TestAGraceLetsAGuestPowerOff, and so end well.
func TestAGraceLetsAGuestPowerOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register()
	w.make(kubevirtv1.RunStrategyOnce, func(s *kubevirtv1.VirtualMachineInstanceSpec) { s.TerminationGracePeriodSeconds = ptr.To[int64](600) })
	w.until("it runs", func() bool { return len(w.Running()) == 1 })
	must(t, w.Delete(t.Context(), w.vm()))
	w.until("it is gone", func() bool { return w.vm() == nil })
	if !slices.Contains(w.phases, kubevirtv1.Succeeded) {
		t.Errorf("phases %v", w.phases)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
