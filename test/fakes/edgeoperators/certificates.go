package edgeoperators

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/test/authority"
)

var (
	certificate = schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: "Certificate"}
	request     = schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: "CertificateRequest"}
	order       = schema.GroupVersionKind{Group: "acme.cert-manager.io", Version: "v1", Kind: "Order"}
	challenge   = schema.GroupVersionKind{Group: "acme.cert-manager.io", Version: "v1", Kind: "Challenge"}
)

// challengeFinalizer keeps a challenge until its record is out of the zone.
const challengeFinalizer = "acme.cert-manager.io/finalizer"

// CertManager stands in for cert-manager with an issuer of the ACME kind: for each Certificate of a namespace it makes a
// request, an order and a challenge, and writes a real certificate, signed by an authority of its own.
type CertManager struct {
	*operator
	namespace string
	authority *authority.Authority

	mu    sync.Mutex
	never string
	holds bool
	keys  map[string]*ecdsa.PrivateKey
}

// StartCertManager runs one on a control plane until ctx is done.
func StartCertManager(ctx context.Context, cfg *rest.Config, namespace string) (*CertManager, error) {
	o, err := newOperator(cfg, certificate, challenge)
	if err != nil {
		return nil, fmt.Errorf("cannot start the certificate operator: %w", err)
	}
	a, err := authority.New("stand-in issuer")
	if err != nil {
		return nil, fmt.Errorf("cannot start the certificate operator: %w", err)
	}
	c := &CertManager{operator: o, namespace: namespace, authority: a, keys: map[string]*ecdsa.PrivateKey{}}
	o.step = c.sync
	go o.run(ctx)
	return c, nil
}

// Roots are what its certificates are verified by.
func (c *CertManager) Roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(c.authority.Certificate())
	return pool
}

// NeverIssues has challenges stay pending for the reason given. With none they are met.
func (c *CertManager) NeverIssues(reason string) { c.set(func() { c.never = reason }) }

// HoldsChallenges has challenges that are deleted keep their finalizer, as when the record cannot be taken out of the zone.
func (c *CertManager) HoldsChallenges(holds bool) { c.set(func() { c.holds = holds }) }

func (c *CertManager) set(f func()) {
	c.mu.Lock()
	f()
	c.mu.Unlock()
	c.nudge()
}

func (c *CertManager) sync(ctx context.Context) error {
	c.mu.Lock()
	never, holds := c.never, c.holds
	c.mu.Unlock()
	var errs []error
	for _, ch := range c.all(ctx, challenge, c.namespace) {
		errs = append(errs, c.meet(ctx, &ch, never, holds))
	}
	for _, crt := range c.all(ctx, certificate, c.namespace) {
		if crt.GetDeletionTimestamp() == nil {
			errs = append(errs, c.issue(ctx, &crt, never))
		}
	}
	return errors.Join(errs...)
}

// meet a challenge, or clean up after it.
func (c *CertManager) meet(ctx context.Context, ch *unstructured.Unstructured, never string, holds bool) error {
	if ch.GetDeletionTimestamp() != nil {
		if holds || len(ch.GetFinalizers()) == 0 {
			return nil
		}
		ch.SetFinalizers(slices.DeleteFunc(ch.GetFinalizers(), func(f string) bool { return f == challengeFinalizer }))
		return client.IgnoreNotFound(c.Update(ctx, ch))
	}
	status := map[string]any{"processing": true, "presented": true, "state": "pending", "reason": never}
	if never == "" {
		status = map[string]any{"processing": false, "presented": false, "state": "valid"}
	}
	if state, _, _ := unstructured.NestedString(ch.Object, "status", "state"); state == status["state"] {
		return nil
	}
	ch.Object["status"] = status
	return client.IgnoreNotFound(c.Status().Update(ctx, ch))
}

// issue a certificate, unless there is a good one.
func (c *CertManager) issue(ctx context.Context, crt *unstructured.Unstructured, never string) error {
	names, _, _ := unstructured.NestedStringSlice(crt.Object, "spec", "dnsNames")
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = crt.GetNamespace(), nested(crt, "spec", "secretName")
	err := c.Get(ctx, client.ObjectKeyFromObject(secret), secret)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err == nil && good(secret.Data[corev1.TLSCertKey], names) {
		return c.say(ctx, crt, condition("Ready", "True", "Ready", "Certificate is up to date and has not expired", crt))
	}
	if err := c.say(ctx, crt,
		condition("Ready", "False", "DoesNotExist", "Issuing certificate as Secret does not exist", crt),
		condition("Issuing", "True", "DoesNotExist", "Issuing certificate as Secret does not exist", crt)); err != nil {
		return err
	}
	key, met, err := c.prove(ctx, crt, names)
	if err != nil || !met || never != "" {
		return err
	}
	cert, err := sign(c.authority, key, names)
	if err != nil {
		return err
	}
	return c.write(ctx, crt, secret, key, cert)
}

