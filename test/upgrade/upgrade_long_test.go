//go:build long

package upgrade

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	xppkgv1 "github.com/crossplane/crossplane/apis/v2/pkg/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/cluster/local"
	"github.com/steading-dev/steading/package/build"
	"github.com/steading-dev/steading/test/harness"
)

// TestUpgradeAndBack: environments that live on the version before go on under this one, and again under the one before, in the
// same containers, with nothing recorded that did not happen. What only this one knows is kept, and the one before says that it
// is not its.
func TestUpgradeAndBack(t *testing.T) {
	suite.NewTenant(t, "acme", steading.TenantSpec{})
	dev, night := harness.Environment("acme", "dev"), harness.Environment("acme", "night")
	night.Spec.State = steading.StateStopped
	suite.Create(t, dev, night)
	suite.WaitFor(t, dev, "ready", harness.Ready)
	suite.WaitFor(t, night, "ready", harness.Ready)
	live := life{container: container(t, "acme-dev"), usage: usage(t)}

	first := suite.Published()
	second := published(t)

	install(t, second)
	live.wantUntouched(t, "after the upgrade", dev, night)
	wantPackages(t, second, "provider-runtime", "provider-forgejo", "function-steading")
	pool := pool("acme")
	suite.Create(t, pool)
	harness.Eventually(t, "this version composes a pool", func(ctx context.Context) error {
		return poolSays(ctx, pool, "TokenMissing")
	})

	install(t, first)
	live.wantUntouched(t, "after going back", dev, night)
	harness.Eventually(t, "the version before says that pools are not its", func(ctx context.Context) error {
		return compositeSays(ctx, pool, "does not compose")
	})
	if err := poolSays(t.Context(), pool, "FatalError"); err != nil {
		t.Errorf("the claim does not show that something is wrong: %v", err)
	}

	install(t, second)
	live.wantUntouched(t, "after the second upgrade", dev, night)
	harness.Eventually(t, "the pool was kept", func(ctx context.Context) error {
		return poolSays(ctx, pool, "TokenMissing")
	})

	harness.Change(t, &suite, dev, func(e *steading.Environment) { e.Spec.Version = "1.4.3" })
	suite.WaitFor(t, dev, "ready at 1.4.3", func(e *steading.Environment) bool { return harness.Ready(e) && e.Status.DeployedVersion == "1.4.3" })
	uid := suite.CompositeUID(t, "acme", "dev")
	for _, o := range []client.Object{pool, night, dev} {
		suite.Delete(t, o)
		suite.WantGone(t, o)
	}
	harness.WantNothingOwned(t, suite.Plane.Config(), uid)
}

// life of what was there before.
type life struct {
	container string
	usage     []string
}

// wantUntouched wants the environments ready as they were, in the containers they had, and nothing more recorded.
func (l life) wantUntouched(t *testing.T, when string, es ...*steading.Environment) {
	t.Helper()
	for i, e := range es {
		// A change of no meaning, so that whoever reconciles it now has to say so.
		harness.Change(t, &suite, e, func(e *steading.Environment) {
			metav1.SetMetaDataLabel(&e.ObjectMeta, "seen", fmt.Sprint(strings.ReplaceAll(when, " ", "-"), "-", i))
		})
		suite.WaitFor(t, e, "ready "+when, harness.Ready)
	}
	if now := container(t, "acme-dev"); now != l.container {
		t.Errorf("%s: container %s was replaced by %s", when, l.container, now)
	}
	if now := usage(t); !slices.Equal(now, l.usage) {
		t.Errorf("%s: usage events are %v, they were %v", when, now, l.usage)
	}
}

