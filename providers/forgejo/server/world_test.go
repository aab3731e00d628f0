package server

import (
	"context"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/test/fakes/forgejo"
)

var (
	linux   = client.ObjectKey{Namespace: names.SystemNamespace, Name: "acme-linux"}
	windows = client.ObjectKey{Namespace: names.SystemNamespace, Name: "acme-windows"}
)

// world is a Forgejo with organization acme, and servers that look at it.
type world struct {
	t         *testing.T
	forgejo   *forgejo.Server
	url       string
	token     string
	kube      client.Client
	clock     *clocktesting.FakeClock
	servers   *Servers
	pools     *queue
	instances *queue
}

// queue notes who is woken.
type queue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	mu    sync.Mutex
	woken []string
}

func (q *queue) Add(r reconcile.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.woken = append(q.woken, r.Name)
}

// take who was woken, sorted.
func (q *queue) take() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.woken
	q.woken = nil
	slices.Sort(w)
	return w
}

func newWorld(t *testing.T, allowed ...string) *world {
	t.Helper()
	clock := clocktesting.NewFakeClock(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	w := &world{t: t, forgejo: forgejo.New(forgejo.Options{Clock: clock}), clock: clock, pools: &queue{}, instances: &queue{}}
	must(t, w.forgejo.AddUser("ann", false))
	must(t, w.forgejo.AddOrganization("acme", "ann"))
	must(t, w.forgejo.AddRepository("acme", "web", false))
	token, err := w.forgejo.AddToken("ann", "write:organization")
	must(t, err)
	w.token = token
	srv := httptest.NewServer(w.forgejo)
	t.Cleanup(srv.Close)
	t.Cleanup(func() { w.forgejo.UnsetFaults("", "") })
	w.url = srv.URL

	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, forgejov1.AddToScheme} {
		must(t, add(s))
	}
	w.kube = fake.NewClientBuilder().WithScheme(s).WithObjects(
		&forgejov1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: names.DefaultProviderConfig}, Spec: forgejov1.ProviderConfigSpec{AllowedServers: allowed}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-acme", Name: "pat"}, Data: map[string][]byte{"token": []byte(token + "\n")}},
	).Build()
	w.servers = New(Options{Reader: w.kube, Uncached: w.kube, ControlPlane: "https://192.0.2.1:6443", Clock: clock, Log: logging.NewNopLogger()})
	must(t, w.servers.Pools().Start(t.Context(), w.pools))
	must(t, w.servers.Instances().Start(t.Context(), w.instances))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- w.servers.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		must(t, <-done)
	})
	return w
}

const loopback = "127.0.0.0/8"

func (w *world) server() steading.ForgejoServer {
	return steading.ForgejoServer{
		URL: w.url, Scope: steading.ForgejoScope{Organization: "acme"}, TokenSecretRef: steading.TokenSecretReference{Name: "pat", Key: "token"},
	}
}

func (w *world) session() *Session {
	w.t.Helper()
	s, err := w.servers.Session(w.t.Context(), w.server(), "tenant-acme")
	must(w.t, err)
	return s
}

// secret of the token.
func (w *world) secret() *corev1.Secret {
	w.t.Helper()
	s := &corev1.Secret{}
	must(w.t, w.kube.Get(w.t.Context(), client.ObjectKey{Namespace: "tenant-acme", Name: "pat"}, s))
	return s
}

// until something is so.
func (w *world) until(what string, so func() bool) {
	w.t.Helper()
	for begin := time.Now(); !so(); time.Sleep(time.Millisecond) {
		if time.Since(begin) > 20*time.Second {
			w.t.Fatalf("waited in vain until %s", what)
		}
	}
}

// looked waits for a look after this one.
func (w *world) looked(s *Session, after int64) Look {
	w.t.Helper()
	w.until("there is another look", func() bool {
		l, ok := s.Look()
		return ok && l.Number > after
	})
	l, _ := s.Look()
	return l
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
