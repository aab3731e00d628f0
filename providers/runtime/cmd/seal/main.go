// Command seal makes the ciphertext of a context's credential, for spec.credentials.age of a Context. It reads the token, or
// the key of a client certificate, from its standard input only, and writes the ciphertext to its standard output:
//
//	seal --recipient age1... --tenant acme --context edge --server https://203.0.113.7:6443 --ca ca.crt < token
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"filippo.io/age"
	"github.com/alecthomas/kong"

	"github.com/steading-dev/steading/providers/runtime/cluster/seal"
)

type cli struct {
	Recipient  []string `required:"" help:"Recipient of the platform, age1... The operator tells it." placeholder:"AGE1"`
	Tenant     string   `required:"" help:"Tenant that the context belongs to."`
	Context    string   `required:"" help:"Name of the context."`
	Server     string   `required:"" help:"Address of the API server, as in spec.server." placeholder:"URL"`
	CA         string   `required:"" name:"ca" type:"existingfile" help:"File with the CA bundle, PEM, that spec.caBundle has." placeholder:"FILE"`
	ClientCert string   `type:"existingfile" help:"File with a client certificate, PEM. What is read is its key then, instead of a token." placeholder:"FILE"`
}

func main() {
	c := &cli{}
	k := kong.Parse(c, kong.Name("seal"), kong.UsageOnError(),
		kong.Description("Makes the ciphertext of a context's credential. Reads the token, or a client certificate's key, from standard input."))
	k.FatalIfErrorf(c.run(os.Stdin, os.Stdout))
}

// run seals what in holds.
func (c *cli) run(in io.Reader, out io.Writer) error {
	to, err := recipients(c.Recipient)
	if err != nil {
		return err
	}
	p, err := c.plaintext(in)
	if err != nil {
		return err
	}
	return seal.Seal(out, p, to...)
}

func (c *cli) plaintext(in io.Reader) (seal.Plaintext, error) {
	ca, err := os.ReadFile(c.CA)
	if err != nil {
		return seal.Plaintext{}, fmt.Errorf("cannot read the CA bundle: %w", err)
	}
	hash, err := seal.CASHA256(ca)
	if err != nil {
		return seal.Plaintext{}, err
	}
	p := seal.Plaintext{Binding: seal.Binding{Tenant: c.Tenant, Context: c.Context, Server: c.Server, CASHA256: hash}}

	secret, err := io.ReadAll(in)
	if err != nil {
		return seal.Plaintext{}, fmt.Errorf("cannot read standard input: %w", err)
	}
	if strings.TrimSpace(string(secret)) == "" {
		return seal.Plaintext{}, errors.New("cannot seal nothing: give the token, or the certificate's key, on standard input")
	}
	if c.ClientCert == "" {
		p.Token = strings.TrimSpace(string(secret))
		return p, nil
	}
	cert, err := os.ReadFile(c.ClientCert)
	if err != nil {
		return seal.Plaintext{}, fmt.Errorf("cannot read the client certificate: %w", err)
	}
	p.Cert, p.Key = string(cert), string(secret)
	return p, nil
}

func recipients(from []string) ([]age.Recipient, error) {
	to, err := age.ParseRecipients(strings.NewReader(strings.Join(from, "\n")))
	if err != nil {
		return nil, fmt.Errorf("cannot read --recipient: %w", err)
	}
	return to, nil
}