// published is this version, from when it is first asked for.
func published(t *testing.T) *build.Artifacts {
	t.Helper()
	if thisVersion != nil {
		return thisVersion
	}
	source, err := local.ModuleDir(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if thisVersion, err = suite.PublishSource(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	return thisVersion
}

var thisVersion *build.Artifacts

// install a version, and wait until all its packages are healthy.
func install(t *testing.T, a *build.Artifacts) {
	t.Helper()
	if err := suite.InstallRelease(t.Context(), a); err != nil {
		t.Fatal(err)
	}
}

// wantPackages wants packages of the version installed and healthy.
func wantPackages(t *testing.T, a *build.Artifacts, packages ...string) {
	t.Helper()
	for _, name := range packages {
		var p xppkgv1.Package = &xppkgv1.Provider{}
		if strings.HasPrefix(name, "function-") {
			p = &xppkgv1.Function{}
		}
		harness.Eventually(t, name+" is healthy", func(ctx context.Context) error {
			if err := suite.Plane.Client().Get(ctx, client.ObjectKey{Name: "steading-dev-" + name}, p); err != nil {
				return err
			}
			if tag := a.Packages[name].Tags[0]; !strings.HasSuffix(p.GetSource(), ":"+tag) {
				return fmt.Errorf("its source is %s, not version %s", p.GetSource(), tag)
			}
			if healthy := p.GetCondition(xppkgv1.TypeHealthy); healthy.Status != corev1.ConditionTrue {
				return fmt.Errorf("%s %s", healthy.Reason, healthy.Message)
			}
			return nil
		})
	}
}

// container of an environment's runtime.
func container(t *testing.T, namespace string) string {
	t.Helper()
	pods := &corev1.PodList{}
	if err := suite.Admin.List(t.Context(), pods, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	if len(pods.Items) != 1 || len(pods.Items[0].Status.ContainerStatuses) == 0 {
		t.Fatalf("namespace %s has %d pods", namespace, len(pods.Items))
	}
	return pods.Items[0].Status.ContainerStatuses[0].ContainerID
}

// usage events there are, by name.
func usage(t *testing.T) []string {
	t.Helper()
	all := &runtimev1.UsageEventList{}
	if err := suite.Admin.List(t.Context(), all, client.InNamespace(names.SystemNamespace)); err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, e := range all.Items {
		have = append(have, e.Name)
	}
	slices.Sort(have)
	return have
}

// pool of a tenant whose token is not there.
func pool(tenant string) *steading.RunnerPool {
	pool := &steading.RunnerPool{ObjectMeta: metav1.ObjectMeta{Namespace: names.TenantNamespace(tenant), Name: "linux"}}
	pool.Spec.Forgejo = steading.ForgejoServer{
		URL: "https://git.example.com", Scope: steading.ForgejoScope{Organization: tenant},
		TokenSecretRef: steading.TokenSecretReference{Name: "forgejo-pat", Key: steading.DefaultTokenKey},
	}
	pool.Spec.Labels, pool.Spec.JobNamespace, pool.Spec.MaxRunners = []string{"docker"}, tenant+"-ci", 1
	pool.Spec.PollIntervalSeconds, pool.Spec.StartupTimeoutSeconds, pool.Spec.JobTimeoutSeconds = 30, 600, 11400
	pool.Spec.Assignment, pool.Spec.Fairness = steading.AssignAny, steading.FairnessNone
	pool.Spec.Pod = &steading.RunnerPod{RunnerImage: "registry.example.com/forgejo-runner:12", JobContainer: steading.DefaultJobContainer}
	pool.Spec.Pod.Template.Raw = []byte(`{"spec":{"containers":[{"name":"job","image":"registry.example.com/job:1"}]}}`)
	return pool
}

// poolSays is an error unless a condition of the pool has the word.
func poolSays(ctx context.Context, pool *steading.RunnerPool, word string) error {
	if err := suite.Reload(ctx, pool); err != nil {
		return err
	}
	return wantWord(fmt.Sprintf("%+v", pool.Status.Conditions), word)
}

// compositeSays is an error unless a condition of the pool's composite has the word: Crossplane says there what a function could
// not do, and on the claim that there was something.
func compositeSays(ctx context.Context, pool *steading.RunnerPool, word string) error {
	composites := &unstructured.UnstructuredList{}
	composites.SetGroupVersionKind(steading.GroupVersion.WithKind(steading.XRunnerPoolKind + "List"))
	if err := suite.Admin.List(ctx, composites, client.MatchingLabels{"crossplane.io/claim-namespace": pool.Namespace, "crossplane.io/claim-name": pool.Name}); err != nil {
		return err
	}
	if len(composites.Items) != 1 {
		return fmt.Errorf("it has %d composites", len(composites.Items))
	}
	conditions, _, err := unstructured.NestedSlice(composites.Items[0].Object, "status", "conditions")
	return errors.Join(err, wantWord(fmt.Sprint(conditions), word))
}

func wantWord(conditions, word string) error {
	if !strings.Contains(conditions, word) {
		return errors.New("the conditions are " + conditions)
	}
	return nil
}
