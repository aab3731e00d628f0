package runners

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	kubevirtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/test/fakes/kubevirt"
	"github.com/steading-dev/steading/test/harness"
)

// A cloud is KubeVirt on the platform, and a client that knows its kinds.
type cloud struct {
	*kubevirt.KubeVirt
	admin client.Client
}

// installKubeVirt on the platform, once, for as long as the test binary runs.
var installKubeVirt = sync.OnceValues(func() (*cloud, error) {
	ctx := context.Background()
	crds, err := kubevirt.Definitions(ctx)
	if err != nil {
		return nil, err
	}
	if err := suite.Plane.Apply(ctx, crds...); err != nil {
		return nil, err
	}
	s := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(s), kubevirtv1.AddToScheme(s)); err != nil {
		return nil, err
	}
	admin, err := client.New(suite.Plane.Config(), client.Options{Scheme: s})
	if err != nil {
		return nil, err
	}
	k, err := kubevirt.Start(ctx, suite.Plane.Config(), kubevirt.Options{FetchInterval: 200 * time.Millisecond, ReportInterval: 200 * time.Millisecond})
	return &cloud{k, admin}, err
})

// newCloud has KubeVirt installed.
func newCloud(t *testing.T) *cloud {
	t.Helper()
	c, err := installKubeVirt()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// machinePool is the RunnerPool claim bsd for the organization's jobs, whose runners are virtual machines. What is more in
// their instances' spec is more, in JSON.
func (w *world) machinePool(most int32, more string) *steading.RunnerPool {
	p := w.pool(most)
	p.Name, p.Spec.Pod = "bsd", nil
	raw := `{"spec":{"template":{"spec":{` + more + `"domain":{"memory":{"guest":"1Gi"},"devices":{"disks":[{"name":"root","disk":{"bus":"virtio"}}]}},
		"volumes":[{"name":"root","containerDisk":{"image":"registry.example.com/acme/openbsd-runner:7.8"}}]}}}}`
	p.Spec.VM = &steading.RunnerVM{CredentialsDisk: "forgejo-runner", Template: runtime.RawExtension{Raw: []byte(raw)}}
	return p
}

// ofPool are the machines of the pool bsd.
func (w *world) ofPool() labels.Selector {
	return labels.SelectorFromSet(labels.Set{names.LabelPool: names.Runner(w.tenant, "bsd")})
}

// machines of the world's namespace, by name, with their instances, nil where there is none.
func (w *world) machines(ctx context.Context, c *cloud) (map[string]*kubevirtv1.VirtualMachine, map[string]*kubevirtv1.VirtualMachineInstance, error) {
	vms, vmis := &kubevirtv1.VirtualMachineList{}, &kubevirtv1.VirtualMachineInstanceList{}
	err := errors.Join(c.admin.List(ctx, vms, client.InNamespace(w.namespace())), c.admin.List(ctx, vmis, client.InNamespace(w.namespace())))
	all, instances := map[string]*kubevirtv1.VirtualMachine{}, map[string]*kubevirtv1.VirtualMachineInstance{}
	for i := range vms.Items {
		all[vms.Items[i].Name] = &vms.Items[i]
	}
	for i := range vmis.Items {
		instances[vmis.Items[i].Name] = &vmis.Items[i]
	}
	return all, instances, err
}

// wantNoMachine expects that nothing is left of any pool, and of no machine.
func (w *world) wantNoMachine(t *testing.T, c *cloud) {
	t.Helper()
	w.wantNothing(t)
	harness.Eventually(t, "no machine of "+w.tenant+" is left", func(ctx context.Context) error {
		vms, vmis, err := w.machines(ctx, c)
		if err != nil || len(vms)+len(vmis) > 0 {
			return fmt.Errorf("there are %d machines and %d instances: %w", len(vms), len(vmis), err)
		}
		return nil
	})
}

// ended expects that the last runner of a pool ended for a reason, and that its message has all of the words.
func ended(reason string, words ...string) func(*steading.RunnerPool) error {
	return func(p *steading.RunnerPool) error {
		if len(p.Status.Recent) == 0 {
			return errors.New("no runner has ended")
		}
		last := p.Status.Recent[0]
		if last.Reason != reason {
			return fmt.Errorf("the last runner is %s: %s", last.Reason, last.Message)
		}
		for _, word := range words {
			if !strings.Contains(last.Message, word) {
				return fmt.Errorf("the last runner is %s, and does not say %q: %s", last.Reason, word, last.Message)
			}
		}
		return nil
	}
}

// wantNoCredential expects that the runners that ended have none any more.
func (w *world) wantNoCredential(t *testing.T) {
	t.Helper()
	harness.Eventually(t, "the credentials of "+w.tenant+" are gone", func(ctx context.Context) error {
		l := &corev1.SecretList{}
		if err := suite.Admin.List(ctx, l, client.InNamespace(w.namespace())); err != nil {
			return err
		}
		if len(l.Items) > 0 {
			return fmt.Errorf("there is Secret %s", l.Items[0].Name)
		}
		return nil
	})
}
