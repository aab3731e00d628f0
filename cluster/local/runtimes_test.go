package local

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/types/known/durationpb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/certificates"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

const packages = `apiVersion: pkg.crossplane.io/v1
kind: Function
metadata: {name: function-test}
spec: {package: "HOST/function-test:v1"}
---
apiVersion: pkg.crossplane.io/v1
kind: Provider
metadata: {name: provider-test}
spec: {package: "HOST/provider-test:v1"}
`

const composition = `apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: things}
spec:
  compositeTypeRef: {apiVersion: test.example.org/v1, kind: XThing}
  mode: Pipeline
  pipeline: [{step: run, functionRef: {name: function-test}}]
`

const claim = `apiVersion: test.example.org/v1
kind: Thing
metadata: {name: one, namespace: default}
spec: {}
`

const functionPackage = `apiVersion: meta.pkg.crossplane.io/v1
kind: Function
metadata: {name: function-test}
spec: {crossplane: {version: ">=v2.0.0"}}
`

const providerPackage = `apiVersion: meta.pkg.crossplane.io/v1
kind: Provider
metadata: {name: provider-test}
spec: {crossplane: {version: ">=v2.0.0"}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: knobs.test.example.org}
spec:
  group: test.example.org
  names: {kind: Knob, plural: knobs}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`

// readyFunction finds every composite ready.
type readyFunction struct {
	fnv1.UnimplementedFunctionRunnerServiceServer
}

func (readyFunction) RunFunction(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	return &fnv1.RunFunctionResponse{
		Meta:    &fnv1.ResponseMeta{Tag: req.GetMeta().GetTag(), Ttl: durationpb.New(time.Minute)},
		Desired: &fnv1.State{Composite: &fnv1.Resource{Ready: fnv1.Ready_READY_TRUE}},
	}, nil
}

func TestPackagesRunAsProcessesOfTheHost(t *testing.T) {
	p := startPlane(t, Options{Name: "packages", Crossplane: true})
	r, err := StartRegistry(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Stop() })
	pushPackage(t, r.Host()+"/function-test:v1", functionPackage)
	pushPackage(t, r.Host()+"/provider-test:v1", providerPackage)

	certs, err := p.PackageCertificates(t.Context(), "function-test")
	if err != nil {
		t.Fatal(err)
	}
	address := serve(t, certs)
	for _, manifest := range []string{packagesAt(r.Host()), xrd, composition} {
		apply(t, p, manifest)
	}
	if err := p.ConnectFunction(t.Context(), "function-test", address); err != nil {
		t.Fatal(err)
	}
	if err := p.ConnectProvider(t.Context(), "provider-test"); err != nil {
		t.Fatal(err)
	}
	apply(t, p, claim)
	eventuallyReady(t, p, "one")
	eventually(t, 30*time.Second, "the RBAC manager made a role of the XRD", func() bool {
		role := &metav1.PartialObjectMetadata{}
		role.SetGroupVersionKind(clusterRole)
		return p.Client().Get(t.Context(), client.ObjectKey{Name: "crossplane:composite:xthings.test.example.org:aggregate-to-edit"}, role) == nil
	})

	// A new version is a new revision, which has to be connected again.
	pushPackage(t, r.Host()+"/function-test:v2", functionPackage+"---\n")
	f := &unstructured.Unstructured{}
	f.SetAPIVersion("pkg.crossplane.io/v1")
	f.SetKind("Function")
	f.SetName("function-test")
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"package":"`+r.Host()+`/function-test:v2"}}`))
	if err := p.Client().Patch(t.Context(), f, patch); err != nil {
		t.Fatal(err)
	}
	revisions := &unstructured.UnstructuredList{}
	revisions.SetAPIVersion("pkg.crossplane.io/v1")
	revisions.SetKind("FunctionRevisionList")
	eventually(t, 30*time.Second, "the second revision is active and has an endpoint", func() bool {
		if err := p.Client().List(t.Context(), revisions); err != nil || len(revisions.Items) != 2 {
			return false
		}
		for _, rev := range revisions.Items {
			state, _, _ := unstructured.NestedString(rev.Object, "spec", "desiredState")
			endpoint, _, _ := unstructured.NestedString(rev.Object, "status", "endpoint")
			if state == "Active" && endpoint != "dns:///"+address {
				return false
			}
		}
		return true
	})
}

func packagesAt(host string) string {
	return string(bytes.ReplaceAll([]byte(packages), []byte("HOST"), []byte(host)))
}

func apply(t *testing.T, p *Plane, manifest string) {
	t.Helper()
	objects, err := parseObjects([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Apply(t.Context(), objects...); err != nil {
		t.Fatal(err)
	}
}

func eventuallyReady(t *testing.T, p *Plane, thing string) {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("test.example.org/v1")
	u.SetKind("Thing")
	eventually(t, 30*time.Second, "claim "+thing+" is ready", func() bool {
		if err := p.Client().Get(t.Context(), client.ObjectKey{Namespace: "default", Name: thing}, u); err != nil {
			return false
		}
		conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		for _, c := range conditions {
			if c, ok := c.(map[string]any); ok && c["type"] == "Ready" && c["status"] == "True" {
				return true
			}
		}
		return false
	})
}

// serve the function the way its pod would, with the certificate Crossplane
// expects of it.
func serve(t *testing.T, certs string) string {
	t.Helper()
	config, err := certificates.LoadMTLSConfig(certs+"/ca.crt", certs+"/tls.crt", certs+"/tls.key", true)
	if err != nil {
		t.Fatal(err)
	}
	config.MinVersion = tls.VersionTLS13
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(grpc.Creds(credentials.NewTLS(config)))
	fnv1.RegisterFunctionRunnerServiceServer(s, readyFunction{})
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return l.Addr().String()
}

func pushPackage(t *testing.T, ref, content string) {
	t.Helper()
	buf := &bytes.Buffer{}
	w := tar.NewWriter(buf)
	if err := w.WriteHeader(&tar.Header{Name: "package.yaml", Mode: 0o644, Size: int64(len(content))}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(buf.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	img, err := mutate.Append(empty.Image, mutate.Addendum{Layer: layer, Annotations: map[string]string{"io.crossplane.xpkg": "base"}})
	if err != nil {
		t.Fatal(err)
	}
	digest, err := layer.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if img, err = mutate.Config(img, v1.Config{Labels: map[string]string{"io.crossplane.xpkg:" + digest.String(): "base"}}); err != nil {
		t.Fatal(err)
	}
	r, err := name.ParseReference(ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(r, img); err != nil {
		t.Fatal(err)
	}
}
