package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// brokenExample asks for less than the runtime needs.
const brokenExample = `apiVersion: steading.dev/v1alpha1
kind: Tenant
metadata: {name: globex, namespace: steading-system}
spec: {}
---
apiVersion: steading.dev/v1alpha1
kind: Environment
metadata: {name: tiny, namespace: tenant-globex}
spec: {type: runtime, version: 1.4.2, size: {cpu: 1m, memory: 1Mi, storage: 1Mi}}
`

// The whole life of a platform, as a person lives it: it fails for a reason that
// is named, is put right, is found to be up already, crashes, and is removed.
func TestPlatformOfAPerson(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a platform; not under -short")
	}
	c := newCommand(t)

	out, code := c.run("up", "--timeout=20s", "--examples="+c.broken)
	if want := "Environment tenant-globex/tiny is not ready: "; code != 1 || !strings.Contains(out, want) || !strings.Contains(out, "BelowFloor") {
		t.Fatalf("up with a broken example: got exit code %d, want 1, with %q and reason BelowFloor in:\n%s", code, want, out)
	}

	if out, code = c.run("up", "--timeout=3m"); code != 0 || !strings.Contains(out, "export KUBECONFIG=") {
		t.Fatalf("up: got exit code %d, want 0:\n%s", code, out)
	}
	if out, code = c.run("status"); code != 0 || !strings.Contains(out, "edge/kube-apiserver") || !strings.Contains(out, "environment/web") {
		t.Fatalf("status: got exit code %d, want 0, with a component of the edge and claim web:\n%s", code, out)
	}

	// SIGKILL leaves neither processes nor a state that is in the way.
	c.killSupervisor(t)
	for deadline := time.Now().Add(10 * time.Second); len(c.processes(t)) > 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after SIGKILL of the supervisor there still are:\n%s", strings.Join(c.processes(t), "\n"))
		}
	}
	if out, code = c.run("status"); code != 1 || !strings.Contains(out, "does not run") {
		t.Fatalf("status after a crash: got exit code %d, want 1:\n%s", code, out)
	}
	if out, code = c.run("down"); code != 0 {
		t.Fatalf("down after a crash: got exit code %d, want 0:\n%s", code, out)
	}
	if _, err := os.Stat(c.state); !os.IsNotExist(err) {
		t.Errorf("state folder after down: got error %v, want it gone", err)
	}
}

func TestForeignStateFolderIsLeftAlone(t *testing.T) {
	c := newCommand(t)
	if err := os.MkdirAll(c.state, 0o700); err != nil {
		t.Fatal(err)
	}
	mine := filepath.Join(c.state, "thesis.txt")
	if err := os.WriteFile(mine, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, code := c.run("up"); code != 1 || !strings.Contains(out, "holds something else") {
		t.Errorf("up: got exit code %d, want 1:\n%s", code, out)
	}
	if _, code := c.run("down"); code != 0 {
		t.Errorf("down: got exit code %d, want 0", code)
	}
	if _, err := os.Stat(mine); err != nil {
		t.Errorf("somebody's file: %v", err)
	}
}

// command is the built program with a state folder of its own, whose path is
// longer than that of a socket may be.
type command struct{ path, state, broken string }

func newCommand(t *testing.T) *command {
	t.Helper()
	dir := t.TempDir()
	c := &command{
		path:   filepath.Join(dir, "steading-local"),
		state:  filepath.Join(dir, strings.Repeat("deep", 20), strings.Repeat("down", 20)),
		broken: filepath.Join(dir, "broken.yaml"),
	}
	if out, err := exec.Command("go", "build", "-o", c.path, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.WriteFile(c.broken, []byte(brokenExample), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.run("down") })
	return c
}

func (c *command) run(args ...string) (string, int) {
	out := &bytes.Buffer{}
	cmd := exec.Command(c.path, append(args, "--state-dir="+c.state)...)
	cmd.Stdout, cmd.Stderr = out, out
	_ = cmd.Run() // The exit code tells.
	return out.String(), cmd.ProcessState.ExitCode()
}

func (c *command) killSupervisor(t *testing.T) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(c.state, "supervisor.pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(b))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// processes whose arguments or environment name the state folder.
func (c *command) processes(t *testing.T) []string {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, d := range dirs {
		args, _ := os.ReadFile(filepath.Join(d, "cmdline"))
		env, _ := os.ReadFile(filepath.Join(d, "environ"))
		if bytes.Contains(args, []byte(c.state)) || bytes.Contains(env, []byte(c.state)) {
			found = append(found, d+" "+string(bytes.ReplaceAll(args, []byte{0}, []byte(" "))))
		}
	}
	return found
}
