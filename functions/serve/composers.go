package serve

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/functions/compose"
	"github.com/steading-dev/steading/functions/context"
	"github.com/steading-dev/steading/functions/environment"
	"github.com/steading-dev/steading/functions/runnerpool"
	"github.com/steading-dev/steading/functions/tenant"
)

// Composers are all composers of Steading, by the kind of composite they compose.
func Composers() map[schema.GroupVersionKind]compose.Composer {
	return map[schema.GroupVersionKind]compose.Composer{
		steading.GroupVersion.WithKind(steading.XTenantKind):      compose.ComposerFunc(tenant.Compose),
		steading.GroupVersion.WithKind(steading.XContextKind):     compose.ComposerFunc(context.Compose),
		steading.GroupVersion.WithKind(steading.XEnvironmentKind): compose.ComposerFunc(environment.Compose),
		steading.GroupVersion.WithKind(steading.XRunnerPoolKind):  compose.ComposerFunc(runnerpool.Compose),
	}
}
