package onejob

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/steading-dev/steading/test/fakes/forgejo/internal/wire"
)

// A payload is what a job of the stand-in says that is to be done.
type payload struct {
	Sleep  string   `json:"sleep"`
	Log    []string `json:"log"`
	Result string   `json:"result"`

	sleep time.Duration
}

// Results of a payload.
const (
	success = "success"
	failure = "failure"
	crash   = "crash"
	hang    = "hang"
	silent  = "silent"
)

// parse a payload. One that is none fails, and its log says why.
func parse(raw []byte) payload {
	p := payload{Result: success, Sleep: "0s"}
	err := yaml.UnmarshalStrict(raw, &p)
	if err == nil {
		p.sleep, err = time.ParseDuration(p.Sleep)
	}
	if err == nil {
		switch p.Result {
		case success, failure, crash, hang, silent:
		default:
			err = fmt.Errorf("there is no result %q", p.Result)
		}
	}
	if err != nil {
		return payload{Result: failure, Log: []string{"cannot read the payload: " + err.Error()}}
	}
	return p
}

// A report is what is said of a task, and how much of it was taken.
type report struct {
	*runner
	state wire.TaskState
	rows  []wire.LogRow
	acked int64
}

// run a task, which ends by itself, by the server's word, or because the runner is stopped.
func (r *runner) run(ctx context.Context, t *wire.Task) error {
	p := parse(t.WorkflowPayload)
	now := r.Clock.Now()
	rep := &report{runner: r, state: wire.TaskState{ID: t.ID, StartedAt: &now}}
	for _, line := range p.Log {
		rep.rows = append(rep.rows, wire.LogRow{Time: now, Content: line})
		r.say("%s", line)
	}
	end, ticks := r.Clock.After(p.sleep), r.Clock.NewTicker(r.ReportInterval)
	defer ticks.Stop()
	if p.Result == hang || p.Result == silent {
		end = nil
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.Stop:
			return rep.finish(ctx, wire.Cancelled)
		case <-end:
			switch p.Result {
			case crash:
				return ErrCrashed
			case failure:
				return rep.finish(ctx, wire.Failure)
			default:
				return rep.finish(ctx, wire.Success)
			}
		case <-ticks.C():
			if p.Result == silent {
				continue
			}
			// A deleted runner is not told to stop: it only gets errors, and tries again.
			told, err := rep.update(ctx, wire.Unspecified)
			if err != nil {
				r.say("failed to report: %v", err)
			} else if told.Final() {
				return rep.finish(ctx, told)
			}
		}
	}
}

// update the log, then the state. What the server makes of the task is the answer.
func (r *report) update(ctx context.Context, result wire.Result) (wire.Result, error) {
	if r.acked < int64(len(r.rows)) {
		res, err := call[wire.UpdateLogRequest, wire.UpdateLogResponse](ctx, r.runner, "UpdateLog", wire.UpdateLogRequest{
			TaskID: r.state.ID, Index: wire.Int64(r.acked), Rows: r.rows[r.acked:], NoMore: result.Final(),
		})
		if err != nil {
			return "", err
		}
		r.acked = int64(res.AckIndex)
	}
	r.state.Result = result
	if result.Final() {
		now := r.Clock.Now()
		r.state.StoppedAt = &now
	}
	res, err := call[wire.UpdateTaskRequest, wire.UpdateTaskResponse](ctx, r.runner, "UpdateTask", wire.UpdateTaskRequest{State: r.state})
	return res.State.Result, err
}

// finish a task: the last of the log, then the result, together and again until they are taken. Whether they were does not
// change how the runner ends.
func (r *report) finish(ctx context.Context, result wire.Result) error {
	delay := r.RetryDelay
	for n := 0; ; n++ {
		_, err := r.update(ctx, result)
		if err == nil {
			r.say("job %s", result)
			return nil
		}
		r.say("failed to report the result: %v", err)
		if n == maxRetries {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.Clock.After(delay):
			delay *= 2
		}
	}
}
