package forgejo

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/steading-dev/steading/test/fakes/forgejo/internal/wire"
)

// The statuses of a job. Only waiting and running ones are in the API's list.
const (
	StatusBlocked   = "blocked"
	StatusWaiting   = "waiting"
	StatusRunning   = "running"
	StatusSuccess   = "success"
	StatusFailure   = "failure"
	StatusCancelled = "cancelled"
	StatusSkipped   = "skipped"
)

type job struct {
	id      int64
	run     int64
	repo    *repo
	name    string
	needs   []string
	runsOn  []string
	payload string

	status  string
	attempt int64
	handle  string
	task    *task // Of this attempt.
	updated time.Time
	deleted bool
	tasks   []*task // Of all attempts.
}

// A task is an attempt of a job on a runner.
type task struct {
	id      int64
	job     *job
	attempt int64
	runner  *runner
	status  string
	started time.Time
	updated time.Time
	stopped time.Time
	log     []wire.LogRow
	closed  bool // The log is archived.
}

// A NewJob is what a test queues.
type NewJob struct {
	// Repository is owner/name.
	Repository string `json:"repository"`
	// Name of the job. Empty: job.
	Name string `json:"name,omitempty"`
	// Labels of a runner that may take it, all of them.
	Labels []string `json:"labels"`
	// Payload is what the runner gets as the workflow. See package onejob.
	Payload string `json:"payload,omitempty"`
	// Needs other jobs, by name. They are shown, and nothing waits for them.
	Needs []string `json:"needs,omitempty"`
	// Blocked jobs are in no list until [Server.Unblock].
	Blocked bool `json:"blocked,omitempty"`
}

// A Job as it is, for a test to look at.
type Job struct {
	ID         int64    `json:"id"`
	Repository string   `json:"repository"`
	Name       string   `json:"name"`
	Labels     []string `json:"labels"`
	Status     string   `json:"status"`
	Attempt    int64    `json:"attempt"`
	Handle     string   `json:"handle"`
	// Runs are the runners that were given the job, in order. None of them twice for one attempt.
	Runs []Run `json:"runs,omitempty"`
}

// A Run of a job on a runner.
type Run struct {
	Attempt    int64     `json:"attempt"`
	Task       int64     `json:"task"`
	Runner     int64     `json:"runner"`
	RunnerName string    `json:"runnerName"`
	Status     string    `json:"status"`
	Started    time.Time `json:"started"`
	Stopped    time.Time `json:"stopped,omitzero"`
}

// Queue a job, and return its id.
func (s *Server) Queue(n NewJob) (int64, error) {
	defer s.lock()()
	r := s.repos[n.Repository]
	if r == nil {
		return 0, fmt.Errorf("there is no repository %q", n.Repository)
	}
	j := &job{id: s.nextID(), run: s.nextID(), repo: r, name: n.Name, needs: n.Needs, runsOn: slices.Clone(n.Labels), payload: n.Payload}
	if j.name == "" {
		j.name = "job"
	}
	s.jobs = append(s.jobs, j)
	s.attempt(j)
	if n.Blocked {
		j.status = StatusBlocked
	}
	return j.id, nil
}

// attempt to have a job run, anew.
func (s *Server) attempt(j *job) {
	j.attempt++
	j.handle, j.task, j.status, j.updated = string(uuid.NewUUID()), nil, StatusWaiting, s.now()
	s.tasksVersion++
}

// Unblock a job that was queued as blocked.
func (s *Server) Unblock(id int64) error {
	return s.change(id, func(j *job) error {
		if j.status != StatusBlocked {
			return fmt.Errorf("job %d is %s", id, j.status)
		}
		j.status, j.updated = StatusWaiting, s.now()
		s.tasksVersion++
		return nil
	})
}

// Cancel a job, as its user may. The ephemeral runner that has it is deleted.
func (s *Server) Cancel(id int64) error {
	return s.change(id, func(j *job) error {
		if finished(j.status) {
			return fmt.Errorf("job %d is %s", id, j.status)
		}
		s.stop(j, StatusCancelled, "job stopped")
		return nil
	})
}

// Rerun a finished job: another attempt, with another handle.
func (s *Server) Rerun(id int64) error {
	return s.change(id, func(j *job) error {
		if !finished(j.status) {
			return fmt.Errorf("job %d is %s", id, j.status)
		}
		s.attempt(j)
		return nil
	})
}

