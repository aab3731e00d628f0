package argocd

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// reconciled are the kinds that Crossplane or a provider reconciles, and which have Synced and Ready.
var reconciled = []string{
	"Tenant", "Context", "Environment", "RunnerPool", "XTenant", "XContext", "XEnvironment", "XRunnerPool",
	"Home", "Cluster", "Placement", "Boundary", "Release", "Edge", "Runner",
}

// A state of an object, and what is to be said of it.
type state struct {
	edits []edit
	want  health
}

const (
	nobodyLooked = "nobody has looked at it yet"
	nobodySince  = "it was changed, and nobody has looked at that yet"
	notSince     = "it was changed, and is not known to be ready since"
)

// TestHealthOfWhatIsReconciled in every state that all such kinds share.
func TestHealthOfWhatIsReconciled(t *testing.T) {
	boom := says("Synced", "False", "ReconcileError", "cannot: boom")
	states := map[string]state{
		"new":                         {[]edit{unseen}, health{progressing, nobodyLooked}},
		"seen and nothing said":       {[]edit{field([]any{}, "status", "conditions")}, health{progressing, nobodyLooked}},
		"ready but not synced yet":    {[]edit{silent("Synced")}, health{progressing, nobodyLooked}},
		"synced but not ready yet":    {[]edit{silent("Ready")}, health{progressing, "not ready yet"}},
		"changed":                     {[]edit{changed}, health{progressing, nobodySince}},
		"changed and only synced":     {[]edit{changed, says("Synced", "True", "ReconcileSuccess", "")}, health{progressing, notSince}},
		"coming":                      {[]edit{says("Ready", "False", "Creating", "almost there")}, health{progressing, "almost there"}},
		"waiting without a word":      {[]edit{says("Ready", "False", "Waiting", "")}, health{progressing, "Waiting"}},
		"not ready for a reason":      {[]edit{says("Ready", "False", "ImagePull", "no such image")}, health{degraded, "no such image"}},
		"failing and once ready":      {[]edit{boom}, health{degraded, "cannot: boom"}},
		"the same, said last":         {[]edit{boom, backwards}, health{degraded, "cannot: boom"}},
		"failed before it changed":    {[]edit{boom, changed}, health{progressing, nobodySince}},
		"paused":                      {[]edit{pausedBy}, health{suspended, "paused"}},
		"paused and said":             {[]edit{says("Synced", "False", "ReconcilePaused", "")}, health{suspended, "paused"}},
		"paused, changed":             {[]edit{pausedBy, changed}, health{suspended, "paused"}},
		"out of date, needs software": {[]edit{says("DefinitionsCurrent", "False", "DefinitionsOutdated", "apply the new")}, health{degraded, "apply the new"}},
		"its function failed":         {[]edit{says("Deployed", "Unknown", "FatalError", "fatal")}, health{degraded, "fatal"}},
	}
	objects := load(t, "ready")
	asked := map[string]*unstructured.Unstructured{}
	wants := map[string]health{}
	for _, kind := range reconciled {
		ready, ok := objects[kind]
		if !ok {
			t.Fatalf("there is no %s in testdata/ready", kind)
		}
		for name, s := range states {
			asked[kind+" "+name], wants[kind+" "+name] = with(ready, s.edits...), s.want
		}
	}
	check(t, asked, wants)
}

