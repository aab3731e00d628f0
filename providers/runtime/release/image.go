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
)

// A prober finds out whether an image is published.
type prober interface {
	Probe(ctx context.Context, control, image string) oci.Finding
}

// chooseImage for the version asked for: the tenant's own, unless it has no registry, or a credential that reads the
// canonical image finds that the tenant's is not there.
func chooseImage(ctx context.Context, r prober, canonical string, p v1alpha1.ReleaseParameters) *steading.ChosenImage {
	control := canonical + ":" + p.Version
	if p.Registry == nil {
		return &steading.ChosenImage{Ref: control, Choice: steading.ImageCanonical, Reason: imageNoRegistry}
	}
	own := ownImage(p)
	f := r.Probe(ctx, control, own)
	switch f.Answer {
	case oci.Present:
		return &steading.ChosenImage{Ref: own, Choice: steading.ImageTenant, Reason: imageConfirmed}
	case oci.Missing:
		return &steading.ChosenImage{Ref: control, Choice: steading.ImageCanonical, Reason: imageNotPublished,
			Message: fmt.Sprintf("%s, so that the canonical image stands in for it", f.Message)}
	default:
		return &steading.ChosenImage{Ref: own, Choice: steading.ImageTenant, Reason: imageInconclusive, Message: f.Message}
	}
}

func ownImage(p v1alpha1.ReleaseParameters) string {
	return names.RuntimeImage(p.Registry.Prefix, p.Identity.Tenant) + ":" + p.Version
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
