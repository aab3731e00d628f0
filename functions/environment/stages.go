package environment

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steading-dev/steading/apis/names"
	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/functions/compose"
)

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: runtimev1.GroupVersion.String(), Kind: kind}
}

func (s *stages) meta() metav1.ObjectMeta {
	return compose.ObjectMeta(names.Environment(s.id.Tenant, s.id.Environment), s.id)
}

// emitPlacement asks for what the claim says. It is always there.
func (s *stages) emitPlacement(out *compose.Output) error {
	spec := s.env.Spec
	request := runtimev1.Request{
		Type:       spec.Type,
		Version:    spec.Version,
		Stopped:    s.power() == steading.PowerStopped,
		Size:       spec.Size,
		Docker:     spec.Docker.Enabled,
		Components: requestComponents(spec.Components),
		DryRun:     spec.State == steading.StatePlanned,
	}
	if spec.ContextRef != nil {
		request.Context = spec.ContextRef.Name
	}
	desired := &runtimev1.Placement{
		TypeMeta:   typeMeta(runtimev1.PlacementKind),
		ObjectMeta: s.meta(),
		Spec:       runtimev1.PlacementSpec{ForProvider: runtimev1.PlacementParameters{Identity: s.id, Claim: s.claim, Request: request}},
	}
	return s.add(out, placement, desired, s.placement, s.refusal() == nil)
}

// emitBoundary makes the namespace once there is a place for it, and keeps it.
func (s *stages) emitBoundary(out *compose.Output) error {
	g := s.grant()
	if g == nil || g.Context == "" || g.Caps == nil {
		return s.keep(out, boundary, s.boundary)
	}
	if s.boundary == nil && s.env.Spec.State == steading.StatePlanned {
		return nil
	}
	p := runtimev1.BoundaryParameters{
		Identity:  s.id,
		Claim:     s.claim,
		Context:   g.Context,
		Namespace: names.EnvironmentNamespace(s.id.Tenant, s.id.Environment),
		Caps:      *g.Caps,
		Docker:    g.Docker,
	}
	if t := s.placement.Status.AtProvider.Tenant; t != nil {
		p.Owners = t.Owners
		if t.Registry != nil {
			p.PullSecretRef = t.Registry.PullSecretRef
		}
	}
	desired := &runtimev1.Boundary{TypeMeta: typeMeta(runtimev1.BoundaryKind), ObjectMeta: s.meta(), Spec: runtimev1.BoundarySpec{ForProvider: p}}
	return s.add(out, boundary, desired, s.boundary, true)
}

// emitRelease deploys what was granted, and keeps it. It is made together with the Boundary, whose namespace it waits for:
// waiting here instead would cost the composite one more round.
func (s *stages) emitRelease(out *compose.Output) error {
	g := s.grant()
	if g == nil || g.Context == "" || g.Caps == nil || g.Version == "" || g.Chart == nil {
		return s.keep(out, release, s.release)
	}
	if s.release == nil && out.Children[boundary].Object == nil {
		return nil
	}
	p := s.releaseOf(*g, names.Release(s.id.Tenant), *g.Chart)
	p.Version, p.Docker = g.Version, g.Docker
	if t := s.placement.Status.AtProvider.Tenant; t != nil {
		p.Registry, p.Operations = t.Registry, t.Operations
	}
	desired := &runtimev1.Release{TypeMeta: typeMeta(runtimev1.ReleaseKind), ObjectMeta: s.meta(), Spec: runtimev1.ReleaseSpec{ForProvider: p}}
	return s.add(out, release, desired, s.release, s.serves(p))
}

// releaseOf a chart by that name, where the environment was granted its place. The grant has one, and caps.
func (s *stages) releaseOf(g runtimev1.Grant, name string, chart runtimev1.Chart) runtimev1.ReleaseParameters {
	return runtimev1.ReleaseParameters{
		Identity:    s.id,
		Claim:       s.claim,
		Context:     g.Context,
		Namespace:   names.EnvironmentNamespace(s.id.Tenant, s.id.Environment),
		ReleaseName: name,
		Chart:       chart,
		Power:       s.power(),
		Caps:        *g.Caps,
	}
}

