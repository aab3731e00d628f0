package docs

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/steading-dev/steading/cluster/local/platform"
)

var family = regexp.MustCompile(`^# TYPE (steading_\S+) (\S+)`)

// TestMetricsAreDocumented compares what the processes serve of our own with docs/metrics.md. That nothing else is in there
// is for the generator to see to.
func TestMetricsAreDocumented(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(top, "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, component := range platform.Processes() {
		served := 0
		for name, kind := range families(t, component) {
			served++
			row := regexp.MustCompile("(?m)^\\| `" + name + "` \\| [a-z]+ \\| " + kind + " \\|")
			if !row.Match(raw) {
				t.Errorf("%s serves %s, a %s, which docs/metrics.md does not have", component, name, kind)
			}
		}
		if served == 0 {
			t.Errorf("%s serves no metric of ours, so this shows nothing", component)
		}
	}
}

// families of metrics of our own that a component serves, and their types.
func families(t *testing.T, component string) map[string]string {
	t.Helper()
	args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", suite.Plane.Supervisor.Pid(component)))
	if err != nil {
		t.Fatal(err)
	}
	address := ""
	for a := range strings.SplitSeq(string(args), "\x00") {
		if v, ok := strings.CutPrefix(a, "--metrics-address="); ok {
			address = v
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // Nothing is lost.
	all := map[string]string{}
	for s := bufio.NewScanner(resp.Body); s.Scan(); {
		if m := family.FindStringSubmatch(s.Text()); m != nil {
			all[m[1]] = m[2]
		}
	}
	return all
}
