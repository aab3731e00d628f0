package pool

import (
	"context"
	"strconv"
	"sync"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/apis/names"
)

// suffix of a runner's name, in characters.
const suffix = 8

// act on the decision. What cannot be done about runners that are there, or what is left of them, keeps none from being made.
func (p *pass) act(ctx context.Context) error {
	err := p.spawn(ctx)
	p.untidy = errors.Join(p.drain(ctx), p.prune(ctx), p.sweep(ctx))
	return err
}

// spawn the runners that are missing. One of which it is not known whether it was made is not made again before the next look,
// which is asked for at once, and for which it is counted if it is there, though the cache may not show it yet.
func (p *pass) spawn(ctx context.Context) error {
	var (
		mu   sync.Mutex
		errs []error
		runs bounded
	)
	for _, w := range p.decision.Spawn {
		runs.Go(func() {
			i := p.instance(w)
			err := p.client.Create(ctx, i)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, err)
				return
			}
			p.memory.made[i.Name] = madeRunner{instance: *i, at: p.now}
			p.memory.starting[i.Name] = p.state.Look.Began
		})
	}
	runs.Wait()
	if len(errs) == 0 {
		return nil
	}
	p.memory.read = false
	p.session.Again()
	return errors.Wrapf(errs[0], "cannot make %d of %d runners", len(errs), len(p.decision.Spawn))
}

// instance that is to be made. It is on record, with its finalizer, before it is registered, so that nothing can be left of it
// unknown.
func (p *pass) instance(w Want) *forgejov1.RunnerInstance {
	f := p.runner.Spec.ForProvider
	labels := map[string]string{names.LabelTenant: f.Identity.Tenant, names.LabelComposite: string(f.Identity.UID), names.LabelPool: p.key.Name}
	return &forgejov1.RunnerInstance{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.key.Namespace, Name: names.RunnerInstance(p.key.Name, rand.String(suffix)), Labels: labels,
			Annotations:     map[string]string{names.AnnotationMadeAt: strconv.FormatInt(p.tally.Verdicts, 10)},
			Finalizers:      []string{names.Finalizer},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(p.runner, forgejov1.GroupVersion.WithKind(forgejov1.RunnerKind))},
		},
		Spec: forgejov1.RunnerInstanceSpec{
			ManagedResourceSpec: xpv2.ManagedResourceSpec{
				ProviderConfigReference: &xpv2.ProviderConfigReference{Kind: forgejov1.ClusterProviderConfigKind, Name: names.DefaultProviderConfig},
				ManagementPolicies:      xpv2.ManagementPolicies{xpv2.ManagementActionAll},
			},
			ForProvider: forgejov1.RunnerInstanceParameters{
				Identity: f.Identity, Claim: f.Claim, Pool: forgejov1.PoolReference{Name: p.key.Name, UID: p.runner.UID},
				Config: *p.state.Config.DeepCopy(), Job: w.Job,
			},
		},
	}
}

// drain the runners that are not wanted.
func (p *pass) drain(ctx context.Context) error {
	var errs []error
	for _, i := range p.named(p.decision.Drain) {
		before := i.DeepCopy()
		i.Spec.ForProvider.Drain = true
		if err := p.client.Patch(ctx, i, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
			errs = append(errs, errors.Wrapf(err, "cannot drain RunnerInstance %s", i.Name))
		}
	}
	return errors.Join(errs...)
}

// prune history that is beyond its limits, and runners that are forsaken.
func (p *pass) prune(ctx context.Context) error {
	var errs []error
	for _, i := range p.named(p.decision.Delete) {
		err := p.client.Delete(ctx, i, client.Preconditions{UID: &i.UID})
		if client.IgnoreNotFound(err) != nil {
			errs = append(errs, errors.Wrapf(err, "cannot delete RunnerInstance %s", i.Name))
		}
	}
	return errors.Join(errs...)
}

// named instances.
func (p *pass) named(all []string) []*forgejov1.RunnerInstance {
	by := make(map[string]*forgejov1.RunnerInstance, len(p.instances))
	for n := range p.instances {
		by[p.instances[n].Name] = &p.instances[n]
	}
	found := make([]*forgejov1.RunnerInstance, 0, len(all))
	for _, name := range all {
		found = append(found, by[name])
	}
	return found
}
