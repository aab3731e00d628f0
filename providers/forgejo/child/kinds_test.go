package child

import (
	"errors"
	"testing"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// serving is an API server that serves resources of KubeVirt, or has an error.
type serving struct {
	discovery.ServerResourcesInterface
	resources []string
	err       error
}

func (s serving) ServerResourcesForGroupVersion(string) (*metav1.APIResourceList, error) {
	l := &metav1.APIResourceList{}
	for _, r := range s.resources {
		l.APIResources = append(l.APIResources, metav1.APIResource{Name: r})
	}
	return l, s.err
}

func TestWhetherMachinesAreServed(t *testing.T) {
	vm := v1alpha1.RunnerConfig{VM: &steading.RunnerVM{}}
	cases := map[string]struct {
		reason string
		config v1alpha1.RunnerConfig
		server serving
		want   bool
	}{
		"Pods":    {reason: "every cluster has them", server: serving{err: kerrors.NewNotFound(schema.GroupResource{}, "kubevirt.io/v1")}, want: true},
		"Absent":  {reason: "KubeVirt is not installed", config: vm, server: serving{err: kerrors.NewNotFound(schema.GroupResource{}, "kubevirt.io/v1")}},
		"Half":    {reason: "it is being installed", config: vm, server: serving{resources: []string{"virtualmachines", "virtualmachines/status"}}},
		"Served":  {reason: "it is installed", config: vm, server: serving{resources: []string{"virtualmachineinstances", "virtualmachines"}}, want: true},
		"Unknown": {reason: "an API server that does not answer says nothing of KubeVirt", config: vm, server: serving{err: errors.New("broken")}, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if have := (Kinds{Discovery: tc.server}).Served(tc.config); have != tc.want {
				t.Errorf("%s: %t", tc.reason, have)
			}
		})
	}
}
