package platform

import (
	"context"
	"fmt"
	"slices"

	"github.com/steading-dev/steading/cluster/local"
)

// StartStandby starts one more process of the provider, as the same account and with the same arguments but those given, and
// waits until it is ready. Like the replicas of a deployment the two share a lease, each under an identity of its own. It is
// killed, stopped and resumed by its name.
func (p *Platform) StartStandby(ctx context.Context, name string, args ...string) error {
	p.mu.Lock()
	first, runs := p.launched[Provider]
	p.mu.Unlock()
	if !runs {
		return fmt.Errorf("cannot start %s: %s was not started yet", name, Provider)
	}
	health, metrics, err := p.addresses(name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, providerReady)
	defer cancel()
	return p.run(ctx, local.Component{
		Name: name, Path: first.path,
		// The last of an argument counts.
		Args:  slices.Concat(first.args, []string{"--health-address=" + health, "--metrics-address=" + metrics}, args),
		Env:   first.env,
		Ready: ready("http://" + health + "/readyz"),
	})
}
