package target

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
)

// Deployer tokens live an hour and are renewed when four fifths of that are over.
const tokenLife = time.Hour

// Deployer returns how to reach the target as the account steading-deployer of a namespace, and as nobody else. Its token
// is short-lived, and renewed and kept here. It fails with a not-found when there is no such account.
func (t *Target) Deployer(ctx context.Context, namespace string) (*rest.Config, error) {
	if _, err := t.tokens.get(ctx, namespace); err != nil {
		return nil, fmt.Errorf("cannot act as the account %s of namespace %s: %w", names.Deployer, namespace, err)
	}
	cfg := rest.CopyConfig(t.anonymous)
	cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		return &bearer{inner: rt, tokens: &t.tokens, namespace: namespace}
	})
	return cfg, nil
}

// anonymously is how to reach a cluster as nobody. All clients that are made of it share one transport, wrapped, and its connections:
// client-go shares none between clients that are told how to dial, and Helm makes one for each object of a chart.
func anonymously(cfg *rest.Config, wrap transport.WrapperFunc) (*rest.Config, error) {
	out := rest.AnonymousClientConfig(cfg)
	server, _, err := rest.DefaultServerUrlFor(out)
	if err != nil {
		return nil, err
	}
	base, err := rest.TransportFor(&rest.Config{Host: out.Host, TLSClientConfig: out.TLSClientConfig, Dial: out.Dial, Proxy: out.Proxy, DisableCompression: out.DisableCompression})
	if err != nil {
		return nil, err
	}
	// The transport has these. Whether TLS is spoken, which is told by them otherwise, has to be in the address.
	out.TLSClientConfig, out.Dial, out.Proxy = rest.TLSClientConfig{}, nil, nil
	out.Host, out.Transport = server.String(), wrap(RefuseRedirects(base))
	out.QPS, out.RateLimiter, out.Timeout = -1, nil, requestTimeout
	return out, nil
}

// closeIdle connections of a transport.
func closeIdle(rt http.RoundTripper) {
	if c, ok := rt.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// A bearer puts the deployer's present token on each request.
type bearer struct {
	inner     http.RoundTripper
	tokens    *tokens
	namespace string
}

func (b *bearer) RoundTrip(req *http.Request) (*http.Response, error) {
	value, err := b.tokens.get(req.Context(), b.namespace)
	if err != nil {
		return nil, err
	}
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+value)
	res, err := b.inner.RoundTrip(req)
	if err == nil && res.StatusCode == http.StatusUnauthorized {
		// As when the namespace and its account were made anew. The next request asks for another.
		b.tokens.forget(b.namespace, value)
	}
	return res, err
}

// tokens are the deployers' tokens of one target.
type tokens struct {
	client client.Client

	mu          sync.Mutex
	byNamespace map[string]*token
}

type token struct {
	mu    sync.Mutex
	value string
	renew time.Time
}

func (t *tokens) get(ctx context.Context, namespace string) (string, error) {
	t.mu.Lock()
	tk, ok := t.byNamespace[namespace]
	if !ok {
		tk = &token{}
		t.byNamespace[namespace] = tk
	}
	t.mu.Unlock()

	tk.mu.Lock()
	defer tk.mu.Unlock()
	if tk.value != "" && time.Now().Before(tk.renew) {
		return tk.value, nil
	}
	seconds := int64(tokenLife / time.Second)
	tr := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: names.Deployer}}
	if err := t.client.SubResource("token").Create(ctx, sa, tr); err != nil {
		if client.IgnoreNotFound(err) == nil {
			t.drop(namespace)
		}
		return "", err
	}
	// The server may give less than was asked for.
	life := time.Until(tr.Status.ExpirationTimestamp.Time)
	tk.value, tk.renew = tr.Status.Token, time.Now().Add(life*4/5)
	return tk.value, nil
}

// forget drops a token that was refused, unless it was renewed already.
func (t *tokens) forget(namespace, value string) {
	t.mu.Lock()
	tk, ok := t.byNamespace[namespace]
	t.mu.Unlock()
	if !ok {
		return
	}
	tk.mu.Lock()
	defer tk.mu.Unlock()
	if tk.value == value {
		tk.value = ""
	}
}

// drop forgets a namespace that has no deployer, most likely because it is gone.
func (t *tokens) drop(namespace string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byNamespace, namespace)
}
