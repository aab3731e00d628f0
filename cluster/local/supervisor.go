package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"
)

const (
	firstBackoff = 250 * time.Millisecond
	maxBackoff   = 10 * time.Second
	// A component that ran this long is not crash-looping.
	steadyAfter = 30 * time.Second
	// How long a component may take to end after SIGTERM.
	stopGrace = 5 * time.Second
	pollReady = 50 * time.Millisecond
)

// A Component is a long-running child process.
type Component struct {
	// Name of the component, unique in its supervisor. Its log is <name>.log.
	Name string
	// Path of the program, and what it is started with. It does not inherit
	// this process's environment, but for PATH, HOME and TMPDIR.
	Path string
	Args []string
	Env  []string
	Dir  string
	// Ready returns nil once the component does its work. It is polled after
	// each start. Absent: ready when started.
	Ready func(ctx context.Context) error
}

// A Supervisor runs components, restarts those that crash, and ends them all
// when it is closed or when its process ends, be it by SIGKILL.
type Supervisor struct {
	logs  string
	spawn chan func()
	done  chan struct{}

	mu       sync.Mutex
	children []*child // in order of their first start
	closed   bool
}

// NewSupervisor returns a supervisor which writes its components' logs to a
// folder.
func NewSupervisor(logs string) (*Supervisor, error) {
	if err := os.MkdirAll(logs, 0o700); err != nil { //nolint:gosec // What the caller names.
		return nil, fmt.Errorf("cannot make the folder for logs: %w", err)
	}
	s := &Supervisor{logs: logs, spawn: make(chan func()), done: make(chan struct{})}
	go s.spawner()
	return s, nil
}

// spawner starts all children. The kernel sends a child its parent-death signal
// when the thread that started it ends, so that thread has to last as long as
// the supervisor does.
func (s *Supervisor) spawner() {
	runtime.LockOSThread()
	for {
		select {
		case start := <-s.spawn:
			start()
		case <-s.done:
			return
		}
	}
}

// Start a component and wait until it is ready. One that ends before it ever
// was ready is not started again: the error quotes its log.
func (s *Supervisor) Start(ctx context.Context, c Component) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return fmt.Errorf("cannot start %s: the supervisor is closed", c.Name)
	}
	if slices.ContainsFunc(s.children, func(o *child) bool { return o.Name == c.Name }) {
		s.mu.Unlock()
		return fmt.Errorf("cannot start %s: there is one already", c.Name)
	}
	ch := &child{Component: c, supervisor: s}
	s.children = append(s.children, ch)
	s.mu.Unlock()

	if err := ch.start(ctx); err != nil {
		s.forget(ch)
		return err
	}
	return nil
}

// Kill a component with SIGKILL, as a crash would. It is started again like
// after any crash; WaitReady waits for that.
func (s *Supervisor) Kill(name string) error {
	ch, err := s.child(name)
	if err != nil {
		return err
	}
	return ch.kill()
}

// Stop a component and keep it stopped until Resume.
func (s *Supervisor) Stop(name string) error {
	ch, err := s.child(name)
	if err != nil {
		return err
	}
	ch.stop(stopGrace)
	return nil
}

// Resume starts a stopped component again and waits until it is ready.
func (s *Supervisor) Resume(ctx context.Context, name string) error {
	ch, err := s.child(name)
	if err != nil {
		return err
	}
	return ch.start(ctx)
}

// Replace changes how a component is started, and restarts it.
func (s *Supervisor) Replace(ctx context.Context, c Component) error {
	ch, err := s.child(c.Name)
	if err != nil {
		return err
	}
	ch.stop(stopGrace)
	s.forget(ch)
	return s.Start(ctx, c)
}

// WaitReady waits until a component runs and is ready.
func (s *Supervisor) WaitReady(ctx context.Context, name string) error {
	ch, err := s.child(name)
	if err != nil {
		return err
	}
	return ch.waitReady(ctx)
}

// Pid is the process id of a component, 0 while it does not run.
func (s *Supervisor) Pid(name string) int {
	ch, err := s.child(name)
	if err != nil {
		return 0
	}
	return ch.pid()
}

// Components lists the names of all components, in order of their start.
func (s *Supervisor) Components() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make([]string, 0, len(s.children))
	for _, c := range s.children {
		names = append(names, c.Name)
	}
	return names
}

// Log is the path of a component's log.
func (s *Supervisor) Log(name string) string { return filepath.Join(s.logs, name+".log") }

// Close ends all components, the last started first.
func (s *Supervisor) Close() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed = true
	children := slices.Clone(s.children)
	s.mu.Unlock()

	deadline := time.Now().Add(2 * stopGrace)
	for _, c := range slices.Backward(children) {
		c.stop(min(stopGrace, time.Until(deadline)))
	}
	close(s.done)
}

func (s *Supervisor) child(name string) (*child, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.children {
		if c.Name == name {
			return c, nil
		}
	}
	return nil, fmt.Errorf("cannot find component %q", name)
}

func (s *Supervisor) forget(ch *child) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.children = slices.DeleteFunc(s.children, func(o *child) bool { return o == ch })
}

// errNotRunning is a component that somebody stopped, or is about to start.
var errNotRunning = errors.New("it does not run")

// child is a component and the processes that embody it one after the other.
type child struct {
	Component
	supervisor *Supervisor

	mu      sync.Mutex
	process *process      // nil while none runs
	quit    chan struct{} // closed to end the restarting; nil while stopped
	done    chan struct{} // closed when restarting has ended
}

// process is one life of a component.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{}
	err    error // once exited
}

