package child

import (
	"slices"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	"github.com/steading-dev/steading/apis/forgejo/v1alpha1"
)

// MachineResources of KubeVirt that a runner in a virtual machine needs.
var MachineResources = []string{"virtualmachines", "virtualmachineinstances"}

// Kinds that runners are made of and that not every cluster has: KubeVirt's.
type Kinds struct {
	// Discovery of what the API server serves.
	Discovery discovery.ServerResourcesInterface
}

// Defined are the names of the definitions that runners of a config need.
func (Kinds) Defined(c v1alpha1.RunnerConfig) []string {
	if c.VM == nil {
		return nil
	}
	all := make([]string, 0, len(MachineResources))
	for _, r := range MachineResources {
		all = append(all, r+"."+VirtualMachine.Group)
	}
	return all
}

// Served reports whether the API server serves all of these kinds. One that does not answer is taken to.
func (k Kinds) Served(c v1alpha1.RunnerConfig) bool {
	if c.VM == nil {
		return true
	}
	l, err := k.Discovery.ServerResourcesForGroupVersion(VirtualMachine.GroupVersion().String())
	if err != nil {
		return !kerrors.IsNotFound(err)
	}
	return !slices.ContainsFunc(MachineResources, func(want string) bool {
		return !slices.ContainsFunc(l.APIResources, func(r metav1.APIResource) bool { return r.Name == want })
	})
}
