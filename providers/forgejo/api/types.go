package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
)

// Required is the first major version of Forgejo whose API registers runners.
const Required = 15

// A Version of Forgejo.
type Version struct {
	// Text as the server says it: 15.0.2+gitea-1.22.0.
	Text string
	// Major is the number that it starts with. Gitea's is 1.
	Major int
}

// Supported reports whether the version has the API that this package speaks.
func (v Version) Supported() bool { return v.Major >= Required }

func decodeVersion(body []byte, into *Version) error {
	var answer struct {
		Version string `json:"version"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return err
	}
	major, err := strconv.Atoi(answer.Version[:len(answer.Version)-len(strings.TrimLeft(answer.Version, "0123456789"))])
	if err != nil {
		return fmt.Errorf("%q is not a version", shorten(answer.Version))
	}
	*into = Version{Text: shorten(answer.Version), Major: major}
	return nil
}

func decodeUser(body []byte, into *int64) error {
	var answer struct {
		ID int64 `json:"id"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return err
	}
	if answer.ID <= 0 {
		return errors.New("a user has no id")
	}
	*into = answer.ID
	return nil
}

// A JobStatus is one of the two that Forgejo lists.
type JobStatus string

// The statuses of listed jobs. Blocked and finished ones are not listed.
const (
	JobWaiting JobStatus = "waiting"
	JobRunning JobStatus = "running"
)

// A Job that waits for a runner, or has one. Nothing says which.
type Job struct {
	ID    int64 `json:"id"`
	RunID int64 `json:"run_id"`
	// Attempt counts from 1 how often the job was run.
	Attempt int64 `json:"attempt"`
	// Handle names this attempt of the job, and no other. A runner may ask for it.
	Handle  string    `json:"handle"`
	RepoID  int64     `json:"repo_id"`
	OwnerID int64     `json:"owner_id"`
	Name    string    `json:"name"`
	RunsOn  []string  `json:"runs_on"`
	TaskID  int64     `json:"task_id"` // 0: no runner has it.
	Status  JobStatus `json:"status"`
}

func (j Job) valid() error {
	if j.ID <= 0 || j.Status == "" {
		return errors.New("a job has no id or no status")
	}
	return nil
}

// A RunnerStatus is what Forgejo concludes from when it heard of a runner last.
type RunnerStatus string

// The statuses of a runner. One that took a job less than about a second ago, or reported nothing for ten, is idle all the same.
const (
	// RunnerOffline was not heard of for a minute, or never.
	RunnerOffline RunnerStatus = "offline"
	RunnerIdle    RunnerStatus = "idle"
	// RunnerActive reported on a job within the last ten seconds.
	RunnerActive RunnerStatus = "active"
)

// A Runner is a registration.
type Runner struct {
	ID   int64  `json:"id"`
	UUID string `json:"uuid"`
	// Name is not unique, and cut at 255 bytes.
	Name        string `json:"name"`
	Description string `json:"description"`
	// Version and Labels are what the runner declared, none before it was there.
	Version   string       `json:"version"`
	Labels    []string     `json:"labels"`
	OwnerID   int64        `json:"owner_id"`
	RepoID    int64        `json:"repo_id"`
	Status    RunnerStatus `json:"status"`
	Ephemeral bool         `json:"ephemeral"` // False from a server that ignored what was asked for.
}

func (r Runner) valid() error {
	if r.ID <= 0 || r.UUID == "" || r.Status == "" {
		return errors.New("a runner has no id, no uuid or no status")
	}
	return nil
}

// A Registration is what a runner needs to connect, told once. It prints without its token.
type Registration struct {
	ID    int64
	UUID  string
	Token string
}

func decodeRegistration(body []byte, into *Registration) error {
	var answer struct {
		ID    int64  `json:"id"`
		UUID  string `json:"uuid"`
		Token string `json:"token"`
	}
	// What is wrong with the body is not said: it may hold the token.
	if err := json.Unmarshal(body, &answer); err != nil || answer.ID <= 0 || answer.UUID == "" || answer.Token == "" {
		return errors.New("a registration has no id, no uuid or no token")
	}
	*into = Registration(answer)
	return nil
}

// String has no token.
func (r Registration) String() string { return fmt.Sprintf("registration %d (%s)", r.ID, r.UUID) }

// GoString has no token.
func (r Registration) GoString() string { return r.String() }

// LogValue has no token.
func (r Registration) LogValue() slog.Value { return slog.StringValue(r.String()) }

// A validated thing knows when it is none.
type validated interface{ valid() error }

// decodeOne thing, which must be there.
func decodeOne[T validated](body []byte, into *T) error {
	if err := json.Unmarshal(body, into); err != nil {
		return err
	}
	return (*into).valid()
}

// decodeList of things. Forgejo says null for an empty list.
func decodeList[T validated](body []byte, into *[]T) error {
	list := []T{}
	if err := json.Unmarshal(body, &list); err != nil {
		return err
	}
	for _, v := range list {
		if err := v.valid(); err != nil {
			return err
		}
	}
	*into = list
	return nil
}
