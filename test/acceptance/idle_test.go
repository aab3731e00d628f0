package acceptance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"

	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/test/harness"
)

const (
	// quiet is how long nothing may change once all is ready. Crossplane polls in that time, and so does what is not ready.
	quiet = time.Minute
	// settled is how long nothing has changed when what the last event brought about is over.
	settled = 8 * time.Second
)

// TestIdle: once everything of a tenant is as it was asked for, nothing of it is written any more, by nobody.
func TestIdle(t *testing.T) {
	t.Parallel()
	suite.NewTenant(t, "idle", steading.TenantSpec{Owners: []steading.Subject{{Kind: "User", Name: "ann"}}})
	for name, edit := range map[string]func(*steading.EnvironmentSpec){
		"dev":     func(*steading.EnvironmentSpec) {},
		"night":   func(s *steading.EnvironmentSpec) { s.State = steading.StateStopped },
		"laptop":  func(s *steading.EnvironmentSpec) { s.Type = steading.TypeLocalAgent },
		"refused": func(s *steading.EnvironmentSpec) { s.Size = steading.MustResources("1", "1Gi", "1Gi") },
	} {
		e := harness.Environment("idle", name)
		edit(&e.Spec)
		suite.Create(t, e)
		if name == "refused" {
			suite.WaitFor(t, e, "refused", refused(steading.ReasonBelowFloor))
			continue
		}
		suite.WaitFor(t, e, "ready", harness.Ready)
	}

	before := versions(t, "idle")
	since := time.Now()
	harness.Eventually(t, "everything settles", func(context.Context) error {
		time.Sleep(time.Second)
		now := versions(t, "idle")
		if d := changes(before, now); len(d) > 0 {
			before, since = now, time.Now()
			return errors.New(strings.Join(d, "; "))
		}
		if time.Since(since) < settled {
			return errors.New("not for long enough")
		}
		return nil
	})
	for _, kind := range []string{"Tenant", "XTenant", "Environment", "XEnvironment", "Home", "Placement", "Boundary", "Release", "Ledger", "Namespace", "ResourceQuota", "Deployment"} {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(before)), func(k string) bool { return strings.HasPrefix(k, kind+" ") }) {
			t.Errorf("no %s is looked at", kind)
		}
	}
	time.Sleep(quiet)
	for _, c := range changes(before, versions(t, "idle")) {
		t.Errorf("in %s of doing nothing: %s", quiet, c)
	}
}

// versions are the resource versions of all that a tenant has, leases aside: what is in its namespaces, and what carries its
// name in a label.
func versions(t *testing.T, tenant string) map[string]string {
	t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(suite.Plane.Config())
	if err != nil {
		t.Fatal(err)
	}
	m, err := metadata.NewForConfig(suite.Plane.Config())
	if err != nil {
		t.Fatal(err)
	}
	lists, err := d.ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, l := range lists {
		gv, err := schema.ParseGroupVersion(l.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range l.APIResources {
			// Crossplane writes its events up to minutes after what they tell of, when it has many.
			if !slices.Contains(r.Verbs, "watch") || r.Kind == "Lease" || r.Kind == "Event" {
				continue
			}
			items, err := m.Resource(gv.WithResource(r.Name)).List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
			if err != nil {
				t.Fatalf("cannot list %s: %v", r.Name, err)
			}
			for _, i := range items.Items {
				if belongs(&i, tenant) {
					all[fmt.Sprintf("%s %s/%s", r.Kind, i.Namespace, i.Name)] = i.ResourceVersion
				}
			}
		}
	}
	return all
}

// belongs reports whether an object is a tenant's.
func belongs(o *metav1.PartialObjectMetadata, tenant string) bool {
	l, home := o.Labels, names.TenantNamespace(tenant)
	return o.Namespace == home || strings.HasPrefix(o.Namespace, tenant+"-") || l[names.LabelTenant] == tenant ||
		l["crossplane.io/claim-namespace"] == home || o.Namespace == names.SystemNamespace && o.Name == tenant ||
		l["crossplane.io/claim-namespace"] == names.SystemNamespace && l["crossplane.io/claim-name"] == tenant
}

func changes(before, now map[string]string) []string {
	var out []string
	for k, v := range now {
		switch b, ok := before[k]; {
		case !ok:
			out = append(out, k+" was made")
		case b != v:
			out = append(out, k+" changed")
		}
	}
	for k := range before {
		if _, ok := now[k]; !ok {
			out = append(out, k+" is gone")
		}
	}
	slices.Sort(out)
	return out
}
