package pool

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	kmeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/providers/forgejo/server"
)

// sweeping the job namespace is done this often. A runner cleans up behind itself: what a sweep finds is of a record that was
// taken away without it.
const sweeping = 10 * time.Minute

// swept kinds of the job namespace. Of a judged runner the credential goes, and the rest is history.
var swept = []schema.GroupVersionKind{
	batchv1.SchemeGroupVersion.WithKind("Job"),
	{Group: "kubevirt.io", Version: "v1", Kind: "VirtualMachine"},
	corev1.SchemeGroupVersion.WithKind("Secret"),
}

// sweep what is this pool's and no record accounts for: registrations by each look, and now and then what is in the job
// namespaces. What cannot be taken away keeps nothing else.
func (p *pass) sweep(ctx context.Context) error {
	var errs []error
	look, id := p.look()
	if look != nil && p.memory.swept.look != id {
		err := p.sweepRegistrations(ctx, look)
		if err == nil {
			p.memory.swept.look = id
		}
		errs = append(errs, err)
	}
	if p.now.Sub(p.memory.swept.children) >= sweeping {
		err := p.sweepNamespaces(ctx)
		if err == nil {
			p.memory.swept.children = p.now
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// sweepNamespaces in which something of the pool may be, and forget those where nothing is any more.
func (p *pass) sweepNamespaces(ctx context.Context) error {
	var errs []error
	for _, namespace := range p.namespaces() {
		left, err := p.sweepNamespace(ctx, namespace)
		if err == nil && left == 0 && !p.uses(namespace) {
			delete(p.memory.namespaces, namespace)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// noteNamespaces in which something of the pool may be: what the status says, where its runners are, and where they are made.
func (p *pass) noteNamespaces() {
	if p.memory.namespaces == nil {
		p.memory.namespaces = map[string]bool{}
		for _, n := range p.runner.Status.Namespaces {
			p.memory.namespaces[n] = true
		}
	}
	for n := range p.instances {
		p.memory.namespaces[p.instances[n].Spec.ForProvider.Config.JobNamespace] = true
	}
	p.memory.namespaces[p.runner.Spec.ForProvider.Settings.JobNamespace] = true
}

// namespaces that were noted, sorted.
func (p *pass) namespaces() []string { return slices.Sorted(maps.Keys(p.memory.namespaces)) }

// uses reports whether runners are made in a namespace, or one is there.
func (p *pass) uses(namespace string) bool {
	return namespace == p.runner.Spec.ForProvider.Settings.JobNamespace ||
		slices.ContainsFunc(p.instances, func(i forgejov1.RunnerInstance) bool { return i.Spec.ForProvider.Config.JobNamespace == namespace })
}

// sweepRegistrations that carry this pool's mark. A record is there before its registration is, so that one whose record is
// not there now never comes to have one.
func (p *pass) sweepRegistrations(ctx context.Context, look *server.Look) error {
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(look.Runners)) {
		uid, name, ok := names.RegistrationOf(look.Runners[id].Description)
		if ok && uid == string(p.runner.Spec.ForProvider.Identity.UID) {
			errs = append(errs, p.sweepRegistration(ctx, id, name))
		}
	}
	return errors.Join(errs...)
}

// sweepRegistration of a runner, unless a record accounts for it.
func (p *pass) sweepRegistration(ctx context.Context, id int64, name string) error {
	left, err := p.isLeft(ctx, name)
	if err != nil || !left {
		return err
	}
	if err := p.session.Client().Deregister(ctx, id); err != nil {
		return errors.Wrapf(err, "cannot sweep the registration of runner %s", name)
	}
	p.log.Info("Swept a registration that no record accounts for", "pool", p.key.Name, "runner", name, "id", id)
	return nil
}

// isLeft reports whether what is of a runner is left over: there is no such record, or one that is judged and released.
func (p *pass) isLeft(ctx context.Context, name string) (bool, error) {
	for n := range p.instances {
		if i := &p.instances[n]; i.Name == name {
			return judged(i) && i.Status.AtProvider.Released, nil
		}
	}
	err := p.uncached.Get(ctx, client.ObjectKey{Namespace: names.SystemNamespace, Name: name}, &forgejov1.RunnerInstance{})
	return kerrors.IsNotFound(err), errors.Wrapf(client.IgnoreNotFound(err), "cannot look for RunnerInstance %s", name)
}

// sweepNamespace of what is this pool's, and return how much of it was there.
func (p *pass) sweepNamespace(ctx context.Context, namespace string) (found int, err error) {
	var errs []error
	for _, kind := range swept {
		l := &metav1.PartialObjectMetadataList{}
		l.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := p.uncached.List(ctx, l, client.InNamespace(namespace), client.MatchingLabels{names.LabelPool: p.key.Name})
		if kmeta.IsNoMatchError(err) || kerrors.IsNotFound(err) || kerrors.IsForbidden(err) {
			// It is not served, or the provider may do nothing in the namespace, where then nothing of it is.
			continue
		}
		errs = append(errs, errors.Wrapf(err, "cannot list the kind %s in namespace %s", kind.Kind, namespace))
		for n := range l.Items {
			if l.Items[n].Labels[names.LabelComposite] == string(p.runner.Spec.ForProvider.Identity.UID) {
				found++
			}
			errs = append(errs, p.sweepObject(ctx, kind, &l.Items[n]))
		}
	}
	return found, errors.Join(errs...)
}

// sweepObject of the job namespace, unless a record accounts for it.
func (p *pass) sweepObject(ctx context.Context, kind schema.GroupVersionKind, o *metav1.PartialObjectMetadata) error {
	name := o.Labels[names.LabelRunner]
	if name == "" || o.Labels[names.LabelComposite] != string(p.runner.Spec.ForProvider.Identity.UID) || o.DeletionTimestamp != nil {
		return nil
	}
	left, err := p.isLeft(ctx, name)
	if err != nil || !left {
		return err
	}
	if kind.Kind != "Secret" && p.onRecord(name) {
		return nil
	}
	o.SetGroupVersionKind(kind)
	err = p.client.Delete(ctx, o, client.Preconditions{UID: &o.UID}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return errors.Wrapf(err, "cannot sweep %s %s/%s", kind.Kind, o.Namespace, o.Name)
	}
	p.log.Info("Swept an object that no record accounts for", "pool", p.key.Name, "runner", name, "kind", kind.Kind)
	return nil
}

func (p *pass) onRecord(name string) bool {
	for n := range p.instances {
		if p.instances[n].Name == name {
			return true
		}
	}
	return false
}
