package runners

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	netv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/test/fakes/forgejo"
	"github.com/steading-dev/steading/test/fakes/runnernode"
	"github.com/steading-dev/steading/test/harness"
)

// tokenSecret of a tenant.
const tokenSecret = "forgejo-pat"

// A world is a tenant with an organization on a Forgejo of its own, and a namespace for its runners.
type world struct {
	tenant  string
	forgejo *forgejo.Server
	server  *httptest.Server
	token   string
	node    *runnernode.Node
}

// newWorld of a tenant.
func newWorld(t *testing.T, tenant string) *world {
	t.Helper()
	w := &world{tenant: tenant, forgejo: forgejo.New(forgejo.Options{})}
	w.server = httptest.NewServer(w.forgejo)
	t.Cleanup(w.server.Close)
	owner := tenant + "-owner"
	err := errors.Join(w.forgejo.AddUser(owner, false), w.forgejo.AddOrganization(tenant, owner), w.forgejo.AddRepository(tenant, "web", true))
	if err != nil {
		t.Fatal(err)
	}
	if w.token, err = w.forgejo.AddToken(owner, "write:organization"); err != nil {
		t.Fatal(err)
	}
	suite.NewTenant(t, tenant, steading.TenantSpec{})
	suite.Create(t,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace(), Labels: map[string]string{names.LabelRunnersFor: tenant}}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: names.TenantNamespace(tenant), Name: tokenSecret}, StringData: map[string]string{"token": w.token}})
	if w.node, err = startNode(); err != nil {
		t.Fatal(err)
	}
	return w
}

// namespace of the runners.
func (w *world) namespace() string { return w.tenant + "-ci" }

// pool is the RunnerPool claim linux for the organization's jobs, with at most so many runners.
func (w *world) pool(most int32) *steading.RunnerPool {
	return &steading.RunnerPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.TenantNamespace(w.tenant), Name: "linux"},
		Spec: steading.RunnerPoolSpec{
			Forgejo: steading.ForgejoServer{
				URL: w.server.URL, Scope: steading.ForgejoScope{Organization: w.tenant},
				TokenSecretRef: steading.TokenSecretReference{Name: tokenSecret, Key: steading.DefaultTokenKey},
			},
			Labels: []string{"docker"}, JobNamespace: w.namespace(), MaxRunners: most, PollIntervalSeconds: 5,
			StartupTimeoutSeconds: 60, JobTimeoutSeconds: 600, SuccessfulJobsHistoryLimit: 2, FailedJobsHistoryLimit: 1,
			Assignment: steading.AssignAny, Fairness: steading.FairnessNone,
			Pod: &steading.RunnerPod{JobContainer: steading.DefaultJobContainer, Template: template()},
		},
	}
}

// template of a pod that the test's node plays.
func template() runtime.RawExtension {
	s := corev1.PodSpec{Containers: []corev1.Container{{Name: steading.DefaultJobContainer, Image: "alpine:3"}}}
	runnernode.Place(&s)
	raw, err := json.Marshal(corev1.PodTemplateSpec{Spec: s})
	if err != nil {
		panic(err) // A type of Kubernetes' own.
	}
	return runtime.RawExtension{Raw: raw}
}

// queue jobs of a payload.
func (w *world) queue(t *testing.T, jobs int, payload string) {
	t.Helper()
	for range jobs {
		if _, err := w.forgejo.Queue(forgejo.NewJob{Repository: w.tenant + "/web", Labels: []string{"docker"}, Payload: payload}); err != nil {
			t.Fatal(err)
		}
	}
}

// waitJobs until all have ended, each on one runner.
func (w *world) waitJobs(t *testing.T) {
	t.Helper()
	harness.Eventually(t, "jobs of "+w.tenant+" have run", func(context.Context) error {
		var left []string
		for _, j := range w.forgejo.Jobs() {
			if len(j.Runs) != 1 || j.Runs[0].Stopped.IsZero() {
				left = append(left, fmt.Sprintf("%d: %s, %d runs", j.ID, j.Status, len(j.Runs)))
			}
		}
		if len(left) > 0 {
			return fmt.Errorf("%d are left: %s", len(left), strings.Join(left, "; "))
		}
		return nil
	})
}

// wait until a pool is as check wants it, which says what is wrong.
func (w *world) wait(t *testing.T, p *steading.RunnerPool, what string, check func(*steading.RunnerPool) error) {
	t.Helper()
	harness.Eventually(t, "pool "+p.Name+" "+what, func(ctx context.Context) error {
		if err := suite.Reload(ctx, p); err != nil {
			return err
		}
		if err := check(p); err != nil {
			return fmt.Errorf("%w; its status is %+v", err, p.Status)
		}
		return nil
	})
}

// instances of a pool.
func (w *world) instances(ctx context.Context, pool string) ([]forgejov1.RunnerInstance, error) {
	l := &forgejov1.RunnerInstanceList{}
	err := suite.Admin.List(ctx, l, client.InNamespace(names.SystemNamespace), client.MatchingLabels{names.LabelPool: names.Runner(w.tenant, pool)})
	return l.Items, err
}

// wantNothing expects that nothing is left of any pool: no registration, and nothing in the job namespace that is ours.
func (w *world) wantNothing(t *testing.T) {
	t.Helper()
	harness.Eventually(t, "nothing is left of the pools of "+w.tenant, func(ctx context.Context) error {
		var left []string
		for _, r := range w.forgejo.Registrations() {
			if r.Deleted.IsZero() {
				left = append(left, "registration "+r.Name)
			}
		}
		for _, l := range []client.ObjectList{
			&batchv1.JobList{}, &corev1.PodList{}, &corev1.SecretList{}, &corev1.ResourceQuotaList{}, &netv1.NetworkPolicyList{}, &rbacv1.RoleBindingList{}, &corev1.ServiceAccountList{},
		} {
			if err := suite.Admin.List(ctx, l, client.InNamespace(w.namespace()), client.MatchingLabels{names.LabelManagedBy: names.ManagedBy}); err != nil {
				return err
			}
			left = append(left, named(l)...)
		}
		rights := &rbacv1.RoleBindingList{}
		if err := suite.Admin.List(ctx, rights, client.InNamespace(names.TenantNamespace(w.tenant))); err != nil {
			return err
		}
		for _, r := range rights.Items {
			if r.RoleRef.Name == names.TokenReaderRole {
				left = append(left, "right "+r.Name)
			}
		}
		for _, l := range []client.ObjectList{&forgejov1.RunnerList{}, &forgejov1.RunnerInstanceList{}} {
			if err := suite.Admin.List(ctx, l, client.InNamespace(names.SystemNamespace), client.MatchingLabels{names.LabelTenant: w.tenant}); err != nil {
				return err
			}
			left = append(left, named(l)...)
		}
		if len(left) > 0 {
			return fmt.Errorf("there are %s", strings.Join(left, ", "))
		}
		return nil
	})
}

// named are the objects of a list by kind and name.
func named(l client.ObjectList) []string {
	items, err := meta.ExtractList(l)
	if err != nil {
		return []string{err.Error()}
	}
	all := make([]string, 0, len(items))
	for _, i := range items {
		o := i.(client.Object) //nolint:forcetypeassert // All that is listed is one.
		all = append(all, fmt.Sprintf("%T %s", o, o.GetName()))
	}
	slices.Sort(all)
	return all
}
