package local

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// writeKubeconfig writes a kubeconfig with one user, readable by its owner only.
func writeKubeconfig(path, name string, server string, ca []byte, user api.AuthInfo) error {
	c := api.Config{
		Clusters:       map[string]*api.Cluster{name: {Server: server, CertificateAuthorityData: ca}},
		AuthInfos:      map[string]*api.AuthInfo{name: &user},
		Contexts:       map[string]*api.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}
	b, err := clientcmd.Write(c)
	if err != nil {
		return fmt.Errorf("cannot write kubeconfig: %w", err)
	}
	return writePrivate(path, b)
}

// writePrivate replaces a file in one step; only its owner may read it.
func writePrivate(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	tmp := path + ".new"
	if err := os.WriteFile(tmp, content, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

// unlimited turns client-side rate limiting off: the server's own priority and
// fairness is the limit that a plane's users are meant to meet.
func unlimited(c *rest.Config) *rest.Config {
	c.QPS = -1
	return c
}
