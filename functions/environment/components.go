package environment

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/steading-dev/steading/apis/names"
	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/functions/compose"
)

// componentPrefix followed by a component's name is the name of its child.
const componentPrefix = "component-"

func childOf(component string) string { return componentPrefix + component }

// observeComponents decodes the Releases of the components that there are, by the components' names.
func observeComponents(in compose.Input) (map[string]*runtimev1.Release, error) {
	found := map[string]*runtimev1.Release{}
	for child := range in.Children {
		name, ok := strings.CutPrefix(child, componentPrefix)
		if !ok {
			continue
		}
		r, err := compose.DecodeChild[runtimev1.Release](in, child)
		if err != nil {
			return nil, err
		}
		found[name] = r
	}
	return found, nil
}

// requestComponents is what admission is asked for.
func requestComponents(cs []steading.Component) []runtimev1.ComponentRequest {
	var out []runtimev1.ComponentRequest
	for _, c := range cs {
		out = append(out, requestOf(c))
	}
	return out
}

func requestOf(c steading.Component) runtimev1.ComponentRequest {
	return runtimev1.ComponentRequest{Name: c.Name, Chart: c.Chart, Version: c.Version, Values: c.Values, MoreValues: len(c.ValuesFrom) > 0}
}

// emitComponents deploys the components that were granted, and keeps those that are there. One
// that the claim does not name any more is given up, unless the claim only plans.
func (s *stages) emitComponents(out *compose.Output) error {
	if s.env.Spec.State == steading.StatePlanned {
		for _, name := range slices.Sorted(maps.Keys(s.components)) {
			if err := s.keep(out, childOf(name), s.components[name]); err != nil {
				return err
			}
		}
		return nil
	}
	for _, c := range s.env.Spec.Components {
		if err := s.emitComponent(out, c); err != nil {
			return err
		}
	}
	return nil
}

func (s *stages) emitComponent(out *compose.Output, c steading.Component) error {
	g, observed := s.grant(), s.components[c.Name]
	granted := g.Component(c.Name)
	if granted == nil || !requestOf(c).GrantedBy(*granted) || g.Context == "" || g.Caps == nil {
		// What runs is not touched by what was not admitted.
		return s.keep(out, childOf(c.Name), observed)
	}
	if observed == nil && out.Children[boundary].Object == nil {
		return nil
	}
	p := s.releaseOf(*g, names.ComponentRelease(s.id.Tenant, c.Name), granted.Chart)
	p.Component, p.Values = &runtimev1.ReleaseComponent{Name: c.Name, ValuesFrom: c.ValuesFrom}, c.Values
	desired := &runtimev1.Release{
		TypeMeta:   typeMeta(runtimev1.ReleaseKind),
		ObjectMeta: compose.ObjectMeta(names.Component(s.id.Tenant, s.id.Environment, c.Name), s.id),
		Spec:       runtimev1.ReleaseSpec{ForProvider: p},
	}
	return s.add(out, childOf(c.Name), desired, observed, servesComponent(observed, p))
}

// servesComponent reports whether what is deployed is what is asked for.
func servesComponent(observed *runtimev1.Release, p runtimev1.ReleaseParameters) bool {
	if observed == nil {
		return false
	}
	o := observed.Status.AtProvider
	return o.State == runtimev1.ReleaseDeployed && o.Deployed != nil && o.Deployed.Version == p.Chart.Version && o.Deployed.Power == p.Power
}

// componentsDeployed says whether all components are rolled out, and of the first that is not, why. A composite that never
// had a component does not have the condition; Crossplane would keep the last one of a composite that had.
func (s *stages) componentsDeployed(out compose.Output) []xpv2.Condition {
	const t = steading.ConditionComponentsDeployed
	if len(s.env.Spec.Components) == 0 {
		if s.env.Status.GetCondition(t).Reason == "" {
			return nil
		}
		return []xpv2.Condition{compose.True(t, steading.ReasonNoComponents, "")}
	}
	for _, c := range s.env.Spec.Components {
		if !out.Children[childOf(c.Name)].Ready {
			return []xpv2.Condition{s.componentNotReady(out, c)}
		}
	}
	if s.power() == steading.PowerStopped {
		return []xpv2.Condition{compose.True(t, steading.ReasonStopped, "scaled to zero")}
	}
	return []xpv2.Condition{compose.True(t, steading.ReasonDeployed, "")}
}

