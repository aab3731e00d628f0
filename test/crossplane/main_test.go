package crossplane

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/steading-dev/steading/cluster/local"
	"github.com/steading-dev/steading/cluster/local/platform"
	"github.com/steading-dev/steading/test/harness"
)

// top of the source tree.
const top = "../.."

var suite harness.Suite

func TestMain(m *testing.M) {
	suite.Main(m, platform.Options{
		Name: "crossplane", ProviderArgs: harness.NoPolling(),
		CrossplaneArgs: []string{"--circuit-breaker-burst=10000"},
	})
}

// built are Crossplane and its command line tool.
func built(t *testing.T) *local.Toolchain {
	t.Helper()
	tools, err := local.BuildTools(t.Context(), func(line string) { fmt.Println(line) }, local.Crossplane, local.Crank)
	if err != nil {
		t.Fatal(err)
	}
	return tools
}

// crank runs Crossplane's command line tool and returns what it prints. It knows the platform.
func crank(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), built(t).Path(local.Crank), args...)
	cmd.Env = append(cmd.Environ(), "KUBECONFIG="+suite.Plane.Kubeconfig())
	cmd.Stdin = strings.NewReader(stdin)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("crossplane %s: %v\n%s%s", strings.Join(args, " "), err, out.String(), said.String())
	}
	return out.String()
}
