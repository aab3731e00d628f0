package install

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metricsql"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	corev1 "k8s.io/api/core/v1"
	_ "sigs.k8s.io/controller-runtime/pkg/controller" // Registers the metrics of controllers and their queues.
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// An alert is a rule of a PrometheusRule.
type alert struct {
	Alert, Expr, For string
	Labels           map[string]string
	Annotations      map[string]string
}

func alerts(t *testing.T) []alert {
	t.Helper()
	type prometheusRule struct {
		Metadata, Labels map[string]any
		Spec             struct {
			Groups []struct {
				Name  string
				Rules []alert
			}
		}
	}
	objects := read(t, "monitoring/20-alerts.yaml")
	b, err := objects[0].MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var r prometheusRule
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Spec.Groups) != 1 || len(r.Spec.Groups[0].Rules) == 0 {
		t.Fatalf("want one group of alerts, got %v", r.Spec.Groups)
	}
	return r.Spec.Groups[0].Rules
}

// A panel of the dashboard, and what it shows.
type panel struct {
	Title   string
	Targets []struct{ Expr string }
}

func panels(t *testing.T) []panel {
	t.Helper()
	c := objectsOf[corev1.ConfigMap](t, "monitoring/30-dashboard.yaml", "ConfigMap")[0]
	var d struct{ Panels []panel }
	if err := json.Unmarshal([]byte(c.Data["steading.json"]), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Panels) < 10 {
		t.Fatalf("the dashboard has %d panels", len(d.Panels))
	}
	return d.Panels
}

// A metric that a process serves.
type metric struct {
	kind   string
	labels []string
}

