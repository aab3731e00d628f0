package boundary

import (
	"context"
	"fmt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	crossplane "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
	"github.com/steading-dev/steading/providers/runtime/blockers"
	"github.com/steading-dev/steading/providers/runtime/target"
)

// fieldManager of what a Boundary applies.
const fieldManager = "steading-runtime"

// external is one Boundary's cluster.
type external struct {
	o kit.Options
	// system reads steading-system, uncached.
	system   client.Reader
	youngers kit.Youngers

	// The cluster's.
	client   client.Client
	cache    client.Reader
	metadata metadata.Interface
	mapper   blockers.ResourceMapper

	// Seen by Observe, for what follows it in the same pass.
	namespace *corev1.Namespace
	pull      *corev1.Secret
	waiting   bool
}

var _ managed.TypedExternalClient[*v1alpha1.Boundary] = &external{}

// Observe compares the namespace and what is in it with what they should be. A Boundary always exists, until it is deleted:
// making it is repairing what is missing, and telling them apart would cost every environment two more writes.
func (e *external) Observe(ctx context.Context, mg *v1alpha1.Boundary) (managed.ExternalObservation, error) {
	ns, err := e.find(ctx, mg.Spec.ForProvider.Namespace)
	if crossplane.WasDeleted(mg) {
		return e.observeDeletion(ctx, mg, ns, err)
	}
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	if ns == nil {
		mg.Status.AtProvider = v1alpha1.BoundaryObservation{}
		mg.SetConditions(xpv2.Creating().WithObservedGeneration(mg.GetGeneration()))
		return managed.ExternalObservation{ResourceExists: true}, nil
	}
	if refused, err := e.refused(ctx, mg, ns); refused || err != nil {
		// Not ours, or about to go: nothing to do until that changes, which is watched.
		return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, err
	}
	e.namespace = ns
	mg.Status.AtProvider.Namespace, mg.Status.AtProvider.Blockers = ns.Name, nil
	return e.observeContents(ctx, mg)
}

// find returns the namespace, nil if there is none.
func (e *external) find(ctx context.Context, name string) (*corev1.Namespace, error) {
	ns := &corev1.Namespace{}
	err := e.client.Get(ctx, client.ObjectKey{Name: name}, ns)
	if kerrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // Nil is what there is.
	}
	return ns, errors.Wrapf(err, "cannot read namespace %s", name)
}

// refused says why a namespace that exists cannot be used.
func (e *external) refused(ctx context.Context, mg *v1alpha1.Boundary, ns *corev1.Namespace) (bool, error) {
	p := mg.Spec.ForProvider
	err := e.o.Claims.Ours(ctx, ns, p.Identity, kit.EnvironmentClaim(p.Claim))
	var foreign *kit.NotOursError
	switch {
	case ns.DeletionTimestamp != nil && err == nil:
		kit.MarkNotReady(mg, steading.ReasonNamespaceBlocked, fmt.Sprintf("namespace %s is being deleted, though not by Steading; it is made anew once it is gone", ns.Name))
	case ns.DeletionTimestamp != nil && errors.As(err, &foreign) && foreign.Found != nil && sameEnvironment(*foreign.Found, p.Identity):
		f := blockers.Find(ctx, ns, e.metadata, e.mapper, e.o.Clock.Now())
		kit.MarkNotReady(mg, steading.ReasonNamespaceBlocked, predecessor(ns.Name, f))
		e.lookAgain(ctx, f)
	case errors.As(err, &foreign):
		kit.MarkNotReady(mg, steading.ReasonForeignNamespace, err.Error())
	default:
		return false, err
	}
	mg.Status.AtProvider.Namespace = ""
	return true, nil
}

func sameEnvironment(a, b v1alpha1.Identity) bool {
	return a.Tenant == b.Tenant && a.Environment == b.Environment
}

func predecessor(namespace string, f blockers.Finding) string {
	msg := fmt.Sprintf("namespace %s of an environment of the same name is still being deleted; this one is made once it is gone", namespace)
	if f.Blocked {
		msg += ". " + f.Message(namespace)
	}
	return msg
}

func (e *external) observeContents(ctx context.Context, mg *v1alpha1.Boundary) (managed.ExternalObservation, error) {
	p := mg.Spec.ForProvider
	pull, err := e.sourceOfPullSecret(ctx, p)
	if err != nil {
		kit.MarkNotReady(mg, xpv2.ReasonUnavailable, err.Error())
		return managed.ExternalObservation{}, err
	}
	e.pull = pull
	todo, err := e.todo(ctx, p)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	if len(todo) > 0 {
		if !kit.IsReady(mg) {
			mg.SetConditions(xpv2.Creating().WithObservedGeneration(mg.GetGeneration()))
		}
		return managed.ExternalObservation{ResourceExists: true}, nil
	}
	from := e.cache
	if c := mg.Status.AtProvider.Quota; c == nil || c.Generation != mg.GetGeneration() {
		// The cache may have what there was before the caps changed, and changed back.
		from = e.client
	}
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, e.markReady(ctx, mg, from)
}

