package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// place chooses the context. An environment that was placed stays where it is, whatever became of the context.
func (t *tally) place(a Applicant, v *verdict) *v1alpha1.Refusal {
	if a.settled() {
		return t.stay(a, v)
	}
	if a.Request.Context != "" {
		return t.placeAt(a.Request.Context, v)
	}
	return t.choose(v)
}

func (t *tally) stay(a Applicant, v *verdict) *v1alpha1.Refusal {
	at := a.Held.Grant.Context
	if want := a.Request.Context; want != "" && want != at {
		return placing(steading.ReasonContextImmutable,
			"the environment runs on context %q and cannot move to %q: set spec.contextRef.name back to %q, or delete the environment and create it anew", at, want, at)
	}
	v.grant.Context, v.grant.Reason = at, a.Held.Grant.Reason
	v.step("stay on context %q (%s)", at, v.grant.Reason)
	return nil
}

// placeAt places on the context that was asked for by name.
func (t *tally) placeAt(name string, v *verdict) *v1alpha1.Refusal {
	own, platform := t.contexts()
	if name == steading.PlatformContext {
		return t.placeOnPlatform(platform, len(own), steading.PlacementRequested, v)
	}
	i := slices.IndexFunc(own, func(c Context) bool { return c.Name == name })
	switch {
	case i < 0 && len(own) == 0:
		return placing(steading.ReasonUnknownContext,
			"context %q not found: tenant %s has no contexts; apply a Context of that name, or leave out spec.contextRef", name, t.Tenant)
	case i < 0:
		return placing(steading.ReasonUnknownContext,
			"context %q not found: tenant %s has %s; name one of them in spec.contextRef.name, or apply a Context of that name", name, t.Tenant, namesOf(own))
	case own[i].Problem != "":
		return placing(steading.ReasonContextNotRunning,
			"context %q is not running (%s): see its conditions, or name another in spec.contextRef.name", name, own[i].Problem)
	case own[i].Drain:
		return placing(steading.ReasonContextNotRunning,
			"context %q is draining and takes no more environments: set its spec.drain to false, or name another in spec.contextRef.name", name)
	case !t.room(own[i]):
		return placing(steading.ReasonContextFull,
			"context %q is full: it holds %d of at most %d environments; delete one of them, raise its spec.maxEnvironments, or name another in spec.contextRef.name",
			name, t.places[name], *own[i].Max)
	}
	t.put(own[i], steading.PlacementRequested, v)
	return nil
}

// choose places on the first context with room, by name, and on the platform's own cluster only while there is no context.
func (t *tally) choose(v *verdict) *v1alpha1.Refusal {
	own, platform := t.contexts()
	if len(own) == 0 {
		return t.placeOnPlatform(platform, 0, steading.PlacementPlatformFallback, v)
	}
	running := 0
	for _, c := range own {
		if !c.open() {
			continue
		}
		running++
		if t.room(c) {
			t.put(c, steading.PlacementFirstWithRoom, v)
			return nil
		}
	}
	if running == 0 {
		return placing(steading.ReasonNoContextRunning, "none of the tenant's %d contexts takes environments: %s; see their conditions, or apply another Context",
			len(own), problemsOf(own))
	}
	return placing(steading.ReasonAllContextsFull, "all %d running contexts of the tenant are full: %s; delete an environment, raise a context's spec.maxEnvironments, or apply another Context",
		running, t.fillOf(own))
}

// placeOnPlatform places on the platform's own cluster where the tenant may use it.
func (t *tally) placeOnPlatform(platform *Context, own int, reason steading.PlacementReason, v *verdict) *v1alpha1.Refusal {
	const raise = "ask the operator to set the Tenant's spec.platformCluster to Allowed"
	switch {
	case t.Platform == steading.PlatformClusterDenied && own == 0:
		return placing(steading.ReasonPlatformDenied, "tenant %s has no context and may not use the platform's own cluster: apply a Context, or %s", t.Tenant, raise)
	case t.Platform == steading.PlatformClusterDenied:
		return placing(steading.ReasonPlatformDenied, "tenant %s may not use the platform's own cluster: name another context in spec.contextRef.name, or %s", t.Tenant, raise)
	case t.Platform != steading.PlatformClusterAllowed && own > 0:
		return placing(steading.ReasonPlatformDenied,
			"tenant %s may use the platform's own cluster only while it has no context, and it has %d: leave out spec.contextRef, or %s", t.Tenant, own, raise)
	case platform == nil:
		return placing(steading.ReasonPlatformDenied, "the platform's own cluster takes no environments: apply a Context")
	case !t.room(*platform):
		return placing(steading.ReasonContextFull,
			"the platform's own cluster is full for tenant %s: it holds %d of at most %d environments; delete one of them, apply a Context, or ask the operator to raise platformCluster.maxEnvironments",
			t.Tenant, t.places[platform.Name], *platform.Max)
	}
	t.put(*platform, reason, v)
	return nil
}

func (t *tally) put(c Context, reason steading.PlacementReason, v *verdict) {
	v.grant.Context, v.grant.Reason = c.Name, reason
	if c.Max == nil {
		v.step("place on context %q (%s), environment %d there", c.Name, reason, t.places[c.Name]+1)
		return
	}
	v.step("place on context %q (%s), environment %d of %d there", c.Name, reason, t.places[c.Name]+1, *c.Max)
}

func (t *tally) room(c Context) bool { return c.Max == nil || t.places[c.Name] < int(*c.Max) }

// contexts are the tenant's own by name, and the platform's.
func (t *tally) contexts() (own []Context, platform *Context) {
	for i, c := range t.Contexts {
		if c.platform() {
			platform = &t.Contexts[i]
			continue
		}
		own = append(own, c)
	}
	slices.SortFunc(own, func(a, b Context) int { return cmp.Compare(a.Name, b.Name) })
	return own, platform
}

func placing(reason xpv2.ConditionReason, format string, args ...any) *v1alpha1.Refusal {
	return &v1alpha1.Refusal{Reason: string(reason), Message: fmt.Sprintf(format, args...), Placing: true}
}

func namesOf(cs []Context) string {
	return list(cs, func(c Context) string { return c.Name })
}

func problemsOf(cs []Context) string {
	return list(cs, func(c Context) string {
		if c.Problem == "" {
			return c.Name + " is draining"
		}
		return c.Name + " is not running (" + c.Problem + ")"
	})
}

func (t *tally) fillOf(cs []Context) string {
	return list(slices.DeleteFunc(slices.Clone(cs), func(c Context) bool { return !c.open() }), func(c Context) string {
		return fmt.Sprintf("%s holds %d of %d", c.Name, t.places[c.Name], *c.Max)
	})
}

// list names at most five.
func list(cs []Context, say func(Context) string) string {
	const most = 5
	var said []string
	for _, c := range cs[:min(most, len(cs))] {
		said = append(said, say(c))
	}
	if len(cs) > most {
		said = append(said, fmt.Sprintf("and %d more", len(cs)-most))
	}
	return strings.Join(said, ", ")
}
