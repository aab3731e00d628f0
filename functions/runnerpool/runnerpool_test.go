package runnerpool

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/apis/names"
	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/functions/compose"
	"github.com/steading-dev/steading/functions/compose/composetest"
)

const podTemplate = `{"spec":{"containers":[{"name":"job","image":"alpine:3","resources":{"limits":{"cpu":2}}}],"aFieldOfTomorrow":{"x":1}}}`

func settings() steading.RunnerPoolSpec {
	return steading.RunnerPoolSpec{
		Forgejo: steading.ForgejoServer{
			URL: "https://git.example.com", Scope: steading.ForgejoScope{Organization: "acme"},
			TokenSecretRef: steading.TokenSecretReference{Name: "forgejo-pat", Key: steading.DefaultTokenKey},
		},
		Labels: []string{"docker"}, JobNamespace: "acme-ci", MaxRunners: 5, Assignment: steading.AssignAny, Fairness: steading.FairnessNone,
		Pod: &steading.RunnerPod{JobContainer: steading.DefaultJobContainer, Template: runtime.RawExtension{Raw: []byte(podTemplate)}},
	}
}

// suspended are the same settings, of a pool that is suspended.
func suspended() steading.RunnerPoolSpec {
	s := settings()
	s.Suspend = true
	return s
}

func composite(t *testing.T, spec steading.RunnerPoolSpec, phase steading.RunnerPoolPhase) *unstructured.Unstructured {
	t.Helper()
	return composetest.Composite(t, steading.XRunnerPoolKind, &steading.RunnerPool{Spec: spec, Status: steading.RunnerPoolStatus{Phase: phase}}, "tenant-acme", "linux")
}

func is(t xpv2.ConditionType, status bool, reason xpv2.ConditionReason, message string) xpv2.Condition {
	if status {
		return compose.True(t, reason, message)
	}
	return compose.False(t, reason, message)
}

// saying makes a Runner say something of its queue and its runners.
func saying(watched, made xpv2.Condition) func(*forgejov1.Runner) {
	return func(r *forgejov1.Runner) {
		r.SetConditions(watched, made, xpv2.ReconcileSuccess())
		if watched.Status == "True" && made.Status == "True" {
			r.SetConditions(xpv2.Available())
		} else {
			r.SetConditions(xpv2.Unavailable())
		}
	}
}

var (
	polled = is(steading.ConditionQueueWatched, true, steading.ReasonPolled, "")
	making = is(steading.ConditionRunnersMade, true, steading.ReasonMaking, "")
)

func unwatched(reason xpv2.ConditionReason, message string) xpv2.Condition {
	return is(steading.ConditionQueueWatched, false, reason, message)
}

func unmade(reason xpv2.ConditionReason, message string) xpv2.Condition {
	return is(steading.ConditionRunnersMade, false, reason, message)
}