// TestHealthOfWhatIsBeingDeleted tells what goes on from what is blocked, for whoever asks the script. Argo CD itself does
// not: it says that the deletion is pending. Should that change, this test says so.
func TestHealthOfWhatIsBeingDeleted(t *testing.T) {
	states := map[string]state{
		"goes on":             {[]edit{leaving, says("Ready", "False", "Deleting", "")}, health{progressing, "being deleted"}},
		"and changed":         {[]edit{leaving, changed}, health{progressing, "being deleted"}},
		"blocked":             {[]edit{leaving, says("DeletionBlocked", "True", "NamespaceBlocked", "pod a has finalizer b")}, health{degraded, "deletion is blocked: pod a has finalizer b"}},
		"blocked and failing": {[]edit{leaving, says("DeletionBlocked", "True", "TargetUnreachable", "no answer"), says("Synced", "False", "ReconcileError", "boom")}, health{degraded, "deletion is blocked: no answer"}},
		"blocked no more":     {[]edit{leaving, says("DeletionBlocked", "False", "NamespaceBlocked", "")}, health{progressing, "being deleted"}},
		"by its phase":        {[]edit{leaving, field("DeletionBlocked", "status", "phase")}, health{degraded, "deletion is blocked"}},
		"paused":              {[]edit{leaving, pausedBy}, health{suspended, "paused while it is being deleted"}},
		"failing":             {[]edit{leaving, says("Synced", "False", "ReconcileError", "boom")}, health{degraded, "cannot be deleted: boom"}},
	}
	objects := load(t, "ready")
	asked := map[string]*unstructured.Unstructured{}
	wants := map[string]health{}
	for _, kind := range reconciled {
		for name, s := range states {
			asked[kind+" "+name], wants[kind+" "+name] = with(objects[kind], s.edits...), s.want
		}
	}
	for name, a := range check(t, asked, wants) {
		if a.Shown == nil || *a.Shown != (health{progressing, "Pending deletion"}) {
			t.Errorf("%s: Argo CD now shows %+v of what is being deleted; docs/argocd.md says that it does not ask", name, a.Shown)
		}
	}
}

// TestHealthOfEnvironments in the states that only they have, as claims and as composites.
func TestHealthOfEnvironments(t *testing.T) {
	running, waits := says("Ready", "True", "Available", ""), says("Ready", "False", "Waiting", "")
	states := map[string]state{
		"refused": {
			[]edit{waits, says("Admitted", "False", "BelowFloor", "15Gi short")},
			health{degraded, "15Gi short"},
		},
		"refused, and what was granted before runs": {
			[]edit{running, says("Admitted", "False", "OverTenantTotal", "too much")},
			health{degraded, "too much"},
		},
		"refused before it changed": {
			[]edit{waits, says("Admitted", "False", "BelowFloor", "15Gi short"), changed, says("Synced", "True", "ReconcileSuccess", "")},
			health{progressing, nobodySince},
		},
		"not decided": {
			[]edit{waits, says("Admitted", "False", "PendingDecision", "admission has not decided yet")},
			health{progressing, "admission has not decided yet"},
		},
		"rolling out": {
			[]edit{waits, says("Deployed", "False", "RollingOut", "installing version 1.4.2")},
			health{progressing, "installing version 1.4.2"},
		},
		"the serious before what passes": {
			[]edit{waits, says("Deployed", "False", "RollingOut", "installing"), says("ComponentsDeployed", "False", "ChartRefused", "a hook")},
			health{degraded, "a hook"},
		},
		"the serious after what passes": {
			[]edit{waits, says("ComponentsDeployed", "False", "ChartRefused", "a hook"), says("Deployed", "False", "RollingOut", "installing"), backwards},
			health{degraded, "a hook"},
		},
		"rolled back": {
			[]edit{waits, says("Deployed", "False", "RolledBack", "1.4.3 did not start")},
			health{degraded, "1.4.3 did not start"},
		},
		"failed by its phase alone": {
			[]edit{waits, field("Failed", "status", "phase"), field("it broke", "status", "message")},
			health{degraded, "Failed: it broke"},
		},
		"said to be ready with another version": {
			[]edit{field("1.4.3", "spec", "version"), changed, says("Synced", "True", "ReconcileSuccess", ""), running},
			health{progressing, "version 1.4.3 is asked for, and 1.4.2 runs"},
		},
		"said to be ready and to be stopped": {
			[]edit{field("Stopped", "spec", "state"), changed, says("Synced", "True", "ReconcileSuccess", ""), running},
			health{progressing, "Stopped is asked for, and it is Running"},
		},
		"stopped as asked for": {
			[]edit{field("Stopped", "spec", "state"), field("Stopped", "status", "power")},
			health{healthy, "Running"},
		},
		"not exposed though asked for": {
			[]edit{says("Exposed", "False", "HostTaken", "another has the name")},
			health{healthy, "Running: another has the name"},
		},
		"not exposed and not asked for": {
			[]edit{says("Exposed", "False", "NotExposed", "expose is not asked for")},
			health{healthy, "Running"},
		},
	}
	objects := load(t, "ready")
	asked := map[string]*unstructured.Unstructured{}
	wants := map[string]health{}
	for _, kind := range []string{"Environment", "XEnvironment"} {
		for name, s := range states {
			asked[kind+" "+name], wants[kind+" "+name] = with(objects[kind], s.edits...), s.want
		}
	}
	check(t, asked, wants)
}

