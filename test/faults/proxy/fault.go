package proxy

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
)

// A Fault happens once, at one request.
type Fault struct {
	// Match says which requests count. Nil: all that change something.
	Match func(Request) bool
	// At is the number of the request that it happens at, the first being 1.
	At int
	// Before the API server gets to see the request, or else after it has answered and before the client hears of it.
	Before bool
	// Do is what happens; the request waits until it returns. Nil: nothing.
	Do func(Request)
	// Cut drops the connection: before, the request is never passed on; after, its answer is not.
	Cut bool

	count int
}

// strike does what the fault is, and drops the request, or its answer, if the fault cuts it.
func (f *Fault) strike(q Request) {
	if f.Do != nil {
		f.Do(q)
	}
	if f.Cut {
		panic(http.ErrAbortHandler)
	}
}

// A Request that changes something.
type Request struct {
	// User by the token's own word: system:serviceaccount:<namespace>:<name>. Empty without a token that says.
	User string
	// Method of HTTP.
	Method string
	// Path of the object, or of the list it is added to.
	Path string

	body []byte
}

func (r Request) String() string { return r.Method + " " + r.Path + " by " + r.User }

// About reports whether the path or the body of the request has this word.
func (r Request) About(word string) bool {
	return strings.Contains(r.Path, word) || bytes.Contains(r.body, []byte(word))
}

// user is whom the token is for. It is not verified: that is the API server's part.
func user(r *http.Request) string {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return ""
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ""
	}
	claims := struct {
		Subject string `json:"sub"`
	}{}
	if err := json.Unmarshal(raw, &claims); err != nil {
		return ""
	}
	return claims.Subject
}
