package seal_test

import (
	"bytes"
	"strings"
	"testing"

	"filippo.io/age"
	"filippo.io/age/armor"

	"github.com/steading-dev/steading/providers/runtime/cluster/seal"
)

const planted = "planted-secret"

func identity(t *testing.T) *age.X25519Identity {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func binding() seal.Binding {
	return seal.Binding{Tenant: "acme", Context: "edge", Server: "https://203.0.113.7:6443", CASHA256: strings.Repeat("ab", 32)}
}

// flipped is armored ciphertext with one character of its last line but one changed.
func flipped(s string) string {
	b := []byte(s)
	i := strings.LastIndex(strings.TrimSpace(s), "\n") - 20
	if b[i] == 'x' {
		b[i] = 'y'
	} else {
		b[i] = 'x'
	}
	return string(b)
}

func TestOpen(t *testing.T) {
	id := identity(t)
	cases := map[string]struct {
		reason string
		edit   func(*seal.Plaintext)
		ask    func(*seal.Binding)
		with   age.Identity
		damage func(string) string
		want   string
	}{
		"Same":         {reason: "What was made for it opens."},
		"Slash":        {reason: "A trailing slash and capitals do not matter.", ask: func(b *seal.Binding) { b.Server = "https://203.0.113.7:6443/" }},
		"Certificate":  {reason: "A certificate and its key instead of a token.", edit: func(p *seal.Plaintext) { p.Token, p.Cert, p.Key = "", "cert", planted }},
		"Tenant":       {reason: "Another tenant's is refused.", ask: func(b *seal.Binding) { b.Tenant = "globex" }, want: "it was made for another tenant"},
		"Context":      {reason: "Another context's is refused.", ask: func(b *seal.Binding) { b.Context = "spare" }, want: "it was made for another context"},
		"Server":       {reason: "Beside another server it is refused.", ask: func(b *seal.Binding) { b.Server = "https://198.51.100.1:6443" }, want: "it was made for another server"},
		"CA":           {reason: "Beside another CA it is refused.", ask: func(b *seal.Binding) { b.CASHA256 = strings.Repeat("cd", 32) }, want: "it was made for another caSHA256"},
		"Recipient":    {reason: "To another platform's recipient.", with: identity(t), want: "not made to this platform's recipient"},
		"Cut":          {reason: "Cut off.", damage: func(s string) string { return s[:len(s)/2] }, want: "cut or changed"},
		"Changed":      {reason: "Changed.", damage: flipped, want: "cut or changed"},
		"NoCiphertext": {reason: "Something else.", damage: func(string) string { return planted }, want: "not armored age ciphertext"},
		"Spaces":       {reason: "YAML adds and takes line ends.", damage: func(s string) string { return "\n " + strings.TrimSpace(s) }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := seal.Plaintext{Binding: binding(), Token: planted}
			if tc.edit != nil {
				tc.edit(&p)
			}
			var out bytes.Buffer
			if err := seal.Seal(&out, p, id.Recipient()); err != nil {
				t.Fatal(err)
			}
			text := out.String()
			if strings.Contains(text, planted) {
				t.Fatal("the ciphertext holds the secret")
			}
			if tc.damage != nil {
				text = tc.damage(text)
			}
			want := binding()
			if tc.ask != nil {
				tc.ask(&want)
			}
			with := age.Identity(id)
			if tc.with != nil {
				with = tc.with
			}
			got, err := seal.Open(text, want, with)
			switch {
			case tc.want == "" && (err != nil || got != p):
				t.Errorf("%s: %v", tc.reason, err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), planted)):
				t.Errorf("%s: want %q, have %v", tc.reason, tc.want, err)
			}
		})
	}
}

// TestOpenWhatOthersSealed: plaintext that this package would not make.
func TestOpenWhatOthersSealed(t *testing.T) {
	id := identity(t)
	cases := map[string]struct{ plaintext, want string }{
		"NotJSON":  {planted, "not a JSON object"},
		"Unknown":  {`{"tenant":"acme","context":"edge","server":"https://203.0.113.7:6443","caSHA256":"x","token":"x","exec":"planted-secret"}`, "not a JSON object"},
		"More":     {`{"tenant":"acme","context":"edge","server":"s","caSHA256":"x","token":"x"} {}`, "not a JSON object"},
		"NoTenant": {`{"context":"edge","server":"s","caSHA256":"x","token":"planted-secret"}`, "it names no tenant"},
		"NoToken":  {`{"tenant":"acme","context":"edge","server":"s","caSHA256":"x"}`, "either a token, or a cert and its key"},
		"Both":     {`{"tenant":"acme","context":"edge","server":"s","caSHA256":"x","token":"x","cert":"c","key":"planted-secret"}`, "either a token, or a cert and its key"},
		"TooLong":  {`{"tenant":"` + strings.Repeat("a", 65<<10) + `"}`, "longer than 65536 bytes"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			a := armor.NewWriter(&out)
			w, err := age.Encrypt(a, id.Recipient())
			if err != nil {
				t.Fatal(err)
			}
			_, _ = w.Write([]byte(tc.plaintext))
			_, _ = w.Close(), a.Close()
			_, err = seal.Open(out.String(), binding(), id)
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), planted) {
				t.Errorf("want %q, have %v", tc.want, err)
			}
		})
	}
}

func TestCASHA256(t *testing.T) {
	if _, err := seal.CASHA256([]byte("no certificate")); err == nil {
		t.Error("nothing was hashed")
	}
	const cert = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
	a, err := seal.CASHA256([]byte(cert))
	b, err2 := seal.CASHA256([]byte("# the CA\n" + cert + "\n\n"))
	c, err3 := seal.CASHA256([]byte(cert + cert))
	if err != nil || err2 != nil || err3 != nil || a != b || a == c || len(a) != 64 {
		t.Errorf("%s %s %s, %v %v %v", a, b, c, err, err2, err3)
	}
}
