package placement

import (
	"context"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
)

// TestDecidesOnWhatTheServerHas: a cache that has not heard of what was granted grants nothing a second time.
func TestDecidesOnWhatTheServerHas(t *testing.T) {
	w := newWorld(t, homeOf(quotaOf(1)), placementOf("dev"))
	w.reconcile()
	w.create(placementOf("next"))
	late := interceptor.NewClient(w.kube, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			if err := c.List(ctx, l, opts...); err != nil {
				return err
			}
			if ps, ok := l.(*v1alpha1.PlacementList); ok {
				ps.Items = []v1alpha1.Placement{*w.placement("next")}
			}
			return nil
		},
	})
	w.r = newReconciler(late, w.kube, kit.Options{Log: logging.NewNopLogger(), Clock: w.clock, Poll: kit.Poll{Ready: time.Hour, NotReady: time.Hour}}, w.charts)
	w.reconcile()
	if r := w.placement("next").Status.AtProvider.Refusal; r == nil || r.Reason != string(steading.ReasonEnvironmentLimit) {
		t.Errorf("the second of one place: refusal %+v", r)
	}
	if es := w.ledger().Entries; len(es) != 1 || es[0].Placement != "acme-dev" {
		t.Errorf("ledger %+v", es)
	}
}

// TestAGrantIsNotInherited: an environment that was made anew is another one, whatever its name.
func TestAGrantIsNotInherited(t *testing.T) {
	before := &v1alpha1.Ledger{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: "acme"},
		Entries:    []v1alpha1.LedgerEntry{{UID: "another", Placement: "acme-dev", Grant: v1alpha1.Grant{Context: "platform", Version: "1.4.2", Caps: small(), Chart: pin}}},
	}
	w := newWorld(t, homeOf(quotaOf(0)), placementOf("dev"), before)
	w.reconcile()
	o := w.placement("dev").Status.AtProvider
	if o.Grant != nil || o.Refusal == nil || o.Refusal.Reason != string(steading.ReasonEnvironmentLimit) {
		t.Errorf("a tenant that may have none: grant %+v, refusal %+v", o.Grant, o.Refusal)
	}
	if es := w.ledger().Entries; len(es) != 0 {
		t.Errorf("ledger %+v", es)
	}
}
