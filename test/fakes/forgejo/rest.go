package forgejo

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// prefixes of the four scopes, by the group that a token needs a scope for.
var prefixes = map[string]string{
	"admin":        "/api/v1/admin/actions/runners",
	"organization": "/api/v1/orgs/{org}/actions/runners",
	"user":         "/api/v1/user/actions/runners",
	"repository":   "/api/v1/repos/{owner}/{repo}/actions/runners",
}

// A scoped request is of an owner or a repository, or of the whole instance.
type scoped struct {
	*exchange
	owner *owner
	repo  *repo
}

func (s *Server) handleREST() {
	s.on("GET /api/v1/version", RouteVersion, s.getVersion)
	s.mux.HandleFunc("GET /api/healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"status":"pass"}`)) })
	for group, prefix := range prefixes {
		s.scopedOn("GET "+prefix, RouteRunners, group, 15, s.listRunners)
		s.scopedOn("POST "+prefix, RouteRegister, group, 15, s.registerRunner)
		s.scopedOn("GET "+prefix+"/{id}", RouteRunner, group, 15, s.getRunner)
		s.scopedOn("DELETE "+prefix+"/{id}", RouteDeregister, group, 15, s.deregisterRunner)
		since := int64(13)
		if group == "admin" {
			since = 15
		}
		s.scopedOn("GET "+prefix+"/jobs", RouteJobs, group, since, s.listJobs)
		s.scopedOn("GET "+prefix+"/registration-token", RouteRegistrationToken, group, since, s.registrationToken)
	}
	s.scopedOn("GET /api/v1/user", RouteUser, "user", 0, s.getUser)
	s.scopedOn("GET /api/v1/admin/runners/jobs", RouteJobs, "admin", 13, s.listJobs)
	s.scopedOn("GET /api/v1/admin/runners/registration-token", RouteRegistrationToken, "admin", 13, s.registrationToken)
}

// major version of the server.
func (s *Server) major() int64 {
	text, _, _ := strings.Cut(s.version, ".")
	return number(text, 0)
}

// scopedOn has a route that is there since a version, and for which a token is needed.
func (s *Server) scopedOn(pattern string, route Route, group string, since int64, h func(*scoped) answer) {
	s.on(pattern, route, func(x *exchange) answer {
		defer s.lock()()
		if s.major() < since {
			return noRoute()
		}
		c := &scoped{exchange: x}
		if refused := s.authorize(c, group); refused != nil {
			return *refused
		}
		return h(c)
	})
}

// authorize a request, in Forgejo's order: the token, its scopes, what is asked for, its user's power over that.
func (s *Server) authorize(c *scoped, group string) *answer {
	refuse := func(a answer) *answer { return &a }
	t, bad := s.authenticate(c.Request)
	write := c.Method != http.MethodGet
	switch {
	case bad:
		return refuse(apiError(c.Request, http.StatusUnauthorized, "invalid username, password or token"))
	case t == nil:
		return refuse(apiError(c.Request, http.StatusUnauthorized, "token is required"))
	case !t.allows(group, write):
		right := map[bool]string{false: "read:", true: "write:"}[write]
		return refuse(apiError(c.Request, http.StatusForbidden, fmt.Sprintf("token does not have at least one of required scope(s): [%s%s]", right, group)))
	}
	switch group {
	case "organization":
		return s.authorizeOrganization(c, t.user)
	case "repository":
		return s.authorizeRepository(c, t.user)
	case "user":
		c.owner = t.user
	default:
		if !t.user.admin {
			return refuse(apiError(c.Request, http.StatusForbidden, "user should be the site admin"))
		}
	}
	return nil
}

func (s *Server) authorizeOrganization(c *scoped, u *owner) *answer {
	o := s.owners[c.PathValue("org")]
	var a answer
	switch {
	case o == nil || !o.org:
		a = notFound(c.Request)
	case !u.admin && !slices.Contains(o.by, u.name):
		a = apiError(c.Request, http.StatusForbidden, "Must be an organization owner")
	default:
		c.owner = o
		return nil
	}
	return &a
}

func (s *Server) authorizeRepository(c *scoped, u *owner) *answer {
	r := s.repos[c.PathValue("owner")+"/"+c.PathValue("repo")]
	theirs := r != nil && (u.admin || r.owner == u || slices.Contains(r.owner.by, u.name))
	var a answer
	switch {
	case r == nil || r.private && !theirs:
		a = notFound(c.Request)
	case !theirs:
		a = apiError(c.Request, http.StatusForbidden, "user should be an owner or a collaborator with admin write of a repository")
	default:
		c.repo = r
		return nil
	}
	return &a
}

// authenticate a request. It is bad when it shows what is no token; one that shows nothing is not.
func (s *Server) authenticate(r *http.Request) (t *token, bad bool) {
	kind, value, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	switch strings.ToLower(kind) {
	case "":
		return nil, false
	case "token", "bearer":
	case "basic":
		_, value, _ = r.BasicAuth()
	default:
		return nil, true
	}
	t = s.tokens[value]
	return t, t == nil
}

func (s *Server) getVersion(x *exchange) answer {
	defer s.lock()()
	if _, bad := s.authenticate(x.Request); bad {
		return apiError(x.Request, http.StatusUnauthorized, "invalid username, password or token")
	}
	return jsonAnswer(http.StatusOK, map[string]string{"version": s.version})
}

// getUser tells whose token it is. It takes a token that may read what is the user's.
func (s *Server) getUser(c *scoped) answer {
	u := c.owner
	return jsonAnswer(http.StatusOK, map[string]any{"id": u.id, "login": u.name, "username": u.name, "is_admin": u.admin})
}

// A listedJob is in the list of jobs.
type listedJob struct {
	ID      int64    `json:"id"`
	RunID   int64    `json:"run_id"`
	Attempt int64    `json:"attempt"`
	Handle  string   `json:"handle"`
	RepoID  int64    `json:"repo_id"`
	OwnerID int64    `json:"owner_id"`
	Name    string   `json:"name"`
	Needs   []string `json:"needs"`
	RunsOn  []string `json:"runs_on"`
	TaskID  int64    `json:"task_id"`
	Status  string   `json:"status"`
}

func (s *Server) listJobs(c *scoped) answer {
	query, given := c.URL.Query()["labels"]
	var labels []string
	if given {
		labels = strings.Split(strings.TrimSpace(query[0]), ",")
	}
	blank := len(labels) == 0 || labels[0] == ""
	required := s.major() < 14 || c.fault(FaultLabelsRequired) != nil
	var list []listedJob // Null when there are none.
	for _, j := range s.jobs {
		if j.deleted || j.status != StatusWaiting && j.status != StatusRunning || c.repo != nil && j.repo != c.repo || c.owner != nil && j.repo.owner != c.owner {
			continue
		}
		if all := !given && !required; all || given && blank && !required && len(j.runsOn) == 0 || j.servedBy(labels) {
			list = append(list, j.listed())
		}
	}
	if c.fault(FaultEmpty) != nil {
		list = nil
	}
	return jsonAnswer(http.StatusOK, list)
}

func (j *job) listed() listedJob {
	l := listedJob{
		ID: j.id, RunID: j.run, Attempt: j.attempt, Handle: j.handle, RepoID: j.repo.id, OwnerID: j.repo.owner.id,
		Name: j.name, Needs: j.needs, RunsOn: j.runsOn, Status: j.status,
	}
	if j.task != nil {
		l.TaskID = j.task.id
	}
	return l
}

// A listedRunner is a runner as the API has it.
type listedRunner struct {
	ID          int64    `json:"id"`
	UUID        string   `json:"uuid"`
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Version     string   `json:"version"`
	OwnerID     int64    `json:"owner_id"`
	RepoID      int64    `json:"repo_id"`
	Labels      []string `json:"labels"`
	Status      string   `json:"status"`
	Ephemeral   bool     `json:"ephemeral"`
}

func (s *Server) listed(r *runner) listedRunner {
	l := listedRunner{
		ID: r.id, UUID: r.uuid, Name: r.name, Description: r.description, Version: r.version, Labels: r.labels,
		Status: s.status(r), Ephemeral: r.ephemeral,
	}
	if r.owner != nil {
		l.OwnerID = r.owner.id
	}
	if r.repo != nil {
		l.RepoID = r.repo.id
	}
	return l
}

func (s *Server) listRunners(c *scoped) answer {
	visible, _ := strconv.ParseBool(c.URL.Query().Get("visible"))
	all := slices.DeleteFunc(s.live(), func(r *runner) bool {
		if visible {
			return !r.visibleTo(c.owner, c.repo)
		}
		return !r.editableBy(c.owner, c.repo)
	})
	// What was heard of last is first, so that the order changes while it is read.
	slices.SortStableFunc(all, func(a, b *runner) int {
		return cmp.Or(b.lastOnline.Compare(a.lastOnline), cmp.Compare(a.id, b.id))
	})
	page, from, to := s.paging(c, len(all))
	list := []listedRunner{}
	for _, r := range all[from:to] {
		for range c.copies(r) {
			list = append(list, s.listed(r))
		}
	}
	a := jsonAnswer(http.StatusOK, list)
	total := len(all)
	if c.fault(FaultWrongTotal) != nil {
		total = 1
	} else if to < total {
		a.header.Add("Link", link(c.Request, page+1, "next"))
	}
	a.header.Set("X-Total-Count", strconv.Itoa(total))
	return a
}

// paging of a list: which page it is, counted from 1, and what is on it.
func (s *Server) paging(c *scoped, total int) (page, from, to int) {
	size := int(number(c.URL.Query().Get("limit"), 0))
	if size <= 0 {
		size = 30
	}
	size = min(size, s.perPage)
	page = max(int(number(c.URL.Query().Get("page"), 1)), 1)
	if c.fault(FaultSamePage) != nil {
		page = 1
	}
	from = min((page-1)*size, total)
	return page, from, min(from+size, total)
}

// copies of a runner that are in the list.
func (c *scoped) copies(r *runner) int {
	for _, f := range c.faults {
		if f.Kind == FaultEmpty || f.Kind == FaultOmit && f.Runner == r.id {
			return 0
		}
	}
	if c.fault(FaultDuplicate) != nil {
		return 2
	}
	return 1
}

func (s *Server) registerRunner(c *scoped) answer {
	var body struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Ephemeral   bool   `json:"ephemeral"`
	}
	if err := json.Unmarshal(c.body, &body); err != nil {
		return apiError(c.Request, http.StatusUnprocessableEntity, err.Error())
	}
	if body.Name == "" {
		return apiError(c.Request, http.StatusUnprocessableEntity, "[Name]: Required")
	}
	r := s.register(body.Name, body.Description, body.Ephemeral && c.fault(FaultIgnoreEphemeral) == nil, c.owner, c.repo)
	return jsonAnswer(http.StatusCreated, map[string]any{"id": r.id, "uuid": r.uuid, "token": r.token})
}

func (s *Server) getRunner(c *scoped) answer {
	r := s.runner(number(c.PathValue("id"), 0))
	if r == nil || !r.visibleTo(c.owner, c.repo) {
		return apiError(c.Request, http.StatusNotFound, fmt.Sprintf("runner with ID %s: resource does not exist", c.PathValue("id")))
	}
	return jsonAnswer(http.StatusOK, s.listed(r))
}

func (s *Server) deregisterRunner(c *scoped) answer {
	r := s.runner(number(c.PathValue("id"), 0))
	switch {
	case r == nil || !r.visibleTo(c.owner, c.repo):
		return apiError(c.Request, http.StatusNotFound, fmt.Sprintf("runner with ID %s: resource does not exist", c.PathValue("id")))
	case !r.editableBy(c.owner, c.repo):
		return apiError(c.Request, http.StatusNotFound, "No permission to delete this runner")
	}
	s.deleteRunner(r, "api")
	return answer{status: http.StatusNoContent}
}

// registrationToken is deprecated, and taken by no procedure here.
func (s *Server) registrationToken(*scoped) answer {
	return jsonAnswer(http.StatusOK, map[string]string{"token": newToken()})
}