// emitEdge exposes services once the runtime is asked for, where the context can expose any. It is given up when the
// claim no longer wants it.
func (s *stages) emitEdge(out *compose.Output) error {
	if !s.exposes() {
		return nil
	}
	g := s.grant()
	if g == nil || g.Context == "" || s.placement.Status.AtProvider.Exposure == nil {
		return s.keep(out, edge, s.edge) // The context's exposure may be missing for a moment only.
	}
	if s.edge == nil && (out.Children[release].Object == nil || s.env.Spec.State == steading.StatePlanned) {
		return nil
	}
	x := *s.placement.Status.AtProvider.Exposure
	p := runtimev1.EdgeParameters{
		Identity:          s.id,
		Claim:             s.claim,
		Context:           g.Context,
		Namespace:         names.EnvironmentNamespace(s.id.Tenant, s.id.Environment),
		Exposure:          x,
		CertificateSecret: names.TLSSecret(s.id.Tenant, s.id.Environment),
	}
	for _, service := range s.env.Spec.Expose.Services {
		p.Services = append(p.Services, runtimev1.ExposedService{
			Name:    service,
			Host:    names.Host(service, s.id.Tenant, s.id.Environment, x.Zone),
			Service: names.ServiceOf(s.id.Tenant, service),
		})
	}
	desired := &runtimev1.Edge{TypeMeta: typeMeta(runtimev1.EdgeKind), ObjectMeta: s.meta(), Spec: runtimev1.EdgeSpec{ForProvider: p}}
	return s.add(out, edge, desired, s.edge, true)
}

// exposes reports whether the claim wants anything exposed.
func (s *stages) exposes() bool {
	x := s.env.Spec.Expose
	return s.env.Spec.Type == steading.TypeRuntime && (x.Enabled == nil || *x.Enabled) && len(x.Services) > 0
}

// power is what the claim asks for. Planning changes nothing about what runs.
func (s *stages) power() steading.Power {
	switch s.env.Spec.State {
	case steading.StateStopped:
		return steading.PowerStopped
	case steading.StatePlanned:
		if s.release != nil {
			return s.release.Spec.ForProvider.Power
		}
	case steading.StateRunning:
	}
	return steading.PowerRunning
}

// serves reports whether what is deployed is what is asked for, size included, rather than what was before or was rolled
// back to.
func (s *stages) serves(p runtimev1.ReleaseParameters) bool {
	if s.release == nil {
		return false
	}
	o := s.release.Status.AtProvider
	return o.State == runtimev1.ReleaseDeployed && o.Deployed != nil && o.Deployed.Version == p.Version && o.Deployed.Power == p.Power && o.Deployed.Caps.Equal(p.Caps)
}

// add emits a child and works out whether it is ready for what it is asked for now, which it is only if the child's own
// answer is good. Observed is nil, typed, when there is none.
func (s *stages) add(out *compose.Output, name string, desired, observed compose.Conditioned, good bool) error {
	ready := false
	if _, exists := s.in.Children[name]; exists && good {
		var err error
		if ready, err = compose.Satisfied(s.in, name, observed, desired); err != nil {
			return err
		}
	}
	out.Add(name, compose.Child{Object: desired, Ready: ready})
	return nil
}

// keep emits a child as it was observed, when what it should be cannot be told.
func (s *stages) keep(out *compose.Output, name string, observed compose.Conditioned) error {
	if _, exists := s.in.Children[name]; !exists {
		return nil
	}
	kept, err := compose.Keep(observed)
	if err != nil {
		return err
	}
	out.Add(name, compose.Child{Object: kept, Ready: compose.IsReady(observed)})
	return nil
}
