package instance

import (
	"context"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	kubevirtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/providers/forgejo/child"
)

// children of runners in their job namespaces.
type children struct {
	client client.Client
	// cached reads Jobs and Pods, uncached whatever has to be true now or may not be served.
	cached, uncached client.Reader
}

// state of a runner's child. In a namespace that goes there is none: the right to read it goes with it too.
func (c children) state(ctx context.Context, mg *v1alpha1.RunnerInstance) (child.State, error) {
	var (
		s   child.State
		err error
	)
	if child.KindOf(mg.Spec.ForProvider.Config) == child.VirtualMachine {
		s, err = c.machine(ctx, mg)
	} else {
		s, err = c.job(ctx, mg)
	}
	switch {
	case err != nil && c.namespaceGoing(ctx, mg):
		return child.Gone(), nil
	case err != nil:
		return child.State{}, errors.Wrapf(err, "cannot read what the runner runs in, %s", child.Key(mg))
	}
	if made := mg.Status.AtProvider.Child; made != nil && s.Phase != child.Missing && s.UID != made.UID {
		// Somebody made another of the same name.
		return child.Gone(), nil
	}
	return s, nil
}

func (c children) job(ctx context.Context, mg *v1alpha1.RunnerInstance) (child.State, error) {
	j, err := c.readJob(ctx, mg)
	if err != nil || j == nil {
		return child.Gone(), err
	}
	pods, err := c.pods(ctx, mg, j)
	if err != nil {
		return child.State{}, err
	}
	return child.OfJob(j, pods, mg.Spec.ForProvider.Config.Pod.JobContainer), nil
}

// readJob returns the runner's Job, nil if there is none. The cache may not have one yet that was just made, and so is not
// believed that there is none.
func (c children) readJob(ctx context.Context, mg *v1alpha1.RunnerInstance) (*batchv1.Job, error) {
	j := &batchv1.Job{}
	err := c.cached.Get(ctx, child.Key(mg), j)
	if kerrors.IsNotFound(err) {
		err = c.uncached.Get(ctx, child.Key(mg), j)
	}
	switch {
	case absent(err):
		return nil, nil //nolint:nilnil // Nil is what there is.
	case err != nil:
		return nil, err
	case !child.Ours(mg, j):
		return nil, nil //nolint:nilnil // Somebody else's is none.
	}
	return j, nil
}

func (c children) pods(ctx context.Context, mg *v1alpha1.RunnerInstance, j *batchv1.Job) ([]corev1.Pod, error) {
	l := &corev1.PodList{}
	if err := c.cached.List(ctx, l, client.InNamespace(j.Namespace), client.MatchingLabels{names.LabelRunner: mg.Name}); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(l.Items, func(p corev1.Pod) bool { return !metav1.IsControlledBy(&p, j) }), nil
}

// refusal says why a Job makes no pod, as by a quota: it tells so by an event only. Not being told is no error.
func (c children) refusal(ctx context.Context, mg *v1alpha1.RunnerInstance) string {
	l := &corev1.EventList{}
	err := c.uncached.List(ctx, l, client.InNamespace(mg.Spec.ForProvider.Config.JobNamespace), client.MatchingFields{"involvedObject.name": mg.Name})
	if err != nil {
		return ""
	}
	for _, e := range slices.Backward(l.Items) {
		if e.Reason == "FailedCreate" {
			return e.Message
		}
	}
	return ""
}

// machine reads a VirtualMachine and its instance from the API server, which may not serve the kinds.
func (c children) machine(ctx context.Context, mg *v1alpha1.RunnerInstance) (child.State, error) {
	vm := &kubevirtv1.VirtualMachine{}
	err := c.uncached.Get(ctx, child.Key(mg), vm)
	switch {
	case absent(err):
		return child.Gone(), nil
	case err != nil:
		return child.State{}, err
	case !child.Ours(mg, vm):
		return child.Gone(), nil
	}
	vmi := &kubevirtv1.VirtualMachineInstance{}
	if err := c.uncached.Get(ctx, child.Key(mg), vmi); absent(err) {
		vmi = nil
	} else if err != nil {
		return child.State{}, err
	}
	return child.OfMachine(vm, vmi, mg.Status.AtProvider.StartTime), nil
}

