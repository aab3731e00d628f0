package forgejo

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/steading-dev/steading/test/fakes/forgejo/internal/wire"
)

// maxBody of a request, in bytes.
const maxBody = 8 << 20

// An exchange is a request that is being answered.
type exchange struct {
	*http.Request
	body   []byte
	faults []*fault
}

// fault of a kind, or nil.
func (x *exchange) fault(kind FaultKind) *fault {
	for _, f := range x.faults {
		if f.Kind == kind {
			return f
		}
	}
	return nil
}

// An answer is kept until it is whole, so that a fault may change it.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func jsonAnswer(status int, v any) answer {
	raw, err := json.Marshal(v)
	if err != nil {
		return answer{status: http.StatusInternalServerError, body: []byte(err.Error())}
	}
	return answer{status: status, header: http.Header{"Content-Type": {"application/json;charset=utf-8"}}, body: raw}
}

// apiError as Forgejo's API says them.
func apiError(r *http.Request, status int, message string) answer {
	swagger := url.URL{Scheme: "http", Host: r.Host, Path: "/api/swagger"}
	return jsonAnswer(status, map[string]any{"message": message, "url": swagger.String()})
}

func notFound(r *http.Request) answer {
	return apiError(r, http.StatusNotFound, "The target couldn't be found.")
}

// noRoute is what the router says, and no handler.
func noRoute() answer {
	return answer{status: http.StatusNotFound, header: http.Header{"Content-Type": {"text/plain; charset=utf-8"}}, body: []byte("404 page not found\n")}
}

// on a pattern of the mux, a route is answered by a handler, and by what faults there are.
func (s *Server) on(pattern string, route Route, h func(*exchange) answer) {
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		// A request that is read to its end lets the server notice that its caller is gone.
		body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		x := &exchange{Request: r, body: body, faults: s.strike(route)}
		a, struck := x.instead()
		if !struck {
			a = x.spoil(h(x))
		}
		for k, v := range a.header {
			w.Header()[k] = v
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
		w.WriteHeader(a.status)
		_, _ = w.Write(a.body) // Whoever asked may be gone.
	})
}

// instead of the answer there may be a fault.
func (x *exchange) instead() (answer, bool) {
	for _, f := range x.faults {
		switch f.Kind {
		case FaultHang:
			select {
			case <-f.unset:
			case <-x.Context().Done():
				panic(http.ErrAbortHandler)
			}
		case FaultUnavailable:
			return x.refusal(cmp.Or(f.Status, http.StatusServiceUnavailable), "unavailable", "a fault is set"), true
		case FaultUnauthorized:
			return x.refusal(http.StatusUnauthorized, wire.Unauthenticated, "invalid username, password or token"), true
		case FaultForbidden:
			return x.refusal(http.StatusForbidden, "permission_denied", "token does not have at least one of required scope(s)"), true
		case FaultHTML:
			h := http.Header{"Content-Type": {"text/html; charset=utf-8"}}
			return answer{status: cmp.Or(f.Status, http.StatusOK), header: h, body: []byte("<!DOCTYPE html><html><body>Welcome to the proxy</body></html>")}, true
		case FaultRedirect:
			to := cmp.Or(f.Location, "https://elsewhere.invalid/")
			return answer{status: http.StatusTemporaryRedirect, header: http.Header{"Location": {to}}}, true
		default: // Of the answer.
		}
	}
	return answer{}, false
}

// refusal in the words of the API, or of the procedures.
func (x *exchange) refusal(status int, code, message string) answer {
	if x.procedure() {
		return jsonAnswer(status, wire.Error{Code: code, Message: message})
	}
	return apiError(x.Request, status, message)
}

// spoil an answer.
func (x *exchange) spoil(a answer) answer {
	if x.fault(FaultLost) != nil {
		panic(http.ErrAbortHandler)
	}
	if x.fault(FaultTruncated) != nil {
		a.body = a.body[:len(a.body)/2]
	}
	return a
}

// number of a query or path, otherwise when it is none.
func number(s string, otherwise int64) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return otherwise
	}
	return n
}

func link(r *http.Request, page int, rel string) string {
	q := r.URL.Query()
	q.Set("page", strconv.Itoa(page))
	u := url.URL{Scheme: "http", Host: r.Host, Path: r.URL.Path, RawQuery: q.Encode()}
	return fmt.Sprintf("<%s>; rel=%q", u.String(), rel)
}
