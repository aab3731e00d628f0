package release

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
)

// component db at a version of its chart.
func component(version string, change ...func(*v1alpha1.ReleaseParameters)) v1alpha1.ReleaseParameters {
	return parameters("", append([]func(*v1alpha1.ReleaseParameters){func(p *v1alpha1.ReleaseParameters) {
		p.Component = &v1alpha1.ReleaseComponent{Name: "db", ValuesFrom: []steading.ValuesFrom{{Kind: "Secret", Name: "s"}}}
		p.Chart = v1alpha1.Chart{Repository: "r/components/db", Version: version, Digest: "sha256:" + version}
	}}, change...)...)
}

func stoppedPower(p *v1alpha1.ReleaseParameters) { p.Power = steading.PowerStopped }

// TestComponentsLife deploys, upgrades, stops and starts a component. It is no usage, and there is no image to choose.
func TestComponentsLife(t *testing.T) {
	w := newWorld(t)
	w.values, w.from = map[string]any{"a": "b"}, []string{"1"}
	w.want(component("1", func(p *v1alpha1.ReleaseParameters) { p.Values = &apiextensionsv1.JSON{Raw: []byte(`{"c":"d"}`)} }))
	w.runs(nil)
	w.settle()
	if st := w.mg.Status.AtProvider; st.State != v1alpha1.ReleaseDeployed || st.Deployed.Version != "1" || st.Image != nil || !kit.IsReady(w.mg) {
		t.Fatalf("got %+v, want it deployed and ready", st)
	}
	r, err := w.helm.cfg.Releases.Last("acme-devops")
	must(t, err)
	if diff := cmp.Diff(map[string]any{"a": "b", "c": "d"}, r.Config); diff != "" {
		t.Errorf("values: -want +got\n%s", diff)
	}
	for _, p := range []v1alpha1.ReleaseParameters{component("2"), component("2", stoppedPower), component("2")} {
		w.want(p)
		w.runs(nil)
		w.settle()
		if st := w.mg.Status.AtProvider; st.State != v1alpha1.ReleaseDeployed || st.Deployed.Version != "2" || st.Deployed.Power != p.Power {
			t.Fatalf("got %+v, want it deployed %s", st, p.Power)
		}
	}
	if ts := w.transitions(); len(ts) != 0 || w.asked != 0 {
		t.Errorf("it was recorded as usage %v, and %d images were asked for", ts, w.asked)
	}
}

func TestChangedValuesAreDeployed(t *testing.T) {
	w := newWorld(t)
	w.from = []string{"Secret/s/k/uid/1"}
	w.want(component("1"))
	w.runs(nil)
	w.settle()
	before := w.helm.records(t)
	w.restart()
	w.settle()
	if diff := cmp.Diff(before, w.helm.records(t)); diff != "" {
		t.Fatalf("nothing has changed: -want +got\n%s", diff)
	}
	w.from, w.values = []string{"Secret/s/k/uid/2"}, map[string]any{"a": "c"}
	w.settle()
	r, err := w.helm.cfg.Releases.Last("acme-devops")
	must(t, err)
	if r.Version != 2 || r.Config["a"] != "c" {
		t.Errorf("revision %d with values %v", r.Version, r.Config)
	}
}

func TestUnusableValuesLeaveWhatServes(t *testing.T) {
	w := newWorld(t)
	w.from = []string{"1"}
	w.want(component("1"))
	w.runs(nil)
	w.settle()
	w.from, w.valuesErr = []string{"2"}, unusable("there is no Secret s")
	w.settle()
	st := w.mg.Status.AtProvider
	if st.State != v1alpha1.ReleaseRolledBack || st.Reason != string(steading.ReasonValuesUnusable) || !strings.Contains(st.Message, "there is no Secret s; version 1 goes on serving") {
		t.Fatalf("got %+v", st)
	}
	w.from, w.valuesErr = []string{"3"}, nil
	w.settle()
	if st := w.mg.Status.AtProvider; st.State != v1alpha1.ReleaseDeployed || !kit.IsReady(w.mg) {
		t.Errorf("got %+v, want it deployed as soon as they are there", st)
	}
}

// TestHelmsErrorsQuoteNoSecret: charts and API servers quote what does not suit them.
func TestHelmsErrorsQuoteNoSecret(t *testing.T) {
	const password = "correct horse battery"
	w := newWorld(t)
	w.values = map[string]any{"password": password}
	w.secrecy.add(w.values)
	w.template = `{{ fail (printf "%s is too short" .Values.password) }}`
	w.want(component("1"))
	w.settle()
	if msg := w.mg.Status.AtProvider.Message; strings.Contains(msg, password) || !strings.Contains(msg, withheld+" is too short") {
		t.Errorf("message %q", msg)
	}
}

