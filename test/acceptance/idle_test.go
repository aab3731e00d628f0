package acceptance

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/test/harness"
	"github.com/steading-dev/steading/test/versions"
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

	before := harness.Settled(t, settled, func() map[string]string { return ofTenant(t, "idle") })
	for _, kind := range []string{"Tenant", "XTenant", "Environment", "XEnvironment", "Home", "Placement", "Boundary", "Release", "Ledger", "Namespace", "ResourceQuota", "Deployment"} {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(before)), func(k string) bool { return strings.HasPrefix(k, kind+" ") }) {
			t.Errorf("no %s is looked at", kind)
		}
	}
	time.Sleep(quiet)
	for _, c := range versions.Changes(before, ofTenant(t, "idle")) {
		t.Errorf("in %s of doing nothing: %s", quiet, c)
	}
}

// ofTenant are the resource versions of all that a tenant has: what is in its namespaces, and what carries its name in a label.
func ofTenant(t *testing.T, tenant string) map[string]string {
	t.Helper()
	all, err := versions.Of(t.Context(), suite.Plane.Config(), func(_ schema.GroupKind, o metav1.Object) bool { return belongs(o, tenant) })
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// belongs reports whether an object is a tenant's.
func belongs(o metav1.Object, tenant string) bool {
	l, in, home := o.GetLabels(), o.GetNamespace(), names.TenantNamespace(tenant)
	return in == home || strings.HasPrefix(in, tenant+"-") || l[names.LabelTenant] == tenant ||
		l["crossplane.io/claim-namespace"] == home || in == names.SystemNamespace && o.GetName() == tenant ||
		l["crossplane.io/claim-namespace"] == names.SystemNamespace && l["crossplane.io/claim-name"] == tenant
}
