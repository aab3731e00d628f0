package placement

import (
	"context"
	"encoding/json"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// readClusters of the tenant, uncached, after its Placements.
func (p *pass) readClusters(ctx context.Context) error {
	l := &v1alpha1.ClusterList{}
	err := p.reader.List(ctx, l, client.InNamespace(names.SystemNamespace), client.MatchingLabels{names.LabelTenant: p.tenant})
	p.clusters = l.Items
	return errors.Wrapf(err, "cannot list the clusters of tenant %s", p.tenant)
}

// contexts that environments may be placed on: the tenant's own, and the platform's cluster.
func (p *pass) contexts(config *v1alpha1.ClusterProviderConfig) []Context {
	all := make([]Context, 0, len(p.clusters)+1)
	for i := range p.clusters {
		all = append(all, contextOf(&p.clusters[i]))
	}
	return append(all, platformOf(config))
}

// contextOf is a Cluster as a place for environments.
func contextOf(c *v1alpha1.Cluster) Context {
	p := c.Spec.ForProvider
	at := Context{Name: p.Context, Drain: p.Drain, Max: &p.MaxEnvironments}
	if p.Ingress != nil && p.Zone != "" {
		at.Exposure = &v1alpha1.Exposure{Zone: p.Zone, Ingress: *p.Ingress}
	}
	ready := c.GetCondition(xpv2.TypeReady)
	switch {
	case meta.WasDeleted(c):
		at.Problem = string(steading.ContextDeleting)
	case ready.Status == corev1.ConditionTrue:
	case ready.Reason == "" || ready.Reason == xpv2.ReasonCreating:
		at.Problem = string(steading.ContextPending)
	default:
		at.Problem = string(ready.Reason)
	}
	return at
}

func platformOf(config *v1alpha1.ClusterProviderConfig) Context {
	c := Context{Name: steading.PlatformContext}
	if config != nil && config.Spec.PlatformCluster != nil {
		c.Max, c.Exposure = config.Spec.PlatformCluster.MaxEnvironments, config.Spec.PlatformCluster.Exposure
	}
	return c
}

// exposure of the context that was granted, nil where nothing is exposed.
func (s *State) exposure(g *v1alpha1.Grant) *v1alpha1.Exposure {
	if g == nil || g.Context == "" {
		return nil
	}
	for _, c := range s.Contexts {
		if c.Name == g.Context {
			return c.Exposure.DeepCopy()
		}
	}
	return nil
}

// use of each of the tenant's own contexts, those of environments being deleted included.
func (p *pass) use() map[string]steading.ContextUse {
	used := map[string]int32{}
	for _, d := range p.decisions {
		if d.Held != nil {
			used[d.Held.Grant.Context]++
		}
	}
	use := make(map[string]steading.ContextUse, len(p.clusters))
	for i := range p.clusters {
		c := p.clusters[i].Spec.ForProvider
		use[c.Context] = steading.ContextUse{Used: used[c.Context], Free: max(0, c.MaxEnvironments-used[c.Context])}
	}
	return use
}

// untold are the Clusters, by index, that are to be told how full they are.
func (p *pass) untold() []int {
	use := p.use()
	var untold []int
	for i := range p.clusters {
		u := use[p.clusters[i].Spec.ForProvider.Context]
		if !equality.Semantic.DeepEqual(p.clusters[i].Status.AtProvider.Environments, &u) {
			untold = append(untold, i)
		}
	}
	return untold
}

// tellClusters how full they are.
func (p *pass) tellClusters(ctx context.Context, untold []int) error {
	use := p.use()
	for _, i := range untold {
		c := &p.clusters[i]
		patch, err := json.Marshal(map[string]any{"status": map[string]any{"atProvider": map[string]any{"environments": use[c.Spec.ForProvider.Context]}}})
		if err != nil {
			return errors.Wrap(err, "cannot encode how full a context is")
		}
		if err := p.client.Status().Patch(ctx, c, client.RawPatch(types.MergePatchType, patch)); client.IgnoreNotFound(err) != nil {
			return errors.Wrapf(err, "cannot report to the cluster %s", c.Name)
		}
	}
	return nil
}

// contextChanged passes what matters about a Cluster: what is asked of it, whether it runs, and whether it goes.
func contextChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok1 := e.ObjectOld.(*v1alpha1.Cluster)
		after, ok2 := e.ObjectNew.(*v1alpha1.Cluster)
		return ok1 && ok2 && (before.Generation != after.Generation || !equality.Semantic.DeepEqual(contextOf(before), contextOf(after)))
	}}
}
