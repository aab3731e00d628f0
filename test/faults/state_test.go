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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
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
	wantLedger(t)
}

// wantRelease expects one Helm release, whose last revision is the one that is deployed, and no operation begun.
func (l *life) wantRelease(t *testing.T) {
	t.Helper()
	records := &corev1.SecretList{}
	if err := suite.Admin.List(t.Context(), records, client.InNamespace(l.namespace()), client.MatchingLabels{"owner": "helm"}); err != nil {
		t.Fatal(err)
	}
	deployed := 0
	for _, r := range records.Items {
		if name := r.Labels["name"]; name != names.Release(tenant) {
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
	if err := suite.Admin.List(t.Context(), list, client.InNamespace(l.namespace())); err != nil {
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
	if uid := d.Labels[names.LabelComposite]; uid != suite.CompositeUID(t, tenant, l.environment.Name) {
		t.Errorf("the Deployment is of composite %q", uid)
	}
}

// wantLedger expects the ledger to hold what the tenant's Placements were granted, and no more.
func wantLedger(t *testing.T) {
	t.Helper()
	harness.Eventually(t, "ledger that says what exists", func(ctx context.Context) error {
		placements, ledger := &runtimev1.PlacementList{}, &runtimev1.Ledger{ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: names.Home(tenant)}}
		err := errors.Join(
			suite.Admin.List(ctx, placements, client.InNamespace(names.SystemNamespace), client.MatchingLabels{names.LabelTenant: tenant}),
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

// wantNothing expects the environment to be gone without a trace.
func (l *life) wantNothing(t *testing.T) {
	t.Helper()
	harness.WantNothingOwned(t, suite.Plane.Config(), l.uid)
	suite.WantGone(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: l.namespace()}})
	wantLedger(t)
}
