package local

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
)

// Ports are taken from below Linux's ephemeral range, so that no outgoing
// connection can sit on the port of a server that is being restarted.
const (
	firstPort = 20000
	lastPort  = 32767
)

// ports reserves TCP ports of 127.0.0.1 for the children of one plane. Planes
// of other processes respect a reservation; it ends with the process.
type ports struct {
	dir string

	mu   sync.Mutex
	held []*os.File
}

func newPorts() (*ports, error) {
	dir, err := CacheDir("ports")
	return &ports{dir: dir}, err
}

// reserve a port that nobody listens on.
func (p *ports) reserve() (int, error) {
	for range 1000 {
		port := firstPort + rand.IntN(lastPort-firstPort+1) //nolint:gosec // No secret.
		f, err := tryLock(filepath.Join(p.dir, strconv.Itoa(port)))
		if errors.Is(err, errLocked) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("cannot reserve a port: %w", err)
		}
		if !bindable(port) {
			_ = f.Close()
			continue
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.held = append(p.held, f)
		return port, nil
	}
	return 0, errors.New("cannot reserve a port: none between 20000 and 32767 is free")
}

// release all reservations.
func (p *ports) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.held {
		_ = f.Close()
	}
	p.held = nil
}

func bindable(port int) bool {
	// All addresses: some of the programs cannot be told to bind one only.
	l, err := net.Listen("tcp", ":"+strconv.Itoa(port)) //nolint:noctx // Returns at once, and is closed at once.
	if err != nil {
		return false
	}
	_ = l.Close()
	return true
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
