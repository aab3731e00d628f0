// Package onejob is a stand-in for the one-job command of Forgejo's runner, against the stand-in for Forgejo. It declares
// itself, takes one task, obeys the task's payload, and reports.
//
// The payload is YAML, of which nothing is required:
//
//	sleep: 200ms
//	log: [first line, second line]
//	result: success
//
// The result is success, failure, crash (the runner ends without a word), hang (the task never ends, and is reported on) or
// silent (it never ends, and is not).
//
// It has the stock runner's habits that a pool has to live with: it declares before it fetches; the first report on a task
// comes an interval, about a second, after the task was fetched, and until then the runner looks idle; a runner that was
// deleted is not told so, and keeps trying; the exit code says whether a task was run, and not how it went.
package onejob
