package forgejo

import (
	"cmp"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// DefaultVersion is what the server says it is.
const DefaultVersion = "15.0.5+gitea-1.22.0"

// Timeouts after which Forgejo gives up, as in its app.ini. What is 0 is as there by default.
type Timeouts struct {
	// Zombie is how long a task may go without any report. 10 minutes.
	Zombie time.Duration
	// Endless is how long a task may take. 3 hours.
	Endless time.Duration
	// Abandoned is how long a job may wait. 24 hours.
	Abandoned time.Duration
}

func (t *Timeouts) setDefaults() {
	t.Zombie = cmp.Or(t.Zombie, 10*time.Minute)
	t.Endless = cmp.Or(t.Endless, 3*time.Hour)
	t.Abandoned = cmp.Or(t.Abandoned, 24*time.Hour)
}

// Options of a server. The zero value is a Forgejo 15 by the real clock.
type Options struct {
	// Clock of the server. Nil: the real one.
	Clock clock.PassiveClock
	// Version that it says. Empty: [DefaultVersion]. Before 15 it has no runners in its API, before 14 no jobs without labels.
	Version string
	// Timeouts of tasks and jobs.
	Timeouts Timeouts
	// MaxResponseItems is the most that a page has. 0: 50.
	MaxResponseItems int
}

// A Server is a Forgejo. It is safe for many goroutines.
type Server struct {
	mux   *http.ServeMux
	clock clock.PassiveClock

	mu       sync.Mutex
	version  string
	timeouts Timeouts
	perPage  int

	lastID  int64 // Of everything that has an id.
	again   int64 // An id that is given out a second time.
	owners  map[string]*owner
	repos   map[string]*repo
	tokens  map[string]*token
	jobs    []*job
	tasks   map[int64]*task
	runners []*runner
	// tasksVersion counts changes of the queue.
	tasksVersion int64

	faults []*fault
	calls  map[Route]int
	peak   int
}

// New returns a server with nothing in it.
func New(o Options) *Server {
	s := &Server{
		mux: http.NewServeMux(), clock: o.Clock, version: cmp.Or(o.Version, DefaultVersion), timeouts: o.Timeouts, perPage: cmp.Or(o.MaxResponseItems, 50),
		owners: map[string]*owner{}, repos: map[string]*repo{}, tokens: map[string]*token{}, tasks: map[int64]*task{},
		calls: map[Route]int{}, tasksVersion: 1,
	}
	s.timeouts.setDefaults()
	if s.clock == nil {
		s.clock = clock.RealClock{}
	}
	s.handleREST()
	s.handleProcedures()
	s.handleControl()
	return s
}

// ServeHTTP answers as Forgejo does.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// lock the state, after what time alone does to it.
func (s *Server) lock() func() {
	s.mu.Lock()
	s.expire()
	return s.mu.Unlock
}

// now, in whole seconds as Forgejo keeps it.
func (s *Server) now() time.Time { return s.clock.Now().Truncate(time.Second) }

func (s *Server) nextID() int64 {
	if id := s.again; id != 0 {
		s.again = 0
		return id
	}
	s.lastID++
	return s.lastID
}

// SetVersion has the server be another version from now on.
func (s *Server) SetVersion(version string) {
	defer s.lock()()
	s.version = version
}

// SetMaxResponseItems has pages hold at most so many entries.
func (s *Server) SetMaxResponseItems(n int) {
	defer s.lock()()
	s.perPage = n
}
