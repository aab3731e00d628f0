package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/steading-dev/steading/cluster/local/platform"
	"github.com/steading-dev/steading/test/bench/figures"
)

const mebi = 1 << 20

// providerMemory is the provider's resident set in bytes.
func (b *bench) providerMemory() (float64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.Plane.Supervisor.Pid(platform.Provider)))
	if err != nil {
		return 0, fmt.Errorf("cannot read the provider's memory: %w", err)
	}
	return kibibytes(raw, "VmRSS")
}

// kibibytes finds a field such as "VmRSS:   1234 kB" and returns it in bytes.
func kibibytes(raw []byte, field string) (float64, error) {
	for s := bufio.NewScanner(bytes.NewReader(raw)); s.Scan(); {
		if f := strings.Fields(s.Text()); len(f) == 3 && f[0] == field+":" {
			n, err := strconv.ParseFloat(f[1], 64)
			return n * 1024, err
		}
	}
	return 0, fmt.Errorf("cannot find %s", field)
}

var metricsAddress = regexp.MustCompile(`^--metrics-(?:address=(.*)|port=(\d+))$`)

// metrics of a component, from the address that it was told to serve them at.
func (b *bench) metrics(ctx context.Context, component string) (map[string]*dto.MetricFamily, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", b.Plane.Supervisor.Pid(component)))
	if err != nil {
		return nil, fmt.Errorf("cannot find the metrics of %s: %w", component, err)
	}
	for arg := range strings.SplitSeq(string(raw), "\x00") {
		m := metricsAddress.FindStringSubmatch(arg)
		switch {
		case m == nil:
		case m[1] != "":
			return scrape(ctx, m[1])
		default:
			return scrape(ctx, "127.0.0.1:"+m[2])
		}
	}
	return nil, fmt.Errorf("cannot find the metrics of %s: it was not told where to serve them", component)
}

// sum of a component's counter or gauge, over all labels; of one controller, unless none is named.
func (b *bench) sum(ctx context.Context, component, metric, controller string) (float64, error) {
	families, err := b.metrics(ctx, component)
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for _, m := range families[metric].GetMetric() {
		others := func(l *dto.LabelPair) bool { return l.GetName() == "controller" && l.GetValue() != controller }
		if controller == "" || !slices.ContainsFunc(m.GetLabel(), others) {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return sum, nil
}

func scrape(ctx context.Context, address string) (map[string]*dto.MetricFamily, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // Nothing is lost.
	p := expfmt.NewTextParser(model.UTF8Validation)
	return p.TextToMetricFamilies(resp.Body)
}

var p99 = regexp.MustCompile(`([\d.]+) p99-µs/op`)

// measureFunction runs the function's own benchmark with twenty children.
func measureFunction(ctx context.Context) (*figures.Function, error) {
	const children = 20
	out, err := exec.CommandContext(ctx, "go", "test", "-run=^$", fmt.Sprintf("-bench=^BenchmarkRunFunction$/^children=%d$", children), "-benchtime=5000x", "./functions/serve").CombinedOutput() //nolint:gosec // A constant.
	if err != nil {
		return nil, fmt.Errorf("cannot measure the function: %w: %s", err, out)
	}
	m := p99.FindSubmatch(out)
	if m == nil {
		return nil, fmt.Errorf("cannot measure the function: no 99th percentile in %s", out)
	}
	us, err := strconv.ParseFloat(string(m[1]), 64)
	return &figures.Function{Children: children, P99Milliseconds: us / 1000}, err
}

func machine() (figures.Machine, error) {
	m := figures.Machine{Cores: runtime.NumCPU(), LoadAtStart: loadAverage()}
	cpu, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return m, err
	}
	for line := range strings.SplitSeq(string(cpu), "\n") {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			m.CPU = strings.TrimSpace(value)
			break
		}
	}
	memory, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return m, err
	}
	total, err := kibibytes(memory, "MemTotal")
	if err != nil {
		return m, err
	}
	m.MemoryGiB = total / (1 << 30)
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	m.Kernel = strings.TrimSpace(string(kernel))
	return m, err
}

// loadAverage of the last minute. It tells how much else the machine had to do.
func loadAverage() string {
	raw, _ := os.ReadFile("/proc/loadavg") // What cannot be read is not told.
	load, _, _ := strings.Cut(string(raw), " ")
	return load
}

var crossplaneVersion = regexp.MustCompile(`(?m)^require github.com/crossplane/crossplane/v2 (\S+)`)

// built are the versions of what is measured.
func built(ctx context.Context, p *platform.Platform) (map[string]string, error) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil, errors.New("cannot tell versions: the program has no build information")
	}
	v := map[string]string{"Go": runtime.Version()}
	for _, d := range info.Deps {
		if d.Path == "helm.sh/helm/v3" {
			v["Helm"] = d.Version
		}
	}
	pinned, err := os.ReadFile("cluster/local/tools/crossplane/go.mod")
	if err != nil {
		return nil, err
	}
	if m := crossplaneVersion.FindSubmatch(pinned); m != nil {
		v["Crossplane"] = string(m[1])
	}
	commit, err := exec.CommandContext(ctx, "git", "rev-parse", "--short=12", "HEAD").Output()
	if err == nil {
		v["Steading"] = "commit " + strings.TrimSpace(string(commit))
	}
	kubernetes, err := exec.CommandContext(ctx, p.Kubectl(), "--kubeconfig="+p.Plane.Kubeconfig(), "get", "--raw=/version").Output() //nolint:gosec // The platform's own.
	if err != nil {
		return nil, err
	}
	if m := regexp.MustCompile(`"gitVersion": "([^"]*)"`).FindSubmatch(kubernetes); m != nil {
		v["Kubernetes"] = string(m[1])
	}
	return v, nil
}
