package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/steading-dev/steading/cluster/local"
	"github.com/steading-dev/steading/cluster/local/platform"
)

// message is a line of a supervisor's answer, JSON.
type message struct {
	Line   string  `json:"line,omitempty"`
	Report *report `json:"report,omitempty"`
	Error  string  `json:"error,omitempty"`
	Last   bool    `json:"last,omitempty"`
}

// upRequest asks a supervisor to install and apply.
type upRequest struct {
	Node     local.Node    `json:"node"`
	Examples string        `json:"examples"`
	Timeout  time.Duration `json:"timeout"`
}

// report is what a person wants to know of a platform.
type report struct {
	Kubeconfig string           `json:"kubeconfig"`
	Edge       string           `json:"edge,omitempty"`
	Kubectl    string           `json:"kubectl"`
	Components []component      `json:"components"`
	Claims     []platform.Claim `json:"claims"`
}

type component struct {
	Name string `json:"name"`
	Pid  int    `json:"pid"`
	Log  string `json:"log"`
}

type superviseCommand struct {
	Edge bool   `help:"Start a second control plane."`
	Node string `default:"kwok" help:"What runs the pods."`
}

// Run the platform until told to end it.
func (c *superviseCommand) Run(ctx context.Context, s *state) error {
	locking, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	unlock, err := local.Lock(locking, s.lock(), nil)
	if err != nil {
		return err
	}
	defer unlock()
	if err := os.WriteFile(s.pid(), []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		return err
	}
	sv := &supervisor{state: s, edge: c.Edge, node: local.Node(c.Node), listeners: map[chan string]struct{}{}}
	ctx, sv.end = context.WithCancel(ctx)
	defer sv.end()
	return sv.serve(ctx)
}

// supervisor runs a platform on behalf of the commands that call it.
type supervisor struct {
	state *state
	edge  bool
	node  local.Node
	end   context.CancelFunc

	busy sync.Mutex // held while installing

	mu        sync.Mutex
	platform  *platform.Platform
	listeners map[chan string]struct{}
}

func (s *supervisor) serve(ctx context.Context) error {
	socket, done, err := s.state.socket()
	if err != nil {
		return err
	}
	defer done()
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return fmt.Errorf("cannot listen: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /alive", func(w http.ResponseWriter, _ *http.Request) { answer(w, message{Last: true}) })
	mux.HandleFunc("GET /status", s.status)
	mux.HandleFunc("POST /up", func(w http.ResponseWriter, r *http.Request) { s.up(ctx, w, r) })
	mux.HandleFunc("POST /down", func(w http.ResponseWriter, _ *http.Request) { answer(w, message{Last: true}); s.end() })
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(l) }()
	<-ctx.Done()
	s.busy.Lock() // Whatever is under way sees that ctx is done.
	defer s.busy.Unlock()
	err = s.stop()
	return errors.Join(err, server.Close())
}

func (s *supervisor) stop() error {
	if p := s.running(); p != nil {
		return p.Stop()
	}
	return nil
}

func (s *supervisor) running() *platform.Platform {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.platform
}

// up starts the platform, or installs what is new, and applies the examples. The
// work goes on when the caller leaves.
func (s *supervisor) up(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	var req upRequest
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		answer(w, message{Error: err.Error(), Last: true})
		return
	}
	lines := s.listen()
	defer s.ignore(lines)
	done := make(chan message, 1)
	go func() { done <- s.install(ctx, req) }()
	for {
		select {
		case line := <-lines:
			answer(w, message{Line: line})
		case m := <-done:
			for len(lines) > 0 {
				answer(w, message{Line: <-lines})
			}
			answer(w, m)
			if s.running() == nil {
				s.end() // A platform that cannot start leaves nothing but its logs.
			}
			return
		case <-r.Context().Done():
			return
		}
	}
}

// install returns the last message of an answer.
func (s *supervisor) install(ctx context.Context, req upRequest) message {
	s.busy.Lock()
	defer s.busy.Unlock()
	p := s.running()
	if p != nil && req.Node != s.node {
		return message{Error: fmt.Sprintf("cannot have %s run the pods: %s does, as long as the platform runs: `make down` ends it", req.Node, s.node), Last: true}
	}
	var err error
	if p == nil {
		p, err = platform.Start(ctx, platform.Options{Name: s.state.name, Dir: s.state.platform(), Node: s.node, Edge: s.edge, Progress: s.tell})
		if err == nil {
			s.mu.Lock()
			s.platform = p
			s.mu.Unlock()
		}
	} else {
		err = p.Install(ctx)
	}
	if err != nil {
		return message{Error: err.Error(), Last: true}
	}
	claims, err := p.ApplyClaims(ctx, req.Examples, req.Timeout)
	m := message{Report: reportOn(p), Last: true}
	m.Report.Claims = claims
	if err != nil {
		m.Error = err.Error()
	}
	return m
}

func (s *supervisor) status(w http.ResponseWriter, r *http.Request) {
	p := s.running()
	if p == nil {
		answer(w, message{Error: "the platform is being started", Last: true})
		return
	}
	m := message{Report: reportOn(p), Last: true}
	claims, err := p.AllClaims(r.Context())
	if err != nil {
		m.Error = err.Error()
	}
	m.Report.Claims = claims
	answer(w, m)
}

func reportOn(p *platform.Platform) *report {
	r := &report{Kubeconfig: p.Plane.Kubeconfig(), Kubectl: p.Kubectl()}
	add := func(prefix string, plane *local.Plane) {
		for _, name := range plane.Supervisor.Components() {
			r.Components = append(r.Components, component{Name: prefix + name, Pid: plane.Supervisor.Pid(name), Log: plane.Supervisor.Log(name)})
		}
	}
	add("", p.Plane)
	if p.Edge != nil {
		r.Edge = p.Edge.Kubeconfig()
		add("edge/", p.Edge)
	}
	return r
}

// tell all who listen, and the log.
func (s *supervisor) tell(line string) {
	fmt.Println(line)
	s.mu.Lock()
	defer s.mu.Unlock()
	for l := range s.listeners {
		select {
		case l <- line:
		default: // A slow listener misses lines; they are in the log.
		}
	}
}

func (s *supervisor) listen() chan string {
	l := make(chan string, 1000)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners[l] = struct{}{}
	return l
}

func (s *supervisor) ignore(l chan string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, l)
}

func answer(w http.ResponseWriter, m message) {
	_ = json.NewEncoder(w).Encode(m) //nolint:errchkjson // A caller that left is not missed.
	_ = http.NewResponseController(w).Flush()
}
