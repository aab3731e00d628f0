package placement

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/runtime/floor"
)

// State is all that a decision about a tenant's environments depends on.
type State struct {
	// Tenant by name.
	Tenant string
	// Closed says why nothing may be granted now, such as that the tenant is being deleted. Empty: open.
	Closed string
	// Unknown is whether it is not known yet if the tenant's namespace is its own. Nothing is decided until it is.
	Unknown bool
	// Quota of the tenant, with its defaults set.
	Quota steading.Quota
	// Docker is the tenant's policy for the docker sidecar.
	Docker steading.DockerPolicy
	// Platform is the tenant's policy for the platform's own cluster.
	Platform steading.PlatformClusterPolicy
	// Contexts of the tenant, and the platform's own cluster under its reserved name, in any order.
	Contexts []Context
	// Chart that is deployed with what is granted now. Nil: not known, for ChartProblem.
	Chart *v1alpha1.Chart
	// ChartProblem says why the chart is not known. Empty without a Chart: the registry is being asked, and who needs the
	// chart is decided on when it has answered.
	ChartProblem string
	// Floor is the least that the chart can run with, with and without the docker sidecar.
	Floor func(docker bool) steading.Resources
	// Applicants are the tenant's environments, in any order.
	Applicants []Applicant
}

// A Context is a cluster that environments may be placed on.
type Context struct {
	// Name of the context; the platform's own cluster is called [steading.PlatformContext].
	Name string
	// Problem says in a word why the context does not run. Empty: it runs.
	Problem string
	// Drain is whether the context keeps what it has and takes no more.
	Drain bool
	// Exposure of the environments on it. Nil: they are not exposed.
	Exposure *v1alpha1.Exposure
	// Max is how many environments it may hold. Nil: as many as the tenant may have.
	Max *int32
}

func (c Context) platform() bool { return c.Name == steading.PlatformContext }

// open reports whether new environments may be placed here, room aside.
func (c Context) open() bool { return c.Problem == "" && !c.Drain }

// An Applicant is an environment that asks for something, or holds something.
type Applicant struct {
	// UID of the Placement.
	UID types.UID
	// Environment by name.
	Environment string
	// Claimed is when its claim was made. The older is decided first.
	Claimed time.Time
	// Request it makes.
	Request v1alpha1.Request
	// Leaving is whether it is being deleted. It is not decided on; it counts in totals and capacity, not in the limit.
	Leaving bool
	// Paused is whether an operator paused its Placement. It is not decided on; what it holds counts as before.
	Paused bool
	// Held is what it was granted. Nil: nothing.
	Held *Holding
	// Components that it asks for. They are looked for only when it is decided on.
	Components []Candidate
}

// A Candidate is a component that is asked for, as far as its chart is known.
type Candidate struct {
	// Request for it.
	Request v1alpha1.ComponentRequest
	// Chart to deploy. Nil: there is none, for Refusal, or the registries are being asked.
	Chart *v1alpha1.Chart
	// Needs of the chart. Nil: they cannot be told, and are not counted.
	Needs *floor.Needs
	// Refusal says why it cannot be deployed.
	Refusal *v1alpha1.Refusal
}

// A Holding is a grant, and the request that it answers.
type Holding struct {
	Grant   v1alpha1.Grant
	Request v1alpha1.Request
	// Reserved counts in place of the grant's caps while more than those may be in use. Nil: the caps count.
	Reserved *steading.Resources
}

// counts is what counts in the tenant's total. Nil: nothing.
func (h *Holding) counts() *steading.Resources { return larger(h.Grant.Caps, h.Reserved) }

// kept is how much more counts than was granted.
func (h *Holding) kept() steading.Resources {
	if h == nil || h.Reserved == nil {
		return *steading.MustResources("0", "0", "0")
	}
	return less(*h.counts(), *h.Grant.Caps)
}

// reserve what is more than the caps.
func (h *Holding) reserve(r *steading.Resources) {
	h.Reserved = nil
	if h.Grant.Caps == nil || r == nil {
		return
	}
	if all := larger(h.Grant.Caps, r); !all.Equal(*h.Grant.Caps) {
		h.Reserved = all
	}
}

// A Decision about one applicant.
type Decision struct {
	// UID of the Placement.
	UID types.UID
	// Held is what it holds from now on. Nil: nothing.
	Held *Holding
	// Undecided is whether what it asks for now waits for an answer that is under way. What it was told before stands.
	Undecided bool
	// Refusal of what it asks for now. Nil: it holds what it asks for, only asks for a plan, or is undecided.
	Refusal *v1alpha1.Refusal
	// Plan is what would happen, in order, for one that only asks for a plan.
	Plan []string
}

// record reports whether a request is for a record, which is counted and not deployed.
func record(r v1alpha1.Request) bool {
	return r.Type != steading.TypeRuntime || r.Version == ""
}

// pending reports whether the applicant asks for something that its grant does not answer.
func (a Applicant) pending() bool {
	switch {
	case a.Leaving, a.Paused:
		return false
	case a.Held == nil:
		return true
	case record(a.Request):
		// What runs is not taken back because its version was left out.
		return false
	default:
		return a.Request.Version != a.Held.Request.Version ||
			a.Request.Context != "" && a.Request.Context != a.Held.Grant.Context ||
			a.Request.Docker != a.Held.Request.Docker ||
			!granted(a.Request.Components, a.Held.Grant.Components) ||
			!sameSize(a.Request.Size, a.Held.Request.Size)
	}
}

// granted reports whether the components that are asked for are those that were granted.
func granted(asked []v1alpha1.ComponentRequest, have []v1alpha1.GrantedComponent) bool {
	if len(asked) != len(have) {
		return false
	}
	for _, r := range asked {
		if !slices.ContainsFunc(have, r.GrantedBy) {
			return false
		}
	}
	return true
}

// settled reports whether the environment was placed already: it was admitted with a version before.
func (a Applicant) settled() bool { return a.Held != nil && a.Held.Grant.Context != "" }

// size is what the applicant asks for.
func (s *State) size(r v1alpha1.Request) steading.Resources {
	if r.Size != nil {
		return *r.Size
	}
	return *s.Quota.PerEnvironment
}

func sameSize(a, b *steading.Resources) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Equal(*b)
}
