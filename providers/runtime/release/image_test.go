package release

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/runtime/oci"
)

type probeFunc func(control, image string) oci.Finding

func (f probeFunc) Probe(_ context.Context, control, image string) oci.Finding {
	return f(control, image)
}

func withRegistry(p *v1alpha1.ReleaseParameters) {
	p.Registry = &steading.Registry{Prefix: "ghcr.io/acme"}
}

func TestChooseImage(t *testing.T) {
	const own, canonical = "ghcr.io/acme/acme-devops:1", "ghcr.io/steading-dev/devops:1"
	cases := map[string]struct {
		reason   string
		registry bool
		answer   oci.Answer
		want     steading.ChosenImage
	}{
		"NoRegistry":   {reason: "a tenant without registry has no image to ask after", want: steading.ChosenImage{Ref: canonical, Choice: steading.ImageCanonical, Reason: imageNoRegistry}},
		"Present":      {reason: "its own image exists", registry: true, answer: oci.Present, want: steading.ChosenImage{Ref: own, Choice: steading.ImageTenant, Reason: imageConfirmed}},
		"Missing":      {reason: "it definitely does not", registry: true, answer: oci.Missing, want: steading.ChosenImage{Ref: canonical, Choice: steading.ImageCanonical, Reason: imageNotPublished, Message: own + " is not published, so that the canonical image stands in for it"}},
		"Inconclusive": {reason: "nobody knows", registry: true, answer: oci.Inconclusive, want: steading.ChosenImage{Ref: own, Choice: steading.ImageTenant, Reason: imageInconclusive, Message: "so it is"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := parameters("1")
			if tc.registry {
				withRegistry(&p)
			}
			got := chooseImage(context.Background(), probeFunc(func(control, image string) oci.Finding {
				if !tc.registry || control != canonical || image != own {
					t.Errorf("asked after %s with %s", image, control)
				}
				return oci.Finding{Answer: tc.answer, Message: "so it is"}
			}), v1alpha1.ProviderConfigSpec{CanonicalImage: "ghcr.io/steading-dev/devops"}, p)
			if diff := cmp.Diff(&tc.want, got); diff != "" {
				t.Errorf("%s: -want +got\n%s", tc.reason, diff)
			}
		})
	}
}

// TestSubstitutionIsNamed for the platform's own tenant, if it is one.
func TestSubstitutionIsNamed(t *testing.T) {
	operations := func(p *v1alpha1.ReleaseParameters) { p.Operations = true }
	cases := map[string]struct {
		reason   string
		change   []func(*v1alpha1.ReleaseParameters)
		declared string
		answer   oci.Answer
		want     string
	}{
		"Named":        {reason: "an image is published under the declared name", change: []func(*v1alpha1.ReleaseParameters){operations}, declared: "platform", answer: oci.Present, want: imageSubstituted},
		"None":         {reason: "none is", change: []func(*v1alpha1.ReleaseParameters){operations}, declared: "platform", answer: oci.Missing, want: imageNotPublished},
		"Inconclusive": {reason: "nobody knows", change: []func(*v1alpha1.ReleaseParameters){operations}, declared: "platform", answer: oci.Inconclusive, want: imageNotPublished},
		"Customer":     {reason: "a customer's name is its own", declared: "platform", answer: oci.Present, want: imageNotPublished},
		"SameName":     {reason: "it has the declared name", change: []func(*v1alpha1.ReleaseParameters){operations}, declared: "acme", answer: oci.Present, want: imageNotPublished},
		"Undeclared":   {reason: "no name is declared", change: []func(*v1alpha1.ReleaseParameters){operations}, answer: oci.Present, want: imageNotPublished},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := parameters("1", append(tc.change, withRegistry)...)
			got := chooseImage(context.Background(), probeFunc(func(_, image string) oci.Finding {
				if image == "ghcr.io/acme/acme-devops:1" {
					return oci.Finding{Answer: oci.Missing}
				}
				return oci.Finding{Answer: tc.answer}
			}), v1alpha1.ProviderConfigSpec{CanonicalImage: "ghcr.io/steading-dev/devops", PlatformTenant: tc.declared}, p)
			if got.Reason != tc.want || got.Ref != "ghcr.io/steading-dev/devops:1" || got.Choice != steading.ImageCanonical {
				t.Errorf("%s: got %+v, want the canonical image because of %s", tc.reason, got, tc.want)
			}
			if tc.want == imageSubstituted && !strings.Contains(got.Message, "ghcr.io/acme/platform-devops:1") {
				t.Errorf("%s: got message %q, want the published image named", tc.reason, got.Message)
			}
		})
	}
}

func TestStands(t *testing.T) {
	own := &steading.ChosenImage{Ref: "ghcr.io/acme/acme-devops:1", Choice: steading.ImageTenant}
	canonical := &steading.ChosenImage{Ref: "ghcr.io/steading-dev/devops:1", Choice: steading.ImageCanonical, Reason: imageNotPublished}
	plain := &steading.ChosenImage{Ref: "ghcr.io/steading-dev/devops:1", Choice: steading.ImageCanonical, Reason: imageNoRegistry}
	cases := map[string]struct {
		reason string
		image  *steading.ChosenImage
		p      v1alpha1.ReleaseParameters
		want   bool
	}{
		"None":            {reason: "nothing was chosen", p: parameters("1")},
		"Same":            {reason: "the version it was chosen for", image: own, p: parameters("1", withRegistry), want: true},
		"Stopped":         {reason: "stopping is no new version", image: canonical, p: parameters("1", withRegistry, func(p *v1alpha1.ReleaseParameters) { p.Power = steading.PowerStopped }), want: true},
		"NewVersion":      {reason: "a new version is asked after again", image: canonical, p: parameters("2", withRegistry)},
		"OtherRegistry":   {reason: "so is another registry", image: own, p: parameters("1", func(p *v1alpha1.ReleaseParameters) { p.Registry = &steading.Registry{Prefix: "quay.io/acme"} })},
		"RegistryGiven":   {reason: "and one where there was none", image: plain, p: parameters("1", withRegistry)},
		"RegistryTaken":   {reason: "and none where there was one", image: canonical, p: parameters("1")},
		"StillNoRegistry": {reason: "none as before", image: plain, p: parameters("1"), want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := stands(tc.image, tc.p); got != tc.want {
				t.Errorf("%s: got %v", tc.reason, got)
			}
		})
	}
}
