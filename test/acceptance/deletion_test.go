package acceptance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/steading-dev/steading/apis/names"
	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/test/harness"
)

// held is a finalizer that nobody but the test takes away.
const held = "example.com/held"

// TestDeletionSaysWhatBlocksIt: whatever holds up a namespace is named on the claim, and deletion goes on as soon as it is
// out of the way.
func TestDeletionSaysWhatBlocksIt(t *testing.T) {
	t.Parallel()
	suite.NewTenant(t, "blocked", steading.TenantSpec{})
	cases := map[string]struct {
		reason string
		object func(namespace string) client.Object
		want   []string
	}{
		"object": {
			reason: "an object in the namespace has a finalizer of a controller that is gone",
			object: func(namespace string) client.Object {
				return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "settings"}}
			},
			want: []string{`configmaps "settings" (finalizers: example.com/held)`, "NamespaceFinalizersRemaining: Some content in the namespace has finalizers remaining: example.com/held in 1 resource instances"},
		},
		"namespace": {
			reason: "another controller's finalizer is on the namespace itself",
			object: func(namespace string) client.Object {
				return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
			},
			want: []string{`namespaces "blocked-namespace" (finalizers: example.com/held)`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := harness.Environment("blocked", name)
			suite.Create(t, e)
			suite.WaitFor(t, e, "ready", harness.Ready)
			uid := suite.CompositeUID(t, "blocked", name)
			obstacle := tc.object("blocked-" + name)
			hold(t, obstacle)

			suite.Delete(t, e)
			suite.WaitFor(t, e, "blocked", func(e *steading.Environment) bool {
				status, reason, message := harness.Condition(e, string(steading.ConditionDeletionBlocked))
				return e.Status.Phase == steading.EnvironmentDeletionBlocked && status == "True" &&
					reason == string(steading.ReasonNamespaceBlocked) && containsAll(message, tc.want)
			})
			wantEvent(t, e, "DeletionBlocked", tc.want...)
			letGo(t, obstacle)
			suite.WantGone(t, e)
			harness.WantNothingOwned(t, suite.Plane.Config(), uid)
			suite.WantUsage(t, uid, runtimev1.TransitionProvisioned, runtimev1.TransitionDeleted)
		})
	}
}

// hold an object by a finalizer, making it if it does not exist, and let it go when the test is over.
func hold(t *testing.T, o client.Object) {
	t.Helper()
	harness.Eventually(t, "hold "+o.GetName(), func(ctx context.Context) error {
		if err := suite.Admin.Get(ctx, client.ObjectKeyFromObject(o), o); client.IgnoreNotFound(err) != nil {
			return err
		} else if err != nil {
			controllerutil.AddFinalizer(o, held)
			return suite.Admin.Create(ctx, o)
		}
		controllerutil.AddFinalizer(o, held)
		return suite.Admin.Update(ctx, o)
	})
	t.Cleanup(func() {
		ctx := context.Background()
		if suite.Admin.Get(ctx, client.ObjectKeyFromObject(o), o) == nil && controllerutil.RemoveFinalizer(o, held) {
			_ = suite.Admin.Update(ctx, o)
		}
	})
}

// letGo of an object that is held.
func letGo(t *testing.T, o client.Object) {
	t.Helper()
	harness.Change(t, &suite, o, func(o client.Object) { controllerutil.RemoveFinalizer(o, held) })
}

func containsAll(s string, parts []string) bool {
	return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(s, p) })
}

// wantEvent waits for an event on a claim.
func wantEvent(t *testing.T, claim client.Object, reason string, parts ...string) {
	t.Helper()
	harness.Eventually(t, fmt.Sprintf("event %s on %s", reason, claim.GetName()), func(ctx context.Context) error {
		events := eventsOn(ctx, t, claim)
		for _, e := range events {
			if e.Reason == reason && containsAll(e.Message, parts) {
				return nil
			}
		}
		return fmt.Errorf("no such event with %q among %s", parts, lines(events))
	})
}

// eventsOn a claim, oldest first.
func eventsOn(ctx context.Context, t *testing.T, claim client.Object) []corev1.Event {
	t.Helper()
	all := &corev1.EventList{}
	if err := suite.Admin.List(ctx, all, client.InNamespace(claim.GetNamespace())); err != nil {
		t.Fatal(err)
	}
	events := slices.DeleteFunc(all.Items, func(e corev1.Event) bool { return e.InvolvedObject.UID != claim.GetUID() })
	slices.SortFunc(events, func(a, b corev1.Event) int { return a.FirstTimestamp.Compare(b.FirstTimestamp.Time) })
	return events
}

