package security

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"github.com/steading-dev/steading/cluster/local"
)

// fewest kinds that can be listed on a plane, and processes and logs that there are: less means that the search is broken.
const (
	fewestKinds     = 40
	fewestProcesses = 10
	fewestLogs      = 10
)

// A needle is a secret value in every form that is looked for.
type needle struct {
	name  string
	forms [][]byte
}

// shortest value that is looked for: what is shorter is found by chance.
const shortest = 16

// needleOf a value: as it is, and in base64 of the two alphabets as it looks within anything that it is a part of.
func needleOf(t *testing.T, name, value string) needle {
	t.Helper()
	if len(value) < shortest {
		t.Fatalf("%s has %d characters; at least %d are needed to look for it", name, len(value), shortest)
	}
	n := needle{name: name, forms: [][]byte{[]byte(value)}}
	for skip := range 3 {
		// Three bytes are four characters. What does not fill them depends on what is around it.
		whole := value[skip : skip+(len(value)-skip)/3*3]
		for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			n.forms = append(n.forms, []byte(e.EncodeToString([]byte(whole))))
		}
	}
	return n
}

// needlesOfToken are those of a JSON web token: its signature, without which it is of no use.
func needlesOfToken(t *testing.T, name, token string) []needle {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("%s is no JSON web token", name)
	}
	return []needle{needleOf(t, name, parts[2])}
}

// needlesOfKey are those of a private key: a line of its PEM, and the key itself.
func needlesOfKey(t *testing.T, name string, key []byte) []needle {
	t.Helper()
	block, _ := pem.Decode(key)
	lines := strings.Split(strings.TrimSpace(string(key)), "\n")
	if block == nil || len(lines) < 4 {
		t.Fatalf("%s is no key in PEM", name)
	}
	return []needle{needleOf(t, name+" (PEM)", lines[2]), needleOf(t, name+" (DER)", string(block.Bytes))}
}

// random is a value that nothing else contains.
func random() string { return "planted-" + rand.Text() + rand.Text() }

// A place where a secret was found.
type place struct{ needle, where string }

func (p place) String() string { return p.needle + " is in " + p.where }

// search looks for needles wherever somebody may look who may not see Secrets.
func search(t *testing.T, needles []needle) []place {
	t.Helper()
	var found []place
	look := func(where string, hay []byte) {
		for _, n := range needles {
			if slices.ContainsFunc(n.forms, func(f []byte) bool { return bytes.Contains(hay, f) }) {
				found = append(found, place{n.name, where})
			}
		}
	}
	for name, p := range map[string]*local.Plane{"the control plane": suite.Plane, "the edge": suite.Edge} {
		objects(t, p, func(what string, raw []byte) { look(what+" on "+name, raw) })
	}
	logs(t, look)
	processes(t, look)
	return found
}

// objects of all kinds of a plane that can be listed, but Secrets.
func objects(t *testing.T, p *local.Plane, each func(what string, raw []byte)) {
	t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(p.Config())
	if err != nil {
		t.Fatal(err)
	}
	c, err := dynamic.NewForConfig(p.Config())
	if err != nil {
		t.Fatal(err)
	}
	lists, err := d.ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	kinds := 0
	for _, l := range lists {
		gv, err := schema.ParseGroupVersion(l.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range l.APIResources {
			if !slices.Contains(r.Verbs, "list") || gv.Group == "" && r.Kind == "Secret" {
				continue
			}
			items, err := c.Resource(gv.WithResource(r.Name)).List(t.Context(), metav1.ListOptions{})
			if kerrors.IsNotFound(err) || kerrors.IsMethodNotSupported(err) {
				continue // The kind went meanwhile.
			}
			if err != nil {
				t.Fatalf("cannot list %s: %v", r.Name, err)
			}
			kinds++
			for _, i := range items.Items {
				raw, err := json.Marshal(i.Object)
				if err != nil {
					t.Fatal(err)
				}
				each(fmt.Sprintf("%s %s/%s", r.Kind, i.GetNamespace(), i.GetName()), raw)
			}
		}
	}
	if kinds < fewestKinds {
		t.Errorf("%d kinds were searched, so this shows nothing", kinds)
	}
}

// logs of all processes, of the API servers' auditing, and of the registry.
func logs(t *testing.T, each func(what string, raw []byte)) {
	t.Helper()
	var paths []string
	for _, p := range []*local.Plane{suite.Plane, suite.Edge} {
		for _, c := range p.Supervisor.Components() {
			paths = append(paths, p.Supervisor.Log(c))
		}
		paths = append(paths, p.AuditLog())
	}
	paths = append(paths, filepath.Join(filepath.Dir(suite.Plane.Dir()), "registry", "registry.log"))
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		each("log "+path, raw)
	}
	if len(paths) < fewestLogs {
		t.Errorf("%d logs were searched, so this shows nothing", len(paths))
	}
}

// processes that this one started, and those that they did: how they were called, and with which environment.
func processes(t *testing.T, each func(what string, raw []byte)) {
	t.Helper()
	pids := descendants(t)
	for _, pid := range pids {
		for _, file := range []string{"cmdline", "environ"} {
			raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), file))
			if err != nil {
				continue // It ended meanwhile.
			}
			name, _, _ := bytes.Cut(raw, []byte{0})
			each(fmt.Sprintf("%s of process %d, %s", file, pid, filepath.Base(string(name))), raw)
		}
	}
	if len(pids) < fewestProcesses {
		t.Errorf("%d processes were searched, so this shows nothing", len(pids))
	}
}

// descendants of this process, itself among them.
func descendants(t *testing.T) []int {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	children := map[int][]int{}
	for _, path := range stats {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue // It ended meanwhile.
		}
		// The name is in parentheses and may contain anything.
		fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		parent, _ := strconv.Atoi(fields[1])
		children[parent] = append(children[parent], pid)
	}
	pids := []int{os.Getpid()}
	for i := 0; i < len(pids); i++ {
		pids = append(pids, children[pids[i]]...)
	}
	return pids
}
