package release

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	crossplane "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	helm "helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
	"github.com/steading-dev/steading/providers/runtime/usage"
)

// external is one Release's cluster.
type external struct {
	o             kit.Options
	operations    *operations
	usage         usage.Log
	rollbackAfter time.Duration
	// system reads steading-system, uncached.
	system client.Reader
	// boundaries are read from the cache: their changes wake us.
	boundaries client.Reader

	// The cluster's.
	client client.Reader // uncached
	cache  client.Reader
	helm   helmOf
	source source
	// values that a component's claim refers to, on the control plane.
	values valuesSource

	// judged by Observe, carried out by Update.
	verdict verdict
	history history
	want    string
}

// helmOf is what is done and asked on the release's cluster as the namespace's deployer.
type helmOf interface {
	history(ctx context.Context, p v1alpha1.ReleaseParameters) (history, error)
	engine(ctx context.Context, p v1alpha1.ReleaseParameters) (*helmEngine, error)
	refusal(ctx context.Context, p v1alpha1.ReleaseParameters, of types.UID, since time.Time) (string, error)
}

var _ managed.TypedExternalClient[*v1alpha1.Release] = &external{}

func keyOf(mg *v1alpha1.Release) types.NamespacedName {
	return types.NamespacedName{Namespace: mg.Namespace, Name: mg.Name}
}

// Observe comes to a verdict on the release. A Release always exists, until it is deleted: making it and changing it is one
// and the same operation, and telling them apart would cost every environment two more writes.
func (e *external) Observe(ctx context.Context, mg *v1alpha1.Release) (managed.ExternalObservation, error) {
	ns, err := e.namespace(ctx, mg.Spec.ForProvider.Namespace)
	if crossplane.WasDeleted(mg) {
		return e.observeDeletion(ctx, mg, ns, err)
	}
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	s, err := e.look(ctx, mg, ns)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	v := s.judge()
	e.verdict, e.history, e.want = v, s.history, s.want()
	if !v.quiet {
		if err := e.report(ctx, mg, s, v); err != nil {
			return managed.ExternalObservation{}, err
		}
	}
	if v.again > 0 {
		kit.After(ctx, v.again)
	}
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: v.act == nothing}, nil
}

// namespace of the release, nil if there is none.
func (e *external) namespace(ctx context.Context, name string) (*corev1.Namespace, error) {
	ns := &corev1.Namespace{}
	err := e.client.Get(ctx, client.ObjectKey{Name: name}, ns)
	if kerrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // Nil is what there is.
	}
	return ns, errors.Wrapf(err, "cannot read namespace %s", name)
}

// look at everything that a verdict is made of.
func (e *external) look(ctx context.Context, mg *v1alpha1.Release, ns *corev1.Namespace) (sight, error) {
	p := mg.Spec.ForProvider
	s := sight{
		parameters:    p,
		status:        mg.Status.AtProvider,
		last:          e.operations.of(keyOf(mg)),
		rollbackAfter: e.rollbackAfter,
		now:           e.o.Clock.Now(),
		made:          mg.CreationTimestamp.Time,
	}
	var err error
	if s.usable, err = e.usable(ctx, mg, ns); err != nil {
		return s, err
	}
	if s.from, err = e.values.versions(ctx, mg); err != nil {
		return s, err
	}
	if !s.usable || (s.last != nil && s.last.running) {
		// Helm's records change under an operation in flight, and mean nothing before its end.
		return s, nil
	}
	if s.history, err = e.helm.history(ctx, p); err != nil {
		return s, err
	}
	if last := s.history.last(); last != nil {
		if err := e.ours(ctx, p, *last); err != nil {
			if !errors.As(err, new(*kit.NotOursError)) {
				return s, err
			}
			s.foreign = err
			return s, nil
		}
		if last.status == helm.StatusDeployed {
			s.rollout, err = e.rollout(ctx, mg, *last, s.now)
		}
	}
	return s, err
}

// usable reports whether the namespace can be deployed into. The first time that is when its Boundary says so: a namespace
// whose quota is not counted yet refuses all that it limits.
func (e *external) usable(ctx context.Context, mg *v1alpha1.Release, ns *corev1.Namespace) (bool, error) {
	if ns == nil || ns.DeletionTimestamp != nil || !kit.Stamped(ns, mg.Spec.ForProvider.Identity) {
		return false, nil
	}
	if mg.Status.AtProvider.Deployed != nil {
		return true, nil
	}
	b := &v1alpha1.Boundary{}
	id := mg.Spec.ForProvider.Identity
	err := e.boundaries.Get(ctx, client.ObjectKey{Namespace: mg.Namespace, Name: names.Environment(id.Tenant, id.Environment)}, b)
	return kit.IsReady(b), errors.Wrap(client.IgnoreNotFound(err), "cannot read the environment's Boundary")
}

// ours returns a [kit.NotOursError] for a Helm release that has our name and not our identity.
func (e *external) ours(ctx context.Context, p v1alpha1.ReleaseParameters, last record) error {
	found := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{Kind: "Helm release"},
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.ReleaseName, Labels: labels(last.identity)},
	}
	return e.o.Claims.Ours(ctx, found, p.Identity, kit.EnvironmentClaim(p.Claim))
}

