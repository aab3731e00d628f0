package local

import (
	"context"
	"path"
	"slices"

	"github.com/steading-dev/steading/package/build"
)

// folders that a tool's image has besides the tool: where it is, and the asset that goes there.
var imageFolders = map[Tool]map[string]string{
	Crossplane: {"/crds": "cluster/crds", "/webhookconfigurations": "cluster/webhookconfigurations"},
}

// pushNodeImages makes images of those tools that run as pods and pushes them to the plane's registry.
func (p *Plane) pushNodeImages(ctx context.Context, tools ...Tool) error {
	p.progress("making images of what runs as pods")
	p.images = map[Tool]string{}
	for _, tool := range tools {
		if !slices.Contains([]Tool{Pause, CoreDNS, Provisioner, NetworkPolicies, Crossplane}, tool) {
			continue
		}
		program := build.Program{Name: string(tool), File: p.tools.Path(tool), Folders: map[string]string{}}
		for to, asset := range imageFolders[tool] {
			program.Folders[to] = p.tools.Asset(tool, asset)
		}
		image, err := build.ProgramImage(path.Join(p.registry.Host(), "local"), program)
		if err != nil {
			return err
		}
		if err := build.Push(ctx, image); err != nil {
			return err
		}
		p.images[tool] = image.Pinned()
	}
	return nil
}
