package serve

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/resource"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/runtime/schema"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/functions/compose"
	"github.com/steading-dev/steading/test/authority"
)

const xenvironment = `{
  "apiVersion": "steading.dev/v1alpha1", "kind": "XEnvironment",
  "metadata": {"name": "dev-x7k2p", "uid": "11111111-2222-3333-4444-555555555555"},
  "spec": {"type": "runtime", "version": "1.4.2", "claimRef": {"namespace": "tenant-acme", "name": "dev"}}
}`

func request(xr string) *fnv1.RunFunctionRequest {
	return &fnv1.RunFunctionRequest{
		Meta:     &fnv1.RequestMeta{Tag: "t"},
		Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: resource.MustStructJSON(xr)}},
	}
}

func function() *Function { return NewFunction(Composers(), NewMetrics(prometheus.NewRegistry())) }

func TestRunFunctionComposesAPlacement(t *testing.T) {
	rsp, err := function().RunFunction(context.Background(), request(xenvironment))
	if err != nil {
		t.Fatal(err)
	}
	want := &fnv1.Resource{Ready: fnv1.Ready_READY_FALSE, Resource: resource.MustStructJSON(`{
	  "apiVersion": "runtime.steading.dev/v1alpha1", "kind": "Placement",
	  "metadata": {"namespace": "steading-system", "name": "acme-dev", "finalizers": ["finalizer.managedresource.crossplane.io"], "labels": {
	    "steading.dev/tenant": "acme", "steading.dev/environment": "dev", "steading.dev/composite-uid": "11111111-2222-3333-4444-555555555555"}},
	  "spec": {"forProvider": {
	    "claim": {"namespace": "tenant-acme", "name": "dev"},
	    "identity": {"tenant": "acme", "environment": "dev", "uid": "11111111-2222-3333-4444-555555555555"},
	    "request": {"type": "runtime", "version": "1.4.2"}}}
	}`)}
	if diff := cmp.Diff(map[string]*fnv1.Resource{"placement": want}, rsp.GetDesired().GetResources(), protocmp.Transform()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if got := rsp.GetMeta().GetTtl().AsDuration(); got != compose.TTLNotReady {
		t.Errorf("TTL %s", got)
	}
	if got := rsp.GetDesired().GetComposite().GetResource().AsMap()["status"].(map[string]any)["phase"]; got != "Pending" { //nolint:forcetypeassert // A test.
		t.Errorf("phase %v", got)
	}
	for _, c := range rsp.GetConditions() {
		if c.GetTarget() != fnv1.Target_TARGET_COMPOSITE_AND_CLAIM {
			t.Errorf("condition %s does not reach the claim", c.GetType())
		}
	}
}

// TestOpenBreakerIsCalledAgainSoon is for crossplane#7703: events that the circuit breaker dropped are lost.
func TestOpenBreakerIsCalledAgainSoon(t *testing.T) {
	for status, want := range map[string]time.Duration{"True": compose.TTLNotReady, "False": compose.TTLUnresponsive} {
		req := request(xenvironment)
		xr := req.GetObserved().GetComposite().GetResource()
		xr.Fields["status"] = structpb.NewStructValue(resource.MustStructJSON(`{"conditions": [{"type": "Synced", "status": "True"}, {"type": "Responsive", "status": "` + status + `"}]}`))
		rsp, err := function().RunFunction(context.Background(), req)
		if err != nil {
			t.Fatal(err)
		}
		if got := rsp.GetMeta().GetTtl().AsDuration(); got != want {
			t.Errorf("Responsive %s: TTL %s, want %s", status, got, want)
		}
	}
}

func TestSameRequestSameBytes(t *testing.T) {
	f := function()
	var first []byte
	for range 50 {
		rsp, err := f.RunFunction(context.Background(), request(xenvironment))
		if err != nil {
			t.Fatal(err)
		}
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(rsp)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = b
		}
		if diff := cmp.Diff(first, b); diff != "" {
			t.Fatal(diff)
		}
	}
}

func TestUnknownKindIsFatalAndSaysWhatIsKnown(t *testing.T) {
	rsp, err := function().RunFunction(context.Background(), request(`{"apiVersion": "example.org/v1", "kind": "XThing", "metadata": {"name": "x"}}`))
	if err != nil {
		t.Fatal(err)
	}
	wantFatal(t, rsp, "XEnvironment, XRunnerPool, XTenant")
}

