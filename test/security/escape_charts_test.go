package security

import (
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/test/harness"
	"github.com/steading-dev/steading/test/harness/try"
)

// customResource is a CRD that charts bring along.
const customResource = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: evils.example.com}
spec:
  group: example.com
  names: {kind: Evil, plural: evils}
  scope: Cluster
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`

// TestHostileCharts: what a chart may not make is refused by name, and nothing of the chart is made. The same chart without
// it is deployed.
func TestHostileCharts(t *testing.T) {
	suite.NewTenant(t, "hostile", steading.TenantSpec{Quota: steading.Quota{PerEnvironment: steading.MustResources("1", "1Gi", "1Gi")}})
	cases := map[string]struct {
		template string
		says     string
		made     string // what must not exist afterwards
		crds     []*chart.File
	}{
		"namespace": {template: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: evil, namespace: kube-system}\n",
			says: `the chart wants ConfigMap "evil" in namespace kube-system`, made: "ConfigMap.v1 kube-system/evil"},
		"anothers": {template: "apiVersion: v1\nkind: Secret\nmetadata: {name: evil, namespace: steading-system}\n",
			says: `the chart wants Secret "evil" in namespace steading-system`, made: "Secret.v1 steading-system/evil"},
		"in-a-list": {template: "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: evil, namespace: default}}]\n",
			says: `the chart wants ConfigMap "evil" in namespace default`, made: "ConfigMap.v1 default/evil"},
		"cluster-role": {template: "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: evil}\nrules: []\n",
			says: `the chart wants ClusterRole "evil", which is not of a namespace`, made: "ClusterRole.rbac.authorization.k8s.io/v1 evil"},
		"binding": {template: "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: evil}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\n",
			says: `the chart wants ClusterRoleBinding "evil", which is not of a namespace`, made: "ClusterRoleBinding.rbac.authorization.k8s.io/v1 evil"},
		"own-namespace": {template: "apiVersion: v1\nkind: Namespace\nmetadata: {name: hostile-own-namespace, labels: {pod-security.kubernetes.io/enforce: privileged}}\n",
			says: `the chart wants Namespace "hostile-own-namespace", which is not of a namespace`, made: "ConfigMap.v1 hostile-own-namespace/harmless"},
		"crd": {template: customResource, says: `the chart wants CustomResourceDefinition "evils.example.com", which is not of a namespace`,
			made: "CustomResourceDefinition.apiextensions.k8s.io/v1 evils.example.com"},
		"crds": {crds: []*chart.File{{Name: "crds/evil.yaml", Data: []byte(customResource)}},
			says: "the chart brings the CustomResourceDefinition in crds/crds/evil.yaml", made: "CustomResourceDefinition.apiextensions.k8s.io/v1 evils.example.com"},
		"unknown": {template: "apiVersion: example.com/v1\nkind: Evil\nmetadata: {name: evil}\n",
			says: `the chart wants Evil "evil", a kind that the cluster does not know`, made: "ConfigMap.v1 hostile-unknown/harmless"},
		"hook": {template: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: evil, annotations: {helm.sh/hook: pre-install}}\n",
			says: `the chart wants a hook, ConfigMap "evil" in`, made: "ConfigMap.v1 hostile-hook/evil"},
		"foreign-hook": {template: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: evil, namespace: kube-system, annotations: {helm.sh/hook: 'test,post-delete'}}\n",
			says: `the chart wants a hook, ConfigMap "evil" in`, made: "ConfigMap.v1 kube-system/evil"},
		"guard-rails": {template: "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: steading-open}\nspec: {podSelector: {}, egress: [{}]}\n",
			says: "refuse-changing-guard-rails", made: "NetworkPolicy.networking.k8s.io/v1 hostile-guard-rails/steading-open"},
		"hosts": {template: "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: evil}\nspec: {defaultBackend: {service: {name: s, port: {number: 80}}}}\n",
			says: "refuse-foreign-hosts", made: "Ingress.networking.k8s.io/v1 hostile-hosts/evil"},
		"dns-names": {template: "apiVersion: v1\nkind: Service\nmetadata: {name: evil, annotations: {external-dns.alpha.kubernetes.io/hostname: www.example.com}}\nspec: {ports: [{port: 443}]}\n",
			says: "annotation external-dns.alpha.kubernetes.io/hostname may not be on Service evil", made: "Service.v1 hostile-dns-names/evil"},
		"addresses": {template: "apiVersion: v1\nkind: Service\nmetadata: {name: evil}\nspec: {externalIPs: [203.0.113.7], ports: [{port: 443}]}\n",
			says: "Service evil may not have spec.externalIPs in namespace hostile-addresses", made: "Service.v1 hostile-addresses/evil"},
		"external-name": {template: "apiVersion: v1\nkind: Service\nmetadata: {name: evil}\nspec: {type: ExternalName, externalName: kubernetes.default.svc}\n",
			says: "Service evil may not be of type ExternalName in namespace hostile-external-name", made: "Service.v1 hostile-external-name/evil"},
		"role": {template: "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: evil}\nrules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]\n",
			says: "attempting to grant RBAC permissions not currently held", made: "Role.rbac.authorization.k8s.io/v1 hostile-role/evil"},
		"lookup": {template: `{{ $s := lookup "v1" "Secret" "steading-system" "" }}apiVersion: v1` + "\nkind: ConfigMap\nmetadata: {name: evil}\ndata: {loot: {{ toJson $s | quote }}}\n",
			says: "cannot list resource", made: "ConfigMap.v1 hostile-lookup/evil"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			useChart(t, pushChart(t, name, tc.template, tc.crds...))
			e := environmentOf("hostile", name)
			suite.Create(t, e)
			suite.WaitFor(t, e, "refused", func(e *steading.Environment) bool {
				status, _, message := harness.Condition(e, string(steading.ConditionDeployed))
				return status == "False" && strings.Contains(message, tc.says)
			})
			wantMissing(t, tc.made)
		})
	}
	t.Run("harmless", func(t *testing.T) {
		useChart(t, pushChart(t, "harmless", ""))
		e := environmentOf("hostile", "harmless")
		suite.Create(t, e)
		suite.WaitFor(t, e, "ready", harness.Ready)
	})
}

// TestChartsLookUpAsTheirDeployer: a chart that looks for another's Secret finds it only when the deployer of its own
// namespace may read it. So nothing but its power keeps charts in.
func TestChartsLookUpAsTheirDeployer(t *testing.T) {
	suite.NewTenant(t, "looks", steading.TenantSpec{})
	loot := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: "loot"}, StringData: map[string]string{"a": "b"}}
	suite.Create(t, loot)
	useChart(t, pushChart(t, "looks", `{{ with lookup "v1" "Secret" "steading-system" "loot" }}
