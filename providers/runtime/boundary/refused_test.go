package boundary

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// TestRefusedDeletionIsSaid: a cluster that answers, and does not let the namespace be deleted, holds the deletion up in so many
// words, until it lets it or an operator gives it up.
func TestRefusedDeletionIsSaid(t *testing.T) {
	for name, abandon := range map[string]bool{"GoesOn": false, "Abandoned": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil, claim(claimDeleted), standing())
			forbidden := true
			w.e.client = interceptor.NewClient(w, interceptor.Funcs{
				Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
					if forbidden {
						return kerrors.NewForbidden(corev1.Resource("namespaces"), obj.GetName(), nil)
					}
					return c.Delete(ctx, obj, opts...)
				},
			})
			b := boundary(deleted)
			pass := func() (bool, error) {
				t.Helper()
				w.e.namespace = nil
				obs, err := w.e.Observe(t.Context(), b)
				if err == nil && obs.ResourceExists {
					_, err = w.e.Delete(t.Context(), b)
				}
				return obs.ResourceExists, err
			}
			for range 2 {
				if _, err := pass(); !kerrors.IsForbidden(err) {
					t.Fatalf("got %v", err)
				}
			}
			c := &steading.Environment{}
			key := client.ObjectKeyFromObject(claim())
			must(t, w.Get(t.Context(), key, c))
			said := c.Status.GetCondition(steading.ConditionDeletionBlocked)
			if c.Status.Phase != steading.EnvironmentDeletionBlocked || said.Reason != steading.ReasonCredentialRefused || !strings.Contains(said.Message, "namespace acme-dev cannot be deleted yet") || !strings.Contains(said.Message, "forbidden") {
				t.Errorf("it says %+v in phase %s", said, c.Status.Phase)
			}
			if !abandon {
				forbidden = false
				if _, err := pass(); err != nil {
					t.Fatal(err)
				}
				if there, err := pass(); err != nil || there {
					t.Errorf("there %v, %v, want it deleted", there, err)
				}
				return
			}
			c.Annotations = map[string]string{names.AnnotationAbandon: string(id.UID)}
			must(t, w.Update(t.Context(), c))
			if there, err := pass(); err != nil || there {
				t.Errorf("there %v, %v, want it given up", there, err)
			}
		})
	}
}
