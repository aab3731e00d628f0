package forgejo

import (
	"crypto/subtle"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/steading-dev/steading/test/fakes/forgejo/internal/wire"
)

// statuses of HTTP for the codes of Connect.
var statuses = map[string]int{
	wire.Unauthenticated: http.StatusUnauthorized,
	wire.Internal:        http.StatusInternalServerError,
	wire.AlreadyExists:   http.StatusConflict,
	wire.InvalidArgument: http.StatusBadRequest,
}

func (s *Server) handleProcedures() {
	procedure(s, "Declare", RouteDeclare, s.declare)
	procedure(s, "FetchTask", RouteFetchTask, s.fetchTask)
	procedure(s, "FetchSingleTask", RouteFetchSingleTask, s.fetchSingleTask)
	procedure(s, "UpdateTask", RouteUpdateTask, s.updateTask)
	procedure(s, "UpdateLog", RouteUpdateLog, s.updateLog)
}

// procedure of a runner that shows its credential.
func procedure[Req, Res any](s *Server, name string, route Route, h func(*exchange, *runner, Req) (Res, *wire.Error)) {
	s.on("POST "+wire.Base+name, route, func(x *exchange) answer {
		defer s.lock()()
		if kind, _, _ := strings.Cut(x.Header.Get("Content-Type"), ";"); kind != "application/json" {
			return answer{status: http.StatusUnsupportedMediaType, header: http.Header{"Accept-Post": {"application/json"}}}
		}
		r, err := s.caller(x)
		if err != nil {
			return refused(err)
		}
		var req Req
		if err := wire.Decode(x.body, &req); err != nil {
			return refused(&wire.Error{Code: wire.InvalidArgument, Message: err.Error()})
		}
		r.lastOnline = s.now()
		res, err := h(x, r, req)
		if err != nil {
			return refused(err)
		}
		return jsonAnswer(http.StatusOK, res)
	})
}

func refused(err *wire.Error) answer { return jsonAnswer(statuses[err.Code], err) }

// procedure reports whether a request is for a runner.
func (x *exchange) procedure() bool { return strings.HasPrefix(x.URL.Path, wire.Base) }

// caller of a procedure, known by its uuid and token.
func (s *Server) caller(x *exchange) (*runner, *wire.Error) {
	uuid, token := x.Header.Get(wire.HeaderUUID), x.Header.Get(wire.HeaderToken)
	for _, r := range s.live() {
		if r.uuid == uuid && subtle.ConstantTimeCompare([]byte(r.token), []byte(token)) == 1 {
			return r, nil
		}
	}
	return nil, &wire.Error{Code: wire.Unauthenticated, Message: "unregistered runner"}
}

func (s *Server) declare(_ *exchange, r *runner, req wire.DeclareRequest) (wire.DeclareResponse, *wire.Error) {
	r.version, r.labels = req.Version, req.Labels
	return wire.DeclareResponse{Runner: wire.Runner{
		ID: wire.Int64(r.id), UUID: r.uuid, Name: r.name, Version: r.version, Labels: r.labels, Ephemeral: r.ephemeral,
	}}, nil
}

func (s *Server) fetchTask(x *exchange, r *runner, req wire.FetchTaskRequest) (wire.FetchTaskResponse, *wire.Error) {
	if int64(req.TasksVersion) == s.tasksVersion {
		return wire.FetchTaskResponse{TasksVersion: req.TasksVersion}, nil
	}
	return s.fetch(x, r, func(j *job) bool { return j.servedBy(r.labels) }), nil
}

func (s *Server) fetchSingleTask(x *exchange, r *runner, req wire.FetchSingleTaskRequest) (wire.FetchSingleTaskResponse, *wire.Error) {
	if req.Handle == "" {
		return s.fetchTask(x, r, wire.FetchTaskRequest{TasksVersion: req.TasksVersion})
	}
	return s.fetch(x, r, func(j *job) bool { return j.handle == req.Handle && j.servedBy(r.labels) }), nil
}

