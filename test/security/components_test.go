package security

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/cluster/local/platform"
	"github.com/steading-dev/steading/test/harness"
)

// stateOf a component of an environment.
func stateOf(e *steading.Environment, name string) steading.ComponentStatus {
	for _, c := range e.Status.Components {
		if c.Name == name {
			return c
		}
	}
	return steading.ComponentStatus{}
}

// TestHostileComponents: a component's chart may make no more than the runtime's. What it may not make is refused by name,
// nothing of the chart is made, and the runtime and the other components run.
func TestHostileComponents(t *testing.T) {
	suite.NewTenant(t, "hostilec", steading.TenantSpec{})
	cases := map[string]struct {
		template string
		crds     []*chart.File
		says     string
		made     string // what must not exist afterwards
	}{
		"lookup": {template: `{{ $s := lookup "v1" "Secret" "steading-system" "" }}apiVersion: v1` + "\nkind: ConfigMap\nmetadata: {name: loot}\ndata: {loot: {{ toJson $s | quote }}}\n",
			says: "cannot list resource", made: "ConfigMap.v1 hostilec-dev/loot"},
		"hook": {template: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hook, annotations: {helm.sh/hook: pre-install}}\n",
			says: `the chart wants a hook, ConfigMap "hook" in`, made: "ConfigMap.v1 hostilec-dev/hook"},
		"namespace": {template: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: evilc, namespace: tenant-hostilec}\n",
			says: `the chart wants ConfigMap "evilc" in namespace tenant-hostilec`, made: "ConfigMap.v1 tenant-hostilec/evilc"},
		"role": {template: "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: evilc}\nrules: []\n",
			says: `the chart wants ClusterRole "evilc", which is not of a namespace`, made: "ClusterRole.rbac.authorization.k8s.io/v1 evilc"},
		"crd": {template: harmless, crds: []*chart.File{{Name: "crds/evil.yaml", Data: []byte(customResource)}},
			says: "the chart brings the CustomResourceDefinition in hostile-crd/crds/evil.yaml", made: "CustomResourceDefinition.apiextensions.k8s.io/v1 evils.example.com"},
		"runtimes": {template: "apiVersion: v1\nkind: Service\nmetadata: {name: hostilec-mcp}\nspec: {ports: [{port: 1}]}\n",
			says: `the chart wants Service "hostilec-mcp", a name that is kept for the environment's runtime`},
	}
	e := harness.Environment("hostilec", "dev")
	suite.Create(t, e)
	suite.WaitFor(t, e, "ready", harness.Ready)
	pushComponent(t, "peaceful", harmless)
	wanted := []steading.Component{{Name: "peaceful", Chart: "peaceful", Version: "1.0.0"}}
	for name, tc := range cases {
		pushComponent(t, "hostile-"+name, tc.template, tc.crds...)
		wanted = append(wanted, steading.Component{Name: name, Chart: "hostile-" + name, Version: "1.0.0"})
	}
	harness.Change(t, &suite, e, func(e *steading.Environment) { e.Spec.Components = wanted })
	for name, tc := range cases {
		suite.WaitFor(t, e, "refuses "+name, func(e *steading.Environment) bool {
			s := stateOf(e, name)
			return (s.State == steading.ComponentFailed || s.State == steading.ComponentDeploying) && strings.Contains(s.Message, tc.says)
		})
		if tc.made != "" {
			wantMissing(t, tc.made)
		}
	}
	suite.WaitFor(t, e, "runs beside them", func(e *steading.Environment) bool {
		return e.Status.Phase == steading.EnvironmentRunning && stateOf(e, "peaceful").State == steading.ComponentRunning
	})
}

// TestChartsThatExhaust: charts that take all the memory and time there is end by themselves, are told why, and neither kill
// the provider nor keep another tenant waiting.
func TestChartsThatExhaust(t *testing.T) {
	suite.NewTenant(t, "exhausts", steading.TenantSpec{})
	suite.NewTenant(t, "besides", steading.TenantSpec{})
	cases := map[string]struct{ template, says string }{
		"repeats": {`{{ repeat 1000000000 "x" }}`, "of memory to render"},
		"counts":  {`{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}`, "of CPU time to render"},
		"aliases": {"a: &a " + strings.Repeat("x", 1000000) + "\nb: [" + strings.Repeat("*a,", 100000) + "]\n", "to render"},
		"doubles": {`{{ $x := "xxxxxxxxxxxxxxxx" }}{{ range until 40 }}{{ $x = print $x $x }}{{ end }}{{ $x }}`, "of memory to render"},
	}
	e := harness.Environment("exhausts", "dev")
	suite.Create(t, e)
	suite.WaitFor(t, e, "ready", harness.Ready)
	var wanted []steading.Component
	for name, tc := range cases {
		pushComponent(t, "exhausts-"+name, tc.template)
		// What is given by a Secret may be what is missing, so that the chart is tried when it is deployed, too.
		wanted = append(wanted, steading.Component{Name: name, Chart: "exhausts-" + name, Version: "1.0.0", ValuesFrom: []steading.ValuesFrom{{Kind: "ConfigMap", Name: "values"}}})
	}
	// Values of which aliases would make 50 GB.
	suite.Create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-exhausts", Name: "values"}, Data: map[string]string{"values.yaml": "a: b\n"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-exhausts", Name: "aliases"}, Data: map[string]string{
			"values.yaml": "a: &a " + strings.Repeat("x", 500000) + "\nb: [" + strings.Repeat("*a,", 100000) + "]\n",
		}})
	pushComponent(t, "peaceful", harmless)
	wanted = append(wanted, steading.Component{Name: "values", Chart: "peaceful", Version: "1.0.0", ValuesFrom: []steading.ValuesFrom{{Kind: "ConfigMap", Name: "aliases"}}})
	before := provider(t)
	harness.Change(t, &suite, e, func(e *steading.Environment) { e.Spec.Components = wanted })

	other := harness.Environment("besides", "dev")
	other.Spec.Components = []steading.Component{{Name: "peaceful", Chart: "peaceful", Version: "1.0.0"}}
	suite.Create(t, other)
	suite.WaitFor(t, other, "ready", harness.Ready)
	for name, tc := range cases {
		suite.WaitFor(t, e, "refuses "+name, func(e *steading.Environment) bool { return strings.Contains(stateOf(e, name).Message, tc.says) })
	}
	suite.WaitFor(t, e, "refuses values", func(e *steading.Environment) bool {
		return strings.Contains(stateOf(e, "values").Message, "key values.yaml of ConfigMap aliases cannot be used")
	})
	after := provider(t)
	if after.pid != before.pid {
		t.Errorf("the provider was killed: process %d is %d now", before.pid, after.pid)
	}
	if grew := after.peak - before.peak; grew > 128<<20 {
		t.Errorf("the provider's memory rose by %d MiB", grew>>20)
	}
}

