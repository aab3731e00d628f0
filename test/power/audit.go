// Package power judges what ServiceAccounts asked API servers for, as their audit logs tell, by the table of what they may.
package power

import (
	"bufio"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A Request that a ServiceAccount made, as the API server logs it.
type Request struct {
	Verb       string `json:"verb"`
	RequestURI string `json:"requestURI"`
	User       struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
		APIGroup    string `json:"apiGroup"`
	} `json:"objectRef"`
	Annotations map[string]string `json:"annotations"`
}

// Requests reads an audit log.
func Requests(t *testing.T, path string) []Request {
	t.Helper()
	f, err := os.Open(path) //nolint:gosec // What the caller names.
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // It was only read.
	var all []Request
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var r Request
		// The last line may be half written.
		if json.Unmarshal(s.Bytes(), &r) == nil {
			all = append(all, r)
		}
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// Account is namespace and name of who asked.
func (r Request) Account() (namespace, name string) {
	parts := strings.Split(r.User.Username, ":")
	if len(parts) != 4 {
		return "", r.User.Username
	}
	return parts[2], parts[3]
}

// Kind is the resource with its subresource.
func (r Request) Kind() string {
	if r.ObjectRef.Subresource == "" {
		return r.ObjectRef.Resource
	}
	return r.ObjectRef.Resource + "/" + r.ObjectRef.Subresource
}

// AllowedBy a role, by kind and name like in the table; "" if it was forbidden.
func (r Request) AllowedBy() string {
	m := grant.FindStringSubmatch(r.Annotations["authorization.k8s.io/reason"])
	if m == nil || r.Annotations["authorization.k8s.io/decision"] != "allow" {
		return ""
	}
	binding, kind, name := m[1], m[2], m[3]
	if kind == "Role" {
		// A RoleBinding is told as name/namespace.
		_, namespace, _ := strings.Cut(binding, "/")
		return "Role " + namespace + "/" + name
	}
	return "ClusterRole " + name
}

var grant = regexp.MustCompile(`allowed by (?:Cluster)?RoleBinding "([^"]+)" of (ClusterRole|Role) "([^"]+)"`)

// anybody has these roles: what they give tells nobody anything.
var anybody = []string{"ClusterRole system:discovery", "ClusterRole system:basic-user", "ClusterRole system:public-info-viewer"}

// Covers reports whether a row is about what a request asks for, wherever it holds.
func (r Row) Covers(q Request) bool {
	return r.Group == q.ObjectRef.APIGroup && (r.Resource == q.Kind() || r.Resource == "*") &&
		(len(r.Names) == 0 || slices.Contains(r.Names, q.ObjectRef.Name)) && slices.Contains(r.All(), q.Verb)
}
