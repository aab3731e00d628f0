package edge

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/providers/runtime/target"
)

// A place is an environment's namespace on its cluster.
type place struct {
	// namespace, nil if there is none.
	namespace *corev1.Namespace
	// provider reads the cluster, and annotates the namespace.
	provider client.Client
	// deployer is the environment's own account. Nil: there is none.
	deployer client.Client
	// refresh forgets what kinds the cluster serves.
	refresh func()
}

// A reach finds the place of an environment on a cluster, which has the name that [target.NameOf] gives it. It fails with a [target.UnreachableError] when the cluster does not answer.
type reach func(ctx context.Context, cluster, namespace string) (*place, error)

// reachBy reaches places by the provider's targets.
func reachBy(targets *target.Targets) reach {
	return func(ctx context.Context, cluster, namespace string) (*place, error) {
		t, err := targets.Get(ctx, cluster)
		if err != nil {
			return nil, err
		}
		p := &place{provider: t.Client, refresh: t.Refresh}
		ns, exists, err := find(ctx, t.Client, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
		if err != nil || !exists {
			return p, err
		}
		p.namespace = ns
		p.deployer, err = deployer(ctx, t, namespace)
		return p, err
	}
}

// deployer acts as the account of that name in the namespace; nil if there is none.
func deployer(ctx context.Context, t *target.Target, namespace string) (client.Client, error) {
	cfg, err := t.Deployer(ctx, namespace)
	if kerrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // Nil is what there is.
	}
	if err != nil {
		return nil, err
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme.Scheme, Mapper: t.Mapper})
	return c, errors.Wrap(err, "cannot make the deployer's client")
}
