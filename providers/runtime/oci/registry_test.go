package oci

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
)

// user and password that the registry of the tests knows.
const user, password = "robot", "s3cret"

// A fault answers a request in the registry's stead. It returns false to let the registry answer.
type fault func(w http.ResponseWriter, r *http.Request) bool

// A fakeRegistry is go-containerregistry's, behind authentication and faults.
type fakeRegistry struct {
	host string

	mu    sync.Mutex
	auth  string // "", basic or bearer
	fault fault
	realm string // token service; own when empty
	seen  []*http.Request
}

// private repositories are invisible to those without the credential.
func newRegistry(t *testing.T) *fakeRegistry {
	t.Helper()
	f := &fakeRegistry{}
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		auth, broken := f.auth, f.fault
		f.seen = append(f.seen, r.Clone(r.Context()))
		f.mu.Unlock()
		if broken != nil && broken(w, r) {
			return
		}
		if r.URL.Path == "/token" {
			f.token(w, r)
			return
		}
		if !f.authorized(w, r, auth) {
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	f.host = strings.TrimPrefix(s.URL, "http://")
	return f
}

func (f *fakeRegistry) token(w http.ResponseWriter, r *http.Request) {
	token := "anonymous"
	if u, p, ok := r.BasicAuth(); ok {
		if u != user || p != password {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		token = "robot"
	}
	_, _ = fmt.Fprintf(w, `{"token":%q}`, token)
}

// authorized lets anonymous callers read what is called public, and answers 404 for all else.
func (f *fakeRegistry) authorized(w http.ResponseWriter, r *http.Request, auth string) bool {
	got := r.Header.Get("Authorization")
	switch auth {
	case "basic":
		if got == "Basic "+base64.StdEncoding.EncodeToString([]byte(user+":"+password)) {
			return true
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
	case "bearer":
		if got == "Bearer robot" || got == "Bearer anonymous" && (r.URL.Path == "/v2/" || strings.Contains(r.URL.Path, "public")) {
			return true
		}
		if got == "Bearer anonymous" {
			registryError(w, http.StatusNotFound, "NAME_UNKNOWN")
			return false
		}
		realm := f.realm
		if realm == "" {
			realm = "http://" + f.host + "/token"
		}
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm=%q,service="test"`, realm))
	default:
		return true
	}
	registryError(w, http.StatusUnauthorized, "UNAUTHORIZED")
	return false
}

func registryError(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"errors":[{"code":%q,"message":"told so"}]}`, code)
}

func (f *fakeRegistry) set(auth string, broken fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.auth, f.fault, f.seen = auth, broken, nil
}

func (f *fakeRegistry) requests() []*http.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]*http.Request(nil), f.seen...)
}

// client that may speak plain HTTP to the registry.
func (f *fakeRegistry) client() Client {
	return Client{Insecure: []string{f.host}, Timeout: 2 * time.Second, Credentials: Credentials{f.host: authn.AuthConfig{Username: user, Password: password}}}
}

func (f *fakeRegistry) push(t *testing.T, repository, tag string, img v1.Image) string {
	t.Helper()
	ref, err := name.NewTag(f.host+"/"+repository+":"+tag, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, img); err != nil {
		t.Fatal(err)
	}
	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

func (f *fakeRegistry) pushImage(t *testing.T, repository string) {
	t.Helper()
	img, err := random.Image(64, 1)
	if err != nil {
		t.Fatal(err)
	}
	f.push(t, repository, "1.4.2", img)
}

func chartArchive(t *testing.T, version string) []byte {
	t.Helper()
	path, err := chartutil.Save(&chart.Chart{
		Metadata:  &chart.Metadata{APIVersion: chart.APIVersionV2, Name: "runtime", Version: version},
		Templates: []*chart.File{{Name: "templates/cm.yaml", Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")}},
	}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	archive, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return archive
}

// chartImage is an image of the form that helm push makes.
func chartImage(t *testing.T, layerType types.MediaType, archive []byte) v1.Image {
	t.Helper()
	img := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	img = mutate.ConfigMediaType(img, chartConfigType)
	img, err := mutate.Append(img, mutate.Addendum{Layer: static.NewLayer(archive, layerType), MediaType: layerType})
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// on breaks requests whose path contains part.
func on(part string, answer func(w http.ResponseWriter, r *http.Request)) fault {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, part) {
			return false
		}
		answer(w, r)
		return true
	}
}

func status(code int) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func body(contentType, text string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = io.Copy(w, bytes.NewBufferString(text))
	}
}

func hangUp(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}