func TestRedact(t *testing.T) {
	var s secrecy
	s.add(map[string]any{"a": "hunter2!", "l": []any{"line one\nline two", 4711.0, true, nil, "ab"}, "q": `with "quotes"`})
	cause := errors.New("cause")
	for say, want := range map[string]string{
		"got hunter2!":                     "got (withheld)",
		`got "hunter2!"`:                   `got "(withheld)"`,
		"got aHVudGVyMiE=":                 "got (withheld)",
		"got line two":                     "got (withheld)",
		"port 4711 is true":                "port (withheld) is true",
		`got "with \"quotes\""`:            `got "(withheld)"`,
		"ab is too short to be kept":       "ab is too short to be kept",
		"cannot install Helm release acme": "cannot install Helm release acme",
	} {
		err := s.redact(errors.Join(errors.New(say), cause))
		if have, _, _ := strings.Cut(err.Error(), "\n"); have != want {
			t.Errorf("of %q is said %q, want %q", say, have, want)
		}
		if !errors.Is(err, cause) {
			t.Error("the error is not itself any more")
		}
	}
	if s.redact(nil) != nil {
		t.Error("no error is one")
	}
}

// TestRecordTellsComponentsPower: a component is scaled to zero by what is done to its objects, of which its values tell
// nothing, so that a rollback finds it on the record.
func TestRecordTellsComponentsPower(t *testing.T) {
	w := newWorld(t)
	w.want(component("1"))
	w.runs(nil)
	w.settle()
	r, err := w.helm.cfg.Releases.Last("acme-devops")
	must(t, err)
	if p := recordOf(r.Labels, now).power; p != steading.PowerRunning {
		t.Errorf("Helm's record says power %q", p)
	}
}

func TestMerge(t *testing.T) {
	under := map[string]any{"a": map[string]any{"x": 1, "y": 2}, "b": "b", "c": map[string]any{"z": 3}}
	over := map[string]any{"a": map[string]any{"y": 4, "n": nil}, "b": map[string]any{"t": 5}, "c": "c"}
	want := map[string]any{"a": map[string]any{"x": 1, "y": 4, "n": nil}, "b": map[string]any{"t": 5}, "c": "c"}
	if diff := cmp.Diff(want, merge(over, under)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"x": 1, "y": 2}, under["a"]); diff != "" {
		t.Errorf("what is merged over was changed: -want +got\n%s", diff)
	}
}

func TestStopScalesToZero(t *testing.T) {
	for kind, want := range map[string]map[string]any{
		"apps/v1 Deployment":  {"replicas": int64(0)},
		"apps/v1 StatefulSet": {"replicas": int64(0)},
		"batch/v1 CronJob":    {"suspend": true},
		"batch/v1 Job":        {"suspend": true},
		"v1 ConfigMap":        nil,
	} {
		version, name, _ := strings.Cut(kind, " ")
		o := &unstructured.Unstructured{Object: map[string]any{}}
		o.SetAPIVersion(version)
		o.SetKind(name)
		must(t, stop(o))
		have, _, err := unstructured.NestedMap(o.Object, "spec")
		must(t, err)
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("%s: -want +got\n%s", kind, diff)
		}
	}
	broken := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "d"}, "spec": "none"}}
	if err := stop(broken); err == nil || !strings.Contains(err.Error(), `cannot stop Deployment "d"`) {
		t.Errorf("error %v", err)
	}
}

// TestComponentsTakeNoNameOfTheRuntimes: whichever of two releases that have an object of one name was deployed last would
// have it, and whichever is removed first would take it away.
func TestComponentsTakeNoNameOfTheRuntimes(t *testing.T) {
	for name, refused := range map[string]bool{
		"acme-devops": true, "acme-devops-home": true, "acme-mcp": true, "acme-edge": true,
		"acme-db": false, "acme-devopsdb": false, "acme-mcp-db": false,
	} {
		obj := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n"
		for _, component := range []string{"", "db"} {
			e, _ := newEngine()
			e.component = component
			err := e.deploy(t.Context(), of("r:1", obj))
			if refused && component != "" {
				if !errors.As(err, new(*refusedError)) || !strings.Contains(err.Error(), `ConfigMap "`+name+`", a name that is kept`) {
					t.Errorf("component with %s: got %v, want it refused", name, err)
				}
				if got := e.records(t); len(got) > 0 {
					t.Errorf("component with %s: recorded %v", name, got)
				}
			} else if err != nil {
				t.Errorf("component %q with %s: %v", component, name, err)
			}
		}
	}
}

func TestOnlyComponentsAreStoppedByTheirObjects(t *testing.T) {
	if s := stampOf(component("1", stoppedPower), nil); !s.stopped || s.component != "db" {
		t.Errorf("a stopped component has stamp %+v", s)
	}
	if s := stampOf(parameters("1", stoppedPower), nil); s.stopped || s.component != "" {
		t.Errorf("a stopped runtime has stamp %+v", s)
	}
}

