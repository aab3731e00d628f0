package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/steading-dev/steading/providers/runtime/cluster/seal"
)

const ca = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"

func TestSealsWhatIsOnStandardInput(t *testing.T) {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, []byte(ca), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &cli{Recipient: []string{id.Recipient().String()}, Tenant: "acme", Context: "edge", Server: "https://203.0.113.7:6443", CA: file}
	hash, err := seal.CASHA256([]byte(ca))
	if err != nil {
		t.Fatal(err)
	}
	want := seal.Binding{Tenant: "acme", Context: "edge", Server: "https://203.0.113.7:6443", CASHA256: hash}

	var out bytes.Buffer
	if err := c.run(strings.NewReader("planted-secret\n"), &out); err != nil {
		t.Fatal(err)
	}
	if p, err := seal.Open(out.String(), want, id); err != nil || p.Token != "planted-secret" {
		t.Errorf("token: %v", err)
	}

	c.ClientCert = file
	out.Reset()
	if err := c.run(strings.NewReader("key"), &out); err != nil {
		t.Fatal(err)
	}
	if p, err := seal.Open(out.String(), want, id); err != nil || p.Token != "" || p.Cert != ca || p.Key != "key" {
		t.Errorf("certificate: %v", err)
	}
	if err := c.run(strings.NewReader(" \n"), &out); err == nil || !strings.Contains(err.Error(), "on standard input") {
		t.Errorf("nothing: %v", err)
	}
	c.Recipient = []string{"nobody"}
	if err := c.run(strings.NewReader("x"), &out); err == nil || !strings.Contains(err.Error(), "--recipient") {
		t.Errorf("no recipient: %v", err)
	}
}