func TestPhaseAndMessage(t *testing.T) {
	cases := map[string]struct {
		reason  string
		spec    steading.RunnerPoolSpec
		edit    func(*forgejov1.Runner)
		before  steading.RunnerPoolPhase
		phase   steading.RunnerPoolPhase
		message string
		event   string
		ready   bool
	}{
		"New": {
			reason: "A pool whose Runner is not there yet is pending.", spec: settings(),
			phase: steading.RunnerPoolPending, message: "the queue was not looked at yet",
		},
		"Silent": {
			reason: "So is one whose Runner has nothing to say yet.", spec: settings(), edit: func(*forgejov1.Runner) {},
			phase: steading.RunnerPoolPending, message: "the queue was not looked at yet",
		},
		"Ready": {
			reason: "A watched queue with room for runners is ready, and says so once.", spec: settings(), edit: saying(polled, making),
			before: steading.RunnerPoolPending, phase: steading.RunnerPoolReady, event: "Ready", ready: true,
		},
		"StillReady": {
			reason: "What is no news is no event.", spec: settings(), edit: saying(polled, making),
			before: steading.RunnerPoolReady, phase: steading.RunnerPoolReady, ready: true,
		},
		"WaitingJob": {
			reason: "A ready pool says why the first job waits.", spec: settings(),
			edit: func(r *forgejov1.Runner) {
				saying(polled, making)(r)
				r.Status.AtProvider.Reasons = []string{"at maxRunners: 3 jobs wait", "no pool serves label arm64"}
			},
			before: steading.RunnerPoolReady, phase: steading.RunnerPoolReady, message: "at maxRunners: 3 jobs wait", ready: true,
		},
		"Unreachable": {
			reason: "A server that does not answer is told apart from a pool that has to be mended.", spec: settings(),
			edit:   saying(unwatched(steading.ReasonServerUnreachable, "no answer in 10s"), making),
			before: steading.RunnerPoolReady, phase: steading.RunnerPoolUnreachable, message: "no answer in 10s", event: "Unreachable",
		},
		"WrongAnswer": {
			reason: "So is one that answers with something else than Forgejo's API.", spec: settings(),
			edit:  saying(unwatched(steading.ReasonWrongAnswer, "an HTML page"), making),
			phase: steading.RunnerPoolUnreachable, message: "an HTML page", event: "Unreachable",
		},
		"NoToken": {
			reason: "A missing token is the tenant's to mend.", spec: settings(),
			edit:   saying(unwatched(steading.ReasonTokenMissing, "Secret forgejo-pat has no key token"), making),
			before: steading.RunnerPoolReady, phase: steading.RunnerPoolPending, message: "Secret forgejo-pat has no key token",
		},
		"BackingOff": {
			reason: "Failures hold runners back for a while.", spec: settings(),
			edit:   saying(polled, unmade(steading.ReasonBackingOff, "until 12:00: image x cannot be pulled")),
			before: steading.RunnerPoolReady, phase: steading.RunnerPoolBackingOff, message: "until 12:00: image x cannot be pulled", event: "BackingOff",
		},
		"UnreachableWhileBackingOff": {
			reason: "A server that does not answer comes first, since nothing is known of the runners.", spec: settings(),
			edit:   saying(unwatched(steading.ReasonServerUnreachable, "no answer in 10s"), unmade(steading.ReasonBackingOff, "until 12:00")),
			before: steading.RunnerPoolBackingOff, phase: steading.RunnerPoolUnreachable, message: "no answer in 10s", event: "Unreachable",
		},
		"Refused": {
			reason: "A template that is refused makes no runners.", spec: settings(),
			edit:   saying(polled, unmade(steading.ReasonTemplateRefused, "spec.hostNetwork is not allowed")),
			before: steading.RunnerPoolReady, phase: steading.RunnerPoolPending, message: "spec.hostNetwork is not allowed",
		},
		"Suspended": {
			reason: "A suspended pool says so.", spec: suspended(),
			edit:   saying(polled, unmade(steading.ReasonSuspended, "spec.suspend is true")),
			before: steading.RunnerPoolReady, phase: steading.RunnerPoolSuspended, message: "spec.suspend is true", event: "Suspended",
		},
		"NotYetSuspended": {
			reason: "It is suspended once the provider has taken note, and not before.", spec: suspended(), edit: saying(polled, making),
			before: steading.RunnerPoolReady, phase: steading.RunnerPoolReady, ready: true,
		},
		"Unsynced": {
			reason: "An error of the reconciler's stands in for conditions that were never written.", spec: settings(),
			edit:  func(r *forgejov1.Runner) { r.SetConditions(xpv2.ReconcileError(errors.New("cannot read the claim"))) },
			phase: steading.RunnerPoolPending, message: "cannot read the claim",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out, err := Compose(composetest.Observed(t, Compose, composite(t, tc.spec, tc.before), runner, tc.edit))
			if err != nil {
				t.Fatal(err)
			}
			s := out.Status.(*steading.RunnerPoolStatus) //nolint:forcetypeassert // A test.
			if s.Phase != tc.phase || s.Message != tc.message || out.Ready != tc.ready {
				t.Errorf("%s: have %s, %q, ready %t", tc.reason, s.Phase, s.Message, out.Ready)
			}
			event := ""
			if len(out.Events) > 0 {
				event = out.Events[0].Reason
			}
			if event != tc.event || len(out.Events) > 1 {
				t.Errorf("%s: have events %v, want %q", tc.reason, out.Events, tc.event)
			}
		})
	}
}

// TestRunnerIsTheClaims: the Runner has the claim's settings as they are, templates with fields that nobody here knows included.
func TestRunnerIsTheClaims(t *testing.T) {
	out, err := Compose(compose.Input{Composite: composite(t, settings(), "")})
	if err != nil {
		t.Fatal(err)
	}
	r := out.Children[runner].Object.(*forgejov1.Runner) //nolint:forcetypeassert // A test.
	if r.Name != "acme-linux" || r.Namespace != names.SystemNamespace {
		t.Errorf("it is %s/%s", r.Namespace, r.Name)
	}
	want := forgejov1.RunnerParameters{
		Identity: runtimev1.Identity{Tenant: "acme", UID: "11111111-2222-3333-4444-555555555555"},
		Claim:    runtimev1.ClaimReference{Namespace: "tenant-acme", Name: "linux"},
		Settings: settings(),
	}
	if diff := cmp.Diff(plain(t, want), plain(t, r.Spec.ForProvider)); diff != "" {
		t.Errorf("-want, +have:\n%s", diff)
	}
}