// TestHealthOfOtherKinds in their states.
func TestHealthOfOtherKinds(t *testing.T) {
	unknown := says("Healthy", "Unknown", "UnknownPackageRevisionHealth", "")
	begins := says("Healthy", "False", "UnhealthyPackageRevision", `Package revision health is "Unknown"`)
	ill := says("Healthy", "False", "UnhealthyPackageRevision", "cannot resolve dependencies")
	outdated := says("DefinitionsCurrent", "False", "DefinitionsOutdated", "apply the new")
	unused := field(int64(0), "status", "users")
	states := map[string]map[string]state{
		"Context": {
			"unreachable": {[]edit{says("Ready", "False", "Waiting", ""), field("Unreachable", "status", "phase"), says("Reachable", "False", "TargetUnreachable", "no answer")}, health{degraded, "no answer"}},
			"fetching":    {[]edit{says("Ready", "False", "Waiting", ""), field("Pending", "status", "phase"), says("Reachable", "False", "CredentialPending", "not yet"), says("Guarded", "False", "NotGuarded", "")}, health{progressing, "not yet"}},
			"unguarded":   {[]edit{says("Guarded", "False", "NotGuarded", "may not install policies")}, health{healthy, "Running: may not install policies"}},
		},
		"Tenant": {
			"waiting for its namespace": {[]edit{says("Ready", "False", "Waiting", ""), says("HomeReady", "False", "PendingDecision", "about to be made")}, health{progressing, "about to be made"}},
			"in a foreign namespace":    {[]edit{says("Ready", "False", "Waiting", ""), says("HomeReady", "False", "ForeignNamespace", "not ours")}, health{degraded, "not ours"}},
		},
		"RunnerPool": {
			"backing off":                   {[]edit{says("Ready", "False", "Waiting", ""), field("BackingOff", "status", "phase"), says("RunnersMade", "False", "BackingOff", "no such image")}, health{degraded, "no such image"}},
			"unreachable":                   {[]edit{says("Ready", "False", "Waiting", ""), field("Unreachable", "status", "phase"), says("QueueWatched", "False", "ServerUnreachable", "no answer")}, health{degraded, "no answer"}},
			"scope gone":                    {[]edit{says("Ready", "False", "Waiting", ""), says("QueueWatched", "False", "ScopeGone", "organization acme is not there")}, health{degraded, "organization acme is not there"}},
			"not polled":                    {[]edit{says("Ready", "False", "Waiting", ""), says("QueueWatched", "False", "PendingDecision", "not looked at yet")}, health{progressing, "not looked at yet"}},
			"suspended":                     {[]edit{says("Ready", "False", "Waiting", ""), field("Suspended", "status", "phase"), says("RunnersMade", "False", "Suspended", "as asked")}, health{healthy, "Suspended"}},
			"suspended and ready":           {[]edit{field("Suspended", "status", "phase"), says("RunnersMade", "False", "Suspended", "as asked")}, health{healthy, "Suspended"}},
			"suspended and without a token": {[]edit{says("Ready", "False", "Waiting", ""), says("RunnersMade", "False", "Suspended", "as asked"), says("QueueWatched", "False", "TokenMissing", "no Secret")}, health{degraded, "no Secret"}},
		},
		"RunnerInstance": {
			"":           {nil, health{healthy, "has a job in hand"}},
			"new":        {[]edit{unseen}, health{progressing, "starting"}},
			"waits":      {[]edit{field("Idle", "status", "atProvider", "state")}, health{healthy, "waits for a job"}},
			"cannot run": {[]edit{field("Offline", "status", "atProvider", "state"), field("no such image", "status", "atProvider", "message")}, health{progressing, "no such image"}},
			"failing":    {[]edit{says("Synced", "False", "ReconcileError", "cannot register")}, health{degraded, "cannot register"}},
			"completed":  {[]edit{field("Completed", "status", "atProvider", "phase"), field("RunnerConsumed", "status", "atProvider", "reason")}, health{healthy, "RunnerConsumed"}},
			"failed": {[]edit{
				field("Failed", "status", "atProvider", "phase"), field("StartupTimeout", "status", "atProvider", "reason"), field("no such image", "status", "atProvider", "message"),
			}, health{degraded, "StartupTimeout: no such image"}},
			"paused":          {[]edit{pausedBy}, health{suspended, "paused"}},
			"paused and said": {[]edit{says("Synced", "False", "ReconcilePaused", "")}, health{suspended, "paused"}},
			"outdated":        {[]edit{outdated}, health{degraded, "apply the new"}},
			"not served":      {[]edit{says("DefinitionsCurrent", "False", "DefinitionsNotReady", "not yet")}, health{progressing, "not yet"}},
			"leaving":         {[]edit{leaving}, health{progressing, "being deleted"}},
		},
		"ClusterProviderConfig": {
			"":                   {nil, health{healthy, ""}},
			"unused":             {[]edit{unseen}, health{healthy, ""}},
			"going":              {[]edit{leaving, unseen}, health{progressing, "being deleted"}},
			"held by use":        {[]edit{leaving, field(int64(3), "status", "users")}, health{degraded, "deletion is blocked: in use by 3"}},
			"outdated":           {[]edit{outdated}, health{degraded, "apply the new"}},
			"not served":         {[]edit{says("DefinitionsCurrent", "False", "DefinitionsNotReady", "not yet")}, health{progressing, "not yet"}},
			"current":            {[]edit{says("DefinitionsCurrent", "True", "Current", "")}, health{healthy, ""}},
			"outdated and going": {[]edit{outdated, leaving, unused}, health{progressing, "being deleted"}},
		},
		"EdgeRemainder": {
			"not looked": {[]edit{unseen}, health{progressing, "looking for what is left"}},
			"left":       {[]edit{field([]any{"DNSEndpoint a", "Certificate b"}, "status", "left")}, health{degraded, "left behind, and tried again: DNSEndpoint a; Certificate b"}},
		},
		"Configuration": {
			"":           {nil, health{healthy, ""}},
			"new":        {[]edit{unseen}, health{progressing, "Installed is not known yet"}},
			"upgraded":   {[]edit{changed}, health{progressing, nobodySince}},
			"unknown":    {[]edit{unknown}, health{progressing, "Healthy is not True yet"}},
			"begins":     {[]edit{begins}, health{progressing, "Healthy is not True yet"}},
			"ill":        {[]edit{ill}, health{degraded, "cannot resolve dependencies"}},
			"no package": {[]edit{says("Installed", "False", "UnpackingPackage", "no such image"), ill}, health{degraded, "no such image"}},
			"beginning":  {[]edit{says("Healthy", "False", "UnhealthyPackageRevision", `Package revision health is "False" with message: cannot establish control of object: waiting for package runtime controller to set revision's webhook TLS secret`)}, health{progressing, "Healthy is not True yet"}},
			"by hand":    {[]edit{says("Installed", "False", "InactivePackageRevision", "Package is inactive")}, health{suspended, "its revision waits to be activated by hand"}},
			"paused":     {[]edit{pausedBy}, health{suspended, "paused"}},
			"leaving":    {[]edit{leaving}, health{progressing, "being deleted"}},
		},
		"ProviderRevision": {
			"":           {nil, health{healthy, ""}},
			"crashing":   {[]edit{says("RuntimeHealthy", "False", "UnhealthyPackageRevision", "it crashes")}, health{degraded, "it crashes"}},
			"beginning":  {[]edit{says("RevisionHealthy", "False", "UnhealthyPackageRevision", "cannot establish control of object: waiting for package runtime controller to set revision's webhook TLS secret")}, health{progressing, "RevisionHealthy is not True yet"}},
			"superseded": {[]edit{field("Inactive", "spec", "desiredState"), says("RuntimeHealthy", "False", "UnhealthyPackageRevision", "scaled down")}, health{healthy, "inactive"}},
		},
		"ConfigurationRevision": {
			"":        {nil, health{healthy, ""}},
			"missing": {[]edit{says("RevisionHealthy", "False", "UnhealthyPackageRevision", "missing dependencies")}, health{degraded, "missing dependencies"}},
		},
		"FunctionRevision": {
			"":         {nil, health{healthy, ""}},
			"starting": {[]edit{silent("RuntimeHealthy")}, health{progressing, "RuntimeHealthy is not known yet"}},
		},
		"ManagedResourceDefinition": {
			"":         {nil, health{healthy, ""}},
			"inactive": {[]edit{field("Inactive", "spec", "state"), silent("Established")}, health{healthy, "inactive"}},
			"coming":   {[]edit{silent("Established")}, health{progressing, "Established is not known yet"}},
		},
		"ManagedResourceActivationPolicy": {
			"":        {nil, health{healthy, ""}},
			"failing": {[]edit{says("Healthy", "False", "EncounteredErrors", "cannot activate")}, health{degraded, "cannot activate"}},
		},
		"CompositeResourceDefinition": {
			"":                     {nil, health{healthy, ""}},
			"not offered":          {[]edit{silent("Offered")}, health{progressing, "Offered is not known yet"}},
			"offered but not made": {[]edit{says("Established", "False", "TerminatingCompositeResource", "")}, health{progressing, "Established is not True yet"}},
		},
		"CompositionRevision": {
			"":        {nil, health{healthy, ""}},
			"invalid": {[]edit{says("ValidPipeline", "False", "MissingCapabilities", "function cannot")}, health{degraded, "function cannot"}},
		},
		"Composition": {
			"":        {nil, health{healthy, ""}},
			"leaving": {[]edit{leaving}, health{progressing, "being deleted"}},
		},
	}
	for _, kind := range []string{"Function", "Provider"} {
		states[kind] = states["Configuration"]
	}
	objects := load(t, "ready")
	asked := map[string]*unstructured.Unstructured{}
	wants := map[string]health{}
	for kind, of := range states {
		o, ok := objects[kind]
		if !ok {
			t.Fatalf("there is no %s in testdata/ready", kind)
		}
		for name, s := range of {
			asked[kind+" "+name], wants[kind+" "+name] = with(o, s.edits...), s.want
		}
	}
	check(t, asked, wants)
}

