package release

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/runtime/oci"
)

// A source has the charts and knows of the images.
type source interface {
	// chart returns a function that pulls the archive of the chart asked for.
	chart(ctx context.Context, p v1alpha1.ReleaseParameters) func() ([]byte, error)
	// image chooses the image for the version asked for.
	image(ctx context.Context, p v1alpha1.ReleaseParameters) (*steading.ChosenImage, error)
}

// registries are the source: OCI registries, with the platform's credential and the tenant's.
type registries struct {
	secrets client.Reader // of steading-system, uncached
	config  v1alpha1.ProviderConfigSpec
	charts  *oci.ChartCache
}

func (r registries) chart(ctx context.Context, p v1alpha1.ReleaseParameters) func() ([]byte, error) {
	return func() ([]byte, error) {
		platform, err := r.credentials(ctx, r.config.PullSecretRef)
		if err != nil {
			return nil, err
		}
		c := oci.Client{Credentials: platform, Insecure: r.config.InsecureRegistries, Charts: r.charts}
		return c.PullChart(ctx, p.Chart.Repository, p.Chart.Digest)
	}
}

// image probes with the tenant's own credential where it has one for the host: it is the one that pulls.
func (r registries) image(ctx context.Context, p v1alpha1.ReleaseParameters) (*steading.ChosenImage, error) {
	platform, err := r.credentials(ctx, r.config.PullSecretRef)
	if err != nil {
		return nil, err
	}
	tenant := oci.Credentials{}
	if p.Registry != nil {
		if tenant, err = r.credentials(ctx, p.Registry.PullSecretRef); err != nil {
			return nil, err
		}
	}
	c := oci.Client{Credentials: tenant.Over(platform), Insecure: r.config.InsecureRegistries}
	return chooseImage(ctx, c, r.config, p), nil
}

// credentials in a Secret of steading-system. A Secret that is missing or unreadable is no credential.
func (r registries) credentials(ctx context.Context, ref *steading.LocalSecretReference) (oci.Credentials, error) {
	if ref == nil {
		return oci.Credentials{}, nil
	}
	s := &corev1.Secret{}
	err := r.secrets.Get(ctx, client.ObjectKey{Namespace: names.SystemNamespace, Name: ref.Name}, s)
	if kerrors.IsNotFound(err) {
		return oci.Credentials{}, nil
	}
	if err != nil {
		return nil, errors.Wrapf(err, "cannot read Secret %s/%s", names.SystemNamespace, ref.Name)
	}
	c, err := oci.ParseCredentials(s.Data[corev1.DockerConfigJsonKey])
	if err != nil {
		return oci.Credentials{}, nil //nolint:nilerr // Unreadable is none: registries then answer as they do to anybody.
	}
	return c, nil
}
