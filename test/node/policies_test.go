//go:build node

package node

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/test/harness"
)

// linkLocal stands for where clouds give their nodes' credentials away. No cloud uses it.
const linkLocal = "169.254.77.77"

// TestPodsReachWhatPoliciesLeaveOpen, and nothing else: tried from pods of an environment, of another one, and of a namespace
// that has no policies. The node enforces them by kube-network-policies.
func TestPodsReachWhatPoliciesLeaveOpen(t *testing.T) {
	suite.NewTenant(t, "net", steading.TenantSpec{})
	green, blue := harness.Environment("net", "green"), harness.Environment("net", "blue")
	suite.Create(t, green, blue)
	suite.WaitFor(t, green, "ready", harness.Ready)
	suite.WaitFor(t, blue, "ready", harness.Ready)
	plain := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "plain"}}
	scraper := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "scraper", Labels: map[string]string{"network-policy/steading-metrics-scraper": "true"}}}
	suite.Create(t, plain, scraper)

	image := pushProgram(t, "probe", "probe", "1").Pinned()
	mcp := "net-mcp.net-green.svc.cluster.local:80"
	metrics := net.JoinHostPort(runtimePod(t, "net-green").Status.PodIP, "9100")
	cloud := serveLinkLocal(t)
	// What is on no wire would be refused as well. From plain it is not.
	cases := []struct {
		namespace     string
		done, refused []string
	}{
		{namespace: "net-green", done: []string{mcp, metrics}, refused: []string{cloud}},
		{namespace: "net-blue", done: []string{mcp}, refused: []string{metrics, cloud}},
		{namespace: "plain", done: []string{mcp, cloud}, refused: []string{metrics}},
		{namespace: "scraper", done: []string{mcp, metrics}},
	}
	for _, tc := range cases {
		t.Run("from "+tc.namespace, func(t *testing.T) {
			probe(t, pod(tc.namespace, "probe", image), tc.done, tc.refused)
		})
	}
}

// TestHostsAreGuardedFromInside: a pod that has the power of charts, which may make routes, gets none for a host that is not its
// environment's, and the provider's package has no say in that.
func TestHostsAreGuardedFromInside(t *testing.T) {
	suite.NewTenant(t, "guard", steading.TenantSpec{})
	e := harness.Environment("guard", "dev")
	suite.Create(t, e)
	suite.WaitFor(t, e, "ready", harness.Ready)
	p := pod("guard-dev", "probe", pushProgram(t, "probe", "probe", "1").Pinned())
	p.Spec.ServiceAccountName, p.Spec.AutomountServiceAccountToken = names.Deployer, new(true)
	said := probe(t, p, nil, []string{"ingress=mcp.other-dev.example.com"})
	if !strings.Contains(said, "host mcp.other-dev.example.com is not this environment's: namespace guard-dev exposes nothing") {
		t.Errorf("it was refused for another reason: %s", said)
	}
}

// probe runs a pod that tries all that, and expects it to come out so. It returns what it said.
func probe(t *testing.T, p *corev1.Pod, done, refused []string) string {
	t.Helper()
	p.Spec.Containers[0].Args = append(append([]string{}, done...), refused...)
	suite.Create(t, p)
	said := ""
	harness.Eventually(t, "pod "+p.Namespace+"/"+p.Name+" has tried", func(ctx context.Context) error {
		if err := suite.Reload(ctx, p); err != nil {
			return err
		}
		for _, s := range p.Status.ContainerStatuses {
			if end := s.State.Terminated; end != nil {
				said = end.Message
				return nil
			}
		}
		return fmt.Errorf("it is %s: %+v", p.Status.Phase, p.Status.ContainerStatuses)
	})
	for _, what := range done {
		if !strings.Contains(said, what+" done\n") {
			t.Errorf("from %s: %s was refused: %s", p.Namespace, what, said)
		}
	}
	for _, what := range refused {
		if !strings.Contains(said, what+" refused: ") {
			t.Errorf("from %s: %s was not refused: %s", p.Namespace, what, said)
		}
	}
	return said
}

func runtimePod(t *testing.T, namespace string) corev1.Pod {
	t.Helper()
	pods := &corev1.PodList{}
	if err := suite.Admin.List(t.Context(), pods, client.InNamespace(namespace)); err != nil || len(pods.Items) != 1 {
		t.Fatalf("%d pods in namespace %s: %v", len(pods.Items), namespace, err)
	}
	return pods.Items[0]
}

// serveLinkLocal listens at a link-local address on the machine's end of the wire to the node, which has a route to it until the
// test is over.
func serveLinkLocal(t *testing.T) string {
	t.Helper()
	onLink := func(verb string) error {
		return exec.Command("ip", "address", verb, linkLocal+"/32", "dev", link(t)).Run()
	}
	if err := onLink("add"); err != nil {
		t.Fatalf("cannot give the machine %s: %v", linkLocal, err)
	}
	t.Cleanup(func() { _ = onLink("delete") })
	pid, err := os.ReadFile(filepath.Join(suite.Plane.Dir(), "node", "pid"))
	if err != nil {
		t.Fatal(err)
	}
	route := exec.Command("nsenter", "--target", strings.TrimSpace(string(pid)), "--net", "ip", "route", "replace", linkLocal, "via", suite.Plane.Address())
	if out, err := route.CombinedOutput(); err != nil {
		t.Fatalf("cannot give the node a route to %s: %v: %s", linkLocal, err, out)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(linkLocal, "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

// link is the machine's interface to the node.
func link(t *testing.T) string {
	t.Helper()
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range all {
		addresses, err := i.Addrs()
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range addresses {
			if strings.HasPrefix(a.String(), suite.Plane.Address()+"/") {
				return i.Name
			}
		}
	}
	t.Fatalf("no interface has address %s", suite.Plane.Address())
	return ""
}
