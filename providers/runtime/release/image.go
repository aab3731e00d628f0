package release

import (
	"context"
	"fmt"
	"strings"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/runtime/oci"
)

// Reasons for an image.
const (
	imageConfirmed    = "Confirmed"
	imageNoRegistry   = "NoRegistry"
	imageNotPublished = "NotPublished"
	imageInconclusive = "Inconclusive"
	imageSubstituted  = "SubstitutedForPlatformTenant"
)

// A prober finds out whether an image is published.
type prober interface {
	Probe(ctx context.Context, control, image string) oci.Finding
}

// chooseImage for the version asked for: the tenant's own, unless it has no registry, or a credential that reads the
// canonical image finds that the tenant's is not there.
func chooseImage(ctx context.Context, r prober, config v1alpha1.ProviderConfigSpec, p v1alpha1.ReleaseParameters) *steading.ChosenImage {
	control := config.CanonicalImage + ":" + p.Version
	if p.Registry == nil {
		return &steading.ChosenImage{Ref: control, Choice: steading.ImageCanonical, Reason: imageNoRegistry}
	}
	own := ownImage(p)
	f := r.Probe(ctx, control, own)
	switch f.Answer {
	case oci.Present:
		return &steading.ChosenImage{Ref: own, Choice: steading.ImageTenant, Reason: imageConfirmed}
	case oci.Missing:
		return substitute(ctx, r, config.PlatformTenant, control, p)
	default:
		return &steading.ChosenImage{Ref: own, Choice: steading.ImageTenant, Reason: imageInconclusive, Message: f.Message}
	}
}

// substitute the canonical image for one that is not published. That is right for a tenant that has none yet. For the
// platform's own tenant it may hide that it runs under another name than its image is published under, which is said.
func substitute(ctx context.Context, r prober, declared, control string, p v1alpha1.ReleaseParameters) *steading.ChosenImage {
	own := ownImage(p)
	i := &steading.ChosenImage{
		Ref: control, Choice: steading.ImageCanonical, Reason: imageNotPublished,
		Message: own + " is not published, so that the canonical image stands in for it",
	}
	if !p.Operations || declared == "" || declared == p.Identity.Tenant {
		return i
	}
	published := image(p, declared)
	if r.Probe(ctx, control, published).Answer != oci.Present {
		return i
	}
	i.Reason = imageSubstituted
	i.Message = fmt.Sprintf("the platform's own tenant is called %s and has no image %s, so that the canonical image stands in for it; but %s is published, under the name %s that the ClusterProviderConfig declares as platformTenant: give the tenant that name, or publish its image under its own",
		p.Identity.Tenant, own, published, declared)
	return i
}

func ownImage(p v1alpha1.ReleaseParameters) string { return image(p, p.Identity.Tenant) }

func image(p v1alpha1.ReleaseParameters, tenant string) string {
	return names.RuntimeImage(p.Registry.Prefix, tenant) + ":" + p.Version
}

// stands reports whether an image that was chosen is still for the version and registry asked for. It is then kept, so
// that stopping and starting, or a new size, never changes what runs.
func stands(i *steading.ChosenImage, p v1alpha1.ReleaseParameters) bool {
	switch {
	case i == nil:
		return false
	case i.Choice == steading.ImageTenant:
		return p.Registry != nil && i.Ref == ownImage(p)
	default:
		return strings.HasSuffix(i.Ref, ":"+p.Version) && (i.Reason == imageNoRegistry) == (p.Registry == nil)
	}
}