apiVersion: v1
kind: ConfigMap
metadata: {name: loot}
data: {loot: {{ .data.a | quote }}}
{{ end }}`))
	e := environmentOf("looks", "dev")
	suite.Create(t, e)
	suite.WaitFor(t, e, "refused", func(e *steading.Environment) bool {
		status, _, message := harness.Condition(e, string(steading.ConditionDeployed))
		return status == "False" && strings.Contains(message, `"loot" is forbidden`)
	})
	wantMissing(t, "ConfigMap.v1 looks-dev/loot")

	everything(t, suite.Admin, "security-looks", rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "looks-dev", Name: names.Deployer})
	harness.Change(t, &suite, e, func(e *steading.Environment) { e.Spec.Version = "1.4.3" })
	suite.WaitFor(t, e, "ready", harness.Ready)
	found := harness.Get(t, &suite, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "looks-dev", Name: "loot"}})
	if found.Data["loot"] != "Yg==" {
		t.Errorf("data %v", found.Data)
	}
}

// environmentOf a tenant, small.
func environmentOf(tenant, name string) *steading.Environment {
	e := harness.Environment(tenant, name)
	e.Spec.Size = steading.MustResources("1", "1Gi", "1Gi")
	return e
}

// wantMissing expects an object not to exist.
func wantMissing(t *testing.T, id string) {
	t.Helper()
	o := try.Object(id)
	if err := suite.Admin.Get(t.Context(), client.ObjectKeyFromObject(o), o); !kerrors.IsNotFound(err) {
		t.Errorf("%s: got %v, want not found", id, err)
	}
}