// rollout of the last revision. Until it is known to serve, the server is asked: a cache may not have heard of it yet, and
// still see the one before, which serves.
func (e *external) rollout(ctx context.Context, mg *v1alpha1.Release, last record, now time.Time) (*rollout, error) {
	power, from := mg.Spec.ForProvider.Power, []client.Reader{e.client}
	if d := mg.Status.AtProvider.Deployed; d != nil {
		if last.failed != "" {
			power = d.Power
		}
		if last.serves(d) {
			from = []client.Reader{e.cache, e.client}
		}
	}
	var (
		w   workloads
		r   rollout
		err error
	)
	for _, reader := range from {
		if w, err = readWorkloads(ctx, reader, mg.Spec.ForProvider); err != nil {
			return nil, err
		}
		if r, err = w.rolledOut(last.workloads, power, now); err != nil {
			return nil, err
		}
		if !r.missing {
			break
		}
		// That the cache knows of nothing does not mean that there is nothing.
	}
	if !r.done && r.reason == steading.ReasonRollingOut {
		r, err = e.starved(ctx, mg.Spec.ForProvider, w, last.created, r)
	}
	return &r, err
}

// report the verdict in the Release's status.
func (e *external) report(ctx context.Context, mg *v1alpha1.Release, s sight, v verdict) error {
	st := &mg.Status.AtProvider
	if last := s.history.last(); last != nil {
		st.Revision = last.revision
	}
	if v.served {
		if err := e.served(ctx, mg, *s.history.last(), v); err != nil {
			return err
		}
	}
	if err := e.reportImage(ctx, mg, s); err != nil {
		return err
	}
	if !s.usable && s.status.Deployed == nil {
		st.Revision = 0
	}
	st.State, st.Reason, st.Message, st.FailedRequest = v.state, string(v.reason), v.message, v.failed
	if v.state == v1alpha1.ReleaseDeployed {
		kit.MarkReady(mg)
		return nil
	}
	kit.MarkNotReady(mg, v.reason, v.message)
	return nil
}

// served notes what serves, and records as usage what has changed by that.
func (e *external) served(ctx context.Context, mg *v1alpha1.Release, last record, v verdict) error {
	p, st := mg.Spec.ForProvider, &mg.Status.AtProvider
	if v.state != v1alpha1.ReleaseDeployed {
		// What was rolled back to is what was deployed before.
		if st.Deployed != nil {
			st.Deployed.Revision, st.Deployed.Made = last.revision, last.made()
		}
		return nil
	}
	now := v1alpha1.Deployed{Version: versionOf(p), Power: p.Power, Caps: p.Caps, Revision: last.revision, Made: last.made()}
	if equality.Semantic.DeepEqual(st.Deployed, &now) {
		return nil
	}
	for _, t := range e.transitions(p, st.Deployed, now) {
		err := e.usage.Record(ctx, usage.Entry{
			Identity: p.Identity, Transition: t, Revision: last.revision, Made: last.created, Time: e.o.Clock.Now(),
			Version: p.Version, Context: p.Context, Caps: p.Caps.DeepCopy(),
		})
		if err != nil {
			return err
		}
	}
	if st.Deployed == nil && p.Component == nil {
		e.readyAtLast(ctx, p)
	}
	st.Deployed = &now
	return nil
}

// readyAtLast measures how long an environment took from its claim until it serves for the first time. It is not measured
// where the claim cannot be read.
func (e *external) readyAtLast(ctx context.Context, p v1alpha1.ReleaseParameters) {
	claim, err := e.o.Claims.Metadata(ctx, kit.EnvironmentClaim(p.Claim))
	if err == nil && claim != nil {
		readySeconds.Observe(e.o.Clock.Since(claim.CreationTimestamp.Time).Seconds())
	}
}

// transitions of the environment. They are the runtime's.
func (e *external) transitions(p v1alpha1.ReleaseParameters, before *v1alpha1.Deployed, now v1alpha1.Deployed) []v1alpha1.Transition {
	if p.Component != nil {
		return nil
	}
	return transitions(before, now)
}

// transitions from what served before to what serves now.
func transitions(before *v1alpha1.Deployed, now v1alpha1.Deployed) []v1alpha1.Transition {
	var ts []v1alpha1.Transition
	power := steading.PowerRunning
	if before == nil || before.Version != now.Version || !before.Caps.Equal(now.Caps) {
		ts = append(ts, v1alpha1.TransitionProvisioned)
	}
	if before != nil {
		power = before.Power
	}
	switch {
	case power == now.Power:
	case now.Power == steading.PowerStopped:
		ts = append(ts, v1alpha1.TransitionStopped)
	default:
		ts = append(ts, v1alpha1.TransitionStarted)
	}
	return ts
}

