package local

import (
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
)

// A Registry is an OCI registry in this process, on a free port of 127.0.0.1, or
// of the address that a real node knows the machine by. Crossplane, Helm and
// go-containerregistry speak plain HTTP to these addresses.
type Registry struct {
	server *http.Server
	host   string
	log    *os.File
}

// StartRegistry starts a registry that keeps its blobs, and its log, in a folder.
func StartRegistry(dir string) (*Registry, error) { return startRegistryAt(dir, "127.0.0.1") }

func startRegistryAt(dir, address string) (*Registry, error) {
	blobs := filepath.Join(dir, "blobs")
	if err := os.MkdirAll(blobs, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the registry's folder: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "registry.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) //nolint:gosec // Below the folder the caller names.
	if err != nil {
		return nil, fmt.Errorf("cannot open the registry's log: %w", err)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0")) //nolint:noctx // Returns at once.
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("cannot start the registry: %w", err)
	}
	logger := log.New(f, "", log.LstdFlags)
	r := &Registry{host: l.Addr().String(), log: f, server: &http.Server{
		Handler:           registry.New(registry.WithBlobHandler(registry.NewDiskBlobHandler(blobs)), registry.Logger(logger)),
		ErrorLog:          logger,
		ReadHeaderTimeout: 10 * time.Second,
	}}
	go func() {
		if err := r.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			logger.Print(err)
		}
	}()
	return r, nil
}

// Host is the registry's address, the first part of its repositories' names.
func (r *Registry) Host() string { return r.host }

// Stop the registry.
func (r *Registry) Stop() error {
	return errors.Join(r.server.Close(), r.log.Close())
}
