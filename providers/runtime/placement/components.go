package placement

import (
	"errors"
	"fmt"
	"strings"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
)

// maxValues is how many bytes of values a claim may give a component. More fits into what valuesFrom names.
const maxValues = 32 << 10

// candidates are the components that an applicant asks for. No registry is waited for: where one has to be asked, its
// answer wakes the tenant.
func (p *pass) candidates(a Applicant) []Candidate {
	if record(a.Request) {
		return nil
	}
	var held *v1alpha1.Grant
	if a.Held != nil {
		held = &a.Held.Grant
	}
	all := make([]Candidate, 0, len(a.Request.Components))
	for _, r := range a.Request.Components {
		all = append(all, p.candidate(r, r.Pin(held.Component(r.Name))))
	}
	return all
}

// candidate is a component in the first of the allowed repositories that has it. A registry that cannot say whether it does
// is not passed over: what another has under the same name may be something else.
func (p *pass) candidate(r v1alpha1.ComponentRequest, pin *v1alpha1.Chart) Candidate {
	c := Candidate{Request: r}
	if n := len(r.CanonicalValues()); n > maxValues {
		c.refuse(steading.ReasonComponentRefused, "its values are %d bytes long, %d are allowed: move some of them to a ConfigMap and name it in valuesFrom", n, maxValues)
		return c
	}
	sources := p.componentSources(r, pin)
	for _, s := range sources {
		chart, err := p.charts.Resolve(p.tenant, s)
		switch {
		case errors.Is(err, ErrAsking):
			return c
		case errors.As(err, new(*AbsentError)):
			continue
		case err != nil:
			c.refuse(steading.ReasonChartNotResolved, "%s", kit.CleanMessage(err.Error()))
			return c
		}
		c.found(s, chart)
		return c
	}
	c.refuse(steading.ReasonComponentRefused, "chart %s version %s is in none of the repositories that the operator allows (%s): correct it, or ask the operator to publish it there or to allow its repository in components of the ClusterProviderConfig",
		r.Chart, r.Version, triedIn(sources))
	return c
}

// componentSources are where a component's chart may come from, in order. A chart that was pinned stays where it is, as long
// as the operator allows that.
func (p *pass) componentSources(r v1alpha1.ComponentRequest, pin *v1alpha1.Chart) []ChartSource {
	if p.config == nil {
		return nil
	}
	var all []ChartSource
	for _, allowed := range p.config.Spec.Components {
		s := sourceIn(p.config, v1alpha1.ChartSource{Repository: names.ComponentChart(allowed.Prefix, r.Chart), Version: r.Version})
		s.Values = r.CanonicalValues()
		if pin != nil && pin.Repository == s.Repository {
			s.Pinned = pin.Digest
			return []ChartSource{s}
		}
		all = append(all, s)
	}
	return all
}

func triedIn(sources []ChartSource) string {
	if len(sources) == 0 {
		return "none"
	}
	tried := make([]string, 0, len(sources))
	for _, s := range sources {
		tried = append(tried, s.Repository)
	}
	return strings.Join(tried, ", ")
}

func (c *Candidate) found(s ChartSource, chart ResolvedChart) {
	switch {
	case chart.NeedsProblem == "":
		c.Needs = &chart.Needs
	case !c.Request.MoreValues:
		c.refuse(steading.ReasonComponentRefused, "%s", kit.CleanMessage(chart.NeedsProblem))
		return
	}
	c.Chart = &v1alpha1.Chart{Repository: s.Repository, Version: s.Version, Digest: chart.Digest}
}

func (c *Candidate) refuse(reason xpv2.ConditionReason, format string, args ...any) {
	c.Refusal = refuse(reason, "component %s: %s", c.Request.Name, fmt.Sprintf(format, args...))
}

// within caps is what the component needs, as far as it can be told.
func (c *Candidate) within(caps steading.Resources) steading.Resources {
	if c.Needs == nil {
		return *steading.MustResources("0", "0", "0")
	}
	return c.Needs.Within(caps)
}

// components pins the charts of components.
func (t *tally) components(a Applicant, v *verdict) *v1alpha1.Refusal {
	asked := map[string]bool{}
	for _, c := range a.Components {
		asked[c.Request.Name] = true
		switch {
		case c.Refusal != nil:
			return c.Refusal
		case c.Chart == nil:
			v.undecided = true
			continue
		}
		v.grant.Components = append(v.grant.Components, c.Request.Granted(*c.Chart))
		note := ""
		if c.Needs == nil {
			note = "; what it needs depends on valuesFrom and is not counted"
		}
		v.step("deploy component %s as %s from chart %s %s%s", c.Request.Name, names.ComponentRelease(t.Tenant, c.Request.Name), c.Chart.Repository, c.Chart.Version, note)
	}
	if a.Held == nil {
		return nil
	}
	for _, g := range a.Held.Grant.Components {
		if !asked[g.Name] {
			v.step("uninstall component %s", g.Name)
		}
	}
	return nil
}
