package forgejo

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"
)

// handleControl has a test that is elsewhere do what the methods do. Bodies and answers are JSON, in the form of the methods'
// types; what cannot be done is 400 with a message.
//
//	POST   /fake/users          {name, admin}
//	POST   /fake/organizations  {name, owners}
//	POST   /fake/repositories   {owner, name, private}
//	POST   /fake/tokens         {user, scopes, value}    -> {value}; without a value one is made
//	DELETE /fake/tokens/{value}
//	DELETE /fake/owners/{name}
//	DELETE /fake/repositories/{owner}/{name}
//	POST   /fake/jobs           NewJob and count         -> [id]
//	GET    /fake/jobs, /fake/jobs/{id}, /fake/jobs/{id}/log
//	POST   /fake/jobs/{id}/cancel, /fake/jobs/{id}/rerun, /fake/jobs/{id}/unblock
//	GET    /fake/registrations
//	DELETE /fake/runners/{id}
//	POST   /fake/offline        {olderThan: 1h}
//	GET    /fake/counts                                  -> {calls, peak}
//	DELETE /fake/counts
//	GET    /fake/faults
//	POST   /fake/faults         Fault
//	DELETE /fake/faults         ?route=&kind=
//	PUT    /fake/settings       {version, maxResponseItems}
func (s *Server) handleControl() {
	s.controlOwners()
	s.controlJobs()
	s.controlRunners()
	s.controlFaults()
}

// control a pattern by what takes a body, if there is one, and gives an answer.
func control[Req any](s *Server, pattern string, do func(*http.Request, Req) (any, error)) {
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		var req Req
		err := json.NewDecoder(io.LimitReader(r.Body, maxBody)).Decode(&req)
		var res any
		if err == nil || errors.Is(err, io.EOF) {
			res, err = do(r, req)
		}
		a := jsonAnswer(http.StatusOK, res)
		if err != nil {
			a = jsonAnswer(http.StatusBadRequest, map[string]string{"message": err.Error()})
		}
		w.Header().Set("Content-Type", a.header.Get("Content-Type"))
		w.WriteHeader(a.status)
		_, _ = w.Write(a.body) // Whoever asked may be gone.
	})
}

// none is a body without fields.
type none struct{}

func (s *Server) controlOwners() {
	control(s, "POST /fake/users", func(_ *http.Request, b struct {
		Name  string `json:"name"`
		Admin bool   `json:"admin"`
	},
	) (any, error) {
		return nil, s.AddUser(b.Name, b.Admin)
	})
	control(s, "POST /fake/organizations", func(_ *http.Request, b struct {
		Name   string   `json:"name"`
		Owners []string `json:"owners"`
	},
	) (any, error) {
		return nil, s.AddOrganization(b.Name, b.Owners...)
	})
	control(s, "POST /fake/repositories", func(_ *http.Request, b struct {
		Owner   string `json:"owner"`
		Name    string `json:"name"`
		Private bool   `json:"private"`
	},
	) (any, error) {
		return nil, s.AddRepository(b.Owner, b.Name, b.Private)
	})
	control(s, "POST /fake/tokens", func(_ *http.Request, b struct {
		User   string   `json:"user"`
		Scopes []string `json:"scopes"`
		Value  string   `json:"value"`
	},
	) (any, error) {
		if b.Value == "" {
			b.Value = newToken()
		}
		return map[string]string{"value": b.Value}, s.SetToken(b.Value, b.User, b.Scopes...)
	})
	control(s, "DELETE /fake/tokens/{value}", func(r *http.Request, _ none) (any, error) {
		s.RevokeToken(r.PathValue("value"))
		return none{}, nil
	})
	control(s, "DELETE /fake/owners/{name}", func(r *http.Request, _ none) (any, error) {
		return nil, s.DeleteOwner(r.PathValue("name"))
	})
	control(s, "DELETE /fake/repositories/{owner}/{name}", func(r *http.Request, _ none) (any, error) {
		return nil, s.DeleteRepository(r.PathValue("owner"), r.PathValue("name"))
	})
}

func (s *Server) controlJobs() {
	control(s, "POST /fake/jobs", func(_ *http.Request, b struct {
		NewJob
		Count int `json:"count"`
	},
	) (any, error) {
		var ids []int64
		for range max(b.Count, 1) {
			id, err := s.Queue(b.NewJob)
			if err != nil {
				return nil, err
			}
			ids = append(ids, id)
		}
		return ids, nil
	})
	control(s, "GET /fake/jobs", func(*http.Request, none) (any, error) { return s.Jobs(), nil })
	for pattern, do := range map[string]func(int64) (any, error){
		"GET /fake/jobs/{id}":          func(id int64) (any, error) { return s.Job(id) },
		"GET /fake/jobs/{id}/log":      func(id int64) (any, error) { return s.Log(id) },
		"POST /fake/jobs/{id}/cancel":  func(id int64) (any, error) { return nil, s.Cancel(id) },
		"POST /fake/jobs/{id}/rerun":   func(id int64) (any, error) { return nil, s.Rerun(id) },
		"POST /fake/jobs/{id}/unblock": func(id int64) (any, error) { return nil, s.Unblock(id) },
		"DELETE /fake/runners/{id}":    func(id int64) (any, error) { return nil, s.DeleteRunner(id) },
	} {
		control(s, pattern, func(r *http.Request, _ none) (any, error) {
			id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
			if err != nil {
				return nil, err
			}
			return do(id)
		})
	}
}

func (s *Server) controlRunners() {
	control(s, "GET /fake/registrations", func(*http.Request, none) (any, error) { return s.Registrations(), nil })
	control(s, "POST /fake/offline", func(_ *http.Request, b struct {
		OlderThan string `json:"olderThan"`
	},
	) (any, error) {
		age, err := time.ParseDuration(b.OlderThan)
		if err != nil {
			return nil, err
		}
		s.CleanUpOfflineRunners(age)
		return none{}, nil
	})
	control(s, "GET /fake/counts", func(*http.Request, none) (any, error) {
		return map[string]any{"calls": s.Calls(), "peak": s.PeakRegistrations()}, nil
	})
	control(s, "DELETE /fake/counts", func(*http.Request, none) (any, error) {
		s.ResetCounts()
		return none{}, nil
	})
}

func (s *Server) controlFaults() {
	control(s, "GET /fake/faults", func(*http.Request, none) (any, error) { return s.Faults(), nil })
	control(s, "POST /fake/faults", func(_ *http.Request, f Fault) (any, error) { return nil, s.SetFault(f) })
	control(s, "DELETE /fake/faults", func(r *http.Request, _ none) (any, error) {
		q := r.URL.Query()
		s.UnsetFaults(Route(q.Get("route")), FaultKind(q.Get("kind")))
		return none{}, nil
	})
	control(s, "PUT /fake/settings", func(_ *http.Request, b struct {
		Version          string `json:"version"`
		MaxResponseItems int    `json:"maxResponseItems"`
	},
	) (any, error) {
		if b.Version != "" {
			s.SetVersion(b.Version)
		}
		if b.MaxResponseItems > 0 {
			s.SetMaxResponseItems(b.MaxResponseItems)
		}
		return none{}, nil
	})
}