// fetch a task for a runner. A request with the same key is told the same task again.
func (s *Server) fetch(x *exchange, r *runner, fits func(*job) bool) wire.FetchTaskResponse {
	res := wire.FetchTaskResponse{TasksVersion: wire.Int64(s.tasksVersion)}
	key := x.Header.Get(wire.HeaderRequestKey)
	if t := r.fetched[key]; t != nil && t.status == StatusRunning {
		res.Task = t.told()
		return res
	}
	// An ephemeral runner that ever had a task gets none again.
	if r.ephemeral && len(r.tasks) > 0 {
		return res
	}
	j := s.pick(r, fits)
	if j == nil {
		return res
	}
	t := s.assign(j, r)
	if key != "" {
		r.fetched[key] = t
	}
	res.Task = t.told()
	return res
}

// told to the runner.
func (t *task) told() *wire.Task {
	return &wire.Task{
		ID: wire.Int64(t.id), WorkflowPayload: []byte(t.job.payload),
		Context: map[string]string{"repository": t.job.repo.fullName(), "job": t.job.name},
	}
}

// results that a runner reports, and what a job is then.
var results = map[wire.Result]string{
	wire.Success: StatusSuccess, wire.Failure: StatusFailure, wire.Cancelled: StatusCancelled, wire.Skipped: StatusSkipped,
}

// theirs is a task of that runner.
func (s *Server) theirs(r *runner, id wire.Int64) (*task, *wire.Error) {
	t := s.tasks[int64(id)]
	if t == nil || t.job.deleted {
		return nil, &wire.Error{Code: wire.Internal, Message: "get task: resource does not exist"}
	}
	if t.runner != r {
		return nil, &wire.Error{Code: wire.Internal, Message: "invalid runner for task"}
	}
	return t, nil
}

func (s *Server) updateTask(_ *exchange, r *runner, req wire.UpdateTaskRequest) (wire.UpdateTaskResponse, *wire.Error) {
	r.lastActive = s.now()
	t, err := s.theirs(r, req.State.ID)
	if err != nil {
		return wire.UpdateTaskResponse{}, err
	}
	status, known := results[req.State.Result]
	switch {
	case req.State.Result.Final() && !known:
		return wire.UpdateTaskResponse{}, &wire.Error{Code: wire.InvalidArgument, Message: "unknown result"}
	case t.status != StatusRunning: // It was stopped, and the runner is told so.
	case !known:
		t.updated = s.now()
	default:
		s.end(t, status)
	}
	if known && r.ephemeral {
		s.deleteRunner(r, "job reported")
	}
	return wire.UpdateTaskResponse{State: wire.TaskState{ID: req.State.ID, Result: t.result()}, SentOutputs: slices.Sorted(maps.Keys(req.Outputs))}, nil
}

// result of a task, unspecified while it runs.
func (t *task) result() wire.Result {
	for result, status := range results {
		if status == t.status {
			return result
		}
	}
	return wire.Unspecified
}

func (s *Server) updateLog(_ *exchange, r *runner, req wire.UpdateLogRequest) (wire.UpdateLogResponse, *wire.Error) {
	r.lastActive = s.now()
	t, err := s.theirs(r, req.TaskID)
	if err != nil {
		return wire.UpdateLogResponse{}, err
	}
	ack, from := int64(len(t.log)), int64(req.Index)
	if len(req.Rows) == 0 || from < 0 || from > ack || from+int64(len(req.Rows)) <= ack {
		return wire.UpdateLogResponse{AckIndex: wire.Int64(ack)}, nil
	}
	if t.closed {
		return wire.UpdateLogResponse{}, &wire.Error{Code: wire.AlreadyExists, Message: "log file has been archived"}
	}
	t.log = append(t.log, req.Rows[ack-from:]...)
	t.closed, t.updated = req.NoMore, s.now()
	return wire.UpdateLogResponse{AckIndex: wire.Int64(len(t.log))}, nil
}
