package forgejo

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
)

// Times that Forgejo concludes by.
const (
	offlineAfter = time.Minute
	idleAfter    = 10 * time.Second
)

// The statuses of a runner.
const (
	RunnerOffline = "offline"
	RunnerIdle    = "idle"
	RunnerActive  = "active"
)

// A runner is a registration. Deleted ones stay, as in Forgejo's own table.
type runner struct {
	id          int64
	uuid        string
	registered  string // The uuid before it was deleted.
	token       string
	name        string
	description string
	version     string
	labels      []string
	owner       *owner // Nil: of the instance, or of a repository.
	repo        *repo
	ephemeral   bool

	created    time.Time
	lastOnline time.Time
	lastActive time.Time
	deleted    time.Time
	why        string // It was deleted.

	tasks []*task
	// fetched tasks by the key of the request.
	fetched map[string]*task
}

func (s *Server) status(r *runner) string {
	switch now := s.clock.Now(); {
	case now.Sub(r.lastOnline) > offlineAfter:
		return RunnerOffline
	case now.Sub(r.lastActive) > idleAfter:
		return RunnerIdle
	default:
		return RunnerActive
	}
}

// visibleTo reports whether the runner serves what is of the owner or the repository. Both nil: of anybody.
func (r *runner) visibleTo(o *owner, in *repo) bool {
	return r.editableBy(o, in) || r.owner == nil && r.repo == nil || in != nil && r.owner == in.owner
}

// editableBy reports whether the runner is of that very owner or repository. Both nil: an administrator's word.
func (r *runner) editableBy(o *owner, in *repo) bool {
	return o == nil && in == nil || o != nil && r.owner == o || in != nil && r.repo == in
}

// register a runner of an owner, of a repository, or of the instance.
func (s *Server) register(name, description string, ephemeral bool, o *owner, in *repo) *runner {
	r := &runner{
		id: s.nextID(), uuid: string(uuid.NewUUID()), token: newToken(), name: cut(name), description: description,
		owner: o, repo: in, ephemeral: ephemeral, created: s.now(), fetched: map[string]*task{},
	}
	r.registered = r.uuid
	s.runners = append(s.runners, r)
	s.peak = max(s.peak, len(s.live()))
	return r
}

// cut a name at 255 bytes, between characters.
func cut(name string) string {
	if len(name) <= 255 {
		return name
	}
	return strings.ToValidUTF8(name[:255], "")
}

func (s *Server) live() []*runner {
	return slices.DeleteFunc(slices.Clone(s.runners), func(r *runner) bool { return !r.deleted.IsZero() })
}

func (s *Server) runner(id int64) *runner {
	for _, r := range s.live() {
		if r.id == id {
			return r
		}
	}
	return nil
}

// deleteRunner softly: the row stays, and its uuid becomes one that nobody has.
func (s *Server) deleteRunner(r *runner, why string) {
	if !r.deleted.IsZero() {
		return
	}
	b := binary.LittleEndian.AppendUint64(nil, uint64(r.id)) //nolint:gosec // Ids are positive.
	r.uuid = fmt.Sprintf("ffffffff-ffff-ffff-%x-%x", b[:2], b[2:])
	r.deleted, r.why = s.now(), why
}

// DeleteRunner deletes a registration, as a person may.
func (s *Server) DeleteRunner(id int64) error {
	defer s.lock()()
	r := s.runner(id)
	if r == nil {
		return fmt.Errorf("there is no runner %d", id)
	}
	s.deleteRunner(r, "by hand")
	return nil
}

// RestoreBefore a registration, as its database from a backup: nobody knows of it, and the next one has its number.
func (s *Server) RestoreBefore(id int64) error {
	defer s.lock()()
	r := s.runner(id)
	if r == nil {
		return fmt.Errorf("there is no runner %d", id)
	}
	s.runners = slices.DeleteFunc(s.runners, func(o *runner) bool { return o == r })
	s.again = id
	return nil
}

// CleanUpOfflineRunners is a run of Forgejo's cron job of that name, which is off by default: it deletes what was not heard of
// for so long, and what never was and is that old.
func (s *Server) CleanUpOfflineRunners(olderThan time.Duration) {
	defer s.lock()()
	before := s.now().Add(-olderThan)
	for _, r := range s.live() {
		if seen := r.lastOnline; seen.IsZero() && r.created.Before(before) || !seen.IsZero() && seen.Before(before) {
			s.deleteRunner(r, "offline")
		}
	}
}

// A Registration is a runner as it was, for a test to look at.
type Registration struct {
	ID          int64     `json:"id"`
	UUID        string    `json:"uuid"`
	Name        string    `json:"name"`
	Description string    `json:"description"`
	Scope       string    `json:"scope"` // instance, an owner's name, or a repository's full one.
	Ephemeral   bool      `json:"ephemeral"`
	Labels      []string  `json:"labels,omitempty"`
	Status      string    `json:"status,omitempty"` // Empty when it is deleted.
	Created     time.Time `json:"created"`
	LastOnline  time.Time `json:"lastOnline,omitzero"`
	Deleted     time.Time `json:"deleted,omitzero"`
	// Why it was deleted: api, by hand, job reported, job stopped, offline, repository deleted, owner deleted.
	Why string `json:"why,omitempty"`
	// Jobs that it was given.
	Jobs []int64 `json:"jobs,omitempty"`
}

// Registrations that there ever were, in order.
func (s *Server) Registrations() []Registration {
	defer s.lock()()
	all := make([]Registration, len(s.runners))
	for i, r := range s.runners {
		all[i] = s.registration(r)
	}
	return all
}

func (s *Server) registration(r *runner) Registration {
	out := Registration{
		ID: r.id, UUID: r.registered, Name: r.name, Description: r.description, Scope: "instance", Ephemeral: r.ephemeral,
		Labels: slices.Clone(r.labels), Created: r.created, LastOnline: r.lastOnline, Deleted: r.deleted, Why: r.why,
	}
	if r.deleted.IsZero() {
		out.Status = s.status(r)
	}
	switch {
	case r.repo != nil:
		out.Scope = r.repo.fullName()
	case r.owner != nil:
		out.Scope = r.owner.name
	}
	for _, t := range r.tasks {
		out.Jobs = append(out.Jobs, t.job.id)
	}
	return out
}

// PeakRegistrations is the most that were there at once.
func (s *Server) PeakRegistrations() int {
	defer s.lock()()
	return s.peak
}
