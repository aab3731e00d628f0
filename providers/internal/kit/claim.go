package kit

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"

	"github.com/steading-dev/steading/apis/definitions"
	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// A Claim is what a person wrote, and reads the outcome from.
type Claim struct {
	// Kind of the claim in group steading.dev/v1alpha1.
	Kind string
	// ClaimReference as a managed resource has it.
	v1alpha1.ClaimReference
}

// EnvironmentClaim is the Environment that a managed resource serves.
func EnvironmentClaim(r v1alpha1.ClaimReference) Claim {
	return Claim{Kind: steading.EnvironmentKind, ClaimReference: r}
}

// TenantClaim is the Tenant that a managed resource serves.
func TenantClaim(r v1alpha1.ClaimReference) Claim {
	return Claim{Kind: steading.TenantKind, ClaimReference: r}
}

// ContextClaim is the Context that a managed resource serves.
func ContextClaim(r v1alpha1.ClaimReference) Claim {
	return Claim{Kind: steading.ContextKind, ClaimReference: r}
}

// RunnerPoolClaim is the RunnerPool that a managed resource serves.
func RunnerPoolClaim(r v1alpha1.ClaimReference) Claim {
	return Claim{Kind: steading.RunnerPoolKind, ClaimReference: r}
}

func (c Claim) gvk() schema.GroupVersionKind { return steading.GroupVersion.WithKind(c.Kind) }

func (c Claim) key() types.NamespacedName {
	return types.NamespacedName{Namespace: c.Namespace, Name: c.Name}
}

// A ClaimReporter tells on a claim what becomes of it.
//
// While a claim lives, its status comes from its composition function and a provider only adds events. Functions do not
// run while a composite is being deleted; then, and only then, a provider writes the claim's phase and its condition
// DeletionBlocked itself.
type ClaimReporter struct {
	client client.Client
	reader client.Reader
	record record.EventRecorder
}

// NewClaimReporter returns a reporter that writes status with c, reads claims uncached with r, and records events with
// rec, whose correlator counts equal events together and bounds how many one claim gets.
func NewClaimReporter(c client.Client, r client.Reader, rec record.EventRecorder) *ClaimReporter {
	return &ClaimReporter{client: c, reader: r, record: rec}
}

// Metadata of the claim, nil when it is gone.
func (r *ClaimReporter) Metadata(ctx context.Context, c Claim) (*metav1.PartialObjectMetadata, error) {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(c.gvk())
	if err := r.reader.Get(ctx, c.key(), m); err != nil {
		return nil, errors.Wrapf(client.IgnoreNotFound(err), "cannot read the claim %s %s", c.Kind, c.key())
	}
	return m, nil
}

// AdoptFrom is the composite UID that an operator lets the claim's resources take over from, empty when there is none.
// It is asked for only once something was found that is not ours.
func (r *ClaimReporter) AdoptFrom(ctx context.Context, c Claim) (string, error) {
	m, err := r.Metadata(ctx, c)
	if m == nil {
		return "", err
	}
	return m.GetAnnotations()[names.AnnotationAdoptFrom], nil
}

// Abandoned reports whether an operator gave up the target of the composite with this UID, for good.
func (r *ClaimReporter) Abandoned(ctx context.Context, c Claim, composite types.UID) (bool, error) {
	m, err := r.Metadata(ctx, c)
	if m == nil {
		return false, err
	}
	return composite != "" && m.GetAnnotations()[names.AnnotationAbandon] == string(composite), nil
}

// Ours is [Ours] for something that exists, after looking for the operator's leave to adopt it when it is needed.
func (r *ClaimReporter) Ours(ctx context.Context, obj client.Object, id v1alpha1.Identity, c Claim) error {
	if Ours(obj, id, "") == nil {
		return nil
	}
	adopt, err := r.AdoptFrom(ctx, c)
	if err != nil {
		return err
	}
	return Ours(obj, id, adopt)
}

// Event records an event on the claim, if it exists. Events are a courtesy: failing to record one fails nothing.
func (r *ClaimReporter) Event(ctx context.Context, c Claim, e event.Event) {
	m, err := r.Metadata(ctx, c)
	if err != nil || m == nil {
		return
	}
	r.event(m, e)
}

func (r *ClaimReporter) event(m client.Object, e event.Event) {
	r.record.AnnotatedEventf(m, e.Annotations, string(e.Type), string(e.Reason), "%s", CleanMessage(e.Message))
}

// Blocked says on a claim that is being deleted what holds its deletion up: in phase DeletionBlocked, in the condition
// of that name, and in an event when it was not said before. On a claim that lives only the event is recorded, as when a
// managed resource was deleted on its own.
func (r *ClaimReporter) Blocked(ctx context.Context, c Claim, reason xpv2.ConditionReason, message string) error {
	message = CleanMessage(message)
	said := false
	claim, err := r.update(ctx, c, func(s *claimStatus) {
		said = s.blocked(reason, message)
	})
	if err != nil || claim == nil || !said {
		return err
	}
	r.event(claim, event.Event{Type: event.TypeWarning, Reason: event.Reason(steading.ConditionDeletionBlocked), Message: message})
	return nil
}

// DeletionBlocked is Blocked, said on the claim's managed resource too.
func (r *ClaimReporter) DeletionBlocked(ctx context.Context, mg resource.Managed, c Claim, reason xpv2.ConditionReason, message string) error {
	MarkDeletionBlocked(mg, reason, message)
	return r.Blocked(ctx, c, reason, message)
}

