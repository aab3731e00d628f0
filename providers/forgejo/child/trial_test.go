package child

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestATemplateIsTried by the API server, which makes nothing of it.
func TestATemplateIsTried(t *testing.T) {
	machines := schema.GroupResource{Group: VirtualMachine.Group, Resource: "virtualmachines"}
	cases := map[string]struct {
		reason  string
		answer  error
		taken   bool
		refused string
		wrong   string
	}{
		"Taken": {reason: "nothing is wrong with it", taken: true},
		"Unknown": {
			reason:  "a field that KubeVirt does not know is named",
			answer:  kerrors.NewBadRequest(`VirtualMachine in version "v1" cannot be handled as a VirtualMachine: strict decoding error: unknown field "spec.template.spec.aFieldOfTomorrow"`),
			refused: `spec.vm.template: unknown field "spec.template.spec.aFieldOfTomorrow"`,
		},
		"Invalid": {
			reason:  "and so is one that has no such value",
			answer:  kerrors.NewInvalid(VirtualMachine.GroupKind(), "x", field.ErrorList{field.Required(field.NewPath("spec", "template", "spec", "domain"), "")}),
			refused: `spec.vm.template: VirtualMachine.kubevirt.io "x" is invalid: spec.template.spec.domain: Required value`,
		},
		"Forbidden": {
			reason: "without the right to make runners none is registered",
			answer: kerrors.NewForbidden(machines, "x", errors.New("no right")),
			wrong:  `the provider may not make runners in namespace acme-ci: virtualmachines.kubevirt.io "x" is forbidden: no right`,
		},
		"Quota": {reason: "there may be room in a moment", answer: kerrors.NewForbidden(machines, "x", errors.New("exceeded quota: small"))},
		"NoDryRun": {
			reason: "a webhook that cannot be tried says nothing about the template",
			answer: kerrors.NewBadRequest(`admission webhook "w" does not support dry run`),
		},
		"Down": {reason: "an API server that does not answer says nothing either", answer: errors.New("connection refused")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var asked *client.CreateOptions
			c := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
				Create: func(_ context.Context, _ client.WithWatch, _ client.Object, opts ...client.CreateOption) error {
					asked = (&client.CreateOptions{}).ApplyOptions(opts)
					return tc.answer
				},
			})
			taken, err := Trial{Client: c}.Try(t.Context(), instance(t, vm(t, `{"spec":{"template":{"spec":{"domain":{"devices":{}}}}}}`)))
			if taken != tc.taken {
				t.Errorf("%s: taken is %t", tc.reason, taken)
			}
			var no *RefusedError
			if have := message(err); errors.As(err, &no) != (tc.refused != "") || have != tc.refused+tc.wrong {
				t.Errorf("%s: %v", tc.reason, err)
			}
			if asked == nil || !cmp.Equal(asked.DryRun, []string{metav1.DryRunAll}) || asked.FieldValidation != "Strict" {
				t.Errorf("it is asked with %+v", asked)
			}
		})
	}
}

// TestTemplatesOfPodsAreNotTried: they are known without.
func TestTemplatesOfPodsAreNotTried(t *testing.T) {
	taken, err := Trial{}.Try(t.Context(), instance(t))
	if !taken || err != nil {
		t.Errorf("taken is %t: %v", taken, err)
	}
}