// TestHealthOfApplications: they are healthy once they are in sync with what they ask for now.
func TestHealthOfApplications(t *testing.T) {
	unknown := field("Unknown", "status", "sync", "status")
	wrong := func(kind, message string) edit {
		return field([]any{map[string]any{"type": kind, "message": message}}, "status", "conditions")
	}
	failed := func(phase string, more ...edit) []edit {
		return append(more, field(phase, "status", "operationState", "phase"), field("no such kind", "status", "operationState", "message"))
	}
	outOfSync := field("OutOfSync", "status", "sync", "status")
	syncOf := func(revisions ...any) edit {
		return field(revisions, "status", "operationState", "syncResult", "revisions")
	}
	now := func(revisions ...any) edit { return field(revisions, "status", "sync", "revisions") }
	taken := field("9ad3f0c2", "status", "sync", "revision")
	states := map[string]state{
		"":                      {nil, health{healthy, ""}},
		"new":                   {[]edit{unseen}, health{progressing, "not compared yet"}},
		"of another version":    {[]edit{field("v0.2.0", "spec", "source", "targetRevision")}, health{progressing, "its source was changed, and it was not compared since"}},
		"healthy but not there": {[]edit{outOfSync}, health{progressing, "not in sync"}},
		"syncing":               {[]edit{field("Running", "status", "operationState", "phase"), field("waiting for a", "status", "operationState", "message")}, health{progressing, "waiting for a"}},
		"cannot sync":           {failed("Failed", outOfSync), health{degraded, "no such kind"}},
		"could not sync before": {failed("Failed", outOfSync, taken), health{degraded, "no such kind"}},
		"cannot be built":       {failed("Error", unknown, taken), health{degraded, "no such kind"}},
		"hook failed":           {failed("Failed"), health{degraded, "no such kind"}},
		"commit taken back":     {failed("Failed", taken), health{healthy, ""}},
		"built again":           {failed("Error", field(nil, "status", "operationState", "syncResult")), health{healthy, ""}},
		"hook of several":       {failed("Failed", syncOf("a", "b"), now("a", "b")), health{degraded, "no such kind"}},
		"one of several taken":  {failed("Failed", syncOf("a", "b"), now("a", "c")), health{healthy, ""}},
		"ill":                   {[]edit{field("Degraded", "status", "health", "status")}, health{degraded, ""}},
		"of no revision":        {[]edit{unknown, wrong("ComparisonError", "unable to resolve 'v9' to a commit SHA")}, health{degraded, "unable to resolve 'v9' to a commit SHA"}},
		"refused before":        {[]edit{unknown, wrong("ComparisonError", "no"), field("v0.2.0", "spec", "source", "targetRevision")}, health{progressing, "its source was changed, and it was not compared since"}},
		"refused at first":      {[]edit{unseen, unknown, wrong("InvalidSpecError", "not permitted in project")}, health{degraded, "not permitted in project"}},
		"unknown without a why": {[]edit{unknown, wrong("OrphanedResourceWarning", "beside it")}, health{progressing, "not in sync"}},
		"leaving":               {[]edit{leaving}, health{progressing, "being deleted"}},
	}
	app := load(t, "ready")["Application"]
	asked := map[string]*unstructured.Unstructured{}
	wants := map[string]health{}
	for name, s := range states {
		asked["Application "+name], wants["Application "+name] = with(app, s.edits...), s.want
	}
	check(t, asked, wants)
}

// check what our scripts say of objects, and return all of Argo CD's answers.
func check(t *testing.T, objects map[string]*unstructured.Unstructured, wants map[string]health) map[string]answer {
	t.Helper()
	names := slices.Sorted(maps.Keys(objects))
	all := make([]*unstructured.Unstructured, 0, len(names))
	for _, n := range names {
		all = append(all, objects[n])
	}
	got := map[string]answer{}
	for i, a := range ask(t, settings(t), all...).Objects {
		got[names[i]] = a
		if a.Error != "" || a.Lua == nil {
			t.Errorf("%s: %+v, %s", names[i], a.Lua, a.Error)
			continue
		}
		if diff := cmp.Diff(wants[names[i]], *a.Lua); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", names[i], diff)
		}
	}
	return got
}
