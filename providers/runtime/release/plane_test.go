package release

import (
	"fmt"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/kube"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/steading-dev/steading/cluster/local"
	"github.com/steading-dev/steading/providers/runtime/render"
)

// planeGetter gives Helm a plane.
type planeGetter struct {
	getter
	found  discovery.CachedDiscoveryInterface
	mapper meta.RESTMapper
}

// ToDiscoveryClient is the plane's.
func (g planeGetter) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	return g.found, nil
}

// ToRESTMapper is the plane's.
func (g planeGetter) ToRESTMapper() (meta.RESTMapper, error) { return g.mapper, nil }

// engineOn a plane, for the release of newEngine.
func engineOn(t *testing.T, cfg *rest.Config) (*helmEngine, kubernetes.Interface) {
	t.Helper()
	cs, err := kubernetes.NewForConfig(cfg)
	must(t, err)
	_, err = cs.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "acme-dev"}}, metav1.CreateOptions{})
	must(t, err)
	m, err := metadata.NewForConfig(cfg)
	must(t, err)
	found := memory.NewMemCacheClient(cs.Discovery())
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(found)
	g := planeGetter{getter: getter{namespace: "acme-dev", config: cfg}, found: found, mapper: mapper}
	kc := kube.New(g)
	kc.Namespace = "acme-dev"
	e, _ := newEngine()
	e.cfg = &action.Configuration{
		RESTClientGetter: g, KubeClient: kc, Releases: recordsIn(cs.CoreV1().Secrets("acme-dev")),
		Capabilities: chartutil.DefaultCapabilities.Copy(), Log: func(string, ...any) {},
	}
	e.renderer, e.live, e.mapper = render.New(render.Limits{}), liveIn(t.Context(), m, mapper), mapper
	return e, cs
}

// halfway is a chart of which the cluster takes all but the CronJob, which comes last, if it has no schedule.
func halfway(schedule, env string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: a}
spec:
  selector: {matchLabels: {app: a}}
  template: {metadata: {labels: {app: a}}, spec: {containers: [{name: a, image: a, env: [%s]}]}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: a}
spec: {schedule: %q, jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}}}
`, env, schedule)
}

// TestRollbackLeavesNothingOnAPlane of an upgrade that the cluster took in part, once or more than once.
func TestRollbackLeavesNothingOnAPlane(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane; not under -short")
	}
	p, err := local.Start(t.Context(), local.Options{Name: "release", Progress: func(line string) { t.Log(line) }})
	must(t, err)
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	e, cs := engineOn(t, p.Config())
	must(t, e.deploy(t.Context(), of("r1", halfway("0 0 1 1 *", "{name: FIRST, value: a}"))))
	deployment, _, _ := strings.Cut(halfway("", ""), "---")
	more := strings.Replace(deployment, "metadata: {name: a}", "metadata: {name: b}", 1)
	for _, env := range []string{"{name: SECOND, value: b}", "{name: THIRD, value: c}"} {
		if err := e.deploy(t.Context(), of("r2", halfway("never", env), more)); err == nil || !strings.Contains(err.Error(), "never") {
			t.Fatalf("got %v, want the CronJob refused", err)
		}
	}
	_, err = cs.AppsV1().Deployments("acme-dev").Get(t.Context(), "b", metav1.GetOptions{})
	must(t, err)

	must(t, e.rollback(1, map[string]string{labelRequest: "r1", labelFailed: "r2"}, "r2 failed"))
	a, err := cs.AppsV1().Deployments("acme-dev").Get(t.Context(), "a", metav1.GetOptions{})
	must(t, err)
	wantEnv(t, a, "FIRST")
	if _, err := cs.AppsV1().Deployments("acme-dev").Get(t.Context(), "b", metav1.GetOptions{}); !kerrors.IsNotFound(err) {
		t.Errorf("the Deployment that failed added: %v, want it gone", err)
	}
	c, err := cs.BatchV1().CronJobs("acme-dev").Get(t.Context(), "a", metav1.GetOptions{})
	must(t, err)
	if c.Spec.Schedule != "0 0 1 1 *" {
		t.Errorf("the schedule is %q", c.Spec.Schedule)
	}
}

func wantEnv(t *testing.T, d *appsv1.Deployment, name string) {
	t.Helper()
	if env := d.Spec.Template.Spec.Containers[0].Env; len(env) != 1 || env[0].Name != name {
		t.Errorf("the container has %v, want %s alone", env, name)
	}
}
