package serve

import (
	"fmt"
	"maps"
	"slices"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steading-dev/steading/apis/definitions"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/functions/compose"
)

// machinery of a composite's status is Crossplane's to write.
var machinery = []string{"conditions", "claimConditionTypes", "connectionDetails", "lastHandledReconcileAt"}

// held is a composer that leaves all as it is. What c would compose tells only what is ready: if all that is asked for now is there
// already. Crossplane's own condition does not tell, since it may name a generation that came while an older one was composed.
func held(c compose.Composer) compose.Composer {
	return compose.ComposerFunc(func(in compose.Input) (compose.Output, error) {
		st, _, err := unstructured.NestedMap(in.Composite.Object, "status")
		if err != nil {
			return compose.Output{}, fmt.Errorf("cannot read the status of %s %q: %w", in.Composite.GetKind(), in.Composite.GetName(), err)
		}
		for _, m := range machinery {
			delete(st, m)
		}
		would, err := c.Compose(in)
		if err != nil {
			would = compose.Output{} // Nothing is known to be ready.
		}
		out := compose.Output{Status: &unstructured.Unstructured{Object: st}, Ready: would.Ready}
		for name, child := range in.Children {
			kept, err := compose.Keep(child)
			if err != nil {
				return compose.Output{}, fmt.Errorf("cannot keep composed %q: %w", name, err)
			}
			out.Add(name, compose.Child{Object: kept, Ready: would.Children[name].Ready})
		}
		return out, nil
	})
}

func conditionOf(u *unstructured.Unstructured, t xpv2.ConditionType) xpv2.Condition {
	conditions, _, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "conditions")
	all, _ := conditions.([]any)
	for _, c := range all {
		m, ok := c.(map[string]any)
		if !ok || m["type"] != string(t) {
			continue
		}
		of := func(field string) string { v, _ := m[field].(string); return v }
		return xpv2.Condition{Type: t, Status: corev1.ConditionStatus(of("status")), Reason: xpv2.ConditionReason(of("reason")), Message: of("message")}
	}
	return xpv2.Condition{Type: t}
}

// say whether the definitions are current of what is written for a composite, by the function or, as its children say, by their
// provider. Where nothing ever was wrong nothing is said. What once was said is said again when Crossplane has lost it: it calls all
// conditions unknown after a call that failed.
func say(in compose.Input, v definitions.Verdict, out *compose.Output) {
	if !v.Holds() {
		v = verdictOfChildren(in)
	}
	said, now := conditionOf(in.Composite, steading.ConditionDefinitionsCurrent), v.Condition()
	if !v.Holds() && (said.Status == "" || said.Status == corev1.ConditionTrue) {
		return
	}
	out.Conditions = append(out.Conditions, now)
	if v.Holds() && !said.Equal(now) {
		out.Events = append(out.Events, compose.Event{Warning: true, Reason: string(v.Reason), Message: v.Message})
	}
}

// verdictOfChildren is the first that holds one up.
func verdictOfChildren(in compose.Input) definitions.Verdict {
	for _, name := range slices.Sorted(maps.Keys(in.Children)) {
		if c := conditionOf(in.Children[name], steading.ConditionDefinitionsCurrent); c.Status == "False" {
			return definitions.Verdict{Reason: c.Reason, Message: c.Message}
		}
	}
	return definitions.Verdict{}
}