// plain is what o says, however it is laid out.
func plain(t *testing.T, o any) any {
	t.Helper()
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	var p any
	if err := json.Unmarshal(raw, &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestAChangeIsNotReadyBeforeItIsApplied: what the Runner says is of the settings that it has.
func TestAChangeIsNotReadyBeforeItIsApplied(t *testing.T) {
	in := composetest.Observed(t, Compose, composite(t, settings(), steading.RunnerPoolReady), runner, saying(polled, making))
	changed := settings()
	changed.Pod.Template.Raw = []byte(`{"spec":{"containers":[{"name":"job","image":"alpine:4"}]}}`)
	in.Composite = composite(t, changed, steading.RunnerPoolReady)
	out, err := Compose(in)
	if err != nil {
		t.Fatal(err)
	}
	if out.Ready || out.Children[runner].Ready {
		t.Error("ready, although the Runner has the old template")
	}
}

// TestDesiredNeverShrinks: with every answer of the Runner and every phase before, the Runner stays desired with its finalizer,
// nothing is ready that is not there, and the same input gives the same output.
func TestDesiredNeverShrinks(t *testing.T) {
	watched := []xpv2.Condition{{}, polled}
	for _, r := range []xpv2.ConditionReason{steading.ReasonTokenMissing, steading.ReasonTokenRefused, steading.ReasonScopeGone, steading.ReasonServerUnreachable, steading.ReasonWrongAnswer, steading.ReasonServerUnsupported, steading.ReasonAddressRefused} {
		watched = append(watched, unwatched(r, "why"))
	}
	made := []xpv2.Condition{{}, making}
	for _, r := range []xpv2.ConditionReason{steading.ReasonBackingOff, steading.ReasonSuspended, steading.ReasonJobNamespaceRefused, steading.ReasonTemplateRefused, steading.ReasonRunnerImageMissing, steading.ReasonKubeVirtMissing} {
		made = append(made, unmade(r, "why"))
	}
	for _, spec := range []steading.RunnerPoolSpec{settings(), suspended()} {
		for _, w := range watched {
			for _, m := range made {
				for _, before := range []steading.RunnerPoolPhase{"", steading.RunnerPoolReady, steading.RunnerPoolUnreachable} {
					name := fmt.Sprintf("suspend %t, %s, %s, %q before", spec.Suspend, w.Reason, m.Reason, before)
					in := composetest.Observed(t, Compose, composite(t, spec, before), runner, func(r *forgejov1.Runner) {
						for _, c := range []xpv2.Condition{w, m} {
							if c.Type != "" {
								r.SetConditions(c)
							}
						}
						if w.Status == "True" && m.Status == "True" {
							r.SetConditions(xpv2.Available())
						}
					})
					checkDesired(t, name, in)
					checkDesired(t, name+", not observed", compose.Input{Composite: in.Composite})
				}
			}
		}
	}
}

func checkDesired(t *testing.T, name string, in compose.Input) {
	t.Helper()
	first, err := Compose(in)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	c, ok := first.Children[runner]
	if !ok || len(first.Children) != 1 {
		t.Fatalf("%s: desired are %v, want the Runner", name, first.Children)
	}
	if !slices.Contains(c.Object.GetFinalizers(), names.Finalizer) {
		t.Fatalf("%s: the Runner is desired without its finalizer, so Crossplane would take that from it", name)
	}
	if _, exists := in.Children[runner]; !exists && (c.Ready || first.Ready) || first.Ready != c.Ready {
		t.Fatalf("%s: ready %t, the Runner %t, which is there: %t", name, first.Ready, c.Ready, exists)
	}
	again, err := Compose(in)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plain(t, first), plain(t, again)); diff != "" {
		t.Fatalf("%s: two runs differ:\n%s", name, diff)
	}
}

func TestPoolOutsideATenantIsRefused(t *testing.T) {
	pool := composetest.Composite(t, steading.XRunnerPoolKind, &steading.RunnerPool{Spec: settings()}, "default", "linux")
	if _, err := Compose(compose.Input{Composite: pool}); err == nil {
		t.Fatal("no error")
	}
}

func TestUndecodableRunnerIsAnError(t *testing.T) {
	in := composetest.Observed(t, Compose, composite(t, settings(), ""), runner, func(*forgejov1.Runner) {})
	if err := unstructured.SetNestedField(in.Children[runner].Object, "many", "status", "atProvider", "waiting"); err != nil {
		t.Fatal(err)
	}
	if _, err := Compose(in); err == nil {
		t.Fatal("no error, so that a Runner that nobody can read would be written over")
	}
}