// markReady once the quota is counted: until then it refuses all that it limits. Its being counted wakes us.
func (e *external) markReady(ctx context.Context, mg *v1alpha1.Boundary, r client.Reader) error {
	mg.Status.AtProvider.Namespace = mg.Spec.ForProvider.Namespace
	q := &corev1.ResourceQuota{}
	if err := r.Get(ctx, client.ObjectKey{Namespace: mg.Spec.ForProvider.Namespace, Name: names.Quota}, q); err != nil {
		return errors.Wrap(err, "cannot read the quota")
	}
	counted := equality.Semantic.DeepEqual(q.Spec.Hard, q.Status.Hard)
	if counted && equality.Semantic.DeepEqual(q.Spec.Hard, quota(mg.Spec.ForProvider).Spec.Hard) {
		mg.Status.AtProvider.Quota = &v1alpha1.CountedQuota{Generation: mg.GetGeneration(), InUse: beyond(q)}
	}
	if !counted && !kit.IsReady(mg) {
		mg.SetConditions(xpv2.Creating().WithObservedGeneration(mg.GetGeneration()))
		return nil
	}
	kit.MarkReady(mg)
	return nil
}

// beyond is what is in use of those resources of which more is in use than the quota has, nil if there is none. A quota that
// is lowered takes nothing away.
func beyond(q *corev1.ResourceQuota) *steading.Resources {
	use, found := steading.MustResources("0", "0", "0"), false
	for name, to := range map[corev1.ResourceName]*resource.Quantity{
		corev1.ResourceLimitsCPU: &use.CPU, corev1.ResourceLimitsMemory: &use.Memory, corev1.ResourceRequestsStorage: &use.Storage,
	} {
		if used := q.Status.Used[name]; used.Cmp(q.Status.Hard[name]) > 0 {
			*to, found = used, true
		}
	}
	if !found {
		return nil
	}
	return use
}

// sourceOfPullSecret reads the Secret that the tenant's images are pulled with, nil if there is none.
func (e *external) sourceOfPullSecret(ctx context.Context, p v1alpha1.BoundaryParameters) (*corev1.Secret, error) {
	if p.PullSecretRef == nil {
		return nil, nil //nolint:nilnil // Nil is what there is.
	}
	s := &corev1.Secret{}
	key := client.ObjectKey{Namespace: names.SystemNamespace, Name: p.PullSecretRef.Name}
	if err := e.system.Get(ctx, key, s); err != nil {
		return nil, errors.Wrapf(err, "cannot read the tenant's image pull Secret %s; create it, or change spec.registry.pullSecretRef of the Tenant", key)
	}
	if s.Type != corev1.SecretTypeDockerConfigJson {
		return nil, errors.Errorf("the tenant's image pull Secret %s is of type %s and has to be of type %s", key, s.Type, corev1.SecretTypeDockerConfigJson)
	}
	return s, nil
}

// A change to be made to the cluster.
type change struct {
	want client.Object
	// remove it: for good when there is nothing to want, or to make it anew.
	remove client.Object
}

// todo is what differs from what should be.
func (e *external) todo(ctx context.Context, p v1alpha1.BoundaryParameters) ([]change, error) {
	var todo []change
	if ns := namespace(p); drifted(ns, e.namespace) {
		todo = append(todo, change{want: ns})
	}
	for _, want := range contents(p, e.pull) {
		have, err := e.read(ctx, want)
		if err != nil {
			return nil, err
		}
		switch {
		case have == nil:
			todo = append(todo, change{want: want})
		case immutable(want, have):
			todo = append(todo, change{want: want, remove: have})
		case drifted(want, have):
			todo = append(todo, change{want: want})
		}
	}
	surplus, err := e.surplus(ctx, p)
	return append(todo, surplus...), err
}

// read returns what exists of the object, nil if it does not. Secrets are not watched, and read from the server.
func (e *external) read(ctx context.Context, want client.Object) (client.Object, error) {
	have, ok := want.DeepCopyObject().(client.Object)
	if !ok {
		return nil, errors.Errorf("%T is not an object", want)
	}
	from := e.cache
	if _, secret := want.(*corev1.Secret); secret {
		from = e.client
	}
	err := from.Get(ctx, client.ObjectKeyFromObject(want), have)
	if kerrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // Nil is what there is.
	}
	return have, errors.Wrapf(err, "cannot read %s %s", want.GetObjectKind().GroupVersionKind().Kind, client.ObjectKeyFromObject(want))
}

