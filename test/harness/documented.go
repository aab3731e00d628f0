package harness

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/cli"
)

// Documented are the commands that a page tells its reader to run: those in blocks called sh between a heading and the next of its
// level or above. They are told, not shown: what they print is not in the page.
func Documented(t *testing.T, page, heading string) []string {
	t.Helper()
	raw, err := os.ReadFile(page) //nolint:gosec // A page of ours.
	if err != nil {
		t.Fatal(err)
	}
	commands := documented(string(raw), heading)
	if len(commands) == 0 {
		t.Fatalf("%s has no commands below %q", page, heading)
	}
	return commands
}

func documented(page, heading string) (commands []string) {
	level, _, _ := strings.Cut(heading, " ")
	within, block, here := false, false, false
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		mark, _, _ := strings.Cut(line, " ")
		switch {
		case !block && strings.HasPrefix(line, "#"):
			within = line == heading || within && len(mark) > len(level)
		case line == "```sh" && within:
			block = true
		case strings.HasPrefix(line, "```"):
			block = false
		case block && here:
			commands[len(commands)-1] += "\n" + line
			here = line != "EOF"
		case block && line != "":
			commands = append(commands, line)
			here = strings.Contains(line, "<<EOF")
		}
	}
	return commands
}

// A Reader does on a cluster what the documents say, as its administrator.
type Reader struct {
	// Top of the source tree, where commands are run.
	Top string
	// Kubectl is the path of the program.
	Kubectl string
	// Kubeconfig of the cluster.
	Kubeconfig string
}

// patience is how long a command may take that waits for what it deletes.
const patience = 5 * time.Minute

// Run commands one after the other. What is asked of Helm its library does, as its program would.
func (r Reader) Run(t *testing.T, commands ...string) {
	t.Helper()
	for _, c := range commands {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		out, err := r.run(ctx, c)
		cancel()
		if err != nil {
			t.Fatalf("%s: %v\n%s", c, err, out)
		}
		t.Logf("%s\n%s", c, out)
	}
}

func (r Reader) run(ctx context.Context, command string) (string, error) {
	if words := strings.Fields(command); words[0] == "helm" {
		return "", r.helm(words[1:])
	}
	cmd := exec.CommandContext(ctx, "bash", "-c", command) //nolint:gosec // It is in a page of ours.
	cmd.Dir = r.Top
	cmd.Env = append(os.Environ(), "KUBECONFIG="+r.Kubeconfig, "PATH="+filepath.Dir(r.Kubectl)+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// helm uninstall RELEASE --namespace NAMESPACE, and nothing else.
func (r Reader) helm(args []string) error {
	if len(args) != 4 || args[0] != "uninstall" || args[2] != "--namespace" {
		return fmt.Errorf("do not know how to do %q with Helm's library", args)
	}
	settings := cli.New()
	settings.KubeConfig = r.Kubeconfig
	h := &action.Configuration{}
	if err := h.Init(settings.RESTClientGetter(), args[3], "secret", func(string, ...any) {}); err != nil {
		return err
	}
	_, err := action.NewUninstall(h).Run(args[1])
	return err
}
