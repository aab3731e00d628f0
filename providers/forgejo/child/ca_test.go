package child

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/providers/forgejo/api"
	"github.com/steading-dev/steading/test/fakes/forgejo"
	"github.com/steading-dev/steading/test/fakes/forgejo/onejob"
)

// asRunner has the test's program be the runner.
const asRunner = "STEADING_TEST_RUNNER"

func TestMain(m *testing.M) {
	if os.Getenv(asRunner) == "" {
		os.Exit(m.Run())
	}
	o, tokenURL, err := onejob.Parse(os.Args[1:])
	if err == nil {
		o.Token, err = onejob.TokenFrom(tokenURL)
	}
	if err == nil {
		o.Log = os.Stderr
		err = onejob.Run(context.Background(), o)
	}
	if err != nil {
		_, _ = os.Stderr.WriteString(err.Error())
	}
	os.Exit(onejob.ExitCode(err))
}

// TestTheServersCAReachesTheRunner: a runner that is started as its pod says, with the files that its Secret gives it, runs a
// job of a server whose certificate only the pool's CA bundle proves; and not without the bundle.
func TestTheServersCAReachesTheRunner(t *testing.T) {
	server := forgejo.New(forgejo.Options{})
	for _, err := range []error{server.AddUser("root", true), server.AddRepository("root", "web", false)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	token, err := server.AddToken("root", "write:admin")
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(server)
	srv.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	c, err := api.New(api.Config{URL: srv.URL, Token: token, Scope: api.Instance(), CA: ca})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)

	cases := map[string]struct {
		reason string
		ca     []byte
		works  bool
	}{
		"Bundle":   {"The bundle proves the server.", ca, true},
		"NoBundle": {"Without it nothing does.", nil, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			id, err := server.Queue(forgejo.NewJob{Repository: "root/web", Labels: []string{"docker"}})
			if err != nil {
				t.Fatal(err)
			}
			j, err := server.Job(id)
			if err != nil {
				t.Fatal(err)
			}
			r, err := c.Register(t.Context(), "acme-linux-4kx9vb2m", "")
			if err != nil {
				t.Fatal(err)
			}
			mg := instance(t, pod(t, plainPod), targeted, func(p *v1alpha1.RunnerInstanceParameters) {
				p.Config.Forgejo.URL, p.Config.Forgejo.CABundle, p.Job.Handle = srv.URL, tc.ca, j.Handle
			})
			said, err := start(t, jobFor(t, mg, r.UUID), Credentials(mg, Registration{ID: r.ID, UUID: r.UUID, Token: r.Token}))
			done, jobErr := server.Job(id)
			if jobErr != nil {
				t.Fatal(jobErr)
			}
			if works := err == nil && done.Status == forgejo.StatusSuccess; works != tc.works {
				t.Errorf("%s The job is %s: %v: %s", tc.reason, done.Status, err, said)
			}
			if !tc.works && !strings.Contains(said, "certificate signed by unknown authority") {
				t.Errorf("%s It says %q", tc.reason, said)
			}
		})
	}
}

func jobFor(t *testing.T, mg *v1alpha1.RunnerInstance, uuid string) *batchv1.Job {
	t.Helper()
	o, err := Of(mg, uuid)
	if err != nil {
		t.Fatal(err)
	}
	j, ok := o.(*batchv1.Job)
	if !ok {
		t.Fatalf("it is a %T", o)
	}
	return j
}

// start the runner of a Job as a kubelet does: with the files that its volume has of the Secret, its arguments and its
// environment. What the container sees below a folder of its own is below a temporary one here.
func start(t *testing.T, j *batchv1.Job, s *corev1.Secret) (string, error) {
	t.Helper()
	root, main := t.TempDir(), container(&j.Spec.Template.Spec, "job")
	for _, v := range j.Spec.Template.Spec.Volumes {
		if v.Secret == nil {
			continue
		}
		for _, m := range main.VolumeMounts {
			for _, f := range v.Secret.Items {
				at := filepath.Join(root, m.MountPath, f.Path)
				if m.Name != v.Name {
					continue
				}
				if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(at, s.Data[f.Key], 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	here := func(s string) string { return strings.ReplaceAll(s, reservedFolder, root+reservedFolder) }
	args := make([]string, 0, len(main.Args))
	for _, a := range main.Args {
		args = append(args, here(a))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Env = append(os.Environ(), asRunner+"=1")
	for _, e := range main.Env {
		cmd.Env = append(cmd.Env, e.Name+"="+here(e.Value))
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	err = cmd.Run()
	return said.String(), err
}

// TestWhatATemplateSaysOfCertificatesStays.
func TestWhatATemplateSaysOfCertificatesStays(t *testing.T) {
	const template = `spec: {containers: [{name: job, image: node:22, env: [
		{name: SSL_CERT_DIR, value: /mine}, {name: NODE_EXTRA_CA_CERTS, value: /mine/ca.pem}]}]}`
	j := jobFor(t, instance(t, pod(t, strings.ReplaceAll(template, "\t", " ")), withCA), sample.UUID)
	want := []corev1.EnvVar{{Name: "SSL_CERT_DIR", Value: "/steading/credentials/ca:/mine"}, {Name: "NODE_EXTRA_CA_CERTS", Value: "/mine/ca.pem"}}
	if diff := cmp.Diff(want, j.Spec.Template.Spec.Containers[0].Env); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
