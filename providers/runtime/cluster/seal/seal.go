// Package seal makes and opens the ciphertext of a context's credential: age, armored, to the platform's recipient.
//
// The plaintext names the tenant, the context, the server and the CA that it is for. So a claim with ciphertext may be
// committed to git: copied into another tenant's claim, or beside another server's address, it is refused.
package seal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"strings"

	"filippo.io/age"
	"filippo.io/age/armor"
)

// longest plaintext, in bytes.
const longest = 64 << 10

// A Binding says what a credential is for.
type Binding struct {
	// Tenant by name.
	Tenant string `json:"tenant"`
	// Context by name.
	Context string `json:"context"`
	// Server is the API server's address, as in the claim.
	Server string `json:"server"`
	// CASHA256 is the hash of the CA bundle: see [CASHA256].
	CASHA256 string `json:"caSHA256"`
}

// Plaintext is what is sealed: a binding, and a token or a client certificate with its key, PEM.
type Plaintext struct {
	Binding
	Token string `json:"token,omitempty"`
	Cert  string `json:"cert,omitempty"`
	Key   string `json:"key,omitempty"`
}

// CASHA256 is the SHA-256, in hex, of the certificates of a PEM bundle one after another. White space and comments between
// them do not matter, their order does.
func CASHA256(bundle []byte) (string, error) {
	h, n := sha256.New(), 0
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			h.Write(block.Bytes)
			n++
		}
	}
	if n == 0 {
		return "", errors.New("cannot hash the CA bundle: there is no PEM certificate in it")
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// NormalServer is a server's address as it is compared: in lower case, without the trailing slash.
func NormalServer(server string) string { return strings.ToLower(strings.TrimSuffix(server, "/")) }

// Seal writes armored ciphertext to the recipients.
func Seal(dst io.Writer, p Plaintext, to ...age.Recipient) error {
	if err := p.complete(); err != nil {
		return err
	}
	b, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("cannot encode the credential: %w", err)
	}
	if len(b) > longest {
		return fmt.Errorf("cannot seal the credential: it is longer than %d bytes", longest)
	}
	a := armor.NewWriter(dst)
	w, err := age.Encrypt(a, to...)
	if err != nil {
		return fmt.Errorf("cannot encrypt the credential: %w", err)
	}
	_, err = w.Write(b)
	if err = errors.Join(err, w.Close(), a.Close()); err != nil {
		return fmt.Errorf("cannot write the ciphertext: %w", err)
	}
	return nil
}

// Open decrypts armored ciphertext and holds it against what it is used for. Errors name what does not match, and never a
// value out of the ciphertext.
func Open(ciphertext string, want Binding, with ...age.Identity) (Plaintext, error) {
	r, err := age.Decrypt(armor.NewReader(strings.NewReader(strings.TrimSpace(ciphertext)+"\n")), with...)
	if err != nil {
		if errors.As(err, new(*age.NoIdentityMatchError)) {
			return Plaintext{}, errors.New("it was not made to this platform's recipient")
		}
		return Plaintext{}, errors.New("it is not armored age ciphertext, or was cut or changed")
	}
	b, err := io.ReadAll(io.LimitReader(r, longest+1))
	if err != nil {
		return Plaintext{}, errors.New("it was cut or changed")
	}
	if len(b) > longest {
		return Plaintext{}, fmt.Errorf("what is in it is longer than %d bytes", longest)
	}
	return parse(b, want)
}

func parse(b []byte, want Binding) (Plaintext, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	var p Plaintext
	// The decoder's errors quote what they are about.
	if err := d.Decode(&p); err != nil || d.More() {
		return Plaintext{}, errors.New("what is in it is not a JSON object of tenant, context, server, caSHA256 and token, or cert and key")
	}
	if err := p.complete(); err != nil {
		return Plaintext{}, err
	}
	for _, f := range []struct {
		name       string
		have, want string
	}{
		{"tenant", p.Tenant, want.Tenant},
		{"context", p.Context, want.Context},
		{"server", NormalServer(p.Server), NormalServer(want.Server)},
		{"caSHA256", strings.ToLower(p.CASHA256), want.CASHA256},
	} {
		if f.have != f.want {
			return Plaintext{}, fmt.Errorf("it was made for another %s", f.name)
		}
	}
	return p, nil
}

// complete reports what is missing, by field.
func (p Plaintext) complete() error {
	for _, f := range []struct{ name, value string }{
		{"tenant", p.Tenant}, {"context", p.Context}, {"server", p.Server}, {"caSHA256", p.CASHA256},
	} {
		if f.value == "" {
			return fmt.Errorf("it names no %s", f.name)
		}
	}
	token, cert := p.Token != "", p.Cert != "" && p.Key != ""
	if token == cert || token && (p.Cert != "" || p.Key != "") {
		return errors.New("it needs either a token, or a cert and its key")
	}
	return nil
}
