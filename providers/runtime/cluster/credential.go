package cluster

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// Keys of a Secret that holds a credential.
const (
	keyToken = corev1.ServiceAccountTokenKey
	keyCert  = corev1.TLSCertKey
	keyKey   = corev1.TLSPrivateKeyKey
)

// A Credential is a bearer token, or a client certificate with its key. It prints as neither.
type Credential struct {
	token     string
	cert, key []byte
}

// String says what kind of credential it is, and nothing about it.
func (c Credential) String() string {
	if c.token != "" {
		return "token"
	}
	return "client certificate"
}

// GoString is String, for %#v.
func (c Credential) GoString() string { return c.String() }

func (c Credential) equal(o Credential) bool {
	return c.token == o.token && bytes.Equal(c.cert, o.cert) && bytes.Equal(c.key, o.key)
}

// data is the credential as a Secret holds it.
func (c Credential) data() map[string][]byte {
	if c.token != "" {
		return map[string][]byte{keyToken: []byte(c.token)}
	}
	return map[string][]byte{keyCert: c.cert, keyKey: c.key}
}

// credentialOf reads a credential out of a Secret's data. Errors name keys, never values.
func credentialOf(data map[string][]byte) (Credential, error) {
	if k := kubeconfigIn(data); k != "" {
		return Credential{}, problem(steading.ReasonCredentialMissing,
			"key %s holds a kubeconfig, which is not accepted since it can run programs and read files: set the key %s, or the keys %s and %s, from it", k, keyToken, keyCert, keyKey)
	}
	token, cert, key := data[keyToken], data[keyCert], data[keyKey]
	switch {
	case len(token) > 0 && (len(cert) > 0 || len(key) > 0):
		return Credential{}, problem(steading.ReasonCredentialMissing, "it has both the key %s and the keys %s and %s: leave one of them out", keyToken, keyCert, keyKey)
	case len(token) > 0:
		return NewToken(string(token))
	case len(cert) > 0 && len(key) > 0:
		return NewClientCertificate(cert, key)
	case len(cert) > 0:
		return Credential{}, problem(steading.ReasonCredentialMissing, "it has the key %s but not %s", keyCert, keyKey)
	case len(key) > 0:
		return Credential{}, problem(steading.ReasonCredentialMissing, "it has the key %s but not %s", keyKey, keyCert)
	}
	return Credential{}, problem(steading.ReasonCredentialMissing, "it has neither the key %s nor the keys %s and %s%s", keyToken, keyCert, keyKey, found(data))
}

// NewToken is a credential that is a bearer token.
func NewToken(token string) (Credential, error) {
	token = strings.TrimSpace(token)
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return Credential{}, problem(steading.ReasonCredentialMissing, "%s is not a bearer token: a bearer token is printable ASCII without spaces and line breaks", keyToken)
	}
	return Credential{token: token}, nil
}

// NewClientCertificate is a credential that is a client certificate, PEM, with the key that belongs to it.
func NewClientCertificate(cert, key []byte) (Credential, error) {
	if _, err := tls.X509KeyPair(cert, key); err != nil {
		// crypto/tls names what is wrong and quotes neither certificate nor key.
		return Credential{}, problem(steading.ReasonCredentialMissing, "%s and %s are not a certificate and its key: %s", keyCert, keyKey, err)
	}
	return Credential{cert: cert, key: key}, nil
}

// kubeconfigIn is the key under which a kubeconfig is, empty if there is none.
func kubeconfigIn(data map[string][]byte) string {
	for _, k := range sortedKeys(data) {
		if strings.Contains(strings.ToLower(k), "kubeconfig") || bytes.Contains(data[k], []byte("current-context")) && bytes.Contains(data[k], []byte("clusters")) {
			return k
		}
	}
	return ""
}

func found(data map[string][]byte) string {
	keys := sortedKeys(data)
	switch {
	case len(keys) == 0:
		return "; it is empty"
	case len(keys) > 5:
		return fmt.Sprintf("; it has %s and %d more", strings.Join(keys[:5], ", "), len(keys)-5)
	}
	return "; it has " + strings.Join(keys, ", ")
}

func sortedKeys(data map[string][]byte) []string {
	keys := make([]string, 0, len(data))
	for k := range data {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
