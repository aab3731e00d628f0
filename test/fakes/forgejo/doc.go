// Package forgejo is a stand-in for Forgejo 15 that speaks its protocols: the part of the REST API that deals with runners
// and jobs, and the procedures by which runners fetch and report tasks, as Connect JSON. It keeps state as Forgejo does: jobs
// wait, runners are offline, idle or active by what was heard of them, and an ephemeral runner is gone when its job is
// reported.
//
// A test makes one with [New], serves it with net/http/httptest, and drives it by its methods. Where it runs apart from the
// test, as in a container (see cmd/fake-forgejo), the same is done below /fake/ over HTTP; that needs no token.
//
// What it leaves out: web pages, git, workflows. A job is what a test queues, and its payload is obeyed by the runner of
// package onejob. The procedures are spoken as JSON only, which the stock runner does not.
package forgejo
