// Package environment composes an XEnvironment: a Placement asks admission for a place and a size, a Boundary makes the
// namespace, a Release deploys the runtime into it and another each component, an Edge makes it reachable.
//
// A stage is emitted when the one before it is ready, or when it is already there: what an environment has is never
// taken from it because something else is not ready, could not be read, or was refused. Releases are emitted together with the
// Boundary that they wait for, which saves the composite a round.
package environment

import (
	"fmt"

	"github.com/steading-dev/steading/apis/names"
	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/functions/compose"
)

// Names of the children. They are their identity: to rename one is to delete and make it anew.
const (
	placement = "placement"
	boundary  = "boundary"
	release   = "release"
	edge      = "edge"
)

// Compose makes an environment's stages as far as they can be made.
func Compose(in compose.Input) (compose.Output, error) {
	s, err := observe(in)
	if err != nil {
		return compose.Output{}, err
	}
	out := compose.Output{}
	if err := s.emitPlacement(&out); err != nil {
		return compose.Output{}, err
	}
	if err := s.emitBoundary(&out); err != nil {
		return compose.Output{}, err
	}
	if err := s.emitRelease(&out); err != nil {
		return compose.Output{}, err
	}
	if err := s.emitComponents(&out); err != nil {
		return compose.Output{}, err
	}
	if err := s.emitEdge(&out); err != nil {
		return compose.Output{}, err
	}
	out.Ready = s.complete(out)
	out.Conditions = s.conditions(out)
	status := s.status(out)
	out.Status = &status
	out.Events = s.events(status)
	return out, nil
}

// stages is an environment as it was observed.
type stages struct {
	in    compose.Input
	id    runtimev1.Identity
	claim runtimev1.ClaimReference
	env   *steading.Environment

	placement *runtimev1.Placement
	boundary  *runtimev1.Boundary
	release   *runtimev1.Release
	edge      *runtimev1.Edge
	// components by name.
	components map[string]*runtimev1.Release
}

// observe decodes the composite and its children.
func observe(in compose.Input) (*stages, error) {
	m, err := compose.MachineryOf(in.Composite)
	if err != nil {
		return nil, err
	}
	tenant, ok := names.TenantOf(m.Namespace)
	if !ok {
		return nil, fmt.Errorf("environment %q is in namespace %q: environments live in a tenant's namespace, tenant-<tenant>", m.Name, m.Namespace)
	}
	s := &stages{
		in:    in,
		id:    runtimev1.Identity{Tenant: tenant, Environment: m.Name, UID: m.UID},
		claim: runtimev1.ClaimReference{Namespace: m.Namespace, Name: m.Name},
	}
	if s.env, err = compose.DecodeComposite[steading.Environment](in); err != nil {
		return nil, err
	}
	if s.placement, err = compose.DecodeChild[runtimev1.Placement](in, placement); err != nil {
		return nil, err
	}
	if s.boundary, err = compose.DecodeChild[runtimev1.Boundary](in, boundary); err != nil {
		return nil, err
	}
	if s.release, err = compose.DecodeChild[runtimev1.Release](in, release); err != nil {
		return nil, err
	}
	if s.edge, err = compose.DecodeChild[runtimev1.Edge](in, edge); err != nil {
		return nil, err
	}
	s.components, err = observeComponents(in)
	return s, err
}

// grant is what admission granted, or nil.
func (s *stages) grant() *runtimev1.Grant {
	if s.placement == nil {
		return nil
	}
	return s.placement.Status.AtProvider.Grant
}

// hasPlace reports whether a context was granted.
func (s *stages) hasPlace() bool {
	g := s.grant()
	return g != nil && g.Context != ""
}

// refusal says why what is asked for now was not granted, or is nil.
func (s *stages) refusal() *runtimev1.Refusal {
	if s.placement == nil {
		return nil
	}
	return s.placement.Status.AtProvider.Refusal
}

// deploys reports whether the environment is one that gets deployed, rather than a record.
func (s *stages) deploys() bool {
	if s.env.Spec.Type != steading.TypeRuntime {
		return false
	}
	g := s.grant()
	return s.env.Spec.Version != "" || (g != nil && g.Version != "")
}

// complete reports whether every stage that the environment should have is there and ready. An Edge is not asked: an
// environment that cannot be reached from outside runs all the same, and its conditions say so.
func (s *stages) complete(out compose.Output) bool {
	want := []string{placement}
	if s.deploys() && s.env.Spec.State != steading.StatePlanned {
		want = append(want, boundary, release)
		for _, c := range s.env.Spec.Components {
			want = append(want, childOf(c.Name))
		}
	}
	for _, name := range want {
		if !out.Children[name].Ready {
			return false
		}
	}
	return true
}
