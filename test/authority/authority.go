// Package authority signs certificates for what tests talk to over TLS.
package authority

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// life of a certificate that says no other.
const life = 24 * time.Hour

// An Authority signs certificates.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// New authority with a key of its own.
func New(name string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot make a key: %w", err)
	}
	a := &Authority{key: key, cert: &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}}
	der, err := a.Sign(a.cert, key.Public())
	if err != nil {
		return nil, err
	}
	a.cert, err = x509.ParseCertificate(der)
	return a, err
}

// Certificate of the authority itself.
func (a *Authority) Certificate() *x509.Certificate { return a.cert }

// PEM is the authority's certificate.
func (a *Authority) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// Sign a certificate of a public key, and return it in DER. Serial number and times are set where the template has none.
func (a *Authority) Sign(template *x509.Certificate, key crypto.PublicKey) ([]byte, error) {
	t := *template
	if t.SerialNumber == nil {
		var err error
		if t.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil {
			return nil, fmt.Errorf("cannot make a serial number: %w", err)
		}
	}
	if t.NotBefore.IsZero() {
		t.NotBefore = time.Now().Add(-time.Minute)
	}
	if t.NotAfter.IsZero() {
		t.NotAfter = t.NotBefore.Add(life)
	}
	der, err := x509.CreateCertificate(rand.Reader, &t, a.cert, key, a.key)
	if err != nil {
		return nil, fmt.Errorf("cannot sign a certificate: %w", err)
	}
	return der, nil
}

// Server returns a certificate, with its key, of a server at these names or addresses.
func (a *Authority) Server(hosts ...string) (tls.Certificate, error) {
	t := &x509.Certificate{KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, h)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("cannot make a key: %w", err)
	}
	der, err := a.Sign(t, key.Public())
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}