func (s *Server) change(id int64, f func(*job) error) error {
	defer s.lock()()
	for _, j := range s.jobs {
		if j.id == id && !j.deleted {
			return f(j)
		}
	}
	return fmt.Errorf("there is no job %d", id)
}

func finished(status string) bool {
	return status != StatusBlocked && status != StatusWaiting && status != StatusRunning
}

// Jobs that there are, in the order of queueing.
func (s *Server) Jobs() []Job {
	defer s.lock()()
	all := []Job{}
	for _, j := range s.jobs {
		if !j.deleted {
			all = append(all, j.seen())
		}
	}
	return all
}

// Job returns one job.
func (s *Server) Job(id int64) (Job, error) {
	var out Job
	err := s.change(id, func(j *job) error {
		out = j.seen()
		return nil
	})
	return out, err
}

func (j *job) seen() Job {
	out := Job{ID: j.id, Repository: j.repo.fullName(), Name: j.name, Labels: slices.Clone(j.runsOn), Status: j.status, Attempt: j.attempt, Handle: j.handle}
	for _, t := range j.tasks {
		out.Runs = append(out.Runs, Run{
			Attempt: t.attempt, Task: t.id, Runner: t.runner.id, RunnerName: t.runner.name, Status: t.status, Started: t.started, Stopped: t.stopped,
		})
	}
	return out
}

// Log of the last attempt of a job that a runner took, by line.
func (s *Server) Log(id int64) ([]string, error) {
	lines := []string{}
	err := s.change(id, func(j *job) error {
		if len(j.tasks) == 0 {
			return nil
		}
		for _, row := range j.tasks[len(j.tasks)-1].log {
			lines = append(lines, row.Content)
		}
		return nil
	})
	return lines, err
}

// servedBy reports whether a runner with the labels may take the job: it has some, and all of them are among these.
func (j *job) servedBy(labels []string) bool {
	if len(j.runsOn) == 0 {
		return false
	}
	for _, l := range j.runsOn {
		if !slices.Contains(labels, l) {
			return false
		}
	}
	return true
}

// stop a job before its runner says how it ended.
func (s *Server) stop(j *job, status, why string) {
	if finished(j.status) {
		return
	}
	j.status, j.updated = status, s.now()
	if t := j.task; t != nil {
		s.end(t, status)
		if t.runner.ephemeral {
			s.deleteRunner(t.runner, why)
		}
	}
}

func (s *Server) end(t *task, status string) {
	t.status, t.stopped, t.updated = status, s.now(), s.now()
	t.job.status, t.job.updated = status, s.now()
}

// expire what has waited or run for too long. Forgejo looks every few minutes; here it is as soon as anybody looks.
func (s *Server) expire() {
	now := s.clock.Now()
	for _, j := range s.jobs {
		switch t := j.task; {
		case finished(j.status):
		case t == nil:
			if now.Sub(j.updated) > s.timeouts.Abandoned {
				s.stop(j, StatusCancelled, "")
			}
		case now.Sub(t.updated) > s.timeouts.Zombie, now.Sub(t.started) > s.timeouts.Endless:
			s.stop(j, StatusFailure, "job stopped")
		}
	}
}

// assign a waiting job to a runner.
func (s *Server) assign(j *job, r *runner) *task {
	now := s.now()
	t := &task{id: s.nextID(), job: j, attempt: j.attempt, runner: r, status: StatusRunning, started: now, updated: now}
	j.task, j.status, j.updated = t, StatusRunning, now
	j.tasks = append(j.tasks, t)
	r.tasks = append(r.tasks, t)
	s.tasks[t.id] = t
	return t
}

// pick the job that has waited for longest among those that the runner may take.
func (s *Server) pick(r *runner, fits func(*job) bool) *job {
	var first *job
	for _, j := range s.jobs {
		if j.deleted || j.status != StatusWaiting || !r.serves(j.repo) || !fits(j) {
			continue
		}
		if first == nil || j.updated.Before(first.updated) {
			first = j
		}
	}
	return first
}

// serves reports whether jobs of a repository are in the runner's scope.
func (r *runner) serves(in *repo) bool {
	return (r.repo == nil || r.repo == in) && (r.owner == nil || r.owner == in.owner)
}
