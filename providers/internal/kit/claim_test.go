package kit

import (
	"context"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

var dev = EnvironmentClaim(v1alpha1.ClaimReference{Namespace: "tenant-acme", Name: "dev"})

// living is a claim that Crossplane has written status to.
func living() *steading.Environment {
	e := &steading.Environment{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-acme", Name: "dev", UID: "claim"}}
	e.Status.Phase = steading.EnvironmentRunning
	e.Status.SetConditions(xpv2.Available(), xpv2.ReconcileSuccess())
	return e
}

func leaving() *steading.Environment {
	e := living()
	at := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	e.DeletionTimestamp, e.Finalizers = &at, []string{"finalizer.apiextensions.crossplane.io"}
	return e
}

func reporter(t *testing.T, f interceptor.Funcs, objs ...client.Object) (*ClaimReporter, client.Client, chan string) {
	t.Helper()
	c := kube(t, f, objs...)
	rec := record.NewFakeRecorder(20)
	return NewClaimReporter(c, c, rec), c, rec.Events
}

func read(t *testing.T, c client.Client) *steading.Environment {
	t.Helper()
	e := &steading.Environment{}
	if err := c.Get(context.Background(), client.ObjectKey{Namespace: "tenant-acme", Name: "dev"}, e); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestBlockedIsSaidOnAClaimThatIsBeingDeleted(t *testing.T) {
	r, c, events := reporter(t, interceptor.Funcs{}, leaving())
	ctx := context.Background()
	for range 3 {
		if err := r.Blocked(ctx, dev, steading.ReasonNamespaceBlocked, "held by 0a1b2c3d-1111-2222-3333-444455556666"); err != nil {
			t.Fatal(err)
		}
	}
	e := read(t, c)
	if b := e.Status.GetCondition(steading.ConditionDeletionBlocked); b.Status != corev1.ConditionTrue || b.Message != "held by <uid>" || b.Reason != steading.ReasonNamespaceBlocked {
		t.Errorf("condition %+v", b)
	}
	if e.Status.Phase != steading.EnvironmentDeletionBlocked || e.Status.Message != "held by <uid>" || e.Status.GetCondition(xpv2.TypeReady).Status != corev1.ConditionTrue {
		t.Errorf("status %+v", e.Status)
	}
	if len(events) != 1 || <-events != "Warning DeletionBlocked held by <uid>" {
		t.Errorf("%d events", len(events))
	}

	since := e.Status.GetCondition(steading.ConditionDeletionBlocked).LastTransitionTime
	if err := r.Blocked(ctx, dev, steading.ReasonNamespaceBlocked, "held by something else"); err != nil {
		t.Fatal(err)
	}
	if b := read(t, c).Status.GetCondition(steading.ConditionDeletionBlocked); b.Message != "held by something else" || !b.LastTransitionTime.Equal(&since) {
		t.Errorf("condition %+v", b)
	}
	if len(events) != 1 {
		t.Error("what is new was not said")
	}

	for range 2 {
		if err := r.Deleting(ctx, dev); err != nil {
			t.Fatal(err)
		}
	}
	e = read(t, c)
	if e.Status.Phase != steading.EnvironmentDeleting || e.Status.Message != "" || len(e.Status.Conditions) != 2 {
		t.Errorf("status %+v", e.Status)
	}
}

func TestAClaimThatLivesKeepsItsStatus(t *testing.T) {
	r, c, events := reporter(t, interceptor.Funcs{}, living())
	before := read(t, c).ResourceVersion
	if err := r.Blocked(context.Background(), dev, steading.ReasonNamespaceBlocked, "held"); err != nil {
		t.Fatal(err)
	}
	if err := r.Deleting(context.Background(), dev); err != nil {
		t.Fatal(err)
	}
	if read(t, c).ResourceVersion != before {
		t.Error("the status was written")
	}
	if len(events) != 1 {
		t.Error("no event")
	}
}

func TestAClaimThatIsGoneIsNoError(t *testing.T) {
	r, _, events := reporter(t, interceptor.Funcs{})
	ctx := context.Background()
	if err := r.Blocked(ctx, dev, steading.ReasonNamespaceBlocked, "held"); err != nil {
		t.Error(err)
	}
	if err := r.Deleting(ctx, dev); err != nil {
		t.Error(err)
	}
	r.Event(ctx, dev, event.Normal("Done", "done"))
	if ok, err := r.Abandoned(ctx, dev, "uid"); ok || err != nil {
		t.Errorf("%t, %v", ok, err)
	}
	if len(events) != 0 {
		t.Error("an event without a claim")
	}
}

func TestStatusSurvivesAnotherWriter(t *testing.T) {
	conflicts := 2
	r, c, _ := reporter(t, interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			if conflicts > 0 {
				conflicts--
				return kerrors.NewConflict(schema.GroupResource{Resource: "environments"}, o.GetName(), nil)
			}
			return c.SubResource(sub).Update(ctx, o, opts...)
		},
	}, leaving())
	if err := r.Deleting(context.Background(), dev); err != nil {
		t.Fatal(err)
	}
	if read(t, c).Status.Phase != steading.EnvironmentDeleting {
		t.Error("not written")
	}
}

func TestOperatorsAnnotations(t *testing.T) {
	cases := map[string]struct {
		reason      string
		annotations map[string]string
		adopt       string
		abandoned   bool
	}{
		"None":         {"Without annotations nothing is let go.", nil, "", false},
		"Adopt":        {"Adoption names the old composite.", map[string]string{names.AnnotationAdoptFrom: "old"}, "old", false},
		"Abandon":      {"Abandoning names the composite.", map[string]string{names.AnnotationAbandon: "xr"}, "", true},
		"AbandonOther": {"An annotation that was copied from another claim abandons nothing.", map[string]string{names.AnnotationAbandon: "other"}, "", false},
		"AbandonEmpty": {"Nor does an empty one.", map[string]string{names.AnnotationAbandon: ""}, "", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := living()
			e.Annotations = tc.annotations
			r, _, _ := reporter(t, interceptor.Funcs{}, e)
			adopt, err := r.AdoptFrom(context.Background(), dev)
			if err != nil || adopt != tc.adopt {
				t.Errorf("%s: adopt from %q, %v", tc.reason, adopt, err)
			}
			abandoned, err := r.Abandoned(context.Background(), dev, "xr")
			if err != nil || abandoned != tc.abandoned {
				t.Errorf("%s: abandoned %t, %v", tc.reason, abandoned, err)
			}
		})
	}
}

func TestClaimOfARunnerPoolIsReportedTo(t *testing.T) {
	pool := &steading.RunnerPool{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-acme", Name: "linux"}}
	r, _, events := reporter(t, interceptor.Funcs{}, pool)
	r.Event(context.Background(), RunnerPoolClaim(v1alpha1.ClaimReference{Namespace: "tenant-acme", Name: "linux"}),
		event.Event{Type: event.TypeNormal, Reason: "RunnerConsumed", Message: "runner acme-linux-0a1b2c3d took its job"})
	select {
	case <-events:
	default:
		t.Error("no event was recorded on the claim")
	}
}
