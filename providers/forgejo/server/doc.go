// Package server keeps one session for each server, scope and token that runner pools use, however many pools do.
//
// A session looks at the server at the shortest interval of its pools: first at the registrations, then at the jobs, so that a
// job that is taken in between is counted nowhere rather than twice. After a look it wakes its pools, and those runners whose
// state on the server changed or that are not listed any more. A look that fails wakes nobody to judge anything: the last one
// is kept, but [Session.Look] does not give it out any more.
package server
