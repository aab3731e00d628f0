package platform

import (
	"context"
	"fmt"
)

const controllerManager = "kube-controller-manager"

// teachCollector has the garbage collector know the kinds that were just
// installed. It looks for new kinds every 30 seconds, and until it knows a kind
// it neither waits for its objects nor deletes them: claims deleted in that time
// would go before what was made for them. It knows all when it starts.
func (p *Platform) teachCollector(ctx context.Context) error {
	if err := p.Plane.Supervisor.Stop(controllerManager); err != nil {
		return fmt.Errorf("cannot restart %s: %w", controllerManager, err)
	}
	if err := p.Plane.Supervisor.Resume(ctx, controllerManager); err != nil {
		return fmt.Errorf("cannot restart %s: %w", controllerManager, err)
	}
	return nil
}
