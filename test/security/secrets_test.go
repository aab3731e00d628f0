package security

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/cluster/local"
	"github.com/steading-dev/steading/test/harness"
)

// TestSecretsStaySecret plants a secret of every kind that the platform handles, proves that each is used, and expects none
// of them, in no form, where somebody may look who may not see Secrets. Environments come and go meanwhile, and what goes
// wrong is told, too.
func TestSecretsStaySecret(t *testing.T) {
	edgeAdmin, err := harness.Client(suite.Edge.Config())
	if err != nil {
		t.Fatal(err)
	}
	suite.StartOperators(t)
	suite.IssueCertificates(t)
	var needles []needle

	password := random()
	r := newPrivateRegistry(t, "keeper", password)
	suite.Configure(t, func(s *runtimev1.ProviderConfigSpec) {
		// Which image is there is told by a credential that reads the canonical one.
		s.InsecureRegistries, s.CanonicalImage = append(s.InsecureRegistries, r.host), r.host+"/platform/devops"
	})
	needles = append(needles, needleOf(t, "registry password", password),
		needleOf(t, "registry login", base64.StdEncoding.EncodeToString([]byte("keeper:"+password))))
	for _, image := range []string{"platform/devops:1.4.2", "platform/devops:1.4.3", "keep/keep-devops:1.4.2"} {
		r.push(t, image)
	}
	suite.Create(t, pullSecret("keep-pull", r.host, "keeper", password))
	suite.NewTenant(t, "keep", steading.TenantSpec{PlatformCluster: steading.PlatformClusterAllowed, Registry: &steading.Registry{
		Prefix: r.host + "/keep", PullSecretRef: &steading.LocalSecretReference{Name: "keep-pull"},
	}})

	id := suite.AgeIdentity(t)
	needles = append(needles, needleOf(t, "age identity", id.String()))
	token, sealedToken := suite.EdgeToken(t, "keep-token"), suite.EdgeToken(t, "keep-sealed")
	needles = append(needles, needlesOfToken(t, "context's token", token)...)
	needles = append(needles, needlesOfToken(t, "sealed token", sealedToken)...)
	keyed, err := suite.Edge.ConfigFor("keyed")
	if err != nil {
		t.Fatal(err)
	}
	everything(t, edgeAdmin, "security-keyed", rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "keyed"})
	needles = append(needles, needlesOfKey(t, "context's key", keyed.KeyData)...)
	needles = append(needles, ownTokens(t)...)

	byToken, byKey := "by-token", "by-key"
	suite.Create(t,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-keep", Name: byToken}, StringData: map[string]string{"token": token}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-keep", Name: byKey}, Data: map[string][]byte{"tls.crt": keyed.CertData, "tls.key": keyed.KeyData}},
	)
	contexts := []*steading.Context{
		suite.EdgeContext("keep", byToken, harness.BySecret(byToken)),
		suite.EdgeContext("keep", byKey, harness.BySecret(byKey)),
		suite.EdgeContext("keep", "by-age", harness.Sealed(t, id, suite.ForEdge(t, "keep", "by-age", sealedToken))),
	}
	contexts[0].Spec.Zone, contexts[0].Spec.Ingress = "services.example.com", &steading.ContextIngress{Addresses: []string{"203.0.113.7"}, ClassName: "traefik"}
	for _, c := range contexts {
		suite.Create(t, c)
	}
	// That they run is the proof that their credentials are used.
	for _, c := range contexts {
		waitContext(t, "keep", c.Name, harness.ContextRunning)
	}

	var environments []*steading.Environment
	for name, on := range map[string]string{"here": steading.PlatformContext, "token": byToken, "key": byKey, "age": "by-age"} {
		e := harness.Environment("keep", name)
		e.Spec.ContextRef = &steading.ContextReference{Name: on}
		suite.Create(t, e)
		environments = append(environments, e)
	}
	for _, e := range environments {
		suite.WaitFor(t, e, "ready", harness.Ready)
		if i := e.Status.Image; i == nil || i.Choice != steading.ImageTenant || i.Reason != "Confirmed" {
			t.Errorf("environment %s: the registry's password was not used: image %+v", e.Name, i)
		}
	}
	if r.let.Load() == 0 {
		t.Error("the registry's password was not used")
	}
	copied := harness.Get(t, &suite, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "keep-here", Name: names.PullSecret}})
	if !strings.Contains(string(copied.Data[corev1.DockerConfigJsonKey]), password) {
		t.Error("the registry's password was not copied for the kubelet")
	}
	needles = append(needles, certificateOf(t, edgeAdmin)...)

	// What goes wrong is told on the claims, and must not quote what it is about.
	harness.Change(t, &suite, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-keep", Name: byToken}}, func(s *corev1.Secret) {
		s.Data["token"] = []byte(token + "\x01")
	})
	waitContext(t, "keep", byToken, func(c *steading.Context) bool { return c.Status.GetCondition("Ready").Status == corev1.ConditionFalse })
	wrong := pullSecret("keep-pull", r.host, "keeper", password+"x")
	harness.Change(t, &suite, &corev1.Secret{ObjectMeta: wrong.ObjectMeta}, func(s *corev1.Secret) {
		s.Data[corev1.DockerConfigJsonKey] = []byte(wrong.StringData[corev1.DockerConfigJsonKey])
	})
	harness.Change(t, &suite, environments[0], func(e *steading.Environment) { e.Spec.Version = "1.4.3" })
	suite.WaitFor(t, environments[0], "upgraded", func(e *steading.Environment) bool {
		return e.Status.Image != nil && strings.HasSuffix(e.Status.Image.Ref, ":1.4.3")
	})

	for _, p := range search(t, needles) {
		t.Error(p)
	}
}

