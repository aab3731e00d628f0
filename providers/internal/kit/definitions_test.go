package kit

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/google/go-cmp/cmp"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/steading-dev/steading/apis/definitions"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
)

const (
	boundaries = "boundaries.runtime.steading.dev"
	usages     = "usageevents.runtime.steading.dev"
)

// served are the definitions on an API server.
type served struct {
	client.WithWatch
	clock *clocktesting.FakeClock
	// looks gets a value each time when all were read.
	looks chan struct{}
	// fails is what reading a definition fails with, by name.
	fails map[string]error
}

// serve the definitions that this build knows.
func serve(t *testing.T) *served {
	t.Helper()
	s := runtime.NewScheme()
	if err := extv1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	b := fake.NewClientBuilder().WithScheme(s)
	for _, k := range definitions.All() {
		b = b.WithObjects(defined(k))
	}
	return &served{WithWatch: b.Build(), clock: clocktesting.NewFakeClock(time.Unix(0, 0)), looks: make(chan struct{}, 16), fails: map[string]error{}}
}

// Get a definition, for [Definitions].
func (w *served) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if key.Name == usages { // The last.
		defer func() { w.looks <- struct{}{} }()
	}
	if err := w.fails[key.Name]; err != nil {
		return err
	}
	return w.WithWatch.Get(ctx, key, obj, opts...)
}

// defined is a definition as an API server has it.
func defined(k definitions.Kind) *extv1.CustomResourceDefinition {
	return &extv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: k.Definition},
		Spec: extv1.CustomResourceDefinitionSpec{Versions: []extv1.CustomResourceDefinitionVersion{
			{Name: k.Version, Served: true, Storage: true, Schema: &extv1.CustomResourceValidation{OpenAPIV3Schema: k.Schema.DeepCopy()}},
		}},
		Status: extv1.CustomResourceDefinitionStatus{Conditions: []extv1.CustomResourceDefinitionCondition{{Type: extv1.Established, Status: extv1.ConditionTrue}}},
	}
}

// age a definition by a field of its spec, and return how to mend it.
func (w *served) age(t *testing.T, name, field string) (mend func()) {
	t.Helper()
	c := &extv1.CustomResourceDefinition{}
	if err := w.WithWatch.Get(t.Context(), client.ObjectKey{Name: name}, c); err != nil {
		t.Fatal(err)
	}
	whole := c.Spec.DeepCopy()
	delete(c.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties, field)
	if err := w.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return func() {
		c.Spec = *whole
		if err := w.Update(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
}

// definitions of a provider whose Releases write usage events.
func (w *served) definitions(record event.Recorder) *Definitions {
	return newDefinitions("provider-runtime", v1alpha1.GroupVersion, map[string][]string{"Release": {"UsageEvent"}}, w, Options{Log: logging.NewNopLogger(), Record: record, Clock: w.clock})
}

func TestHowOftenDefinitionsAreLookedAt(t *testing.T) {
	forbidden := kerrors.NewForbidden(schema.GroupResource{}, boundaries, errors.New("no role"))
	cases := map[string]struct {
		reason string
		broken func(*testing.T, *served)
		before bool
		want   time.Duration
	}{
		"Current":      {"All is well.", func(*testing.T, *served) {}, false, 5 * time.Minute},
		"Outdated":     {"Something is wrong.", func(t *testing.T, w *served) { w.age(t, boundaries, "forProvider") }, false, 30 * time.Second},
		"Absent":       {"Something is missing.", func(t *testing.T, w *served) { w.remove(t, boundaries) }, false, 30 * time.Second},
		"Forbidden":    {"It cannot be told.", func(_ *testing.T, w *served) { w.fails[boundaries] = forbidden }, false, 30 * time.Second},
		"Unreachable":  {"Nobody is let go before the first look.", func(_ *testing.T, w *served) { w.fails[boundaries] = errors.New("connection refused") }, false, time.Second},
		"UnreachedNow": {"Later it is one thing that is wrong.", func(_ *testing.T, w *served) { w.fails[boundaries] = errors.New("connection refused") }, true, 30 * time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := serve(t)
			d := w.definitions(event.NewNopRecorder())
			if tc.before {
				d.look(t.Context())
			}
			tc.broken(t, w)
			if have := d.look(t.Context()); have != tc.want {
				t.Errorf("%s have %s, want %s", tc.reason, have, tc.want)
			}
			if have := d.lookedOnce(); have != (tc.want != time.Second) {
				t.Errorf("%s looked: %t", tc.reason, have)
			}
		})
	}
}

func (w *served) remove(t *testing.T, name string) {
	t.Helper()
	if err := w.Delete(t.Context(), &extv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
}

// TestDefinitionsGoByTheClockAndByChanges of what is watched.
func TestDefinitionsGoByTheClockAndByChanges(t *testing.T) {
	w := serve(t)
	d := w.definitions(event.NewNopRecorder())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Start(ctx) }()
	steps := []struct {
		reason string
		do     func()
	}{
		{"At the start.", func() {}},
		{"After five minutes.", func() { w.clock.Step(definitionsEvery) }},
		{"When one has changed.", func() { d.changed(boundaries) }},
		{"After five more.", func() { w.clock.Step(definitionsEvery) }},
	}
	for _, s := range steps {
		s.do()
		select {
		case <-w.looks:
		case <-time.After(time.Minute):
			t.Fatalf("%s It was not looked.", s.reason)
		}
		for !w.clock.HasWaiters() {
			time.Sleep(time.Millisecond) // The look goes on for a moment.
		}
	}
	d.changed("crontabs.example.org")
	if len(d.nudge) != 0 {
		t.Error("the definition of somebody else is looked at")
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestVerdicts on controllers, by what each writes.
func TestVerdicts(t *testing.T) {
	cases := map[string]struct {
		reason string
		broken func(*testing.T, *served)
		want   map[string]string // Reason by controller.
	}{
		"Current": {"Nobody is held.", func(*testing.T, *served) {}, map[string]string{"Boundary": "", "Release": ""}},
		"Own":     {"Who writes it is held.", func(t *testing.T, w *served) { w.age(t, boundaries, "forProvider") }, map[string]string{"Boundary": "DefinitionsOutdated", "Release": ""}},
		"Written": {"Who writes another is held by that too.", func(t *testing.T, w *served) { w.remove(t, usages) }, map[string]string{"Boundary": "", "Release": "DefinitionsNotReady"}},
		"Config": {"What an operator decides is lost for all.", func(t *testing.T, w *served) {
			w.age(t, "clusterproviderconfigs.runtime.steading.dev", "allowedTargets")
		}, map[string]string{"Boundary": "DefinitionsOutdated", "Release": "DefinitionsOutdated"}},
		"NotTold":  {"What cannot be told holds nobody.", func(_ *testing.T, w *served) { w.fails[boundaries] = errors.New("no") }, map[string]string{"Boundary": "", "Release": ""}},
		"StillOld": {"What was found before stays.", func(t *testing.T, w *served) { w.age(t, boundaries, "forProvider") }, map[string]string{"Boundary": "DefinitionsOutdated"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := serve(t)
			d := w.definitions(event.NewNopRecorder())
			tc.broken(t, w)
			d.look(t.Context())
			if name == "StillOld" {
				w.fails[boundaries] = errors.New("connection refused")
				d.look(t.Context())
			}
			have := map[string]string{}
			for controller := range tc.want {
				have[controller] = string(d.hold(controller).verdict.Reason)
			}
			if diff := cmp.Diff(tc.want, have); diff != "" {
				t.Errorf("%s\n-want, +have:\n%s", tc.reason, diff)
			}
		})
	}
}
