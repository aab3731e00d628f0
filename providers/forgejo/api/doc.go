// Package api speaks to the part of Forgejo's REST API that a pool of runners needs: the version, the jobs that wait, and
// the registrations of runners. It speaks to Forgejo 15 and later.
//
// What a caller may conclude. A runner is gone when [Client.Runner] says [ErrGone], and from nothing else: the list of
// runners is ordered by when each was seen last, which changes while it is read, and so a runner may be missing from it.
// Every other error means that nothing is known.
package api