// certificateOf the environment that is exposed: the needles of its key, which is used where it is copied to.
func certificateOf(t *testing.T, edge client.Client) []needle {
	t.Helper()
	e := harness.Environment("keep", "token")
	suite.WaitFor(t, e, "exposed", harness.Exposed)
	issued := harness.Get(t, &suite, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: names.EdgeNamespace, Name: names.TLSSecret("keep", "token")}})
	copied := &corev1.Secret{}
	if err := edge.Get(t.Context(), client.ObjectKey{Namespace: "keep-token", Name: names.TLSSecret("keep", "token")}, copied); err != nil {
		t.Fatal(err)
	}
	if string(issued.Data[corev1.TLSPrivateKeyKey]) != string(copied.Data[corev1.TLSPrivateKeyKey]) {
		t.Error("the certificate's key is not the one that is used")
	}
	return needlesOfKey(t, "certificate's key", issued.Data[corev1.TLSPrivateKeyKey])
}

// ownTokens are the needles of the tokens as which the platform's processes run.
func ownTokens(t *testing.T) []needle {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(suite.Plane.Dir(), "serviceaccounts", "*", "*", "token"))
	if err != nil || len(files) < 2 {
		t.Fatalf("found the tokens %v: %v", files, err)
	}
	var needles []needle
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		needles = append(needles, needlesOfToken(t, "token of "+filepath.Base(filepath.Dir(f)), strings.TrimSpace(string(b)))...)
	}
	return needles
}

// A privateRegistry answers only who knows the password.
type privateRegistry struct {
	host           string
	user, password string
	let            atomic.Int64 // requests that were let through
}

func newPrivateRegistry(t *testing.T, user, password string) *privateRegistry {
	t.Helper()
	r := &privateRegistry{user: user, password: password}
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if u, p, ok := q.BasicAuth(); !ok || u != user || p != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="private"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if q.UserAgent() != pusher {
			r.let.Add(1)
		}
		inner.ServeHTTP(w, q)
	}))
	t.Cleanup(s.Close)
	r.host = strings.TrimPrefix(s.URL, "http://")
	return r
}

// pusher is who pushes for the test.
const pusher = "test"

// push an empty image.
func (r *privateRegistry) push(t *testing.T, path string) {
	t.Helper()
	ref, err := name.ParseReference(r.host+"/"+path, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	auth := remote.WithAuth(&authn.Basic{Username: r.user, Password: r.password})
	if err := remote.Write(ref, empty.Image, auth, remote.WithUserAgent(pusher)); err != nil {
		t.Fatal(err)
	}
}

// TestSearchFindsSecrets leaks a secret in every way that the search looks for, each in a form of its own, since a search
// that finds nothing shows nothing.
func TestSearchFindsSecrets(t *testing.T) {
	edgeAdmin, err := harness.Client(suite.Edge.Config())
	if err != nil {
		t.Fatal(err)
	}
	configMap := func(name, value string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{"a": value}}
	}
	leaks := map[string]func(t *testing.T, secret string){
		"ConfigMap default/raw on the control plane": func(t *testing.T, s string) { suite.Create(t, configMap("raw", "x"+s+"y")) },
		"ConfigMap default/url on the control plane": func(t *testing.T, s string) {
			suite.Create(t, configMap("url", base64.RawURLEncoding.EncodeToString([]byte("{\"auth\":\""+s+"\"}"))))
		},
		"Event default/leak on the control plane": func(t *testing.T, s string) {
			suite.Create(t, &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "leak"}, InvolvedObject: corev1.ObjectReference{Namespace: "default"}, Message: "cannot use " + s})
		},
		"ConfigMap default/std on the edge": func(t *testing.T, s string) {
			c := configMap("std", base64.StdEncoding.EncodeToString([]byte("a"+s)))
			if err := edgeAdmin.Create(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = edgeAdmin.Delete(context.Background(), c) })
		},
		"leaks-log.log": func(t *testing.T, s string) { leak(t, "leaks-log", "echo ab"+s, nil, nil) },
		"cmdline of":    func(t *testing.T, s string) { leak(t, "leaks-argv", "", []string{s}, nil) },
		"environ of":    func(t *testing.T, s string) { leak(t, "leaks-environ", "", nil, []string{"LEAK=" + s}) },
	}
	var needles []needle
	for where, do := range leaks {
		s := random()
		do(t, s)
		needles = append(needles, needleOf(t, where, s))
	}
	needles = append(needles, needleOf(t, "nowhere", random()))
	found := search(t, needles)
	for where := range leaks {
		if !slices.ContainsFunc(found, func(p place) bool { return p.needle == where && strings.Contains(p.where, where) }) {
			t.Errorf("not found: what was leaked in %s", where)
		}
	}
	for _, p := range found {
		if p.needle == "nowhere" {
			t.Errorf("found, though it was leaked nowhere: %s", p)
		}
	}
}

// leak something by a process that runs beside the platform's until the test is over.
func leak(t *testing.T, as, first string, args, env []string) {
	t.Helper()
	script := filepath.Join(t.TempDir(), "leak.sh")
	if err := os.WriteFile(script, []byte(first+"\nwhile :; do sleep 1; done\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	started := func(context.Context) error {
		if first == "" {
			return nil
		}
		b, err := os.ReadFile(suite.Plane.Supervisor.Log(as))
		if err == nil && len(b) == 0 {
			err = errors.New("it has not said anything")
		}
		return err
	}
	c := local.Component{Name: as, Path: "/bin/sh", Args: append([]string{script}, args...), Env: env, Ready: started}
	if err := suite.Plane.Supervisor.Start(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := suite.Plane.Supervisor.Stop(as); err != nil {
			t.Error(err)
		}
	})
}