// prove control of the names: the request, order and challenge are made, and looked at.
func (c *CertManager) prove(ctx context.Context, crt *unstructured.Unstructured, names []string) (*ecdsa.PrivateKey, bool, error) {
	key, csr, err := c.csr(crt, names)
	if err != nil {
		return nil, false, err
	}
	issuer, _, _ := unstructured.NestedMap(crt.Object, "spec", "issuerRef")
	suffix := fmt.Sprintf("-%d", crt.GetGeneration())
	owner := crt
	for _, kind := range []schema.GroupVersionKind{request, order} {
		u := owned(kind, owner, crt.GetName()+suffix)
		u.SetLabels(crt.GetLabels())
		u.Object["spec"] = map[string]any{"issuerRef": issuer, "request": csr}
		if err := c.ensure(ctx, u); err != nil {
			return nil, false, err
		}
		owner = u
	}
	met := true
	for _, n := range names {
		domain := strings.TrimPrefix(n, "*.")
		u := owned(challenge, owner, crt.GetName()+suffix+"-0")
		u.SetFinalizers([]string{challengeFinalizer})
		u.Object["spec"] = map[string]any{
			"authorizationURL": "https://acme.invalid/authz/1", "url": "https://acme.invalid/challenge/1", "type": "DNS-01",
			"dnsName": domain, "wildcard": domain != n, "issuerRef": issuer, "key": "key", "token": "token", "solver": map[string]any{},
		}
		if err := c.ensure(ctx, u); err != nil {
			return nil, false, err
		}
		met = met && nested(u, "status", "state") == "valid"
	}
	return key, met, nil
}

// csr is the same for the same certificate, as the key is kept until it is issued.
func (c *CertManager) csr(crt *unstructured.Unstructured, names []string) (*ecdsa.PrivateKey, string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := fmt.Sprint(crt.GetUID(), crt.GetGeneration())
	if c.keys[id] == nil {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, "", err
		}
		c.keys[id] = key
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{DNSNames: names}, c.keys[id])
	return c.keys[id], base64.StdEncoding.EncodeToString([]byte(encode("CERTIFICATE REQUEST", der))), err
}

// ensure that an object exists, and read it.
func (c *CertManager) ensure(ctx context.Context, u *unstructured.Unstructured) error {
	have := u.DeepCopy()
	err := c.Get(ctx, client.ObjectKeyFromObject(u), have)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err != nil {
		return c.Create(ctx, u)
	}
	u.Object = have.Object
	return nil
}

// write the Secret as cert-manager does, with the labels that the certificate asks for.
func (c *CertManager) write(ctx context.Context, crt *unstructured.Unstructured, secret *corev1.Secret, key *ecdsa.PrivateKey, cert []byte) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	secret.Labels, _, _ = unstructured.NestedStringMap(crt.Object, "spec", "secretTemplate", "labels")
	secret.Annotations, _, _ = unstructured.NestedStringMap(crt.Object, "spec", "secretTemplate", "annotations")
	if secret.Annotations == nil {
		secret.Annotations = map[string]string{}
	}
	secret.Annotations["cert-manager.io/certificate-name"] = crt.GetName()
	secret.Type = corev1.SecretTypeTLS
	secret.Data = map[string][]byte{
		corev1.TLSCertKey: cert, corev1.TLSPrivateKeyKey: []byte(encode("EC PRIVATE KEY", der)),
		"ca.crt": c.authority.PEM(),
	}
	if secret.ResourceVersion != "" {
		return c.Update(ctx, secret)
	}
	return c.Create(ctx, secret)
}

// say conditions on a certificate, when they were not said before.
func (c *CertManager) say(ctx context.Context, crt *unstructured.Unstructured, conditions ...any) error {
	have, _, _ := unstructured.NestedSlice(crt.Object, "status", "conditions")
	if len(have) == len(conditions) && !slices.ContainsFunc(conditions, func(w any) bool {
		return !slices.ContainsFunc(have, func(h any) bool { return same(h, w) })
	}) {
		return nil
	}
	crt.Object["status"] = map[string]any{"conditions": conditions}
	return client.IgnoreNotFound(c.Status().Update(ctx, crt))
}

func same(a, b any) bool {
	x, ok1 := a.(map[string]any)
	y, ok2 := b.(map[string]any)
	return ok1 && ok2 && x["type"] == y["type"] && x["status"] == y["status"] && x["message"] == y["message"] && x["observedGeneration"] == y["observedGeneration"]
}

func condition(kind, status, reason, message string, crt *unstructured.Unstructured) map[string]any {
	return map[string]any{
		"type": kind, "status": status, "reason": reason, "message": message,
		"lastTransitionTime": time.Now().UTC().Format(time.RFC3339), "observedGeneration": crt.GetGeneration(),
	}
}

func owned(kind schema.GroupVersionKind, by *unstructured.Unstructured, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(kind)
	u.SetNamespace(by.GetNamespace())
	u.SetName(name)
	u.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(by, by.GroupVersionKind())})
	return u
}

func nested(u *unstructured.Unstructured, path ...string) string {
	s, _, _ := unstructured.NestedString(u.Object, path...)
	return s
}

func encode(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// good reports whether a certificate is for the names, and valid for a while.
func good(raw []byte, names []string) bool {
	block, _ := pem.Decode(raw)
	if block == nil {
		return false
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	return err == nil && slices.Equal(cert.DNSNames, names) && time.Until(cert.NotAfter) > time.Hour
}

// sign a certificate of a key for names, as PEM.
func sign(by *authority.Authority, key *ecdsa.PrivateKey, names []string) ([]byte, error) {
	der, err := by.Sign(&x509.Certificate{
		DNSNames: names, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, key.Public())
	return bytes.TrimSpace([]byte(encode("CERTIFICATE", der))), err
}