func lines(events []corev1.Event) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "\n%s %s (%d): %s", e.Type, e.Reason, e.Count, e.Message)
	}
	return b.String()
}

// TestDeletionAtEveryStage: an environment that never came to run goes like one that did, and leaves no more behind.
func TestDeletionAtEveryStage(t *testing.T) {
	t.Parallel()
	suite.NewTenant(t, "stage", steading.TenantSpec{})
	cases := map[string]struct {
		reason string
		edit   func(*steading.EnvironmentSpec)
		// until the environment is deleted.
		until func(*steading.Environment) bool
		// seen are usage events besides Deleted, if any.
		seen []runtimev1.Transition
	}{
		"record": {
			reason: "without a version nothing is ever deployed",
			edit:   func(s *steading.EnvironmentSpec) { s.Version = "" },
			until:  phase(steading.EnvironmentRegistered),
		},
		"agent": {
			reason: "of an agent there is only the record",
			edit:   func(s *steading.EnvironmentSpec) { s.Type = steading.TypeLocalAgent },
			until:  phase(steading.EnvironmentRegistered),
		},
		"planned": {
			reason: "a plan composes nothing",
			edit:   func(s *steading.EnvironmentSpec) { s.State = steading.StatePlanned },
			until:  func(e *steading.Environment) bool { return len(e.Status.Plan) > 0 },
		},
		"refused": {
			reason: "what was refused holds nothing",
			edit:   func(s *steading.EnvironmentSpec) { s.Size = steading.MustResources("17", "20Gi", "40Gi") },
			until:  refused(steading.ReasonOverEnvironmentCap),
		},
		"failed": {
			reason: "what failed is uninstalled",
			edit:   func(s *steading.EnvironmentSpec) { s.Version = versionNoPull },
			until:  phase(steading.EnvironmentFailed),
		},
		"placed": {
			reason: "it is deleted while its namespace is made",
			until:  func(e *steading.Environment) bool { return e.Status.Context != nil },
		},
		"installing": {
			reason: "it is deleted while Helm installs",
			until:  func(e *steading.Environment) bool { return exists(t, &runtimev1.Release{}, "stage-installing") },
		},
	}
	playFailures(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := harness.Environment("stage", name)
			if tc.edit != nil {
				tc.edit(&e.Spec)
			}
			suite.Create(t, e)
			suite.WaitFor(t, e, "where it is deleted", tc.until)
			uid := suite.CompositeUID(t, "stage", name)
			suite.Delete(t, e)
			suite.WantGone(t, e)
			harness.WantNothingOwned(t, suite.Plane.Config(), uid)
			wantPaired(t, uid)
		})
	}
}

func phase(want steading.EnvironmentPhase) func(*steading.Environment) bool {
	return func(e *steading.Environment) bool { return e.Status.Phase == want }
}

// refused for a reason, and with numbers or names that say why.
func refused(reason any, parts ...string) func(*steading.Environment) bool {
	return refusedBy(steading.ConditionAdmitted, reason, parts...)
}

// refusedBy is that by a condition, which is false for the reason.
func refusedBy(condition xpv2.ConditionType, reason any, parts ...string) func(*steading.Environment) bool {
	return func(e *steading.Environment) bool {
		status, r, message := harness.Condition(e, string(condition))
		return status == "False" && r == fmt.Sprint(reason) && containsAll(message, parts) && e.Status.Message == message
	}
}

// exists reports whether a managed resource does.
func exists(t *testing.T, o client.Object, name string) bool {
	t.Helper()
	err := suite.Admin.Get(t.Context(), client.ObjectKey{Namespace: names.SystemNamespace, Name: name}, o)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return err == nil
}

// wantPaired expects that what was provisioned once was deleted once, and what was not was not.
func wantPaired(t *testing.T, uid string) {
	t.Helper()
	events := &runtimev1.UsageEventList{}
	if err := suite.Admin.List(t.Context(), events, client.InNamespace(names.SystemNamespace)); err != nil {
		t.Fatal(err)
	}
	count := map[runtimev1.Transition]int{}
	for _, e := range events.Items {
		if string(e.Spec.Identity.UID) == uid {
			count[e.Spec.Transition]++
		}
	}
	if count[runtimev1.TransitionProvisioned] != count[runtimev1.TransitionDeleted] || count[runtimev1.TransitionDeleted] > 1 {
		t.Errorf("usage events: %v", count)
	}
}
