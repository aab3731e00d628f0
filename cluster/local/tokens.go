package local

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	tokenLifetime = time.Hour
	// Clients read a token file again within a minute; a token is replaced long
	// before it expires.
	tokenRenewal = tokenLifetime / 2
)

// tokens keeps files with tokens of ServiceAccounts fresh.
type tokens struct {
	plane *Plane

	mu    sync.Mutex
	files map[client.ObjectKey]time.Time // when the token was issued
}

func newTokens(ctx context.Context, p *Plane) *tokens {
	t := &tokens{plane: p, files: map[client.ObjectKey]time.Time{}}
	p.work(ctx, t.keepFresh)
	return t
}

// ServiceAccountKubeconfig is the path of a kubeconfig with a token of an
// existing ServiceAccount. The token is renewed as long as the plane runs.
func (p *Plane) ServiceAccountKubeconfig(ctx context.Context, namespace, name string) (string, error) {
	sa := client.ObjectKey{Namespace: namespace, Name: name}
	if err := p.tokens.issue(ctx, sa); err != nil {
		return "", err
	}
	server, ca := p.server, p.ca.pem
	if p.front != nil {
		var err error
		if server, ca, err = p.front(namespace, name, server, ca); err != nil {
			return "", fmt.Errorf("cannot put a front before the API server for ServiceAccount %s: %w", sa, err)
		}
	}
	path := filepath.Join(p.tokens.dir(sa), "kubeconfig")
	return path, writeKubeconfig(path, p.name, server, ca, api.AuthInfo{TokenFile: filepath.Join(p.tokens.dir(sa), "token")})
}

func (t *tokens) dir(sa client.ObjectKey) string {
	return t.plane.file("serviceaccounts/" + sa.Namespace + "/" + sa.Name)
}

func (t *tokens) issue(ctx context.Context, sa client.ObjectKey) error {
	r := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(tokenLifetime / time.Second))}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: sa.Namespace, Name: sa.Name}}
	if err := t.plane.client.SubResource("token").Create(ctx, account, r); err != nil {
		return fmt.Errorf("cannot get a token of ServiceAccount %s: %w", sa, err)
	}
	if err := writePrivate(filepath.Join(t.dir(sa), "token"), []byte(r.Status.Token)); err != nil {
		return fmt.Errorf("cannot write the token of ServiceAccount %s: %w", sa, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.files[sa] = time.Now()
	return nil
}

// keepFresh renews what is half expired; what fails is tried again in a minute.
func (t *tokens) keepFresh(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Minute):
		}
		for _, sa := range t.due() {
			if err := t.issue(ctx, sa); err != nil {
				t.plane.progress(err.Error())
			}
		}
	}
}

func (t *tokens) due() []client.ObjectKey {
	t.mu.Lock()
	defer t.mu.Unlock()
	var due []client.ObjectKey
	for sa, issued := range t.files {
		if time.Since(issued) > tokenRenewal {
			due = append(due, sa)
		}
	}
	return due
}