func (s *stages) componentNotReady(out compose.Output, c steading.Component) xpv2.Condition {
	const t = steading.ConditionComponentsDeployed
	r := s.components[c.Name]
	switch {
	case r != nil:
	case s.grant().Component(c.Name) == nil:
		return compose.False(t, steading.ReasonNotAdmitted, "")
	case out.Children[boundary].Object == nil:
		return compose.False(t, steading.ReasonWaitingForBoundary, "")
	default:
		// What it will say first, so that nothing has to be said twice.
		return compose.False(t, steading.ReasonRollingOut, "")
	}
	n := notDeployed(t, r)
	if n.Message != "" {
		n.Message = fmt.Sprintf("component %s: %s", c.Name, n.Message)
	}
	return n
}

// componentStatuses are in the order of the spec; those that are being uninstalled follow.
func (s *stages) componentStatuses(out compose.Output) []steading.ComponentStatus {
	var all []steading.ComponentStatus
	claimed := map[string]bool{}
	for _, c := range s.env.Spec.Components {
		claimed[c.Name] = true
		all = append(all, s.componentStatus(out, c.Name))
	}
	for _, name := range slices.Sorted(maps.Keys(s.components)) {
		if !claimed[name] {
			all = append(all, s.componentStatus(out, name))
		}
	}
	return all
}

func (s *stages) componentStatus(out compose.Output, name string) steading.ComponentStatus {
	st := steading.ComponentStatus{Name: name, State: steading.ComponentPending}
	r := s.components[name]
	if r == nil {
		return st
	}
	o := r.Status.AtProvider
	st.Chart = r.Spec.ForProvider.Chart.Repository
	if o.Deployed != nil {
		st.Version = o.Deployed.Version
	}
	child, desired := out.Children[childOf(name)]
	st.State = componentState(o, child.Ready)
	switch {
	case !desired:
		st.State = steading.ComponentDeleting
		fallthrough
	case !child.Ready:
		st.Message = notDeployed(steading.ConditionComponentsDeployed, r).Message
	}
	return st
}

func componentState(o runtimev1.ReleaseObservation, ready bool) steading.ComponentState {
	switch {
	case ready && o.Deployed != nil && o.Deployed.Power == steading.PowerStopped:
		return steading.ComponentStopped
	case ready:
		return steading.ComponentRunning
	case o.State == runtimev1.ReleaseFailed:
		return steading.ComponentFailed
	case o.State == runtimev1.ReleaseRolledBack:
		return steading.ComponentRolledBack
	default:
		return steading.ComponentDeploying
	}
}

// componentEvents tell of the components that have come to another state.
func (s *stages) componentEvents(now []steading.ComponentStatus) []compose.Event {
	before := map[string]steading.ComponentState{}
	for _, c := range s.env.Status.Components {
		before[c.Name] = c.State
	}
	var es []compose.Event
	for _, c := range now {
		was := before[c.Name]
		delete(before, c.Name)
		if e, ok := componentEvent(c); ok && was != c.State {
			es = append(es, e)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		es = append(es, compose.Event{Reason: "ComponentRemoved", Message: fmt.Sprintf("component %s is gone", name)})
	}
	return es
}

func componentEvent(c steading.ComponentStatus) (compose.Event, bool) {
	event := compose.Event{Reason: "Component" + string(c.State)}
	switch c.State {
	case steading.ComponentRunning:
		event.Message = fmt.Sprintf("component %s is running, chart %s version %s", c.Name, c.Chart, c.Version)
	case steading.ComponentStopped:
		event.Message = fmt.Sprintf("component %s is scaled to zero", c.Name)
	case steading.ComponentDeleting:
		event.Message = fmt.Sprintf("component %s is being uninstalled", c.Name)
	case steading.ComponentFailed, steading.ComponentRolledBack:
		event.Warning = true
		event.Message = fmt.Sprintf("component %s: %s", c.Name, c.Message)
	case steading.ComponentPending, steading.ComponentDeploying:
		return compose.Event{}, false
	}
	return event, true
}
