package instance

import (
	"bytes"
	"encoding/json"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	kubevirtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/forgejo/v1alpha1"
)

// TestTheAPITokenReachesNoRunner: nothing that a runner is made of has the token that the queue is watched by, in either kind of
// runner, and its own credential is in its Secret and nowhere else.
func TestTheAPITokenReachesNoRunner(t *testing.T) {
	for name, change := range map[string][]func(*v1alpha1.RunnerInstance){"Pod": nil, "VM": {boots}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.runner(change...)
			w.converge()
			w.connect()
			w.converge()
			own := w.secret().Data["token"]
			if bytes.Equal(own, []byte(w.token)) {
				t.Error("the runner's own credential is the API token")
			}
			secrets := w.written(&corev1.SecretList{})
			if bytes.Contains(secrets, []byte(w.token)) || !bytes.Contains(secrets, own) {
				t.Errorf("the Secrets are to have the runner's credential, and not the API token: %s", secrets)
			}
			for _, l := range []client.ObjectList{&batchv1.JobList{}, &kubevirtv1.VirtualMachineList{}, &v1alpha1.RunnerInstanceList{}, &corev1.EventList{}} {
				all := w.written(l)
				if bytes.Contains(all, []byte(w.token)) || bytes.Contains(all, own) {
					t.Errorf("%T has a token: %s", l, all)
				}
			}
		})
	}
}

// written is all that the API server has of a kind, with what Secrets hold in the clear.
func (w *world) written(l client.ObjectList) []byte {
	w.t.Helper()
	must(w.t, w.List(w.t.Context(), l))
	if s, ok := l.(*corev1.SecretList); ok {
		var all []byte
		for _, one := range s.Items {
			for key, value := range one.Data {
				all = append(append(append(all, key+": "...), value...), '\n')
			}
			one.Data = nil
			raw, err := json.Marshal(one)
			must(w.t, err)
			all = append(all, raw...)
		}
		return all
	}
	raw, err := json.Marshal(l)
	must(w.t, err)
	return raw
}
