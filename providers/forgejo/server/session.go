package server

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/forgejo/api"
)

// A Look is what was seen of a server at once.
type Look struct {
	// Number of the look in its session, from 1 on.
	Number int64
	// Began is when it began. The registrations are of then, the jobs a moment younger.
	Began time.Time
	// Jobs of the scope that wait or run.
	Jobs []api.Job
	// User whose token it is, where that is the scope. Zero: it is not known.
	User int64
	// Runners that were listed, by id. One that is not among them may be there all the same.
	Runners map[int64]api.Runner
}

// A Poll is how the last look went.
type Poll struct {
	// Outcome of it. Empty: there was none.
	Outcome steading.PollOutcome
	// Since when looks have gone this way.
	Since time.Time
	// Outage is how long looks had failed before they went well. Zero if they did not fail.
	Outage time.Duration
	// Version of the server, empty while it is not known.
	Version string
	// Err is why it failed.
	Err error
}

// A Session is with one server, in one scope, by one token.
type Session struct {
	servers *Servers
	key     string
	url     string
	token   string
	client  *api.Client
	dialer  *dialer
	// nudge is for when the next look may be due earlier.
	nudge chan struct{}

	mu      sync.Mutex
	refs    map[tokenRef]struct{}
	used    time.Time
	pools   map[client.ObjectKey]subscription
	tracked map[client.ObjectKey]*track
	gone    map[int64]struct{}
	running bool
	// asked is whether a pool wants a look out of turn.
	asked bool
	// began is when the last look did, whatever became of it.
	began time.Time
	look  Look
	fresh bool
	poll  Poll
	// user whose token it is, once it was told.
	user int64
}

// A subscription is a pool's.
type subscription struct {
	interval time.Duration
	since    time.Time
}

// A track follows one registration.
type track struct {
	id int64
	// state when the instance was last woken, empty if it never was.
	state string
}

func newSession(s *Servers, key, url string, c *api.Client, d *dialer) *Session {
	return &Session{
		servers: s, key: key, url: url, client: c, dialer: d, nudge: make(chan struct{}, 1),
		refs: map[tokenRef]struct{}{}, pools: map[client.ObjectKey]subscription{}, tracked: map[client.ObjectKey]*track{}, gone: map[int64]struct{}{},
	}
}

// Client of the server. For one registration, ask [Session.Runner].
func (s *Session) Client() *api.Client { return s.client }

// Server is the server's URL, written one way: sessions of one server agree in it.
func (s *Session) Server() string { return s.url }

// ID tells sessions apart. It has no secret in it, and is not to be shown all the same.
func (s *Session) ID() string { return s.key }

// SameToken reports whether two sessions are by the same token.
func (s *Session) SameToken(other *Session) bool { return s.token == other.token }

// Look is the last one, false if there was none or the server has failed since.
func (s *Session) Look() (Look, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.look, s.fresh
}

// Poll tells how the last look went.
func (s *Session) Poll() Poll {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.poll
}

// Runner asks for one registration, as [api.Client.Runner] does. One that is gone is not asked for twice: no id comes back.
func (s *Session) Runner(ctx context.Context, id int64) (api.Runner, error) {
	s.mu.Lock()
	_, gone := s.gone[id]
	s.mu.Unlock()
	if gone {
		return api.Runner{}, api.ErrGone
	}
	r, err := s.client.Runner(ctx, id)
	if errors.Is(err, api.ErrGone) {
		s.mu.Lock()
		s.gone[id] = struct{}{}
		s.mu.Unlock()
	}
	return r, s.dialer.explain(err)
}

// User whose token it is, by its id, where that is the scope: by the token of another one the registrations are not there. It is
// asked for until it is told. Zero: it is not told, or the scope is another.
func (s *Session) User(ctx context.Context) (int64, error) {
	s.mu.Lock()
	known := s.user
	s.mu.Unlock()
	if known != 0 {
		return known, nil
	}
	id, err := s.client.User(ctx)
	if errors.Is(err, api.ErrUnavailable) || ctx.Err() != nil {
		return 0, s.dialer.explain(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.user = id
	return id, nil
}

// Job is what the queue says, at a time or later, of an attempt of a job that was in it: that it waits or runs; empty when it
// does neither any more. It goes by the last look if that is young enough, and else asks for the jobs with no labels but these.
func (s *Session) Job(ctx context.Context, handle string, labels []string, after time.Time) (api.JobStatus, error) {
	if look, ok := s.Look(); ok && !look.Began.Before(after) {
		return statusOf(handle, look.Jobs), nil
	}
	jobs, err := s.client.Jobs(ctx, labels)
	return statusOf(handle, jobs), s.dialer.explain(err)
}

func statusOf(handle string, jobs []api.Job) api.JobStatus {
	for _, j := range jobs {
		if j.Handle == handle {
			return j.Status
		}
	}
	return ""
}

// Subscribe a pool, by its Runner: the session looks at least this often, and wakes it after each look. The first look is at
// once.
func (s *Session) Subscribe(pool client.ObjectKey, interval time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	have, ok := s.pools[pool]
	if ok && have.interval == interval {
		return
	}
	if !ok {
		have.since = s.servers.o.Clock.Now()
	}
	have.interval = interval
	s.pools[pool] = have
	s.begin()
}

// Unsubscribe a pool.
func (s *Session) Unsubscribe(pool client.ObjectKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pools, pool)
	s.again()
}

// Again asks for a look out of turn, as when a pool's settings changed: at once, but not within two seconds of the last one.
func (s *Session) Again() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = true
	s.again()
}

// Track a registration: its RunnerInstance is woken when its state on the server changes, and after each look that does not
// list it. An instance is tracked by one session at a time, until [Servers.Untrack].
func (s *Session) Track(id int64, instance client.ObjectKey) {
	if before := s.servers.moved(instance, s); before != nil {
		before.untrack(instance)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tracked[instance]; t != nil && t.id == id {
		return
	}
	s.tracked[instance] = &track{id: id}
	s.begin()
}

func (s *Session) untrack(instance client.ObjectKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tracked[instance]; t != nil {
		delete(s.gone, t.id)
		delete(s.tracked, instance)
	}
	s.again()
}

// use the session, by a token that is at ref.
func (s *Session) use(ref tokenRef, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refs[ref] = struct{}{}
	s.used = now
}

// places of the token.
func (s *Session) places() []tokenRef {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.refs))
}

// idle reports whether nobody has used the session for a while, and where its token is.
func (s *Session) idle(now time.Time) (refs []tokenRef, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running || len(s.pools) > 0 || len(s.tracked) > 0 || now.Sub(s.used) < idle {
		return nil, false
	}
	for r := range s.refs {
		refs = append(refs, r)
	}
	return refs, true
}

// begin to look, if nobody used the session before. The lock is held.
func (s *Session) begin() {
	if s.running {
		s.again()
		return
	}
	s.running = true
	s.servers.begun.add(s)
}

// again has the loop think about when the next look is due.
func (s *Session) again() {
	select {
	case s.nudge <- struct{}{}:
	default: // It will.
	}
}