// surplus is what was wanted once: the owners' binding of a tenant without owners, the pull Secret of one without registry.
func (e *external) surplus(ctx context.Context, p v1alpha1.BoundaryParameters) ([]change, error) {
	var gone []client.Object
	if len(p.Owners) == 0 {
		gone = append(gone, ownersBinding(p))
	}
	if p.PullSecretRef == nil {
		gone = append(gone, pullSecret(p, &corev1.Secret{}))
	}
	var todo []change
	for _, obj := range gone {
		have, err := e.read(ctx, obj)
		if err != nil {
			return nil, err
		}
		if have != nil {
			todo = append(todo, change{remove: have})
		}
	}
	return todo, nil
}

// Create is Update.
func (e *external) Create(ctx context.Context, mg *v1alpha1.Boundary) (managed.ExternalCreation, error) {
	_, err := e.Update(ctx, mg)
	return managed.ExternalCreation{}, err
}

// Update makes the namespace and what is in it, or repairs what Observe found to differ.
func (e *external) Update(ctx context.Context, mg *v1alpha1.Boundary) (managed.ExternalUpdate, error) {
	if e.namespace != nil {
		return managed.ExternalUpdate{}, e.repair(ctx, mg.Spec.ForProvider)
	}
	if err := e.make(ctx, mg.Spec.ForProvider); err != nil {
		return managed.ExternalUpdate{}, err
	}
	// Most often it stands by now, which is told at once. The cache is no witness yet.
	return managed.ExternalUpdate{}, e.markReady(ctx, mg, e.client)
}

// make the namespace, which must not exist, and what is in it.
func (e *external) make(ctx context.Context, p v1alpha1.BoundaryParameters) error {
	ns := namespace(p)
	// Not applied: that would take over a namespace that somebody made since it was looked for.
	if err := e.client.Create(ctx, ns, client.FieldOwner(fieldManager)); err != nil {
		return errors.Wrapf(err, "cannot create namespace %s", p.Namespace)
	}
	e.namespace = ns
	pull, err := e.sourceOfPullSecret(ctx, p)
	if err != nil {
		return err
	}
	for _, obj := range contents(p, pull) {
		if err := e.apply(ctx, obj); err != nil {
			return err
		}
	}
	return nil
}

func (e *external) repair(ctx context.Context, p v1alpha1.BoundaryParameters) error {
	todo, err := e.todo(ctx, p)
	if err != nil {
		return err
	}
	for _, c := range todo {
		if c.remove != nil {
			if err := client.IgnoreNotFound(e.client.Delete(ctx, c.remove)); err != nil {
				return errors.Wrapf(err, "cannot delete %s %s", c.remove.GetObjectKind().GroupVersionKind().Kind, client.ObjectKeyFromObject(c.remove))
			}
		}
		if c.want != nil {
			if err := e.apply(ctx, c.want); err != nil {
				return err
			}
		}
	}
	return nil
}

// apply makes an object as it should be, whoever changed it.
func (e *external) apply(ctx context.Context, obj client.Object) error {
	if obj.GetNamespace() == "" {
		// The namespace that was looked at, not one that was made in its place since.
		obj.SetUID(e.namespace.UID)
	}
	return kit.Apply(ctx, e.client, obj, fieldManager)
}

// Delete asks for the namespace to be deleted, once everything that goes first is gone.
func (e *external) Delete(ctx context.Context, mg *v1alpha1.Boundary) (managed.ExternalDelete, error) {
	ns := e.namespace
	if ns == nil || ns.DeletionTimestamp != nil {
		return managed.ExternalDelete{}, nil
	}
	if e.waiting {
		// Until the release is gone it needs the account that it is uninstalled with.
		return managed.ExternalDelete{}, e.repair(ctx, mg.Spec.ForProvider)
	}
	err := e.remove(ctx, ns)
	if err != nil {
		// Observe goes on from there.
		kit.MarkDeletionBlocked(mg, target.ReasonOf(err), err.Error())
	}
	return managed.ExternalDelete{}, err
}

func (e *external) remove(ctx context.Context, ns *corev1.Namespace) error {
	err := e.client.Delete(ctx, ns, client.Preconditions{UID: ptrTo(ns.UID)}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	return errors.Wrapf(client.IgnoreNotFound(err), "cannot delete namespace %s", ns.Name)
}

// Disconnect does nothing: targets outlive a reconcile.
func (e *external) Disconnect(context.Context) error { return nil }

func ptrTo(uid types.UID) *types.UID { return &uid }
