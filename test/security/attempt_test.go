package security

import (
	"fmt"
	"strings"

	kerrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/steading-dev/steading/test/harness/try"
)

// rbac is the layer that knows who may do what to which kind. The others are admission policies, by name.
const rbac = "RBAC"

// An attempt to do what somebody may not.
type attempt struct {
	reason string
	as     who
	do     try.Deed
	// by names the layers that refuse it, the first one asked first. With all of them taken away it is let through.
	by []string
}

// who attempts.
type who string

const (
	// owner of tenant esc, by a client certificate.
	owner who = "owner"
	// deployer of environment dev of tenant esc, as which its charts are deployed.
	deployer who = "deployer"
	// onEdge is the deployer of environment far of tenant esc, on the edge.
	onEdge who = "deployer on the edge"
)

// last layer that refuses an attempt.
func (a attempt) last() string { return a.by[len(a.by)-1] }

// refusedBy names the layer that an error comes from, "" for none.
func refusedBy(err error) string {
	if err == nil {
		return ""
	}
	_, policy, byPolicy := strings.Cut(err.Error(), "ValidatingAdmissionPolicy '")
	switch {
	case byPolicy:
		policy, _, _ = strings.Cut(policy, ".steading.dev'")
		return policy
	case kerrors.IsForbidden(err) && (strings.Contains(err.Error(), ` is forbidden: User "`) || strings.Contains(err.Error(), "attempting to grant RBAC permissions not currently held")):
		return rbac
	default:
		return "other: " + err.Error()
	}
}

// The words of the attempts.
var (
	create, remove, read, list, tokenOf = try.Create, try.Remove, try.Read, try.List, try.Token
	change, changeStatus                = try.Change, try.ChangeStatus
)

// want checks which layer refused.
func (a attempt) want(err error, layer string) error {
	got := refusedBy(err)
	if got == layer {
		return nil
	}
	say := func(s string) string {
		if s == "" {
			return "let through"
		}
		return "refused by " + s
	}
	return fmt.Errorf("%s was %s, want %s (%s)", a.as, say(got), say(layer), a.reason)
}
