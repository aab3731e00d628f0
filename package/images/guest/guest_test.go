// Package guest has what a guest image of runners in virtual machines is made with: shell scripts and a unit of systemd.
package guest

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/forgejo/child"
	"github.com/steading-dev/steading/test/fakes/forgejo"
)

// A guest is a CDROM as the provider writes it, beside a Forgejo where its runner is registered.
type guest struct {
	t       *testing.T
	forgejo *forgejo.Server
	url     string
	client  *http.Client
	ca      []byte
	disc    string
}

// newGuest of a Forgejo that is spoken to in the clear, or by a certificate of its own.
func newGuest(t *testing.T, secure bool) *guest {
	t.Helper()
	g := &guest{t: t, forgejo: forgejo.New(forgejo.Options{}), disc: t.TempDir()}
	srv := httptest.NewUnstartedServer(g.forgejo)
	if secure {
		srv.StartTLS()
		g.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	} else {
		srv.Start()
	}
	t.Cleanup(srv.Close)
	g.url, g.client = srv.URL, srv.Client()
	must(t, errors.Join(g.forgejo.AddUser("root", true), g.forgejo.AddRepository("root", "web", false)))
	return g
}

// insert the CDROM of a runner with these labels, for one attempt of a job if there is a handle.
func (g *guest) insert(handle string, labels ...string) {
	g.t.Helper()
	mg := &v1alpha1.RunnerInstance{}
	mg.Name = "acme-bsd-4kx9vb2m"
	p := &mg.Spec.ForProvider
	p.Config.VM, p.Config.Forgejo.URL, p.Config.Labels = &steading.RunnerVM{}, g.url, labels
	p.Config.Forgejo.CABundle = g.ca
	if handle != "" {
		p.Job = &v1alpha1.QueuedJob{Handle: handle}
		p.Config.Assignment = steading.AssignTargeted
	}
	for name, raw := range child.Credentials(mg, g.register()).Data {
		must(g.t, os.WriteFile(filepath.Join(g.disc, name), raw, 0o600))
	}
}

func (g *guest) register() child.Registration {
	g.t.Helper()
	token, err := g.forgejo.AddToken("root", "all")
	must(g.t, err)
	req, err := http.NewRequestWithContext(g.t.Context(), http.MethodPost, g.url+"/api/v1/admin/actions/runners", strings.NewReader(`{"name":"bsd","ephemeral":true}`))
	must(g.t, err)
	req.Header.Set("Authorization", "token "+token)
	res, err := g.client.Do(req)
	must(g.t, err)
	defer res.Body.Close() //nolint:errcheck // It is read.
	var r child.Registration
	must(g.t, json.NewDecoder(res.Body).Decode(&r))
	return r
}

func (g *guest) queue(payload string, labels ...string) {
	g.t.Helper()
	_, err := g.forgejo.Queue(forgejo.NewJob{Repository: "root/web", Labels: labels, Payload: payload})
	must(g.t, err)
}

// boot runs what a guest runs once its disc is mounted.
func (g *guest) boot(runner string) (code int, log string) {
	g.t.Helper()
	cmd := exec.CommandContext(g.t.Context(), "./steading-runner", g.disc)
	cmd.Env = append(os.Environ(), "STEADING_FORGEJO_RUNNER="+runner)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		g.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// program is the stand-in for Forgejo's runner, with its command line.
func program(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "forgejo-runner")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, "../../../test/fakes/forgejo/onejob/cmd/forgejo-runner").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// TestTheGuestRunsOneJob as its CDROM says: with all of its labels, as the runner it was registered as, the job it was made for.
func TestTheGuestRunsOneJob(t *testing.T) {
	t.Parallel()
	runner := program(t)
	cases := map[string]struct {
		reason  string
		target  bool
		secure  bool
		payload string
	}{
		"Any":       {reason: "it takes the first job"},
		"Red":       {reason: "what comes of the job is no matter of the guest's", payload: "result: failure"},
		"PrivateCA": {reason: "the disc has what proves the server", secure: true},
		"Targeted":  {reason: "it was made for the second job", target: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGuest(t, tc.secure)
			g.queue(tc.payload, "openbsd", "a b")
			g.queue(tc.payload, "openbsd")
			jobs, handle, mine := g.forgejo.Jobs(), "", 0
			if tc.target {
				handle, mine = jobs[1].Handle, 1
			}
			g.insert(handle, "openbsd", "a b")
			if code, log := g.boot(runner); code != 0 {
				t.Fatalf("it ended with %d: %s", code, log)
			}
			for i, j := range g.forgejo.Jobs() {
				if want := i == mine; (len(j.Runs) == 1) != want {
					t.Errorf("%s: job %d ran %d times", tc.reason, i, len(j.Runs))
				}
			}
		})
	}
}