// served are the metrics of our own, as docs/metrics.md has them, which is generated from the sources.
func served(t *testing.T) map[string]metric {
	t.Helper()
	b, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]metric{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(steading_[a-z_]+)` \\| [a-z]+ \\| ([a-z]+) \\| ([^|]+) \\|").FindAllStringSubmatch(string(b), -1) {
		var labels []string
		for _, l := range regexp.MustCompile("`([a-z]+)`").FindAllStringSubmatch(row[3], -1) {
			labels = append(labels, l[1])
		}
		all[row[1]] = metric{kind: row[2], labels: labels}
	}
	if len(all) < 10 {
		t.Fatalf("found %d metrics in docs/metrics.md", len(all))
	}
	return all
}

// TestExpressionsAskForWhatIsServed: every alert and panel is PromQL, and names metrics and labels that there are.
func TestExpressionsAskForWhatIsServed(t *testing.T) {
	ours := served(t)
	expressions := map[string]string{}
	for _, a := range alerts(t) {
		expressions["alert "+a.Alert] = a.Expr
	}
	for _, p := range panels(t) {
		for i, target := range p.Targets {
			// Grafana puts a duration here.
			expressions[fmt.Sprintf("panel %s, %d", p.Title, i)] = strings.ReplaceAll(target.Expr, "$__rate_interval", "5m")
		}
	}
	for where, expr := range expressions {
		parsed, err := metricsql.Parse(expr)
		if err != nil {
			t.Errorf("%s: %s: %v", where, expr, err)
			continue
		}
		asked := 0
		metricsql.VisitAll(parsed, func(e metricsql.Expr) {
			m, ok := e.(*metricsql.MetricExpr)
			if !ok {
				return
			}
			for _, filters := range m.LabelFilterss {
				asked++
				if err := isServed(ours, filters); err != nil {
					t.Errorf("%s: %s: %v", where, expr, err)
				}
			}
		})
		if asked == 0 {
			t.Errorf("%s: %s asks for no metric", where, expr)
		}
	}
}

// isServed says what is wrong with a selector: its metric or its labels are none.
func isServed(ours map[string]metric, filters []metricsql.LabelFilter) error {
	if len(filters) == 0 || filters[0].Label != "__name__" {
		return fmt.Errorf("%v names no metric", filters)
	}
	name := filters[0].Value
	m, ok := ours[strings.TrimSuffix(name, "_bucket")]
	switch {
	case !strings.HasPrefix(name, "steading_"):
		if !registered(name) {
			return fmt.Errorf("no process of ours serves %s", name)
		}
		return nil
	case !ok:
		return fmt.Errorf("there is no metric %s", name)
	case strings.HasSuffix(name, "_bucket") != (m.kind == "histogram"):
		return fmt.Errorf("%s is asked of a %s", name, m.kind)
	}
	for _, f := range filters[1:] {
		if !slices.Contains(m.labels, f.Label) {
			return fmt.Errorf("%s has labels %v, not %s", name, m.labels, f.Label)
		}
	}
	return nil
}

// registered is whether controller-runtime or the process itself serves a metric: another one of its name is refused.
func registered(name string) bool {
	other := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: "Another."})
	processes := prometheus.NewRegistry()
	processes.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, r := range []prometheus.Registerer{ctrlmetrics.Registry, processes} {
		if r.Register(other) != nil {
			return true
		}
		r.Unregister(other)
	}
	return false
}

// TestWhatIsRegisteredIsTold: what TestExpressionsAskForWhatIsServed goes by can say no.
func TestWhatIsRegisteredIsTold(t *testing.T) {
	for name, want := range map[string]bool{"workqueue_depth": true, "process_cpu_seconds_total": true, "workqueue_length": false} {
		if got := registered(name); got != want {
			t.Errorf("%s: got %t, want %t", name, got, want)
		}
	}
}

func TestAlertsSayWhatTheyAreAbout(t *testing.T) {
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range alerts(t) {
		if !strings.HasPrefix(a.Alert, "Steading") || a.Annotations["summary"] == "" || a.Annotations["description"] == "" {
			t.Errorf("alert %s: annotations %v", a.Alert, a.Annotations)
		}
		if !slices.Contains([]string{"critical", "warning"}, a.Labels["severity"]) {
			t.Errorf("alert %s: severity %q", a.Alert, a.Labels["severity"])
		}
		if d, err := time.ParseDuration(a.For); err != nil || d < 5*time.Minute {
			t.Errorf("alert %s: for %q, want some minutes: %v", a.Alert, a.For, err)
		}
		if row := fmt.Sprintf("| `%s` | `%s` for %s |", a.Alert, a.Expr, a.For); !strings.Contains(string(page), row) {
			t.Errorf("docs/metrics.md has no row that begins with\n%s", row)
		}
	}
}

// TestPodsAreFound by the PodMonitors, at the port that Crossplane gives every process.
func TestPodsAreFound(t *testing.T) {
	found := map[string]bool{}
	for _, m := range read(t, "monitoring/10-podmonitors.yaml") {
		spec, ok := m.Object["spec"].(map[string]any)
		if !ok {
			t.Fatalf("PodMonitor %s has no spec", m.GetName())
		}
		b, err := json.Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		var s struct {
			NamespaceSelector   struct{ MatchNames []string }
			Selector            struct{ MatchLabels map[string]string }
			PodMetricsEndpoints []struct{ Port string }
		}
		if err := json.Unmarshal(b, &s); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(s.NamespaceSelector.MatchNames, []string{"crossplane-system"}) || len(s.PodMetricsEndpoints) != 1 || s.PodMetricsEndpoints[0].Port != "metrics" {
			t.Errorf("PodMonitor %s: %+v", m.GetName(), s)
		}
		for _, p := range processes(t) {
			labels := runtimeConfig(t, p).Spec.DeploymentTemplate.Spec.Template.Labels
			matches := len(s.Selector.MatchLabels) > 0
			for k, v := range s.Selector.MatchLabels {
				matches = matches && labels[k] == v
			}
			found[p] = found[p] || matches && m.GetName() == "steading-"+p
		}
	}
	for _, p := range processes(t) {
		if !found[p] {
			t.Errorf("no PodMonitor finds the pods of %s by the name that alerts and panels know", p)
		}
	}
}
