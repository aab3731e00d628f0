package argocd

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	noImage = "container devops: cannot pull image 127.0.0.1:44441/steading-dev/devops:0.0.1-nopull: not found"
	crashes = "container devops keeps crashing: exit code 3: cannot read the settings"
	tooLow  = "memory 1Gi is below the 16Gi that the runtime needs, 15Gi short: raise spec.size.memory"
	noNames = "external-dns is not installed on the control plane (kind DNSEndpoint of externaldns.k8s.io is not served)," +
		" so the hosts have no names: the operator installs it, with its source crd"
	rolledBack = "version 0.0.1-nopull failed and was rolled back to version 1.4.2: ImagePull: " + noImage + ". Change version, size or state to try again"
	pinned     = "deletion is blocked: namespace globex-fresh cannot be deleted yet: NamespaceContentRemaining: Some resources are" +
		" remaining: configmaps. has 1 resource instances; NamespaceFinalizersRemaining: Some content in the namespace has" +
		" finalizers remaining: example.com/pin in 1 resource instances; configmaps \"pin\" (finalizers: example.com/pin)"
	noAnswer = "the API server does not answer: dial tcp 127.0.0.1:1: connect: connection refused"
)

// TestHealthOfWhatWasSeen on a running platform.
func TestHealthOfWhatWasSeen(t *testing.T) {
	wants := map[string]health{
		"context-draining":           {healthy, "Draining"},
		"context-unreachable":        {degraded, noAnswer},
		"cluster-unreachable":        {degraded, noAnswer},
		"context-without-credential": {degraded, "there is no Secret tenant-acme/nothing: create it, or name another in spec.credentials.secretRef"},

		"runnerpool-refused":      {degraded, "namespace given-ci of spec.jobNamespace was given to nobody's runners: ask an operator to label it steading.dev/runners-for: given"},
		"runnerpool-unreachable":  {degraded, "cannot list the runners of organization down at http://127.0.0.1:34263: its answer cannot be read: invalid character '<' looking for beginning of value"},
		"runnerpool-suspended":    {healthy, "Suspended"},
		"runner-backing-off":      {degraded, "backing off until 19:19:30Z, since 1 runner failed without a job in a row"},
		"runnerinstance-consumed": {healthy, "RunnerConsumed: it took a job and reported it"},
		"runnerinstance-no-start": {degraded, "StartupTimeout: the server has not heard of it within startupTimeoutSeconds, 10: container job: cannot pull image alpine:3: not found"},

		"environment-new":     {progressing, "admission has not decided yet"},
		"environment-coming":  {progressing, "installing version 1.4.2"},
		"environment-stopped": {healthy, "Running: " + noNames},
		"environment-record":  {healthy, "Registered"},
		"environment-plan":    {healthy, "Registered"},
		"xenvironment-plan":   {healthy, "Registered"},

		"environment-small":  {degraded, tooLow},
		"xenvironment-small": {degraded, tooLow},
		"placement-small":    {degraded, tooLow},

		"environment-nopull":      {degraded, noImage},
		"xenvironment-nopull":     {degraded, noImage},
		"release-nopull":          {degraded, noImage},
		"environment-crash":       {degraded, crashes},
		"xenvironment-crash":      {degraded, crashes},
		"environment-rolled-back": {degraded, rolledBack},
		"release-rolled-back":     {degraded, rolledBack},

		// Asked for another version an instant ago: the claim is not ready, and nothing says yet what it waits for.
		"environment-changed": {progressing, "Claim is waiting for composite resource to become Ready"},

		// Pausing a claim stops its composite from hearing of it.
		"environment-paused":  {suspended, "paused"},
		"xenvironment-paused": {healthy, "Running: " + noNames},

		"environment-deleting":         {progressing, "being deleted"},
		"environment-deletion-blocked": {degraded, pinned},
		"boundary-deletion-blocked":    {degraded, pinned},
		// Only the claim and what is stuck know that they are.
		"xenvironment-deletion-blocked": {progressing, "being deleted"},
		"placement-deletion-waits":      {progressing, "being deleted"},
	}
	objects := load(t, "seen")
	if diff := cmp.Diff(keys(wants), keys(objects)); diff != "" {
		t.Fatalf("expected and in testdata/seen, -want, +got:\n%s", diff)
	}
	check(t, objects, wants)
}