// TestTheGuestSaysWhatIsWrong with its disc, and that its runner failed.
func TestTheGuestSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"url", "uuid", "token", "label"} {
		for what, spoil := range map[string]func(string) error{"Lacks": os.Remove, "Empty": func(p string) error { return os.Truncate(p, 0) }} {
			t.Run(what+name, func(t *testing.T) {
				t.Parallel()
				g := newGuest(t, false)
				g.insert("", "openbsd")
				must(t, spoil(filepath.Join(g.disc, name)))
				if code, log := g.boot("false"); code != 1 || !strings.Contains(log, "/"+name) {
					t.Errorf("it ended with %d: %s", code, log)
				}
			})
		}
	}
	g := newGuest(t, false)
	g.insert("", "openbsd")
	if code, _ := g.boot("false"); code != 1 {
		t.Errorf("its runner failed, and it ended with %d", code)
	}
}

// installed is a root file system that it was installed in.
func installed(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	must(t, os.Mkdir(filepath.Join(root, "etc"), 0o750))
	if out, err := exec.CommandContext(t.Context(), "./install.sh", root, "/bin/true").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return root
}

// TestWhatIsInstalledStartsAtBoot, and powers off whatever comes of it.
func TestWhatIsInstalledStartsAtBoot(t *testing.T) {
	t.Parallel()
	root := installed(t)
	unit, err := os.ReadFile(filepath.Join(root, "etc/systemd/system/multi-user.target.wants/steading-runner.service"))
	must(t, err)
	lines := strings.Split(string(unit), "\n")
	for _, want := range []string{"SuccessAction=poweroff-force", "FailureAction=poweroff-force"} {
		if !slices.Contains(lines, want) {
			t.Errorf("the unit lacks %s", want)
		}
	}
	for _, program := range []string{"usr/local/bin/forgejo-runner", "usr/local/libexec/steading-runner"} {
		if st, err := os.Stat(filepath.Join(root, program)); err != nil || st.Mode().Perm() != 0o755 {
			t.Errorf("%s cannot be run: %v, %v", program, st, err)
		}
	}
	for _, tc := range [][]string{{root}, {filepath.Join(root, "etc"), "/bin/true"}, {root, filepath.Join(root, "no-runner")}} {
		if out, err := exec.CommandContext(t.Context(), "./install.sh", tc...).CombinedOutput(); err == nil {
			t.Errorf("install.sh %s: %s", tc, out)
		}
	}
}

// TestSystemdTakesTheUnit, with what was installed where the unit says.
func TestSystemdTakesTheUnit(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("there is no systemd-analyze: install the Debian package systemd")
		}
		t.Skip("there is no systemd-analyze; the Debian package systemd has it")
	}
	root := installed(t)
	path := filepath.Join(root, "etc/systemd/system/steading-runner.service")
	unit, err := os.ReadFile(path)
	must(t, err)
	// It is verified against this machine's programs, but for ours.
	text := strings.Replace(string(unit), "ExecStart=/usr/local", "ExecStart="+root+"/usr/local", 1)
	for _, line := range strings.Split(text, "\n") {
		if after, ok := strings.CutPrefix(line, "ExecStartPre=+"); ok {
			if _, err := os.Stat(strings.Fields(after)[0]); err != nil {
				text = strings.Replace(text, strings.Fields(after)[0], "/bin/true", 1)
			}
		}
	}
	must(t, os.WriteFile(path, []byte(text), 0o600))
	verify := func() ([]byte, error) {
		return exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no", "--recursive-errors=no", path).CombinedOutput()
	}
	out, err := verify()
	if err != nil || len(bytes.TrimSpace(out)) > 0 {
		t.Errorf("%v: %s", err, out)
	}
	must(t, os.WriteFile(path, []byte(strings.Replace(text, "Type=exec", "Typo=exec", 1)), 0o600))
	if out, _ = verify(); !bytes.Contains(out, []byte("Typo")) {
		t.Errorf("a word that systemd does not know goes through, so this shows nothing: %s", out)
	}
}

// TestADiskIsALayer that KubeVirt's launcher may read.
func TestADiskIsALayer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	disk, layer := filepath.Join(dir, "debian.qcow2"), filepath.Join(dir, "layer.tar")
	must(t, os.WriteFile(disk, []byte("QFI\xfb and so on"), 0o600))
	if out, err := script(t.Context(), disk, layer); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	raw, err := os.ReadFile(layer)
	must(t, err)
	r := tar.NewReader(bytes.NewReader(raw))
	h, err := r.Next()
	must(t, err)
	have := fmt.Sprintf("%s %o %d:%d", h.Name, h.Mode&0o777, h.Uid, h.Gid)
	if content, _ := io.ReadAll(r); have != "disk/debian.qcow2 440 107:107" || !bytes.HasPrefix(content, []byte("QFI")) {
		t.Errorf("%s: %q", have, content)
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("there is more: %v", err)
	}
	if out, err := script(t.Context(), layer, layer+".2"); err == nil || !strings.Contains(string(out), "a disk is called") {
		t.Errorf("a layer is taken for a disk: %s", out)
	}
}

func script(ctx context.Context, args ...string) ([]byte, error) {
	return exec.CommandContext(ctx, "./containerdisk.sh", args...).CombinedOutput()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
