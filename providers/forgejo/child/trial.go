package child

import (
	"context"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/forgejo/v1alpha1"
)

// A Trial asks the API server whether it would make what runners are made of.
type Trial struct {
	Client client.Client
}

// Try whether the child of a runner can be made, without making it. Of virtual machines the API server alone has the definition;
// templates of pods are known here, and are not tried. Taken is whether it can. The error is a [RefusedError] when the template
// cannot be used, and another when the provider may not make it. What says nothing about the template, as a quota that is used
// up for now, is neither.
func (t Trial) Try(ctx context.Context, mg *v1alpha1.RunnerInstance) (taken bool, err error) {
	if mg.Spec.ForProvider.Config.VM == nil {
		return true, nil
	}
	o, err := Of(mg, sampleUUID)
	if err != nil {
		return false, err
	}
	err = client.WithFieldValidation(client.NewDryRunClient(t.Client), "Strict").Create(ctx, o)
	switch _, unknown, strict := strings.Cut(message(err), strictly); {
	case err == nil:
		return true, nil
	case strict:
		return false, refused(vmField, "%s", unknown)
	case kerrors.IsInvalid(err):
		return false, refused(vmField, "%s", message(err))
	case kerrors.IsForbidden(err) && !strings.Contains(err.Error(), "exceeded quota"):
		return false, errors.Wrapf(err, "the provider may not make runners in namespace %s", o.GetNamespace())
	default:
		return false, nil
	}
}

// strictly is what the API server says before it names the fields that it does not know.
const strictly = "strict decoding error: "

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
