package server

import (
	"context"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// A tokenRef is where a token is.
type tokenRef struct {
	secret client.ObjectKey
	key    string
}

func refOf(f steading.ForgejoServer, namespace string) tokenRef {
	r := tokenRef{secret: client.ObjectKey{Namespace: namespace, Name: f.TokenSecretRef.Name}, key: f.TokenSecretRef.Key}
	if r.key == "" {
		r.key = steading.DefaultTokenKey
	}
	return r
}

// readToken of a Secret. Errors name keys, never values.
func readToken(ctx context.Context, c client.Reader, ref tokenRef) (string, error) {
	s := &corev1.Secret{}
	err := c.Get(ctx, ref.secret, s)
	switch {
	case kerrors.IsNotFound(err):
		return "", problem(steading.ReasonTokenMissing, "Secret %s is not there: make it, with the access token as its key %s", ref.secret, ref.key)
	case err != nil:
		return "", errors.Wrapf(err, "cannot read the Secret %s with the access token", ref.secret)
	}
	token := strings.TrimSpace(string(s.Data[ref.key]))
	if token == "" {
		return "", problem(steading.ReasonTokenMissing, "Secret %s has nothing as its key %s: put the access token there", ref.secret, ref.key)
	}
	return token, nil
}