// absent reports whether an error says that there is no such object, or no such kind.
func absent(err error) bool { return kerrors.IsNotFound(err) || meta.IsNoMatchError(err) }

// empty is an object of the kind of a runner's child, by its name.
func empty(mg *v1alpha1.RunnerInstance) client.Object {
	key := child.Key(mg)
	m := metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}
	if child.KindOf(mg.Spec.ForProvider.Config) == child.VirtualMachine {
		return &kubevirtv1.VirtualMachine{ObjectMeta: m}
	}
	return &batchv1.Job{ObjectMeta: m}
}

// stop what runs, and keep the object: a Job is suspended, which deletes its pods, and a machine is halted.
func (c children) stop(ctx context.Context, mg *v1alpha1.RunnerInstance, uid types.UID) error {
	o := empty(mg)
	patch := `{"metadata":{"uid":"` + string(uid) + `"},"spec":{"suspend":true}}`
	if _, vm := o.(*kubevirtv1.VirtualMachine); vm {
		patch = `{"metadata":{"uid":"` + string(uid) + `"},"spec":{"runStrategy":"` + string(kubevirtv1.RunStrategyHalted) + `"}}`
	}
	err := c.client.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(patch)))
	if absent(err) || kerrors.IsConflict(err) {
		// One of another UID is not the runner's.
		return nil
	}
	return errors.Wrapf(err, "cannot stop what the runner ran in, %s", child.Key(mg))
}

// delete the child, with what it made.
func (c children) delete(ctx context.Context, mg *v1alpha1.RunnerInstance) error {
	opts := []client.DeleteOption{client.PropagationPolicy(metav1.DeletePropagationBackground)}
	if made := mg.Status.AtProvider.Child; made != nil {
		opts = append(opts, client.Preconditions{UID: ptr.To(made.UID)})
	}
	err := c.client.Delete(ctx, empty(mg), opts...)
	if absent(err) || kerrors.IsConflict(err) {
		// One of another UID is not the runner's.
		return nil
	}
	return errors.Wrapf(err, "cannot delete what the runner runs in, %s", child.Key(mg))
}

// credentials of the runner, nil if there are none, or somebody else's have their name.
func (c children) credentials(ctx context.Context, mg *v1alpha1.RunnerInstance) (*corev1.Secret, error) {
	s := &corev1.Secret{}
	err := c.uncached.Get(ctx, child.CredentialsKey(mg), s)
	switch {
	case absent(err):
		return nil, nil //nolint:nilnil // Nil is what there is.
	case err != nil:
		return nil, errors.Wrapf(err, "cannot read the runner's credential %s", child.CredentialsKey(mg))
	case !child.Ours(mg, s):
		return nil, nil //nolint:nilnil // Somebody else's are none.
	}
	return s, nil
}

// deleteCredentials of the runner, which have this UID if it is known.
func (c children) deleteCredentials(ctx context.Context, mg *v1alpha1.RunnerInstance, known types.UID) error {
	key := child.CredentialsKey(mg)
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: known}}
	if known != "" {
		err := c.client.Delete(ctx, s, client.Preconditions{UID: &known})
		if !kerrors.IsConflict(err) {
			return errors.Wrapf(client.IgnoreNotFound(err), "cannot delete the runner's credential %s", key)
		}
		// It was made anew since.
	}
	s, err := c.credentials(ctx, mg)
	if err != nil || s == nil {
		return err
	}
	err = client.IgnoreNotFound(c.client.Delete(ctx, s, client.Preconditions{UID: ptr.To(s.UID)}))
	return errors.Wrapf(err, "cannot delete the runner's credential %s", key)
}

// namespaceGoing reports whether the job namespace is gone, or about to: then so is all that is in it, and nobody has a right there.
func (c children) namespaceGoing(ctx context.Context, mg *v1alpha1.RunnerInstance) bool {
	ns := &metav1.PartialObjectMetadata{}
	ns.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := c.uncached.Get(ctx, client.ObjectKey{Name: mg.Spec.ForProvider.Config.JobNamespace}, ns)
	return kerrors.IsNotFound(err) || err == nil && ns.DeletionTimestamp != nil
}
