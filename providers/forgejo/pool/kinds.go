package pool

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// served is how long the API server may take to serve a kind whose definition is there, until it is asked again.
const served = time.Second

// Kinds that runners are made of and that not every cluster has.
type Kinds interface {
	// Defined are the names of the definitions that runners of a config need.
	Defined(c forgejov1.RunnerConfig) []string
	// Served reports whether the API server serves all of these kinds, as far as it tells.
	Served(c forgejov1.RunnerConfig) bool
}

// definition of a kind of a cluster, by its metadata.
func definition(name string) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(extv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	o.Name = name
	return o
}

// lacking says which kinds the cluster does not have that runners of a config are made of. Definitions are watched; the API
// server, which serves them a moment later, is asked once they are there.
func (p *pass) lacking(ctx context.Context, config forgejov1.RunnerConfig) *Gate {
	var missing []string
	for _, name := range p.kinds.Defined(config) {
		if p.client.Get(ctx, client.ObjectKey{Name: name}, definition(name)) != nil {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 && (p.memory.served || p.kinds.Served(config)) {
		p.memory.served = true
		return nil
	}
	p.memory.served = false
	if len(missing) == 0 {
		missing, p.again = p.kinds.Defined(config), served
	}
	return &Gate{Reason: steading.ReasonKubeVirtMissing, Message: fmt.Sprintf("the cluster does not serve %s, which spec.vm is made of: have an operator install KubeVirt, or use spec.pod",
		strings.Join(missing, " and "))}
}

// enqueueLacking enqueues the pools whose runners need a kind that came or went.
func enqueueLacking(c client.Reader, k Kinds) handler.EventHandler {
	return enqueue(c, func(r *forgejov1.Runner, o client.Object) bool {
		return slices.Contains(k.Defined(forgejov1.RunnerConfig{VM: r.Spec.ForProvider.Settings.VM}), o.GetName())
	})
}