// wantFatal expects the composite to fail for a reason that says so, and its claim to be told the same.
func wantFatal(t *testing.T, rsp *fnv1.RunFunctionResponse, says string) {
	t.Helper()
	if len(rsp.GetResults()) != 2 {
		t.Fatalf("got results %v", rsp.GetResults())
	}
	said, fails := rsp.GetResults()[0], rsp.GetResults()[1]
	if fails.GetSeverity() != fnv1.Severity_SEVERITY_FATAL || !strings.Contains(fails.GetMessage(), says) {
		t.Errorf("result %v", fails)
	}
	if said.GetTarget() != fnv1.Target_TARGET_COMPOSITE_AND_CLAIM || said.GetMessage() != fails.GetMessage() {
		t.Errorf("the claim is told %v", said)
	}
}

func TestUndecodableChildIsFatal(t *testing.T) {
	req := request(xenvironment)
	req.Observed.Resources = map[string]*fnv1.Resource{"placement": {Resource: resource.MustStructJSON(`{"apiVersion": "runtime.steading.dev/v1alpha1", "kind": "Placement", "status": {"atProvider": "nonsense"}}`)}}
	rsp, err := function().RunFunction(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	wantFatal(t, rsp, `cannot read composed Placement ""`)
}

func TestNumbersKeepTheirKind(t *testing.T) {
	got := fromStruct(resource.MustStructJSON(`{"whole": 3, "part": 1.5, "list": [1, "a", true, null]}`))
	want := map[string]any{"whole": int64(3), "part": 1.5, "list": []any{int64(1), "a", true, nil}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// leaf is a certificate of 127.0.0.1 for one use, and its key.
func leaf(t *testing.T, ca *authority.Authority, usage x509.ExtKeyUsage) (*ecdsa.PrivateKey, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := ca.Sign(&x509.Certificate{Subject: pkix.Name{CommonName: "test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{usage}}, key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return key, der
}

// serving runs f behind mutual TLS and returns how to call it with a client certificate, or none.
func serving(t *testing.T, f fnv1.FunctionRunnerServiceServer) (call func(req *fnv1.RunFunctionRequest, certified bool) (*fnv1.RunFunctionResponse, error)) {
	t.Helper()
	ca, err := authority.New("test")
	if err != nil {
		t.Fatal(err)
	}
	key, der := leaf(t, ca, x509.ExtKeyUsageServerAuth)
	k, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, b := range map[string][]byte{
		"tls.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		"tls.key": pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: k}),
		"ca.crt":  ca.PEM(),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	addr, done := make(chan net.Addr, 1), make(chan error, 1)
	go func() {
		done <- Serve(ctx, f, Options{Address: "127.0.0.1:0", TLSDir: dir, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Started: func(a net.Addr) { addr <- a }})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	target := (<-addr).String()

	clientKey, clientDER := leaf(t, ca, x509.ExtKeyUsageClientAuth)
	pool := x509.NewCertPool()
	pool.AddCert(ca.Certificate())
	return func(req *fnv1.RunFunctionRequest, certified bool) (*fnv1.RunFunctionResponse, error) {
		cfg := &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
		if certified {
			cfg.Certificates = []tls.Certificate{{Certificate: [][]byte{clientDER}, PrivateKey: clientKey}}
		}
		conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(credentials.NewTLS(cfg)), grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(maxMessageBytes), grpc.MaxCallRecvMsgSize(maxMessageBytes)))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // A test.
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		return fnv1.NewFunctionRunnerServiceClient(conn).RunFunction(ctx, req)
	}
}

func TestServeWantsAClientCertificate(t *testing.T) {
	call := serving(t, function())
	if _, err := call(request(xenvironment), true); err != nil {
		t.Errorf("with a certificate: %v", err)
	}
	if _, err := call(request(xenvironment), false); err == nil {
		t.Error("without a certificate: no error")
	}
}

func TestServeTakesMessagesAboveFourMebibytes(t *testing.T) {
	call := serving(t, function())
	req := request(xenvironment)
	req.Observed.Resources = map[string]*fnv1.Resource{"other": {Resource: resource.MustStructJSON(`{"kind": "Other", "data": "` + strings.Repeat("x", 6<<20) + `"}`)}}
	if _, err := call(req, true); err != nil {
		t.Error(err)
	}
}

func TestServeSurvivesAPanic(t *testing.T) {
	boom := NewFunction(map[schema.GroupVersionKind]compose.Composer{
		steading.GroupVersion.WithKind(steading.XEnvironmentKind): compose.ComposerFunc(func(compose.Input) (compose.Output, error) { panic("boom") }),
	}, NewMetrics(prometheus.NewRegistry()))
	call := serving(t, boom)
	for range 2 {
		if _, err := call(request(xenvironment), true); status.Code(err) != codes.Internal {
			t.Errorf("have %v, want Internal", err)
		}
	}
}

func TestServeRefusesToRunWithoutTLS(t *testing.T) {
	err := Serve(context.Background(), function(), Options{Address: "127.0.0.1:0"})
	if err == nil || !strings.Contains(err.Error(), "--tls-server-certs-dir") {
		t.Errorf("have %v", err)
	}
}
