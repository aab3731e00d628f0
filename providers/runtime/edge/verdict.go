package edge

import (
	"context"
	stderrors "errors"
	"fmt"
	"net"
	"net/url"
	"time"

	xpevent "github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
	"github.com/steading-dev/steading/providers/runtime/target"
)

// A problem is why something does not stand.
type problem struct {
	reason  xpv2.ConditionReason
	message string
}

func problemf(reason xpv2.ConditionReason, format string, args ...any) *problem {
	return &problem{reason, fmt.Sprintf(format, args...)}
}

// Problems that pass. Each change of a status costs the environment's composite a run, so that what is on its way says no
// more than that.
var (
	exposing = &problem{steading.ReasonExposing, "names and routes are being made"}
	issuing  = &problem{steading.ReasonIssuing, "the certificate is being issued"}
)

// grace is how long others may take for what they do until it is said what they have not done.
const grace = 15 * time.Second

// fresh reports whether an object was made so lately that nobody need have seen it, and has it looked at again when that
// is over.
func (e *external) fresh(ctx context.Context, obj client.Object) bool {
	left := obj.GetCreationTimestamp().Add(grace).Sub(e.o.Clock.Now())
	if left > 0 {
		kit.After(ctx, left)
	}
	return left > 0
}

// first problem that there is, nil if there is none.
func first(ps ...*problem) *problem {
	for _, p := range ps {
		if p != nil {
			return p
		}
	}
	return nil
}

// verdict is false for the problem, or true.
func (p *problem) verdict(good xpv2.ConditionReason) v1alpha1.Verdict {
	if p == nil {
		return v1alpha1.Verdict{OK: true, Reason: string(good)}
	}
	return v1alpha1.Verdict{Reason: string(p.reason), Message: kit.CleanMessage(p.message)}
}

// asProblem tells what is wrong with the world from what is wrong with the provider: an object that is not ours, and a
// cluster that does not answer, are for the claim's owner to read. Other errors stay errors, and are retried.
func asProblem(err error) (*problem, error) {
	var foreign *kit.NotOursError
	var unreachable *target.UnreachableError
	var failed *url.Error
	var network net.Error
	switch {
	case err == nil:
		return nil, nil //nolint:nilnil // There is no problem.
	case stderrors.As(err, &foreign):
		return &problem{steading.ReasonNotOurs, err.Error()}, nil
	case stderrors.As(err, &unreachable), stderrors.As(err, &failed), stderrors.As(err, &network):
		return &problem{target.ReasonOf(err), err.Error()}, nil
	default:
		return nil, err
	}
}

// tell the verdicts: in the status, in the condition Ready, and where they are new in an event on the claim.
func (e *external) tell(ctx context.Context, mg *v1alpha1.Edge, now v1alpha1.EdgeObservation, certificates bool) {
	before := mg.Status.AtProvider
	mg.Status.AtProvider = now
	claim := claimOf(mg)
	for _, v := range []struct {
		what        string
		before, now v1alpha1.Verdict
		good        string
	}{
		{"exposed", before.Exposed, now.Exposed, "services are exposed"},
		{"certificate", before.Certificate, now.Certificate, "the certificate is issued"},
	} {
		if v.before.Reason == v.now.Reason {
			continue
		}
		verdicts.WithLabelValues(v.what, v.now.Reason).Inc()
		switch {
		case v.now.OK:
			e.o.Claims.Event(ctx, claim, xpevent.Event{Type: xpevent.TypeNormal, Reason: xpevent.Reason(v.now.Reason), Message: v.good})
			sinceCreation.WithLabelValues(v.what).Observe(e.o.Clock.Since(mg.CreationTimestamp.Time).Seconds())
		case !transient[v.now.Reason]:
			e.o.Claims.Event(ctx, claim, xpevent.Event{Type: xpevent.TypeWarning, Reason: xpevent.Reason(v.now.Reason), Message: v.now.Message})
		}
	}
	switch {
	case !now.Exposed.OK:
		kit.MarkNotReady(mg, xpv2.ConditionReason(now.Exposed.Reason), now.Exposed.Message)
	case !now.Certificate.OK && certificates:
		kit.MarkNotReady(mg, xpv2.ConditionReason(now.Certificate.Reason), now.Certificate.Message)
	default:
		kit.MarkReady(mg)
	}
}

// transient reasons are part of the way, and not worth an event.
var transient = map[string]bool{
	string(steading.ReasonExposing): true, string(steading.ReasonIssuing): true, string(steading.ReasonNoCertificate): true,
}
