package cluster

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// objects are those that an API server holds, by path, and whether they may be written.
type objects struct {
	mu      sync.Mutex
	byPath  map[string]*unstructured.Unstructured
	version int
	refuse  bool
	// overtaken is whether somebody else makes the next object that is made, a moment before.
	overtaken bool
	writes    int
}

func (o *objects) serve(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	name := path.Base(r.URL.Path)
	if r.Method != http.MethodGet && o.refuse {
		status(w, http.StatusForbidden, metav1.StatusReasonForbidden, name, fmt.Sprintf("User %q cannot %s %s", "edge-admin", strings.ToLower(r.Method), name))
		return
	}
	if r.Method != http.MethodGet {
		o.writes++
	}
	switch have := o.byPath[r.URL.Path]; {
	case r.Method == http.MethodPost:
		u := decode(r)
		at := r.URL.Path + "/" + u.GetName()
		if o.overtaken {
			o.overtaken = false
			theirs := u.DeepCopy()
			theirs.SetAnnotations(nil)
			o.put(at, theirs)
		}
		if o.byPath[at] != nil {
			status(w, http.StatusConflict, metav1.StatusReasonAlreadyExists, name, "already exists")
			return
		}
		o.put(at, u)
		reply(w, http.StatusCreated, u.Object)
	case have == nil:
		status(w, http.StatusNotFound, metav1.StatusReasonNotFound, name, name+" not found")
	case r.Method == http.MethodPut:
		u := decode(r)
		if u.GetResourceVersion() != have.GetResourceVersion() {
			status(w, http.StatusConflict, metav1.StatusReasonConflict, name, "changed")
			return
		}
		o.put(r.URL.Path, u)
		reply(w, http.StatusOK, u.Object)
	case r.Method == http.MethodDelete:
		delete(o.byPath, r.URL.Path)
		reply(w, http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Success"})
	default:
		reply(w, http.StatusOK, have.Object)
	}
}

func (o *objects) put(at string, u *unstructured.Unstructured) {
	o.version++
	u.SetResourceVersion(strconv.Itoa(o.version))
	u.SetUID("uid")
	o.byPath[at] = u
}

// named is the object of that name, nil if there is none.
func (o *objects) named(name string) *unstructured.Unstructured {
	o.mu.Lock()
	defer o.mu.Unlock()
	for at, u := range o.byPath {
		if path.Base(at) == name && !strings.Contains(at, "policybindings") {
			return u.DeepCopy()
		}
	}
	return nil
}

// change the object of that name.
func (o *objects) change(name string, edit func(*unstructured.Unstructured)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for at, u := range o.byPath {
		if path.Base(at) == name && !strings.Contains(at, "policybindings") {
			edit(u)
			o.put(at, u)
		}
	}
}

func (o *objects) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.byPath)
}

func decode(r *http.Request) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	_ = json.NewDecoder(r.Body).Decode(&u.Object)
	return u
}

func status(w http.ResponseWriter, code int, reason metav1.StatusReason, name, message string) {
	reply(w, code, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: int32(code),
		Reason: reason, Message: message, Details: &metav1.StatusDetails{Name: name}})
}