// start the first process, wait until it is ready, then keep one running.
func (c *child) start(ctx context.Context) error {
	c.mu.Lock()
	if c.quit != nil {
		c.mu.Unlock()
		return c.waitReady(ctx)
	}
	p, err := c.launch()
	if err != nil {
		c.mu.Unlock()
		return err
	}
	quit, done := make(chan struct{}), make(chan struct{})
	c.process, c.quit, c.done = p, quit, done
	c.mu.Unlock()

	if err := c.becomesReady(ctx, p); err != nil {
		p.end(syscall.SIGKILL, 0)
		c.mu.Lock()
		if c.quit == quit {
			c.process, c.quit, c.done = nil, nil, nil
		}
		c.mu.Unlock()
		close(done)
		return fmt.Errorf("cannot start %s: %w: its log %s ends with:\n%s", c.Name, err, c.supervisor.Log(c.Name), tailFile(c.supervisor.Log(c.Name), 8))
	}
	go c.keepRunning(p, quit, done)
	return nil
}

// keepRunning restarts the component until quit is closed.
func (c *child) keepRunning(p *process, quit <-chan struct{}, done chan<- struct{}) {
	defer close(done)
	backoff, started := firstBackoff, time.Now()
	for {
		if p != nil {
			select {
			case <-p.exited:
			case <-quit:
				return
			}
		}
		if time.Since(started) > steadyAfter {
			backoff = firstBackoff
		}
		c.ended(p, backoff)
		select {
		case <-time.After(backoff):
		case <-quit:
			return
		}
		backoff, started = min(2*backoff, maxBackoff), time.Now()
		p = c.relaunch(quit)
	}
}

// relaunch starts the next process, or none if it cannot, or may no longer.
func (c *child) relaunch(quit <-chan struct{}) *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-quit:
		return nil
	default:
	}
	p, err := c.launch()
	if err != nil {
		return nil
	}
	c.process = p
	return p
}

// launch a process on the supervisor's thread, in a process group of its own.
func (c *child) launch() (*process, error) {
	log, err := os.OpenFile(c.supervisor.Log(c.Name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open the log of %s: %w", c.Name, err)
	}
	defer log.Close()                      //nolint:errcheck // The child has its own descriptor.
	cmd := exec.Command(c.Path, c.Args...) //nolint:gosec,noctx // Running programs, until they are stopped, is what this is for.
	cmd.Dir = c.Dir
	cmd.Env = append(inherited(), c.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	result := make(chan error, 1)
	select {
	case c.supervisor.spawn <- func() { result <- cmd.Start() }:
	case <-c.supervisor.done:
		return nil, fmt.Errorf("cannot start %s: the supervisor is closed", c.Name)
	}
	if err := <-result; err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", c.Name, err)
	}
	p := &process{cmd: cmd, exited: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // What it may have left.
		close(p.exited)
	}()
	return p, nil
}

// becomesReady waits until this very process is ready.
func (c *child) becomesReady(ctx context.Context, p *process) error {
	var last error
	for {
		if c.Ready == nil {
			return nil
		}
		if last = c.probe(ctx); last == nil {
			return nil
		}
		select {
		case <-p.exited:
			return fmt.Errorf("it ended: %w", exitError(p.err))
		case <-ctx.Done():
			return fmt.Errorf("it did not become ready (%w): %w", last, ctx.Err())
		case <-time.After(pollReady):
		}
	}
}

func (c *child) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return c.Ready(ctx)
}

func (c *child) waitReady(ctx context.Context) error {
	for {
		err := errNotRunning
		if p := c.running(); p != nil {
			if err = c.becomesReady(ctx, p); err == nil {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("cannot wait for %s: %w: %w", c.Name, err, ctx.Err())
		case <-time.After(pollReady):
		}
	}
}

func (c *child) kill() error {
	p := c.running()
	if p == nil {
		return fmt.Errorf("cannot kill %s: %w", c.Name, errNotRunning)
	}
	p.end(syscall.SIGKILL, 0)
	return nil
}

// stop the component: SIGTERM first, SIGKILL when the grace has passed.
func (c *child) stop(grace time.Duration) {
	c.mu.Lock()
	p, quit, done := c.process, c.quit, c.done
	c.process, c.quit, c.done = nil, nil, nil
	if quit != nil {
		close(quit)
	}
	c.mu.Unlock()
	if p != nil {
		p.end(syscall.SIGTERM, grace)
	}
	if done != nil {
		<-done
	}
}

func (c *child) pid() int {
	if p := c.running(); p != nil {
		return p.cmd.Process.Pid
	}
	return 0
}

func (c *child) running() *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.process
}

// ended notes in the log that a process is gone, and when the next comes.
func (c *child) ended(p *process, backoff time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p == nil || c.process != p {
		return
	}
	c.process = nil
	log, err := os.OpenFile(c.supervisor.Log(c.Name), os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer log.Close() //nolint:errcheck // A note only.
	_, _ = fmt.Fprintf(log, "--- ended (%v), starts again in %s\n", exitError(p.err), backoff)
}

// end the process group and wait until it is gone.
func (p *process) end(sig syscall.Signal, grace time.Duration) {
	select {
	case <-p.exited:
		return
	default:
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, sig)
	if sig != syscall.SIGKILL {
		select {
		case <-p.exited:
			return
		case <-time.After(grace):
		}
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	}
	<-p.exited
}

func exitError(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

func inherited() []string {
	var env []string
	for _, k := range []string{"PATH", "HOME", "TMPDIR"} {
		if v, ok := os.LookupEnv(k); ok {
			env = append(env, k+"="+v)
		}
	}
	return env
}

func tailFile(path string, lines int) string {
	b, err := os.ReadFile(path) //nolint:gosec // A log of ours.
	if err != nil {
		return err.Error()
	}
	return tail(string(b), lines)
}
