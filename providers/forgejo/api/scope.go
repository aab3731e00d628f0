package api

import (
	"errors"
	"fmt"
	"net/url"
)

// A Scope is whose runners and jobs are meant. Scopes are comparable. The zero Scope is none, and [New] refuses it.
type Scope struct {
	group       group
	owner, name string
}

// A group of routes, for each of which a token needs a scope of its own.
type group string

const (
	admin        group = "admin"
	organization group = "organization"
	user         group = "user"
	repository   group = "repository"
)

// Instance is all of a Forgejo: the token has to be of an administrator.
func Instance() Scope { return Scope{group: admin} }

// Organization is one organization, of which the token's user has to be an owner.
func Organization(name string) Scope { return Scope{group: organization, owner: name} }

// User is the user whose token it is.
func User() Scope { return Scope{group: user} }

// Repository is one repository, of which the token's user has to be an administrator.
func Repository(owner, name string) Scope {
	return Scope{group: repository, owner: owner, name: name}
}

// String names the scope in a sentence.
func (s Scope) String() string {
	switch s.group {
	case admin:
		return "the instance"
	case organization:
		return "organization " + s.owner
	case user:
		return "the token's user"
	case repository:
		return "repository " + s.owner + "/" + s.name
	default:
		return "no scope"
	}
}

// prefix of the routes.
func (s Scope) prefix() string {
	switch s.group {
	case organization:
		return "/orgs/" + url.PathEscape(s.owner) + "/actions/runners"
	case user:
		return "/user/actions/runners"
	case repository:
		return "/repos/" + url.PathEscape(s.owner) + "/" + url.PathEscape(s.name) + "/actions/runners"
	default:
		return "/admin/actions/runners"
	}
}

// permission is what a token needs, and who has to have made it. It is the same for all calls: one that may read only sees the
// queue, and registers nobody.
func (s Scope) permission() string {
	const right = "write:"
	switch s.group {
	case organization:
		return right + string(s.group) + ", of an owner of the organization"
	case user:
		return right + string(s.group)
	case repository:
		return right + string(s.group) + ", of an administrator of the repository"
	default:
		return right + string(s.group) + ", of an administrator of Forgejo"
	}
}

// mayBeAbsent reports whether the scope is a thing that can be deleted.
func (s Scope) mayBeAbsent() bool { return s.group == organization || s.group == repository }

func (s Scope) valid() error {
	switch s.group {
	case admin, user:
		return nil
	case organization:
		return segment("organization", s.owner)
	case repository:
		return errors.Join(segment("owner", s.owner), segment("repository", s.name))
	default:
		return errors.New("it has no scope: one of the instance, an organization, the user, a repository")
	}
}

// segment of a path, which must not become another path.
func segment(what, name string) error {
	if name == "" || name == "." || name == ".." {
		return fmt.Errorf("%q is not the name of any %s", name, what)
	}
	return nil
}