// reportImage says which image was chosen for the version asked for: by the last operation, or else as Helm's record has it.
func (e *external) reportImage(ctx context.Context, mg *v1alpha1.Release, s sight) error {
	p, st := mg.Spec.ForProvider, &mg.Status.AtProvider
	if p.Component != nil {
		return nil
	}
	if s.last != nil && stands(s.last.image, p) {
		st.Image = s.last.image
	}
	if stands(st.Image, p) {
		return nil
	}
	last := s.history.last()
	if last == nil || last.request != s.want() || last.choice == "" || (s.last != nil && s.last.running) {
		st.Image = nil
		return nil
	}
	h, err := e.helm.engine(ctx, p)
	if err != nil {
		return err
	}
	ref, err := h.imageOf(last.revision)
	if err != nil {
		return err
	}
	st.Image = &steading.ChosenImage{Ref: ref, Choice: last.choice, Reason: last.reason}
	return nil
}

// Create is Update.
func (e *external) Create(ctx context.Context, mg *v1alpha1.Release) (managed.ExternalCreation, error) {
	_, err := e.Update(ctx, mg)
	return managed.ExternalCreation{}, err
}

// Update begins the operation that the verdict asks for. It does not wait for it, unless nothing but Helm's records changes.
func (e *external) Update(ctx context.Context, mg *v1alpha1.Release) (managed.ExternalUpdate, error) {
	p, want := *mg.Spec.ForProvider.DeepCopy(), e.want
	switch e.verdict.act {
	case nothing:
	case supersede:
		h, err := e.helm.engine(ctx, p)
		if err != nil {
			return managed.ExternalUpdate{}, err
		}
		return managed.ExternalUpdate{}, h.supersede(e.history.stale())
	case deploy:
		image := mg.Status.AtProvider.Image.DeepCopy()
		e.operations.begin(keyOf(mg), deploying, want, func(ctx context.Context) (*steading.ChosenImage, error) { //nolint:contextcheck // It outlives the reconcile.
			if p.Component != nil {
				return nil, e.deployComponent(ctx, p, want)
			}
			return e.deploy(ctx, p, image)
		})
	case rollback:
		to, why := *e.history.get(e.verdict.to), e.verdict.message
		e.operations.begin(keyOf(mg), rollingBack, want, func(ctx context.Context) (*steading.ChosenImage, error) { //nolint:contextcheck // It outlives the reconcile.
			return nil, e.rollback(ctx, p, want, to, why)
		})
	}
	return managed.ExternalUpdate{}, nil
}

// deploy what is asked for, with the image that was chosen for it before if that still stands.
func (e *external) deploy(ctx context.Context, p v1alpha1.ReleaseParameters, image *steading.ChosenImage) (*steading.ChosenImage, error) {
	if !stands(image, p) {
		var err error
		if image, err = e.source.image(ctx, p); err != nil {
			return nil, err
		}
	}
	vs, err := values(p, image.Ref)
	if err != nil {
		return image, err
	}
	h, err := e.helm.engine(ctx, p)
	if err != nil {
		return image, err
	}
	l := labels(p.Identity)
	l[labelRequest], l[labelFailed] = digest(p), unset
	l[labelChoice], l[labelReason] = string(image.Choice), image.Reason
	return image, h.deploy(ctx, deployment{
		chart: e.source.chart(ctx, p), values: vs, labels: l,
		description: fmt.Sprintf("version %s, %s", p.Version, p.Power),
	})
}

func (e *external) rollback(ctx context.Context, p v1alpha1.ReleaseParameters, want string, to record, why string) error {
	if p.Component != nil {
		p.Power = to.power
	}
	h, err := e.helm.engine(ctx, p)
	if err != nil {
		return err
	}
	l := labels(p.Identity)
	l[labelRequest], l[labelFailed] = to.request, want
	l[labelChoice], l[labelReason], l[labelWorkloads] = string(to.choice), to.reason, strconv.Itoa(to.workloads)
	if p.Component == nil {
		return h.rollback(to.revision, l, why)
	}
	delete(l, labelChoice)
	delete(l, labelReason)
	l[labelPower] = string(to.power)
	if err := h.rollback(to.revision, l, why); err != nil {
		// The values of that revision are not known here.
		return &redactedError{msg: fmt.Sprintf("cannot go back to revision %d; Helm's error is withheld, since it may quote values", to.revision), err: err}
	}
	return nil
}

// Delete begins to uninstall the release. It does not wait for it.
func (e *external) Delete(_ context.Context, mg *v1alpha1.Release) (managed.ExternalDelete, error) {
	if !e.verdict.uninstall {
		return managed.ExternalDelete{}, nil
	}
	p := *mg.Spec.ForProvider.DeepCopy()
	e.operations.begin(keyOf(mg), uninstalling, "", func(ctx context.Context) (*steading.ChosenImage, error) { //nolint:contextcheck // It outlives the reconcile.
		h, err := e.helm.engine(ctx, p)
		if err != nil {
			return nil, err
		}
		return nil, h.uninstall()
	})
	return managed.ExternalDelete{}, nil
}

// Disconnect does nothing: targets outlive a reconcile.
func (e *external) Disconnect(context.Context) error { return nil }