func TestReadValues(t *testing.T) {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "tenant-acme", Name: name} }
	c := clientfake.NewClientBuilder().WithObjects(
		&corev1.ConfigMap{ObjectMeta: meta("low"), Data: map[string]string{"values.yaml": "a: {k: low, l: low}\nz: low\n"}},
		&corev1.Secret{ObjectMeta: meta("high"), Data: map[string][]byte{"more": []byte("a: {l: highest}\n"), "list": []byte("[1]"), "broken": []byte("a: *topsecret\n")}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-globex", Name: "theirs"}, Data: map[string][]byte{"values.yaml": []byte("a: b")}},
	).Build()
	r := referredValues{reader: c}
	with := func(from ...steading.ValuesFrom) v1alpha1.ReleaseParameters {
		return component("1", func(p *v1alpha1.ReleaseParameters) { p.Component.ValuesFrom = from })
	}
	low, high := steading.ValuesFrom{Kind: "ConfigMap", Name: "low"}, steading.ValuesFrom{Kind: "Secret", Name: "high", Key: "more"}
	have, secret, err := r.read(context.Background(), with(low, high))
	must(t, err)
	want := map[string]any{"a": map[string]any{"k": "low", "l": "highest"}, "z": "low"}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("a later one goes over an earlier one: -want +got\n%s", diff)
	}
	if err := secret.redact(errors.New("low and highest")); err.Error() != "low and "+withheld {
		t.Errorf("what a Secret gives is secret, and nothing else: %v", err)
	}
	for from, says := range map[steading.ValuesFrom]string{
		{Kind: "Secret", Name: "absent"}:                "there is no Secret absent in namespace tenant-acme: create it, or correct valuesFrom of component db",
		{Kind: "Secret", Name: "theirs"}:                "there is no Secret theirs in namespace tenant-acme",
		{Kind: "ConfigMap", Name: "low", Key: "absent"}: "ConfigMap low has no key absent",
		{Kind: "Secret", Name: "high", Key: "list"}:     "key list of Secret high is not a YAML table of values",
		{Kind: "Secret", Name: "high", Key: "broken"}:   "key broken of Secret high is not a YAML table of values",
	} {
		_, _, err := r.read(context.Background(), with(from))
		if err == nil || !strings.HasPrefix(err.Error(), says) || !errors.As(err, new(*valuesError)) || strings.Contains(err.Error(), "topsecret") {
			t.Errorf("of %+v is said %v, want %q", from, err, says)
		}
	}
}

func TestComponentsDigest(t *testing.T) {
	base := digest(component("1"), "s/1")
	for what, other := range map[string]string{
		"values":    digest(component("1", func(p *v1alpha1.ReleaseParameters) { p.Values = &apiextensionsv1.JSON{Raw: []byte(`{}`)} }), "s/1"),
		"version":   digest(component("2"), "s/1"),
		"power":     digest(component("1", stoppedPower), "s/1"),
		"secret":    digest(component("1"), "s/2"),
		"component": digest(component("1", func(p *v1alpha1.ReleaseParameters) { p.Component.Name = "other" }), "s/1"),
		"uid":       digest(component("1", func(p *v1alpha1.ReleaseParameters) { p.Identity.UID = "other" }), "s/1"),
	} {
		if other == base {
			t.Errorf("another %s is no other request", what)
		}
	}
	if resized := digest(component("1", func(p *v1alpha1.ReleaseParameters) { p.Caps = *steading.MustResources("1", "1Gi", "1Gi") }), "s/1"); resized != base {
		t.Error("another size of the environment deploys its components anew")
	}
}

func TestWakeWhoIsConcerned(t *testing.T) {
	w := newWorld(t)
	other := w.mg.DeepCopy()
	other.Name, other.Labels = "acme-dev.db", map[string]string{names.LabelTenant: "acme", names.LabelEnvironment: "dev"}
	must(t, w.Create(context.Background(), other))
	deployer := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "acme-dev", Name: names.Deployer, Labels: other.Labels}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "acme-dev", Name: "p", Labels: other.Labels}}
	ofDB := pod.DeepCopy()
	ofDB.Labels = map[string]string{names.LabelComponent: "db"}
	foreign := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "acme-dev"}}
	for what, tc := range map[string]struct {
		object client.Object
		want   []string
	}{
		"Namespace":        {namespaceOf(id), []string{"acme-dev", "acme-dev.db"}},
		"ForeignNamespace": {foreign, []string{"acme-dev"}},
		"Deployer":         {deployer, []string{"acme-dev", "acme-dev.db"}},
		"RuntimesPod":      {pod, []string{"acme-dev"}},
		"ComponentsPod":    {ofDB, []string{"acme-dev.db"}},
	} {
		var want []reconcile.Request
		for _, name := range tc.want {
			want = append(want, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: names.SystemNamespace, Name: name}})
		}
		if diff := cmp.Diff(want, waker{cache: w}.object("platform", tc.object)); diff != "" {
			t.Errorf("%s: -want +got\n%s", what, diff)
		}
	}
}
