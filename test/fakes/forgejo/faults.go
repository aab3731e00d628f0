package forgejo

import (
	"fmt"
	"slices"
)

// A Route is a kind of request, in any scope.
type Route string

// The routes that are counted, and that faults are set on.
const (
	RouteVersion           Route = "version"
	RouteJobs              Route = "jobs"
	RouteRunners           Route = "runners"
	RouteRunner            Route = "runner"
	RouteRegister          Route = "register"
	RouteDeregister        Route = "deregister"
	RouteRegistrationToken Route = "registration-token"
	RouteUser              Route = "user"
	RouteDeclare           Route = "declare"
	RouteFetchTask         Route = "fetch-task"
	RouteFetchSingleTask   Route = "fetch-single-task"
	RouteUpdateTask        Route = "update-task"
	RouteUpdateLog         Route = "update-log"
)

var routes = []Route{
	RouteVersion, RouteJobs, RouteRunners, RouteRunner, RouteRegister, RouteDeregister, RouteRegistrationToken, RouteUser,
	RouteDeclare, RouteFetchTask, RouteFetchSingleTask, RouteUpdateTask, RouteUpdateLog,
}

// A FaultKind is what goes wrong.
type FaultKind string

// Faults instead of the answer: nothing is done.
const (
	// FaultUnavailable answers with the fault's status, 503 if it has none.
	FaultUnavailable FaultKind = "unavailable"
	// FaultHang does not answer, until the caller gives up or the fault is unset.
	FaultHang FaultKind = "hang"
	// FaultHTML answers with a web page and the fault's status, 200 if it has none.
	FaultHTML FaultKind = "html"
	// FaultUnauthorized answers that the token is refused.
	FaultUnauthorized FaultKind = "unauthorized"
	// FaultForbidden answers that the token may not.
	FaultForbidden FaultKind = "forbidden"
	// FaultRedirect answers with a redirect to the fault's location, https://elsewhere.invalid/ if it has none.
	FaultRedirect FaultKind = "redirect"
)

// Faults of the answer: what was asked for is done.
const (
	// FaultLost cuts the connection.
	FaultLost FaultKind = "lost"
	// FaultTruncated answers with half of the body.
	FaultTruncated FaultKind = "truncated"
	// FaultEmpty answers with an empty list.
	FaultEmpty FaultKind = "empty"
	// FaultOmit leaves the fault's runner out of lists.
	FaultOmit FaultKind = "omit"
	// FaultDuplicate has each entry of a page twice.
	FaultDuplicate FaultKind = "duplicate"
	// FaultWrongTotal says that there is one runner in all, and no next page.
	FaultWrongTotal FaultKind = "wrong-total"
	// FaultSamePage answers with the first page whatever page is asked for.
	FaultSamePage FaultKind = "same-page"
	// FaultIgnoreEphemeral registers runners that are not ephemeral.
	FaultIgnoreEphemeral FaultKind = "ignore-ephemeral"
	// FaultLabelsRequired lists jobs only to those who say labels, as before version 14.
	FaultLabelsRequired FaultKind = "labels-required"
)

var (
	instead = []FaultKind{FaultUnavailable, FaultHang, FaultHTML, FaultUnauthorized, FaultForbidden, FaultRedirect}
	ofIt    = []FaultKind{
		FaultLost, FaultTruncated, FaultEmpty, FaultOmit, FaultDuplicate, FaultWrongTotal, FaultSamePage, FaultIgnoreEphemeral, FaultLabelsRequired,
	}
)

// A Fault is set on a route for some calls.
type Fault struct {
	// Route that it is set on. Empty: all.
	Route Route     `json:"route,omitempty"`
	Kind  FaultKind `json:"kind"`
	// Times that it happens. 0: until it is unset.
	Times int `json:"times,omitempty"`
	// Status of an answer that is unavailable or HTML.
	Status int `json:"status,omitempty"`
	// Location of a redirect.
	Location string `json:"location,omitempty"`
	// Runner that is omitted.
	Runner int64 `json:"runner,omitempty"`
}

type fault struct {
	Fault
	left  int
	unset chan struct{}
}

// SetFault from the next call on. A fault of the same kind on the same route, and of the same runner, is replaced.
func (s *Server) SetFault(f Fault) error {
	if f.Route != "" && !slices.Contains(routes, f.Route) {
		return fmt.Errorf("there is no route %q", f.Route)
	}
	if !slices.Contains(instead, f.Kind) && !slices.Contains(ofIt, f.Kind) {
		return fmt.Errorf("there is no fault %q", f.Kind)
	}
	defer s.lock()()
	s.unset(func(o Fault) bool { return o.Route == f.Route && o.Kind == f.Kind && o.Runner == f.Runner })
	s.faults = append(s.faults, &fault{Fault: f, left: f.Times, unset: make(chan struct{})})
	return nil
}

// UnsetFaults of a kind on a route, as they were set. With no kind, all on the route; with neither, all.
func (s *Server) UnsetFaults(route Route, kind FaultKind) {
	defer s.lock()()
	s.unset(func(o Fault) bool {
		return (kind == "" || o.Kind == kind) && (route == "" && kind == "" || o.Route == route)
	})
}

func (s *Server) unset(which func(Fault) bool) {
	s.faults = slices.DeleteFunc(s.faults, func(f *fault) bool {
		if which(f.Fault) {
			close(f.unset)
			return true
		}
		return false
	})
}

// Faults that are set.
func (s *Server) Faults() []Fault {
	defer s.lock()()
	all := []Fault{}
	for _, f := range s.faults {
		all = append(all, f.Fault)
	}
	return all
}

// strike counts a call, and returns the faults of it. Of those instead of the answer it is the one that was set first.
func (s *Server) strike(route Route) []*fault {
	defer s.lock()()
	s.calls[route]++
	var (
		struck []*fault
		taken  bool
	)
	s.faults = slices.DeleteFunc(s.faults, func(f *fault) bool {
		early := slices.Contains(instead, f.Kind)
		if f.Route != "" && f.Route != route || early && taken {
			return false
		}
		taken = taken || early
		struck = append(struck, f)
		f.left--
		return f.left == 0
	})
	return struck
}

// Calls that there were, by route.
func (s *Server) Calls() map[Route]int {
	defer s.lock()()
	out := map[Route]int{}
	for r, n := range s.calls {
		out[r] = n
	}
	return out
}

// ResetCounts of the calls, and takes the registrations of now for the peak.
func (s *Server) ResetCounts() {
	defer s.lock()()
	clear(s.calls)
	s.peak = len(s.live())
}
