package target

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steading-dev/steading/providers/internal/kit"
)

// HoldUp the deletion of a claim's managed resource, whose cluster is not reached for err, and say on both what is in the way:
// that what is not possible yet, and why. It reports true, and says nothing, if an operator gave the composite's cluster up.
func HoldUp(ctx context.Context, claims *kit.ClaimReporter, mg resource.Managed, claim kit.Claim, composite types.UID, what string, err error) (abandoned bool, _ error) {
	abandoned, aerr := claims.Abandoned(ctx, claim, composite)
	if abandoned || aerr != nil {
		return abandoned, aerr
	}
	return false, claims.DeletionBlocked(ctx, mg, claim, ReasonOf(err), what+": "+kit.Clean(err).Error())
}
