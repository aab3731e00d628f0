package pool

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
)

// gate says why the pool makes no runners, and the minimum that counts.
func (p *pass) gate(ctx context.Context, config *forgejov1.RunnerConfig, id LookID) (minimum int, g *Gate) {
	settings := p.runner.Spec.ForProvider.Settings
	minimum, err := minimumAt(settings, p.now)
	switch {
	case settings.Suspend:
		return minimum, gateOf(settings, p.tally, p.now)
	case err != nil:
		return minimum, refusal(steading.ReasonScheduleRefused, err)
	case config == nil:
		return minimum, &Gate{Reason: steading.ReasonRunnerImageMissing, Message: "no image holds the runner's program: set spec.pod.runnerImage, or ask the operator to set spec.runnerImage of the ClusterProviderConfig"}
	}
	if g := p.lacking(ctx, *config); g != nil {
		return minimum, g
	}
	if g := p.stand(ctx, *config, id); g != nil {
		return minimum, g
	}
	return minimum, gateOf(settings, p.tally, p.now)
}

func refusal(reason xpv2.ConditionReason, err error) *Gate {
	return &Gate{Reason: reason, Message: kit.CleanMessage(err.Error())}
}

// stand on the job namespace: what was found good is looked at again with every look at the server, what was not every time.
func (p *pass) stand(ctx context.Context, config forgejov1.RunnerConfig, id LookID) *Gate {
	g := &p.memory.ground
	if g.known && g.gate == nil && g.look == id && g.generation == p.runner.Generation {
		return nil
	}
	*g = ground{look: id, generation: p.runner.Generation, known: true, gate: p.survey(ctx, config)}
	return g.gate
}

// survey the job namespace, and what would run there.
func (p *pass) survey(ctx context.Context, config forgejov1.RunnerConfig) *Gate {
	if err := p.guard.Ensure(ctx, p.runner); err != nil {
		return refusal(reasonOf(err), err)
	}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := p.client.Get(ctx, client.ObjectKey{Name: config.JobNamespace}, namespace); err != nil {
		return refusal(steading.ReasonJobNamespaceRefused, errors.Wrapf(err, "cannot read the job namespace %s", config.JobNamespace))
	}
	if err := p.check(config, namespace.Labels); err != nil {
		return refusal(steading.ReasonTemplateRefused, err)
	}
	return p.tried(ctx)
}

// again is when a pool tries again what it could not: a right that was just given takes a moment to be known.
const again = 5 * time.Second

// tried is what a runner runs in, once for each change of the settings: what is wrong with the template is known before anything
// is registered.
func (p *pass) tried(ctx context.Context) *Gate {
	if p.memory.taken == p.runner.Generation {
		return nil
	}
	i := p.instance(Want{})
	i.Name = names.RunnerInstance(p.key.Name, "trial")
	taken, err := p.try(ctx, i)
	if err != nil {
		p.again = again
		return refusal(reasonOf(err), err)
	}
	if taken {
		p.memory.taken = p.runner.Generation
	}
	return nil
}

// reasonOf an error of the guard, or of the trial.
func reasonOf(err error) xpv2.ConditionReason {
	var reasoned interface {
		error
		Reason() xpv2.ConditionReason
	}
	if errors.As(err, &reasoned) {
		return reasoned.Reason()
	}
	return steading.ReasonGuardRailsNotWritten
}
