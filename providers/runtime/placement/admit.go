package placement

import (
	"fmt"
	"strings"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// closed refuses while the tenant itself takes nothing.
func (t *tally) closed() *v1alpha1.Refusal {
	if t.Closed == "" {
		return nil
	}
	return refuse(steading.ReasonTenantNotReady, "%s", t.Closed)
}

// limit holds back a new environment when the tenant has as many as it may. Those being deleted do not count.
func (t *tally) limit(a Applicant, v *verdict) *v1alpha1.Refusal {
	if a.Held != nil {
		return nil
	}
	most := int(*t.Quota.MaxEnvironments)
	if t.environments >= most {
		return refuse(steading.ReasonEnvironmentLimit,
			"tenant %s has %d of at most %d environments%s: delete one, or ask the operator to raise the Tenant's spec.quota.maxEnvironments",
			t.Tenant, t.environments, most, t.beingDeleted("not counting"))
	}
	v.step("admit as environment %d of %d of tenant %s", t.environments+1, most, t.Tenant)
	return nil
}

// docker refuses the privileged sidecar where the operator did not allow it.
func (t *tally) docker(a Applicant, v *verdict) *v1alpha1.Refusal {
	if !a.Request.Docker {
		return nil
	}
	if t.Docker != steading.DockerAllowed {
		return refuse(steading.ReasonDockerDenied,
			"tenant %s may not run the privileged docker sidecar: set spec.docker.enabled to false, or ask the operator to set the Tenant's spec.docker to Allowed", t.Tenant)
	}
	v.grant.Docker = true
	v.step("run the privileged docker sidecar")
	return nil
}

// resources holds the size against the floor, the cap and the total, and each of those for cpu, memory and storage.
func (t *tally) resources(a Applicant, v *verdict) *v1alpha1.Refusal {
	want := t.size(a.Request)
	for _, rule := range []func(Applicant, steading.Resources) *v1alpha1.Refusal{t.floor, t.environmentCap, t.tenantTotal} {
		if r := rule(a, want); r != nil {
			return r
		}
	}
	v.grant.Caps = want.DeepCopy()
	v.step("cap namespace %s at %s", names.EnvironmentNamespace(t.Tenant, a.Environment), amounts(want))
	v.step("use %s of the tenant's %s", amounts(t.others(a).Add(want)), amounts(*t.Quota.Total))
	return nil
}

// floor refuses what the containers and volumes of the runtime and the components do not fit in.
func (t *tally) floor(a Applicant, want steading.Resources) *v1alpha1.Refusal {
	floor := t.Floor(a.Request.Docker)
	for _, c := range a.Components {
		floor = floor.Add(c.within(want))
	}
	for i, w := range want.Amounts() {
		if least := floor.Amounts()[i].Quantity; w.Quantity.Cmp(least) < 0 {
			return refuse(steading.ReasonBelowFloor, "%s %s is below the %s that %s, %s short: %s",
				w.Name, show(w.Quantity), show(least), t.needing(a, want, w.Name), show(minus(least, w.Quantity)), t.raise(a, w.Name))
		}
	}
	return nil
}

// needing says who needs the floor of a resource, and how much of it each where there are several.
func (t *tally) needing(a Applicant, want steading.Resources, resource string) string {
	runtime := "the runtime"
	if a.Request.Docker {
		runtime = "the runtime with its docker sidecar"
	}
	parts := []string{fmt.Sprintf("%s (%s)", runtime, show(amountOf(t.Floor(a.Request.Docker), resource)))}
	for _, c := range a.Components {
		if q := amountOf(c.within(want), resource); !q.IsZero() {
			parts = append(parts, fmt.Sprintf("component %s (%s)", c.Request.Name, show(q)))
		}
	}
	if len(parts) == 1 {
		return runtime + " needs"
	}
	return strings.Join(parts[:len(parts)-1], ", ") + " and " + parts[len(parts)-1] + " need"
}

// raise says how to ask for more of a resource.
func (t *tally) raise(a Applicant, name string) string {
	if a.Request.Size != nil {
		return "raise spec.size." + name
	}
	return fmt.Sprintf("ask the operator to raise the Tenant's spec.quota.perEnvironment.%s", name)
}

// environmentCap refuses more than one environment may have. What an environment holds already it may keep, like
// everywhere in Kubernetes: a cap that was lowered must not keep it from a new version.
func (t *tally) environmentCap(a Applicant, want steading.Resources) *v1alpha1.Refusal {
	most := t.Quota.PerEnvironment.Amounts()
	held := held(a).Amounts()
	for i, w := range want.Amounts() {
		if w.Quantity.Cmp(most[i].Quantity) > 0 && w.Quantity.Cmp(held[i].Quantity) > 0 {
			return refuse(steading.ReasonOverEnvironmentCap,
				"%s %s is over the %s that one environment of tenant %s may have, %s too much: lower spec.size.%s, or ask the operator to raise the Tenant's spec.quota.perEnvironment.%s",
				w.Name, show(w.Quantity), show(most[i].Quantity), t.Tenant, show(minus(w.Quantity, most[i].Quantity)), w.Name, w.Name)
		}
	}
	return nil
}

// tenantTotal refuses what the tenant's budget has no room for. Environments that are being deleted count. An environment
// that asks for no more than it holds is not refused: that would keep a tenant over a budget that was lowered from new
// versions, and from coming back under it.
func (t *tally) tenantTotal(a Applicant, want steading.Resources) *v1alpha1.Refusal {
	others := t.others(a).Amounts()
	budget := t.Quota.Total.Amounts()
	held := countedOf(a).Amounts()
	for i, w := range want.Amounts() {
		projected := others[i].Quantity.DeepCopy()
		projected.Add(w.Quantity)
		if projected.Cmp(budget[i].Quantity) <= 0 || w.Quantity.Cmp(held[i].Quantity) <= 0 {
			continue
		}
		return refuse(steading.ReasonOverTenantTotal,
			"%s of tenant %s would be %s (%s for this environment and %s for %s%s%s), the budget is %s, %s too much: %s, delete an environment, or ask the operator to raise the Tenant's spec.quota.total.%s",
			w.Name, t.Tenant, show(projected), show(w.Quantity), show(others[i].Quantity), count(t.othersSized(a), "other"), t.beingDeleted("counting"), t.notGivenBack(a, w.Name),
			show(budget[i].Quantity), show(minus(projected, budget[i].Quantity)), t.lower(a, w.Name), w.Name)
	}
	return nil
}

// lower says how to ask for less of a resource.
func (t *tally) lower(a Applicant, name string) string {
	if a.Request.Size != nil {
		return "lower spec.size." + name
	}
	return fmt.Sprintf("set spec.size.%s below the default of %s", name, show(amountOf(*t.Quota.PerEnvironment, name)))
}

// chart pins what is deployed.
func (t *tally) chart(a Applicant, v *verdict) *v1alpha1.Refusal {
	if t.Chart == nil && t.ChartProblem == "" {
		v.undecided = true
		return nil
	}
	if t.Chart == nil {
		return refuse(steading.ReasonChartNotResolved, "%s", t.ChartProblem)
	}
	v.grant.Version, v.grant.Chart = a.Request.Version, t.Chart.DeepCopy()
	v.step("deploy %s at version %s from chart %s %s", names.Release(t.Tenant), a.Request.Version, t.Chart.Repository, t.Chart.Version)
	return nil
}

// others is what all but the applicant use.
func (t *tally) others(a Applicant) steading.Resources { return less(t.total, countedOf(a)) }

func (t *tally) othersSized(a Applicant) int {
	if a.Held != nil && a.Held.counts() != nil {
		return t.sized - 1
	}
	return t.sized
}

func (t *tally) beingDeleted(counting string) string {
	if t.leaving == 0 {
		return ""
	}
	return fmt.Sprintf(", %s %d being deleted", counting, t.leaving)
}

// notGivenBack says how much of a resource others had before they were made smaller, and may be using still.
func (t *tally) notGivenBack(a Applicant, name string) string {
	q := amountOf(less(t.kept, a.Held.kept()), name)
	if q.IsZero() {
		return ""
	}
	return fmt.Sprintf(", counting %s that is in use still where a size was lowered", show(q))
}

// countedOf is what counts of the applicant in the total now.
func countedOf(a Applicant) steading.Resources {
	if a.Held == nil || a.Held.counts() == nil {
		return *steading.MustResources("0", "0", "0")
	}
	return *a.Held.counts()
}

// held is the size that the applicant has now.
func held(a Applicant) steading.Resources {
	if a.Held == nil || a.Held.Grant.Caps == nil {
		return *steading.MustResources("0", "0", "0")
	}
	return *a.Held.Grant.Caps
}

func less(r, o steading.Resources) steading.Resources {
	return steading.Resources{CPU: minus(r.CPU, o.CPU), Memory: minus(r.Memory, o.Memory), Storage: minus(r.Storage, o.Storage)}
}

func minus(a, b resource.Quantity) resource.Quantity {
	d := a.DeepCopy()
	d.Sub(b)
	return d
}

// show writes a quantity the short way: 36864Mi is 36Gi.
func show(q resource.Quantity) string { return q.String() }

func amounts(r steading.Resources) string {
	return fmt.Sprintf("%s CPU, %s memory, %s storage", show(r.CPU), show(r.Memory), show(r.Storage))
}

func amountOf(r steading.Resources, name string) resource.Quantity {
	for _, a := range r.Amounts() {
		if a.Name == name {
			return a.Quantity
		}
	}
	return resource.Quantity{}
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func refuse(reason xpv2.ConditionReason, format string, args ...any) *v1alpha1.Refusal {
	return &v1alpha1.Refusal{Reason: string(reason), Message: fmt.Sprintf(format, args...)}
}
