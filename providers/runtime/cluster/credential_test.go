package cluster

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/address"
)

func TestCredentialOf(t *testing.T) {
	ca := newAuthority(t)
	cert, key := ca.issue(t, nil)
	_, otherKey := ca.issue(t, nil)
	cases := map[string]struct {
		reason string
		data   map[string]string
		kind   string
		want   string
	}{
		"Token":           {reason: "A token.", data: map[string]string{"token": "planted-secret\n"}, kind: "token"},
		"TokenAndOthers":  {reason: "A token of Kubernetes' own comes with a CA and a namespace.", data: map[string]string{"token": "planted-secret", "ca.crt": "x", "namespace": "y"}, kind: "token"},
		"Certificate":     {reason: "A client certificate.", data: map[string]string{"tls.crt": string(cert), "tls.key": string(key)}, kind: "client certificate"},
		"Empty":           {reason: "Nothing.", data: nil, want: "it is empty"},
		"Others":          {reason: "Other keys are named.", data: map[string]string{"password": "planted-secret"}, want: "it has password"},
		"Both":            {reason: "Which one is meant?", data: map[string]string{"token": "planted-secret", "tls.crt": string(cert), "tls.key": string(key)}, want: "leave one of them out"},
		"NoKey":           {reason: "Half of a certificate.", data: map[string]string{"tls.crt": string(cert)}, want: "it has the key tls.crt but not tls.key"},
		"NoCertificate":   {reason: "The other half.", data: map[string]string{"tls.key": string(key)}, want: "it has the key tls.key but not tls.crt"},
		"AnothersKey":     {reason: "They have to belong together.", data: map[string]string{"tls.crt": string(cert), "tls.key": string(otherKey)}, want: "not a certificate and its key"},
		"Garbage":         {reason: "Neither is PEM.", data: map[string]string{"tls.crt": "planted-secret", "tls.key": "planted-secret"}, want: "not a certificate and its key"},
		"Header":          {reason: "No token adds a header.", data: map[string]string{"token": "planted-secret\r\nX-Remote-User: admin"}, want: "is not a bearer token"},
		"Kubeconfig":      {reason: "A kubeconfig runs programs.", data: map[string]string{"kubeconfig": "planted-secret"}, want: "key kubeconfig holds a kubeconfig, which is not accepted"},
		"KubeconfigByToo": {reason: "Under any name.", data: map[string]string{"value": "clusters: []\ncurrent-context: planted-secret"}, want: "key value holds a kubeconfig"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			data := map[string][]byte{}
			for k, v := range tc.data {
				data[k] = []byte(v)
			}
			c, err := credentialOf(data)
			for _, said := range []string{fmt.Sprint(c), fmt.Sprintf("%#v", c), fmt.Sprintf("%+v", Endpoint{Credential: c}), fmt.Sprint(err)} {
				notIn(t, said, "planted-secret", strings.Split(string(key), "\n")[1])
			}
			if tc.want == "" {
				if err != nil || c.String() != tc.kind {
					t.Errorf("%s: have a %s, %v", tc.reason, c, err)
				}
				return
			}
			p := new(UnreachedError)
			if !errors.As(err, &p) || p.Reason != steading.ReasonCredentialMissing || !strings.Contains(p.Message, tc.want) {
				t.Errorf("%s: want %q, have %v", tc.reason, tc.want, err)
			}
		})
	}
}

func TestNewEndpoint(t *testing.T) {
	ca := newAuthority(t)
	_, key := ca.issue(t, nil)
	cases := map[string]struct {
		reason string
		server string
		ca     []byte
		want   string
	}{
		"Good":      {reason: "An address and a CA.", server: "https://203.0.113.7:6443/", ca: ca.pem},
		"Two":       {reason: "A bundle of two.", server: "https://203.0.113.7:6443", ca: append(append([]byte("# comment\n"), ca.pem...), newAuthority(t).pem...)},
		"HTTP":      {reason: "Only https.", server: "http://203.0.113.7:6443", ca: ca.pem, want: `scheme "http": only https`},
		"Path":      {reason: "No path.", server: "https://203.0.113.7:6443/k8s/clusters/c-1", ca: ca.pem, want: "more, or less, than an address"},
		"User":      {reason: "No password in it.", server: "https://user:planted-secret@203.0.113.7", ca: ca.pem, want: "more, or less, than an address"},
		"NoCA":      {reason: "Always verified.", server: "https://203.0.113.7:6443", want: "no PEM certificate"},
		"KeyInCA":   {reason: "A CA bundle is public.", server: "https://203.0.113.7:6443", ca: append(append([]byte(nil), ca.pem...), key...), want: "holds a EC PRIVATE KEY"},
		"GarbageCA": {reason: "It has to parse.", server: "https://203.0.113.7:6443", ca: []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), want: "certificate 1 cannot be read"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := NewEndpoint(tc.server, tc.ca, Credential{token: "x"}, address.Policy{})
			notIn(t, fmt.Sprint(err), "planted-secret", strings.Split(string(key), "\n")[1])
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("%s: %v", tc.reason, err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("%s: want %q, have %v", tc.reason, tc.want, err)
			}
		})
	}
}
