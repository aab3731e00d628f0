package target

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// What the server of a Context may make the provider hold, in bytes of memory. The server is a tenant's, and the memory is
// everybody's.
const (
	// mostAnswers of one cluster together, while they are read.
	mostAnswers = 32 << 20
	// mostEvent is one of a watch. Objects are no larger than 1.5 MiB where etcd is as it comes.
	mostEvent = 4 << 20
	// mostKept is what is watched.
	mostKept = 64 << 20
)

// What JSON becomes when it is decoded, in bytes above its own: an element of an array may be as short as {} and become a Pod.
const (
	elementCost = 512
	memberCost  = 32
)

// An ExcessError says that the server of a Context was not heard out, since what it says would take too much memory.
type ExcessError struct{ what string }

func (e *ExcessError) Error() string { return e.what }

// ConditionReason of it.
func (*ExcessError) ConditionReason() xpv2.ConditionReason { return steading.ReasonWrongAnswer }

func excess(what string, most int) *ExcessError {
	return &ExcessError{fmt.Sprintf("its API server %s would take more than %d MiB of memory here: see that it is an API server of Kubernetes, and what there is so much of on the cluster",
		what, most>>20)}
}

// Bounded returns a transport for a server of a tenant's: it reads no more of its answers than is to be held in memory, and only
// JSON, of which it can tell. The rest is an [ExcessError].
func Bounded(rt http.RoundTripper) http.RoundTripper { return (&budget{}).bound(nil)(rt) }

// A budget is what the answers of one cluster may take that are being read.
type budget struct{ used atomic.Int64 }

// bound transports by the budget. What exceeds it is told besides, unless told is nil.
func (b *budget) bound(told func(*ExcessError)) func(http.RoundTripper) http.RoundTripper {
	return func(rt http.RoundTripper) http.RoundTripper { return &bounded{inner: rt, budget: b, told: told} }
}

type bounded struct {
	inner  http.RoundTripper
	budget *budget
	told   func(*ExcessError)
}

func (b *bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Accept", jsonOnly(req.Header.Get("Accept")))
	res, err := b.inner.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	a := &answerBody{body: res.Body, bounded: b, watch: isWatch(req)}
	switch kind, _, err := mime.ParseMediaType(res.Header.Get("Content-Type")); {
	case err != nil, strings.HasPrefix(kind, "text/"):
		// Nothing is made of it but a message. Without a type it would be taken for what was asked for.
		res.Header.Set("Content-Type", "text/plain")
	case kind == "application/json":
		a.json = &jsonCost{}
	default:
		res.Body.Close() //nolint:errcheck,gosec // Nothing of it is wanted.
		return nil, b.exceeded(&ExcessError{fmt.Sprintf("its API server answers with %s, and was asked for JSON: see that it is an API server of Kubernetes", kind)})
	}
	res.Body = a
	return res, nil
}

// exceeded is told, if somebody wants to know.
func (b *bounded) exceeded(over *ExcessError) *ExcessError {
	if b.told != nil {
		b.told(over)
	}
	return over
}

// CloseIdleConnections of what is wrapped.
func (b *bounded) CloseIdleConnections() { closeIdle(b.inner) }

// jsonOnly is what is left of the media types that a client accepts: it would have to be decoded to tell what the others become.
func jsonOnly(accept string) string {
	var left []string
	for part := range strings.SplitSeq(accept, ",") {
		if part = strings.TrimSpace(part); strings.HasPrefix(part, "application/json") {
			left = append(left, part)
		}
	}
	if left == nil {
		return "application/json"
	}
	return strings.Join(left, ",")
}

func isWatch(req *http.Request) bool {
	w := req.URL.Query().Get("watch")
	return w == "true" || w == "1"
}

// An answerBody is counted as it is read, and given up when there is too much of it. It was decompressed before.
type answerBody struct {
	*bounded
	body  io.ReadCloser
	watch bool
	json  *jsonCost // nil: it is text

	mu     sync.Mutex
	closed bool
	held   int64 // of the budget
	over   *ExcessError
}

// Read some of it.
func (a *answerBody) Read(p []byte) (int, error) {
	n, err := a.body.Read(p)
	if over := a.count(p[:n]); over != nil {
		return 0, over
	}
	return n, err
}

// Close gives back what was held.
func (a *answerBody) Close() error {
	a.mu.Lock()
	a.closed = true
	a.hold(0)
	a.mu.Unlock()
	return a.body.Close()
}

func (a *answerBody) count(p []byte) *ExcessError {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over != nil || a.closed {
		return a.over
	}
	if held := a.weigh(p); a.watch && held > mostEvent {
		a.over = excess("sends a watch an event that", mostEvent)
	} else if a.hold(held) > mostAnswers {
		a.over = excess("gives answers that", mostAnswers)
	}
	if a.over == nil {
		return nil
	}
	return a.exceeded(a.over)
}

// weigh what is read and not done with: all of an answer, or the last event of a watch. An event is never done with that is too large.
func (a *answerBody) weigh(p []byte) int64 {
	if a.json == nil {
		return a.held + int64(len(p))
	}
	held := a.held
	for _, c := range p {
		cost, ended := a.json.next(c)
		held += cost
		if ended && a.watch && held <= mostEvent {
			held = 0
		}
	}
	return held
}

// hold so much of the budget. It returns how much of that is used.
func (a *answerBody) hold(held int64) int64 {
	used := a.budget.used.Add(held - a.held)
	a.held = held
	return used
}

// jsonCost tells what JSON takes once it is decoded, byte by byte. Of what is not JSON it tells too much or as much as a decoder
// reads of it.
type jsonCost struct {
	quoted, escaped bool
	open            []byte // the brackets around it
}

// next byte: what it adds, and whether it ends a value that stands by itself.
func (j *jsonCost) next(c byte) (cost int64, ended bool) {
	switch {
	case j.escaped:
		j.escaped = false
	case j.quoted:
		j.escaped, j.quoted = c == '\\', c != '"'
	default:
		return j.mark(c)
	}
	return 1, false
}

// mark is a byte that is in no string.
func (j *jsonCost) mark(c byte) (cost int64, ended bool) {
	switch c {
	case '"':
		j.quoted = true
	case '{', '[':
		j.open = append(j.open, c)
		return 1 + j.another(), false
	case ',':
		return 1 + j.another(), false
	case '}', ']':
		if len(j.open) > 0 {
			j.open = j.open[:len(j.open)-1]
			return 1, len(j.open) == 0
		}
	}
	return 1, false
}

// another element or member of what is open.
func (j *jsonCost) another() int64 {
	if len(j.open) > 0 && j.open[len(j.open)-1] == '[' {
		return elementCost
	}
	return memberCost
}