// Deleting says on a claim that is being deleted that deletion goes on: phase Deleting, and no condition
// DeletionBlocked.
func (r *ClaimReporter) Deleting(ctx context.Context, c Claim) error {
	_, err := r.update(ctx, c, func(s *claimStatus) { s.deleting() })
	return err
}

// Judged says on a claim that is being deleted whether the definitions of what deletes it are current. While they are not, its
// deletion is blocked by that, unless something else was said to block it: of all that is held one speaks.
func (r *ClaimReporter) Judged(ctx context.Context, c Claim, v definitions.Verdict) error {
	said := false
	claim, err := r.update(ctx, c, func(s *claimStatus) { said = s.judged(v) })
	if err != nil || claim == nil || claim.GetDeletionTimestamp() == nil || !said {
		return err
	}
	r.event(claim, event.Event{Type: event.TypeWarning, Reason: event.Reason(v.Reason), Message: v.Message})
	return nil
}

// update changes the status of the claim if it is being deleted, and returns the claim if it exists.
func (r *ClaimReporter) update(ctx context.Context, c Claim, change func(*claimStatus)) (*unstructured.Unstructured, error) {
	var found *unstructured.Unstructured
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(c.gvk())
		if err := r.reader.Get(ctx, c.key(), u); err != nil {
			return client.IgnoreNotFound(err)
		}
		found = u
		s, err := statusOf(u)
		if err != nil {
			return err
		}
		change(s)
		if u.GetDeletionTimestamp() == nil || !s.changed {
			return nil
		}
		if err := s.writeTo(u); err != nil {
			return err
		}
		return client.IgnoreNotFound(r.client.Status().Update(ctx, u))
	})
	if kerrors.IsNotFound(err) {
		err = nil
	}
	return found, errors.Wrapf(err, "cannot write the status of the claim %s %s", c.Kind, c.key())
}

// claimStatus is the part of a claim's status that a provider may write.
type claimStatus struct {
	xpv2.ConditionedStatus
	phase string
	// message is what kubectl get shows.
	message string
	changed bool
}

// The phases of all claims agree in these two.
const (
	phaseDeleting        = string(steading.EnvironmentDeleting)
	phaseDeletionBlocked = string(steading.EnvironmentDeletionBlocked)
)

func statusOf(u *unstructured.Unstructured) (*claimStatus, error) {
	s := &claimStatus{}
	s.phase, _, _ = unstructured.NestedString(u.Object, "status", "phase")
	s.message, _, _ = unstructured.NestedString(u.Object, "status", "message")
	err := conditionsFrom(u, &s.ConditionedStatus)
	return s, err
}

// blocked reports whether this was not said before.
func (s *claimStatus) blocked(reason xpv2.ConditionReason, message string) bool {
	want := xpv2.Condition{
		Type: steading.ConditionDeletionBlocked, Status: corev1.ConditionTrue,
		LastTransitionTime: metav1.Now(), Reason: reason, Message: message,
	}
	have := s.GetCondition(want.Type)
	if have.Equal(want) && s.phase == phaseDeletionBlocked && s.message == message {
		return false
	}
	if have.Status == want.Status {
		want.LastTransitionTime = have.LastTransitionTime
	}
	s.SetConditions(want)
	s.phase, s.message, s.changed = phaseDeletionBlocked, message, true
	return !have.Equal(want)
}

// judged reports whether it says now, and did not before, that definitions are not current.
func (s *claimStatus) judged(v definitions.Verdict) bool {
	said := s.GetCondition(steading.ConditionDefinitionsCurrent).Status == corev1.ConditionFalse
	blocks := s.GetCondition(steading.ConditionDeletionBlocked)
	blocked := blocks.Status == corev1.ConditionTrue
	switch {
	case v.Holds() && said && blocked, !v.Holds() && !said:
		return false
	case v.Holds() && !blocked:
		s.blocked(v.Reason, v.Message)
	case !v.Holds() && blocked && (blocks.Reason == steading.ReasonDefinitionsOutdated || blocks.Reason == steading.ReasonDefinitionsNotReady):
		s.deleting()
	}
	c := v.Condition()
	c.LastTransitionTime = metav1.Now()
	s.SetConditions(c)
	s.changed = true
	return v.Holds()
}

func (s *claimStatus) deleting() {
	kept := s.Conditions[:0:0]
	for _, c := range s.Conditions {
		if c.Type != steading.ConditionDeletionBlocked {
			kept = append(kept, c)
		}
	}
	s.changed = s.phase != phaseDeleting || s.message != "" || len(kept) != len(s.Conditions)
	// What was said before is not what it waits for now.
	s.Conditions, s.phase, s.message = kept, phaseDeleting, ""
}

func (s *claimStatus) writeTo(u *unstructured.Unstructured) error {
	if err := conditionsTo(u, s.ConditionedStatus); err != nil {
		return err
	}
	unstructured.RemoveNestedField(u.Object, "status", "message")
	if s.message != "" {
		if err := unstructured.SetNestedField(u.Object, s.message, "status", "message"); err != nil {
			return errors.Wrap(err, "cannot set the message")
		}
	}
	return errors.Wrap(unstructured.SetNestedField(u.Object, s.phase, "status", "phase"), "cannot set the phase")
}
