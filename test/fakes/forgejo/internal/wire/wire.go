// Package wire has the messages between Forgejo and its runners, as the Connect protocol says them in JSON.
package wire

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Base of the procedures, below the address of the server.
const Base = "/api/actions/runner.v1.RunnerService/"

// Headers of every call but Register.
const (
	HeaderUUID  = "X-Runner-Uuid"
	HeaderToken = "X-Runner-Token"
	// HeaderRequestKey is the same until a fetch succeeds, so that a task whose answer was lost is told again.
	HeaderRequestKey = "X-Runner-Request-Key"
)

// Int64 is a number in a string, as protobuf has it in JSON.
type Int64 int64

// MarshalJSON writes a string.
func (i Int64) MarshalJSON() ([]byte, error) {
	return []byte(`"` + strconv.FormatInt(int64(i), 10) + `"`), nil
}

// UnmarshalJSON takes a string or a number.
func (i *Int64) UnmarshalJSON(raw []byte) error {
	n, err := strconv.ParseInt(strings.Trim(string(raw), `"`), 10, 64)
	if err != nil {
		return fmt.Errorf("%s is not an int64", raw)
	}
	*i = Int64(n)
	return nil
}

// A Result of a task or a step.
type Result string

// The results.
const (
	Unspecified Result = "RESULT_UNSPECIFIED"
	Success     Result = "RESULT_SUCCESS"
	Failure     Result = "RESULT_FAILURE"
	Cancelled   Result = "RESULT_CANCELLED"
	Skipped     Result = "RESULT_SKIPPED"
)

// Final reports whether it ends a task.
func (r Result) Final() bool { return r != "" && r != Unspecified }

// An Error of a procedure.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// The codes of errors.
const (
	Unauthenticated = "unauthenticated"
	Internal        = "internal"
	AlreadyExists   = "already_exists"
	InvalidArgument = "invalid_argument"
	Unimplemented   = "unimplemented"
)

// The messages. Fields that nobody here reads are left out.
type (
	// DeclareRequest says what a runner is.
	DeclareRequest struct {
		Version string   `json:"version,omitempty"`
		Labels  []string `json:"labels,omitempty"`
	}
	// DeclareResponse says what the server knows of the runner.
	DeclareResponse struct {
		Runner Runner `json:"runner"`
	}
	// Runner as the server knows it.
	Runner struct {
		ID        Int64    `json:"id,omitempty"`
		UUID      string   `json:"uuid,omitempty"`
		Name      string   `json:"name,omitempty"`
		Version   string   `json:"version,omitempty"`
		Labels    []string `json:"labels,omitempty"`
		Ephemeral bool     `json:"ephemeral,omitempty"`
	}
	// FetchTaskRequest asks for any task. No search is made when the version is the server's.
	FetchTaskRequest struct {
		TasksVersion Int64 `json:"tasksVersion,omitempty"`
		TaskCapacity Int64 `json:"taskCapacity,omitempty"`
	}
	// FetchTaskResponse has a task, or none.
	FetchTaskResponse struct {
		Task         *Task `json:"task,omitempty"`
		TasksVersion Int64 `json:"tasksVersion,omitempty"`
	}
	// FetchSingleTaskRequest asks for one attempt of one job.
	FetchSingleTaskRequest struct {
		TasksVersion Int64  `json:"tasksVersion,omitempty"`
		Handle       string `json:"handle,omitempty"`
	}
	// FetchSingleTaskResponse has the task, or none.
	FetchSingleTaskResponse = FetchTaskResponse
	// Task to run.
	Task struct {
		ID              Int64             `json:"id"`
		WorkflowPayload []byte            `json:"workflowPayload,omitempty"`
		Context         map[string]string `json:"context,omitempty"`
		Secrets         map[string]string `json:"secrets,omitempty"`
		Vars            map[string]string `json:"vars,omitempty"`
	}
	// StepState of a task.
	StepState struct {
		ID        Int64      `json:"id"`
		Result    Result     `json:"result,omitempty"`
		StartedAt *time.Time `json:"startedAt,omitempty"`
		StoppedAt *time.Time `json:"stoppedAt,omitempty"`
		LogIndex  Int64      `json:"logIndex,omitempty"`
		LogLength Int64      `json:"logLength,omitempty"`
	}
	// TaskState of a task.
	TaskState struct {
		ID        Int64       `json:"id"`
		Result    Result      `json:"result,omitempty"`
		StartedAt *time.Time  `json:"startedAt,omitempty"`
		StoppedAt *time.Time  `json:"stoppedAt,omitempty"`
		Steps     []StepState `json:"steps,omitempty"`
	}
	// UpdateTaskRequest reports on a task. A final result ends it.
	UpdateTaskRequest struct {
		State   TaskState         `json:"state"`
		Outputs map[string]string `json:"outputs,omitempty"`
	}
	// UpdateTaskResponse has what the server makes of the task: it may have been cancelled.
	UpdateTaskResponse struct {
		State       TaskState `json:"state"`
		SentOutputs []string  `json:"sentOutputs,omitempty"`
	}
	// LogRow is a line.
	LogRow struct {
		Time    time.Time `json:"time"`
		Content string    `json:"content"`
	}
	// UpdateLogRequest appends rows from an index on.
	UpdateLogRequest struct {
		TaskID Int64    `json:"taskId"`
		Index  Int64    `json:"index"`
		Rows   []LogRow `json:"rows,omitempty"`
		NoMore bool     `json:"noMore,omitempty"`
	}
	// UpdateLogResponse has how many rows there are.
	UpdateLogResponse struct {
		AckIndex Int64 `json:"ackIndex"`
	}
)

// Decode a message. No body is a message without fields.
func Decode(raw []byte, into any) error {
	if len(raw) == 0 {
		return nil
	}
	return json.Unmarshal(raw, into)
}