// A running provider-runtime.
type running struct {
	pid int
	// peak of its memory in bytes.
	peak int64
}

func provider(t *testing.T) running {
	t.Helper()
	r := running{pid: suite.Plane.Supervisor.Pid(platform.Provider)}
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(raw), "\nVmHWM:")
	if _, err := fmt.Sscanf(after, "%d kB", &r.peak); err != nil {
		t.Fatal(err)
	}
	r.peak <<= 10
	return r
}

// inLabel is the needle of a password that a chart puts where it does not belong.
const inLabel = "password that a chart puts into a label"

// TestComponentValuesStaySecret plants a value in a Secret that components take values from, proves that it is used, has
// charts and API servers quote it in all that goes wrong, and looks for it wherever somebody may look who may not see
// Secrets. A Secret of another tenant by the same reference is not found.
func TestComponentValuesStaySecret(t *testing.T) {
	const withPassword = "apiVersion: v1\nkind: Secret\nmetadata: {name: used}\nstringData: {password: {{ .Values.password | quote }}}\n"
	pushComponent(t, "uses", withPassword)
	pushComponent(t, "quotes", `{{ fail (printf "the password %s does not suit" .Values.password) }}`)
	pushComponent(t, "invalid", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: invalid, labels: {password: \"no label {{ .Values.password }}\"}}\n")
	suite.NewTenant(t, "keepc", steading.TenantSpec{})
	suite.NewTenant(t, "theirs", steading.TenantSpec{})
	planted, labelled, theirs := random(), random(), random()
	needles := []needle{needleOf(t, "component's password", planted), needleOf(t, inLabel, labelled), needleOf(t, "another tenant's password", theirs)}
	values := func(namespace, name, password string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, StringData: map[string]string{"values.yaml": "password: " + password + "\n"}}
	}
	suite.Create(t, values("tenant-keepc", "planted", planted), values("tenant-keepc", "labelled", labelled), values("tenant-theirs", "theirs", theirs))

	e := harness.Environment("keepc", "dev")
	from := func(name string) []steading.ValuesFrom {
		return []steading.ValuesFrom{{Kind: "Secret", Name: name, Key: "values.yaml"}}
	}
	e.Spec.Components = []steading.Component{
		{Name: "uses", Chart: "uses", Version: "1.0.0", ValuesFrom: from("planted")},
		{Name: "quotes", Chart: "quotes", Version: "1.0.0", ValuesFrom: from("planted")},
		{Name: "invalid", Chart: "invalid", Version: "1.0.0", ValuesFrom: from("labelled")},
		{Name: "foreign", Chart: "uses", Version: "1.0.0", ValuesFrom: from("theirs")},
	}
	suite.Create(t, e)
	for name, says := range map[string]string{
		"quotes":  "the password (withheld) does not suit",
		"invalid": "no label (withheld)",
		"foreign": "there is no Secret theirs in namespace tenant-keepc",
	} {
		suite.WaitFor(t, e, name+" is told", func(e *steading.Environment) bool { return strings.Contains(stateOf(e, name).Message, says) })
	}
	suite.WaitFor(t, e, "uses it", func(e *steading.Environment) bool { return stateOf(e, "uses").State == steading.ComponentRunning })
	used := harness.Get(t, &suite, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "keepc-dev", Name: "used"}})
	if string(used.Data["password"]) != planted {
		t.Fatal("the planted password was not used, so this shows nothing")
	}
	for _, p := range search(t, needles) {
		// The API server's own audit log has what it answers, and so what a chart puts into a label that it does not take.
		if p.needle != inLabel || !strings.HasSuffix(p.where, "audit.log") {
			t.Error(p)
		}
	}
}
