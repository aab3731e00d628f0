package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	helm "helm.sh/helm/v3/pkg/release"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/cluster/local"
	"github.com/steading-dev/steading/test/harness"
)

// wantRunning waits until the claim says that this version runs, and expects that to be so.
func (l *life) wantRunning(t *testing.T, version string) {
	t.Helper()
	suite.WaitFor(t, l.environment, "running "+version, func(e *steading.Environment) bool {
		s := e.Status
		return harness.Ready(e) && s.Phase == steading.EnvironmentRunning && s.Power == steading.PowerRunning && s.DeployedVersion == version
	})
	l.wantState(t, version, 1)
}

// wantStopped waits until the claim says that this version is stopped, and expects that to be so.
func (l *life) wantStopped(t *testing.T, version string) {
	t.Helper()
	suite.WaitFor(t, l.environment, "stopped", func(e *steading.Environment) bool {
		s := e.Status
		return harness.Ready(e) && s.Phase == steading.EnvironmentRunning && s.Power == steading.PowerStopped && s.DeployedVersion == version
	})
	l.wantState(t, version, 0)
}

func (l *life) wantState(t *testing.T, version string, pods int32) {
	t.Helper()
	l.wantRelease(t)
	l.wantWorkload(t, version, pods)
	l.wantLedger(t)
}

// wantRelease expects one Helm release, whose last revision is the one that is deployed, and no operation begun.
func (l *life) wantRelease(t *testing.T) {
	t.Helper()
	records := &corev1.SecretList{}
	if err := l.cluster.List(t.Context(), records, client.InNamespace(l.namespace()), client.MatchingLabels{"owner": "helm"}); err != nil {
		t.Fatal(err)
	}
	deployed := 0
	for _, r := range records.Items {
		if name := r.Labels["name"]; name != names.Release(l.story.tenant) {
			t.Errorf("a second release: %s", name)
		}
		switch s := helm.Status(r.Labels["status"]); {
		case s == helm.StatusDeployed:
			deployed++
		case s.IsPending(), s == helm.StatusUninstalling:
			t.Errorf("record %s is %s", r.Name, s)
		}
	}
	if deployed != 1 {
		t.Errorf("%d deployed revisions among %d, want 1", deployed, len(records.Items))
	}
}

// wantWorkload expects the one Deployment to run this version in so many pods.
func (l *life) wantWorkload(t *testing.T, version string, pods int32) {
	t.Helper()
	list := &appsv1.DeploymentList{}
	if err := l.cluster.List(t.Context(), list, client.InNamespace(l.namespace())); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 1 {
		t.Errorf("%d Deployments, want 1", len(list.Items))
		return
	}
	d := list.Items[0]
	if image := d.Spec.Template.Spec.Containers[0].Image; !strings.HasSuffix(image, ":"+version) {
		t.Errorf("image %s, want version %s", image, version)
	}
	if d.Spec.Replicas == nil || *d.Spec.Replicas != pods || d.Status.ReadyReplicas != pods {
		t.Errorf("%d of %v pods are ready, want %d", d.Status.ReadyReplicas, d.Spec.Replicas, pods)
	}
	if uid := d.Labels[names.LabelComposite]; uid != suite.CompositeUID(t, l.story.tenant, l.name) {
		t.Errorf("the Deployment is of composite %q", uid)
	}
}

// wantLedger expects the ledger to hold what the tenant's Placements were granted, and no more.
func (l *life) wantLedger(t *testing.T) {
	t.Helper()
	harness.Eventually(t, "ledger that says what exists", func(ctx context.Context) error {
		placements, ledger := &runtimev1.PlacementList{}, &runtimev1.Ledger{ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: names.Home(l.story.tenant)}}
		err := errors.Join(
			suite.Admin.List(ctx, placements, client.InNamespace(names.SystemNamespace), client.MatchingLabels{names.LabelTenant: l.story.tenant}),
			suite.Admin.Get(ctx, client.ObjectKeyFromObject(ledger), ledger),
		)
		if err != nil {
			return err
		}
		var have, want []string
		for _, e := range ledger.Entries {
			have = append(have, fmt.Sprintf("%s %s: %s", e.Placement, e.UID, e.Grant.Version))
		}
		for _, p := range placements.Items {
			if g := p.Status.AtProvider.Grant; g != nil {
				want = append(want, fmt.Sprintf("%s %s: %s", p.Name, p.UID, g.Version))
			}
		}
		slices.Sort(have)
		slices.Sort(want)
		if !slices.Equal(have, want) {
			return fmt.Errorf("have %q, want %q", have, want)
		}
		return nil
	})
}

// wantExposed waits until the claim says that the environment is exposed, and expects its name to lead to a route with a
// certificate, and what was exposed to be as it was.
func (l *life) wantExposed(t *testing.T) {
	t.Helper()
	suite.WaitFor(t, l.environment, "exposed", func(e *steading.Environment) bool { return harness.Ready(e) && harness.Exposed(e) })
	if l.environment.Status.Hostname != l.host() {
		t.Errorf("hostname %q, want %q", l.environment.Status.Hostname, l.host())
	}
	harness.Eventually(t, "the name of "+l.name, func(context.Context) error { return l.resolvesTo("A " + address) })
	suite.WantRoute(t, l.story.tenant, l.name, l.host(), certs)
	l.wantState(t, first, 1)
}

// wantNotExposed waits until nothing is left to be cleaned up of the environment's name and certificate.
func (l *life) wantNotExposed(t *testing.T) {
	t.Helper()
	harness.Eventually(t, "the name of "+l.name+" gone", func(ctx context.Context) error {
		left := &runtimev1.EdgeRemainderList{}
		if err := suite.Admin.List(ctx, left); err != nil {
			return err
		}
		if len(left.Items) > 0 {
			return fmt.Errorf("%d remainders of edges are to be cleaned up: %+v", len(left.Items), left.Items[0].Status)
		}
		return l.resolvesTo()
	})
}

// resolvesTo these records, or says to which the host resolves.
func (l *life) resolvesTo(want ...string) error {
	if have := dns.Records(l.host()); !slices.Equal(have, want) {
		return fmt.Errorf("%s resolves to %q, want %q", l.host(), have, want)
	}
	return nil
}

// wantNothing expects the environment to be gone without a trace.
func (l *life) wantNothing(t *testing.T) {
	t.Helper()
	l.wantNothingOf(t, l.uid)
	err := l.cluster.Get(t.Context(), client.ObjectKey{Name: l.namespace()}, &corev1.Namespace{})
	if !kerrors.IsNotFound(err) {
		t.Errorf("the namespace %s is still there: %v", l.namespace(), err)
	}
	l.wantLedger(t)
}

// wantNothingOf an identity on either plane.
func (l *life) wantNothingOf(t *testing.T, uid string) {
	t.Helper()
	for _, plane := range []*local.Plane{suite.Plane, suite.Edge} {
		harness.WantNothingOwned(t, plane.Config(), uid)
	}
}
