package build

import (
	"bytes"
	"encoding/pem"
	"fmt"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	// certificates of the authorities that https servers are verified by.
	certificates = "/etc/ssl/certs/ca-certificates.crt"
	// home of the user that our binaries run as.
	home = "/home/steading"
)

// baseEntries are all that a static binary needs of an operating system.
func baseEntries() []entry {
	return []entry{
		{name: "etc/", mode: 0o755},
		{name: "etc/group", mode: 0o644, content: fmt.Appendf(nil, "root:x:0:\nsteading:x:%d:\n", nonRoot)},
		{name: "etc/passwd", mode: 0o644, content: fmt.Appendf(nil, "root:x:0:0:root:/:/sbin/nologin\nsteading:x:%[1]d:%[1]d:steading:%s:/sbin/nologin\n", nonRoot, home)},
		{name: "etc/ssl/", mode: 0o755},
		{name: "etc/ssl/certs/", mode: 0o755},
		{name: certificates[1:], mode: 0o644, content: authorities()},
		{name: "home/", mode: 0o755},
		{name: home[1:] + "/", mode: 0o750, owner: nonRoot},
		{name: "tmp/", mode: 0o1777},
	}
}

// authorities that Mozilla trusts, as Go's own bundle has them, but for those that it trusts in part only, which a file
// of certificates cannot say.
func authorities() []byte {
	b := &bytes.Buffer{}
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // A buffer takes everything.
		}
	}
	return b.Bytes()
}
