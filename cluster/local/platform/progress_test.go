package platform

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// listening is a platform that was begun an hour ago, and what it said.
func listening(t *testing.T) (*Platform, *[]string) {
	t.Helper()
	said := []string{}
	p, err := newPlatform(t.Context(), Options{Dir: t.TempDir(), Source: t.TempDir(), Progress: func(line string) { said = append(said, line) }})
	if err != nil {
		t.Fatal(err)
	}
	p.began.Store(new(time.Now().Add(-time.Hour)))
	return p, &said
}

func TestTimeCountsFromTheLastInstall(t *testing.T) {
	p, said := listening(t)
	p.say("started")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Install(over); err == nil {
		t.Fatal("it installs an empty folder")
	}
	p.say("installed")
	if first, last := (*said)[0], (*said)[len(*said)-1]; !strings.HasPrefix(first, "36") || strings.HasPrefix(last, "36") {
		t.Errorf("it said %q first, and %q last", first, last)
	}
}

func TestWhatIsNotAppliedYetIsSaidOnce(t *testing.T) {
	p, said := listening(t)
	tenant := Claim{GVK: schema.GroupVersionKind{Kind: "Tenant"}, Name: "acme", Reason: "Creating"}
	waits := Claim{GVK: schema.GroupVersionKind{Kind: "Environment"}, Namespace: "tenant-acme", Name: "dev", Reason: reasonNotApplied}
	known, obstacle := map[string]string{}, errors.New("no namespace tenant-acme")
	for range 3 {
		p.sayChanges([]Claim{tenant, waits}, obstacle, known)
	}
	tenant.Ready, tenant.Reason, waits.Reason = true, "", "Creating"
	p.sayChanges([]Claim{tenant, waits}, nil, known)
	for i := range *said {
		_, (*said)[i], _ = strings.Cut((*said)[i], "s  ")
	}
	want := []string{"waiting: no namespace tenant-acme", "Tenant /acme: Creating", "Tenant /acme: ready", "Environment tenant-acme/dev: Creating"}
	if !slices.Equal(*said, want) {
		t.Errorf("it said %q, want %q", *said, want)
	}
}
