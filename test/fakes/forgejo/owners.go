package forgejo

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// An owner of repositories: a user or an organization, whose ids are of one row.
type owner struct {
	id    int64
	name  string
	org   bool
	admin bool     // Of users.
	by    []string // The owners of an organization.
}

type repo struct {
	id      int64
	owner   *owner
	name    string
	private bool
}

func (r *repo) fullName() string { return r.owner.name + "/" + r.name }

// A token is of a user, and has scopes: all, or read:GROUP and write:GROUP.
type token struct {
	user   *owner
	scopes []string
}

// allows reports whether the token may read or write in a group of routes. What may write may read.
func (t *token) allows(group string, write bool) bool {
	if slices.Contains(t.scopes, "all") || slices.Contains(t.scopes, "write:"+group) {
		return true
	}
	return !write && slices.Contains(t.scopes, "read:"+group)
}

// AddUser adds a user, who may administrate the server.
func (s *Server) AddUser(name string, admin bool) error {
	defer s.lock()()
	return s.addOwner(&owner{name: name, admin: admin})
}

// AddOrganization adds an organization that the users own.
func (s *Server) AddOrganization(name string, users ...string) error {
	defer s.lock()()
	for _, u := range users {
		if o := s.owners[u]; o == nil || o.org {
			return fmt.Errorf("there is no user %q", u)
		}
	}
	return s.addOwner(&owner{name: name, org: true, by: users})
}

func (s *Server) addOwner(o *owner) error {
	if o.name == "" || strings.Contains(o.name, "/") || s.owners[o.name] != nil {
		return fmt.Errorf("%q is no name, or taken", o.name)
	}
	o.id = s.nextID()
	s.owners[o.name] = o
	return nil
}

// AddRepository adds a repository of a user or an organization. A private one is hidden from others.
func (s *Server) AddRepository(owner, name string, private bool) error {
	defer s.lock()()
	o := s.owners[owner]
	if o == nil {
		return fmt.Errorf("there is no user or organization %q", owner)
	}
	r := &repo{owner: o, name: name, private: private}
	if name == "" || strings.Contains(name, "/") || s.repos[r.fullName()] != nil {
		return fmt.Errorf("%q is no name, or taken", name)
	}
	r.id = s.nextID()
	s.repos[r.fullName()] = r
	return nil
}

// AddToken makes a token of a user with scopes: all, or read: and write: of admin, organization, repository and user.
func (s *Server) AddToken(user string, scopes ...string) (string, error) {
	defer s.lock()()
	value := newToken()
	return value, s.addToken(value, user, scopes)
}

// SetToken is AddToken with a value that is known before, as of a server in a container.
func (s *Server) SetToken(value, user string, scopes ...string) error {
	defer s.lock()()
	return s.addToken(value, user, scopes)
}

func (s *Server) addToken(value, user string, scopes []string) error {
	u := s.owners[user]
	if u == nil || u.org {
		return fmt.Errorf("there is no user %q", user)
	}
	if value == "" {
		return fmt.Errorf("the token of %q is empty", user)
	}
	for _, scope := range scopes {
		right, group, _ := strings.Cut(scope, ":")
		known := prefixes[group] != "" && (right == "read" || right == "write")
		if scope != "all" && !known {
			return fmt.Errorf("there is no scope %q", scope)
		}
	}
	s.tokens[value] = &token{user: u, scopes: scopes}
	return nil
}

// RevokeToken takes a token back.
func (s *Server) RevokeToken(value string) {
	defer s.lock()()
	delete(s.tokens, value)
}

// DeleteRepository deletes a repository, its jobs, its runners, and the ephemeral ones that ran its jobs.
func (s *Server) DeleteRepository(owner, name string) error {
	defer s.lock()()
	r := s.repos[owner+"/"+name]
	if r == nil {
		return fmt.Errorf("there is no repository %s/%s", owner, name)
	}
	s.deleteRepository(r)
	return nil
}

func (s *Server) deleteRepository(r *repo) {
	for _, j := range s.jobs {
		if j.repo == r && !j.deleted {
			s.stop(j, StatusCancelled, "repository deleted")
			j.deleted = true
		}
	}
	for _, x := range s.runners {
		if x.repo == r {
			s.deleteRunner(x, "repository deleted")
		}
	}
	delete(s.repos, r.fullName())
}

// DeleteOwner deletes a user or an organization, with all that is theirs.
func (s *Server) DeleteOwner(name string) error {
	defer s.lock()()
	o := s.owners[name]
	if o == nil {
		return fmt.Errorf("there is no user or organization %q", name)
	}
	for _, r := range s.repos {
		if r.owner == o {
			s.deleteRepository(r)
		}
	}
	for _, x := range s.runners {
		if x.owner == o {
			s.deleteRunner(x, "owner deleted")
		}
	}
	for value, t := range s.tokens {
		if t.user == o {
			delete(s.tokens, value)
		}
	}
	delete(s.owners, name)
	return nil
}

// newToken is 40 hexadecimal digits, as Forgejo's are.
func newToken() string {
	b := make([]byte, 20)
	_, _ = rand.Read(b) // It never fails.
	return hex.EncodeToString(b)
}
