package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/steading-dev/steading/cluster/local"
)

const (
	// supervisorStart is how long a supervisor may take to answer.
	supervisorStart = 15 * time.Second
	// supervisorStop is how long it may take to end what it runs.
	supervisorStop = 30 * time.Second
)

// state is the folder of a platform, and the way to the supervisor that runs it.
// Only the supervisor holds the lock; a folder whose lock is free is a leftover.
type state struct{ name, dir string }

func newState(name, dir string) (*state, error) {
	abs, err := filepath.Abs(dir)
	return &state{name: name, dir: abs}, err
}

func (s *state) lock() string { return filepath.Join(s.dir, "steading-local.lock") }
func (s *state) pid() string  { return filepath.Join(s.dir, "supervisor.pid") }
func (s *state) log() string  { return filepath.Join(s.dir, "supervisor.log") }

// errNotRunning is what commands say that need a platform.
var errNotRunning = errors.New("it does not run; `make up` starts it")

// socket is the path of the supervisor's socket. The kernel allows such paths
// some hundred bytes only, so the folder is named by a descriptor.
func (s *state) socket() (path string, done func(), err error) {
	d, err := os.Open(s.dir)
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/control.sock", d.Fd()), func() { _ = d.Close() }, nil
}

// ensureSupervisor starts a supervisor unless one answers.
func (s *state) ensureSupervisor(ctx context.Context, edge bool, node string) error {
	if s.answers(ctx) {
		return nil
	}
	if err := s.clear(ctx); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot start the supervisor: %w", err)
	}
	log, err := os.OpenFile(s.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("cannot start the supervisor: %w", err)
	}
	defer log.Close() //nolint:errcheck // The supervisor has its own descriptor.
	args := []string{"--name=" + s.name, "--state-dir=" + s.dir, "supervise", "--node=" + node}
	if edge {
		args = append(args, "--edge")
	}
	cmd := exec.Command(self, args...) //nolint:gosec,noctx // This program; it is to outlive this process.
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // It outlives the terminal, and make.
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("cannot start the supervisor: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	deadline := time.After(supervisorStart)
	for !s.answers(ctx) {
		select {
		case err := <-ended:
			if s.answers(ctx) {
				return nil // Another command was faster.
			}
			return fmt.Errorf("cannot start the supervisor: %w: see %s", err, s.log())
		case <-deadline:
			return fmt.Errorf("cannot reach the supervisor within %s: see %s", supervisorStart, s.log())
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}

// clear the leftovers of a supervisor that is gone. A folder which is not ours
// is left alone.
func (s *state) clear(ctx context.Context) error {
	entries, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cannot use state folder: %w", err)
	}
	if len(entries) > 0 {
		if _, err := os.Stat(s.lock()); err != nil {
			return fmt.Errorf("cannot use state folder %s: it holds something else: name an empty one by --state-dir", s.dir)
		}
		waiting, cancel := context.WithTimeout(ctx, supervisorStop)
		defer cancel()
		unlock, err := local.Lock(waiting, s.lock(), nil)
		if err != nil {
			return fmt.Errorf("cannot start: another supervisor holds %s but does not answer; `make down` ends it: %w", s.dir, err)
		}
		err = s.remove()
		unlock()
		if err != nil {
			return fmt.Errorf("cannot remove what a former platform left: %w", err)
		}
	}
	return os.MkdirAll(s.dir, 0o700)
}

// up has the supervisor install and apply; progress gets its lines.
func (s *state) up(ctx context.Context, r upRequest, progress func(string)) (*report, error) {
	if !filepath.IsAbs(r.Examples) {
		source, err := local.ModuleDir(ctx)
		if err != nil {
			return nil, err
		}
		r.Examples = filepath.Join(source, r.Examples)
	}
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	var last *report
	err = s.call(ctx, http.MethodPost, "/up", body, func(m message) error {
		if m.Line != "" {
			progress(m.Line)
		}
		if m.Report != nil {
			last = m.Report
		}
		if m.Error != "" {
			return errors.New(m.Error)
		}
		return nil
	})
	return last, err
}

func (s *state) status(ctx context.Context) (*report, error) {
	if !s.answers(ctx) {
		return nil, fmt.Errorf("cannot show platform %s: %w", s.name, errNotRunning)
	}
	var got *report
	err := s.call(ctx, http.MethodGet, "/status", nil, func(m message) error {
		got = m.Report
		if m.Error != "" {
			return errors.New(m.Error)
		}
		return nil
	})
	return got, err
}

// down ends the supervisor, by force if it does not answer, and removes the state.
func (s *state) down(ctx context.Context) (ran bool, err error) {
	if _, err := os.Stat(s.lock()); err != nil {
		return false, nil // No platform.
	}
	ran = s.answers(ctx)
	if ran {
		if err := s.call(ctx, http.MethodPost, "/down", nil, func(message) error { return nil }); err != nil {
			return ran, fmt.Errorf("cannot end platform %s: %w", s.name, err)
		}
	}
	waiting, cancel := context.WithTimeout(ctx, supervisorStop)
	defer cancel()
	unlock, err := local.Lock(waiting, s.lock(), nil)
	if err != nil {
		if err := s.kill(); err != nil {
			return ran, err
		}
		ran = true
		if unlock, err = local.Lock(ctx, s.lock(), nil); err != nil {
			return ran, err
		}
	}
	defer unlock()
	return ran, s.remove()
}

// remove what a platform that ended has left.
func (s *state) remove() error {
	return errors.Join(local.RemoveCgroups(s.plane()), os.RemoveAll(s.dir))
}

// platform is the folder of the platform, and plane that of its control plane.
func (s *state) platform() string { return filepath.Join(s.dir, "platform") }
func (s *state) plane() string    { return filepath.Join(s.platform(), "plane") }

// kill a supervisor that does not end. Its children end with it.
func (s *state) kill() error {
	b, err := os.ReadFile(s.pid())
	if err != nil {
		return fmt.Errorf("cannot find the supervisor: %w", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return fmt.Errorf("cannot find the supervisor: %w", err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("cannot kill the supervisor, process %d: %w", pid, err)
	}
	return nil
}

func (s *state) answers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return s.call(ctx, http.MethodGet, "/alive", nil, func(message) error { return nil }) == nil
}

// call the supervisor; each message of its answer goes to handle. An answer that
// breaks off is an error.
func (s *state) call(ctx context.Context, method, path string, body []byte, handle func(message) error) error {
	c := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			socket, done, err := s.socket()
			if err != nil {
				return nil, err
			}
			defer done()
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}
	req, err := http.NewRequestWithContext(ctx, method, "http://supervisor"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // Nothing is lost.
	lines := bufio.NewReader(resp.Body)
	for {
		b, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(b) == 0 {
			return errors.New("the supervisor ended: see " + s.log())
		}
		if err != nil {
			return fmt.Errorf("the supervisor ended: %w: see %s", err, s.log())
		}
		var m message
		if err := json.Unmarshal(b, &m); err != nil {
			return err
		}
		if err := handle(m); err != nil || m.Last {
			return err
		}
	}
}
