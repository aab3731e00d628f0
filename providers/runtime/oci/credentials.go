package oci

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
)

// Credentials by registry host. A host without an entry is read anonymously.
//
// A credential is sent to its own host only. A registry whose token service is on another host needs an entry for that
// host too, with the same user and password; Docker Hub's own hosts are known.
type Credentials map[string]authn.AuthConfig

// ParseCredentials reads the key .dockerconfigjson of a Secret. Entries are keyed by host: scheme, path and case do not
// matter. Entries without a user or a password are left out.
func ParseCredentials(dockerconfigjson []byte) (Credentials, error) {
	var config struct {
		Auths map[string]struct {
			Username string `json:"username"`
			Password string `json:"password"`
			Auth     string `json:"auth"`
		} `json:"auths"`
	}
	if err := json.Unmarshal(dockerconfigjson, &config); err != nil {
		// The error would quote what it could not read.
		return nil, errors.New("cannot read the registry credential: .dockerconfigjson is not JSON of the form {\"auths\": {\"<host>\": {...}}}")
	}
	c := Credentials{}
	for server, entry := range config.Auths {
		user, password := entry.Username, entry.Password
		if user == "" || password == "" {
			user, password = decodeAuth(entry.Auth)
		}
		if user == "" || password == "" {
			continue
		}
		c[hostOf(server)] = authn.AuthConfig{Username: user, Password: password}
	}
	return c, nil
}

// Over returns c with base's entries for the hosts that c has none for.
func (c Credentials) Over(base Credentials) Credentials {
	merged := Credentials{}
	for host, entry := range base {
		merged[host] = entry
	}
	for host, entry := range c {
		merged[host] = entry
	}
	return merged
}

// of returns the credential for a registry, and whether there is one.
func (c Credentials) of(reg name.Registry) (authn.Authenticator, bool) {
	entry, ok := c[hostOf(reg.RegistryStr())]
	if !ok {
		return authn.Anonymous, false
	}
	return authn.FromConfig(entry), true
}

// mayReach reports whether the credential of a registry may be sent to host.
func (c Credentials) mayReach(reg name.Registry, host string) bool {
	own := hostOf(reg.RegistryStr())
	host = hostOf(host)
	if host == own {
		return true
	}
	if own == name.DefaultRegistry && host == "auth.docker.io" {
		return true
	}
	mine, ok := c[own]
	theirs, also := c[host]
	return ok && also && mine == theirs
}

func decodeAuth(auth string) (user, password string) {
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(auth))
	if err != nil {
		return "", ""
	}
	user, password, _ = strings.Cut(string(raw), ":")
	return user, strings.TrimRight(password, "\x00")
}

// hostOf strips scheme and path and folds case. All of Docker Hub's registry names are one host.
func hostOf(server string) string {
	if _, rest, ok := strings.Cut(server, "://"); ok {
		server = rest
	}
	host, _, _ := strings.Cut(server, "/")
	switch host = strings.ToLower(host); host {
	case "docker.io", "registry-1.docker.io":
		return name.DefaultRegistry
	default:
		return strings.TrimSuffix(host, ":443")
	}
}
