package definitions

import (
	"fmt"
	"slices"
	"strings"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// A Finding is what was found of one kind. Neither missing nor absent, it is current.
type Finding struct {
	Kind
	// Missing of it in what is served: see [Kind.Missing].
	Missing []string
	// Absent is whether the API server does not serve it.
	Absent bool
}

// Current reports whether nothing would be lost.
func (f Finding) Current() bool { return len(f.Missing) == 0 && !f.Absent }

// Find holds the kind against its definition on an API server, nil when there is none.
func (k Kind) Find(served *extv1.CustomResourceDefinition) Finding {
	if served == nil || served.DeletionTimestamp != nil || !established(served) {
		return Finding{Kind: k, Absent: true}
	}
	for _, v := range served.Spec.Versions {
		if v.Name == k.Version && v.Served {
			return Finding{Kind: k, Missing: k.Missing(schemaOf(v))}
		}
	}
	return Finding{Kind: k, Missing: []string{"version " + k.Version}}
}

func established(crd *extv1.CustomResourceDefinition) bool {
	return slices.ContainsFunc(crd.Status.Conditions, func(c extv1.CustomResourceDefinitionCondition) bool {
		return c.Type == extv1.Established && c.Status == extv1.ConditionTrue
	})
}

func schemaOf(v extv1.CustomResourceDefinitionVersion) extv1.JSONSchemaProps {
	if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		return extv1.JSONSchemaProps{}
	}
	return *v.Schema.OpenAPIV3Schema
}

// A Verdict on all that some software writes. The zero value: it may.
type Verdict struct {
	// Reason of the condition DefinitionsCurrent; empty while it may.
	Reason xpv2.ConditionReason
	// Message names kinds, fields and what to do.
	Message string
}

// Holds reports whether nothing may be written.
func (v Verdict) Holds() bool { return v.Reason != "" }

// Condition that says the verdict.
func (v Verdict) Condition() xpv2.Condition {
	if !v.Holds() {
		return xpv2.Condition{Type: steading.ConditionDefinitionsCurrent, Status: "True", Reason: steading.ReasonCurrent}
	}
	return xpv2.Condition{Type: steading.ConditionDefinitionsCurrent, Status: "False", Reason: v.Reason, Message: v.Message}
}

// Judge sums up what was found, for the software of a name. What is older comes before what is not there, since only that loses
// anything.
func Judge(software string, found ...Finding) Verdict {
	var older, absent []string
	for _, f := range group(found) {
		switch {
		case f.finding.Absent:
			absent = append(absent, fmt.Sprintf("the API server does not serve %s: %s", f.kinds(), f.finding.bring(software)))
		case len(f.finding.Missing) > 0:
			older = append(older, fmt.Sprintf("the definition of %s is older than %s and would lose %s: %s", f.kinds(), software, some(f.finding.Missing, fewFields), f.finding.bring(software)))
		}
	}
	switch {
	case len(older) > 0:
		return Verdict{steading.ReasonDefinitionsOutdated, some(older, fewKinds)}
	case len(absent) > 0:
		return Verdict{steading.ReasonDefinitionsNotReady, some(absent, fewKinds)}
	default:
		return Verdict{}
	}
}

// What a message names at most.
const (
	fewFields = 4
	fewKinds  = 2
)

// grouped are findings that say the same of a claim and its composite.
type grouped struct {
	names   []string
	finding Finding
}

func (g grouped) kinds() string { return strings.Join(g.names, " and ") }

func group(found []Finding) []grouped {
	var all []grouped
	for _, f := range found {
		i := slices.IndexFunc(all, func(g grouped) bool {
			return f.XRD != "" && g.finding.XRD == f.XRD && g.finding.Absent == f.Absent && slices.Equal(g.finding.Missing, f.Missing)
		})
		if i < 0 {
			all = append(all, grouped{finding: f})
			i = len(all) - 1
		}
		all[i].names = append(all[i].names, f.Kind.Kind)
	}
	return all
}

// bring says what to do.
func (f Finding) bring(software string) string {
	if f.XRD != "" {
		return fmt.Sprintf("bring package configuration-steading, or XRD %s, to the version of %s", f.XRD, software)
	}
	provider, _, _ := strings.Cut(f.Group, ".")
	return fmt.Sprintf("bring package provider-%s, or CustomResourceDefinition %s, to the version of %s", provider, f.Definition, software)
}

func some(all []string, few int) string {
	sep := ", "
	if few == fewKinds {
		sep = "; "
	}
	if len(all) <= few {
		return strings.Join(all, sep)
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:few], sep), len(all)-few)
}
