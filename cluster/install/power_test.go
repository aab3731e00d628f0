package install

import (
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
)

// testPower asks the API server who may do what. May and not: "verb resource[.group] namespace/name", "-" for no namespace,
// "*" for any name.
func (c *cluster) testPower(t *testing.T) {
	cases := map[string]struct {
		reason   string
		as       user
		may, not []string
	}{
		"owner": {
			reason: "Owners write claims and their Secrets in tenant-acme, and look at what runs.",
			as:     owner,
			may: []string{
				"create environments.steading.dev tenant-acme/*", "delete contexts.steading.dev tenant-acme/edge", "patch runnerpools.steading.dev tenant-acme/linux",
				"create secrets tenant-acme/*", "list configmaps tenant-acme/*", "list events tenant-acme/*",
				"list pods acme-dev/*", "get pods/log acme-dev/x", "create pods/exec acme-dev/x", "get pods/exec acme-dev/x", "create pods/portforward acme-dev/x",
				"list deployments.apps acme-dev/*",
				"create secretstores.external-secrets.io tenant-acme/*", "delete secretstores.external-secrets.io tenant-acme/vault",
			},
			not: []string{
				"create secretstores.external-secrets.io acme-dev/*", "get secretstores.external-secrets.io tenant-victim/vault", "create clustersecretstores.external-secrets.io -/*",
				"create externalsecrets.external-secrets.io tenant-acme/*",
				"create environments.steading.dev steading-system/*", "create environments.steading.dev foreign/*", "update environments.steading.dev/status tenant-acme/dev",
				"create tenants.steading.dev steading-system/*", "patch tenants.steading.dev steading-system/acme", "get xenvironments.steading.dev -/dev-x",
				"get boundaries.runtime.steading.dev steading-system/acme-dev", "get clusterproviderconfigs.runtime.steading.dev -/default",
				"get secrets acme-dev/steading-pull", "list secrets steading-system/*", "create deployments.apps acme-dev/*", "delete pods acme-dev/x",
				"create pods tenant-acme/*", "create rolebindings.rbac.authorization.k8s.io tenant-acme/*", "update resourcequotas tenant-acme/steading-quota",
				"create serviceaccounts/token acme-dev/steading-deployer", "patch namespaces -/tenant-acme", "list namespaces -/*", "impersonate users -/admin",
			},
		},
		"operator": {
			reason: "Operators write Steading's own kinds, and credentials and settings in steading-system. The cluster is its administrators'.",
			as:     pureOperator,
			may: []string{
				"create tenants.steading.dev steading-system/*", "delete tenants.steading.dev steading-system/acme", "patch environments.steading.dev tenant-acme/dev", "list runnerpools.steading.dev -/*",
				"update clusterproviderconfigs.runtime.steading.dev -/default", "create clusterproviderconfigs.forgejo.steading.dev -/*", "delete runnerinstances.forgejo.steading.dev steading-system/x",
				"patch xenvironments.steading.dev -/dev-x", "patch boundaries.runtime.steading.dev steading-system/acme-dev", "delete usageevents.runtime.steading.dev steading-system/x",
				"create secrets steading-system/*", "list secrets steading-system/*", "patch configmaps steading-system/steading-reserved-names", "list namespaces -/*", "list events tenant-acme/*",
			},
			not: []string{
				"create namespaces -/*", "patch namespaces -/acme-ci", "delete namespaces -/tenant-acme", "create rolebindings.rbac.authorization.k8s.io acme-ci/*", "create clusterrolebindings.rbac.authorization.k8s.io -/*",
				"get secrets tenant-acme/x", "get secrets acme-dev/x", "list secrets crossplane-system/*", "list secrets steading-edge/*", "create serviceaccounts/token steading-system/provider-runtime",
				"create pods steading-system/*", "list pods acme-dev/*", "get pods/log acme-ci/x", "delete validatingadmissionpolicybindings.admissionregistration.k8s.io -/refuse-foreign-hosts.steading.dev",
				"patch deploymentruntimeconfigs.pkg.crossplane.io -/provider-runtime", "impersonate groups -/acme-admins", "impersonate users -/admin",
			},
		},
		"deployer": {
			reason: "A chart makes what it needs in its environment's namespace, and nothing anywhere else.",
			as:     deployer,
			may: []string{
				"create deployments.apps acme-dev/*", "patch statefulsets.apps acme-dev/x", "create jobs.batch acme-dev/*", "create secrets acme-dev/*", "create ingresses.networking.k8s.io acme-dev/*",
				"create persistentvolumeclaims acme-dev/*", "create roles.rbac.authorization.k8s.io acme-dev/*", "list pods acme-dev/*", "watch replicasets.apps acme-dev/*",
			},
			not: []string{
				"create deployments.apps acme-night/*", "create deployments.apps tenant-acme/*", "get secrets tenant-acme/x", "get secrets kube-system/x", "list secrets -/*",
				"create daemonsets.apps acme-dev/*", "create pods acme-dev/*", "update resourcequotas acme-dev/steading-quota", "update limitranges acme-dev/steading-limits",
				"create serviceaccounts/token acme-dev/x", "escalate roles.rbac.authorization.k8s.io acme-dev/*", "bind clusterroles.rbac.authorization.k8s.io -/admin",
				"create clusterroles.rbac.authorization.k8s.io -/*", "get namespaces -/acme-dev", "create environments.steading.dev acme-dev/*",
				"create customresourcedefinitions.apiextensions.k8s.io -/*", "impersonate serviceaccounts acme-dev/x",
			},
		},
		"provider": {
			reason: "It keeps its own kinds and makes namespaces and what holds them in.",
			as:     provider,
			may: []string{
				"update boundaries.runtime.steading.dev steading-system/x", "update boundaries.runtime.steading.dev/status steading-system/x", "create ledgers.runtime.steading.dev steading-system/*",
				"create usageevents.runtime.steading.dev steading-system/*", "update environments.steading.dev/status tenant-acme/dev", "delete environments.steading.dev tenant-acme/dev",
				"create namespaces -/*", "delete namespaces -/acme-dev", "patch networkpolicies.networking.k8s.io acme-dev/x", "create events tenant-acme/*",
				"get secrets steading-system/x", "get secrets acme-dev/steading-pull", "create secrets acme-dev/steading-pull", "create serviceaccounts/token acme-dev/steading-deployer",
				"create dnsendpoints.externaldns.k8s.io steading-edge/*", "update certificates.cert-manager.io steading-edge/x", "list challenges.acme.cert-manager.io steading-edge/*",
				"delete secrets steading-edge/x", "create edgeremainders.runtime.steading.dev steading-system/*", "watch ingresses.networking.k8s.io -/*",
				"get customresourcedefinitions.apiextensions.k8s.io -/homes.runtime.steading.dev", "watch pods -/*", "watch replicasets.apps -/*", "list configmaps -/*", "list services acme-dev/*", "list cronjobs.batch acme-dev/*",
				"update boundaries.runtime.steading.dev/finalizers steading-system/x", "update clusters.runtime.steading.dev/finalizers steading-system/x",
				"update edges.runtime.steading.dev/finalizers steading-system/x", "update homes.runtime.steading.dev/finalizers steading-system/x",
				"update placements.runtime.steading.dev/finalizers steading-system/x", "update releases.runtime.steading.dev/finalizers steading-system/x",
				"bind clusterroles.rbac.authorization.k8s.io -/steading:environment-deployer", "update leases.coordination.k8s.io steading-system/provider-runtime",
			},
			not: []string{
				"create boundaries.runtime.steading.dev steading-system/*", "delete boundaries.runtime.steading.dev steading-system/x", "update boundaries.runtime.steading.dev acme-dev/x",
				"update usageevents.runtime.steading.dev steading-system/x", "delete usageevents.runtime.steading.dev steading-system/x",
				"create environments.steading.dev tenant-acme/*", "update environments.steading.dev tenant-acme/dev", "delete tenants.steading.dev steading-system/acme",
				"get xenvironments.steading.dev -/dev-x", "list secrets -/*", "list secrets steading-system/*", "watch secrets -/*", "get secrets acme-dev/x", "get secrets kube-system/x",
				"create dnsendpoints.externaldns.k8s.io acme-dev/*", "create certificates.cert-manager.io acme-dev/*", "create secrets steading-edge/*", "update secrets steading-edge/x",
				"create ingresses.networking.k8s.io acme-dev/*", "update customresourcedefinitions.apiextensions.k8s.io -/homes.runtime.steading.dev", "get customresourcedefinitions.apiextensions.k8s.io -/xtenants.steading.dev", "delete challenges.acme.cert-manager.io steading-edge/x",
				"create secrets acme-dev/*", "update secrets acme-dev/x", "create serviceaccounts/token acme-dev/default", "create serviceaccounts/token kube-system/default",
				"create pods acme-dev/*", "get pods/log acme-dev/x", "create pods/exec acme-dev/x", "create deployments.apps acme-dev/*", "create roles.rbac.authorization.k8s.io acme-dev/*",
				"create clusterroles.rbac.authorization.k8s.io -/*", "create clusterrolebindings.rbac.authorization.k8s.io -/*",
				"bind clusterroles.rbac.authorization.k8s.io -/cluster-admin", "bind clusterroles.rbac.authorization.k8s.io -/admin", "escalate roles.rbac.authorization.k8s.io acme-dev/*",
				"get configmaps steading-system/x", "update leases.coordination.k8s.io kube-system/x", "impersonate users -/admin", "get nodes -/*",
				"update runners.forgejo.steading.dev steading-system/x", "create runnerinstances.forgejo.steading.dev steading-system/*",
			},
		},
		"provider of runners": {
			reason: "It keeps pools and runners, and acts where an operator let it.",
			as:     forgejo,
			may: []string{
				"update runners.forgejo.steading.dev/status steading-system/acme-linux", "patch runners.forgejo.steading.dev steading-system/acme-linux",
				"create runnerinstances.forgejo.steading.dev steading-system/*", "delete runnerinstances.forgejo.steading.dev steading-system/x", "update runnerinstances.forgejo.steading.dev/status steading-system/x",
				"update runnerinstances.forgejo.steading.dev/finalizers steading-system/x", "update runners.forgejo.steading.dev/finalizers steading-system/x",
				"watch runnerpools.steading.dev tenant-acme/*", "update runnerpools.steading.dev/status tenant-acme/linux", "create events tenant-acme/*", "get namespaces -/acme-ci", "watch pods -/*",
				"create jobs.batch acme-ci/*", "patch jobs.batch acme-ci/x", "create virtualmachines.kubevirt.io acme-ci/*", "create secrets acme-ci/*", "delete secrets acme-ci/x", "patch resourcequotas acme-ci/steading-runners",
				"create networkpolicies.networking.k8s.io acme-ci/*", "get virtualmachineinstances.kubevirt.io acme-ci/x",
				"bind clusterroles.rbac.authorization.k8s.io -/steading:runner-spawner", "bind clusterroles.rbac.authorization.k8s.io -/steading:runner-token-reader", "update leases.coordination.k8s.io steading-system/provider-forgejo",
				"get customresourcedefinitions.apiextensions.k8s.io -/runners.forgejo.steading.dev",
				"update providerconfigs.forgejo.steading.dev steading-system/x", "update providerconfigs.forgejo.steading.dev/status steading-system/x",
				"delete providerconfigusages.forgejo.steading.dev steading-system/x", "update providerconfigusages.forgejo.steading.dev steading-system/x",
			},
			not: []string{
				"create runners.forgejo.steading.dev steading-system/*", "delete runners.forgejo.steading.dev steading-system/acme-linux", "create runnerinstances.forgejo.steading.dev acme-ci/*",
				"update runnerpools.steading.dev tenant-acme/linux", "delete runnerpools.steading.dev tenant-acme/linux", "list environments.steading.dev tenant-acme/*", "get xrunnerpools.steading.dev -/linux-x",
				"get secrets tenant-acme/forgejo-pat", "list secrets -/*", "get secrets steading-system/x", "get secrets foreign/x", "update secrets acme-ci/x", "create secrets foreign/*",
				"create jobs.batch foreign/*", "delete jobs.batch foreign/x", "create pods acme-ci/*", "delete pods acme-ci/x", "create pods/exec acme-ci/x", "get pods/log acme-ci/x", "create serviceaccounts/token acme-ci/steading-runner",
				"create virtualmachineinstances.kubevirt.io acme-ci/*", "create roles.rbac.authorization.k8s.io acme-ci/*", "create clusterrolebindings.rbac.authorization.k8s.io -/*",
				"bind clusterroles.rbac.authorization.k8s.io -/admin", "bind clusterroles.rbac.authorization.k8s.io -/steading:environment-deployer", "create namespaces -/*", "patch namespaces -/acme-ci", "delete namespaces -/acme-ci",
				"update homes.runtime.steading.dev steading-system/x", "list ledgers.runtime.steading.dev steading-system/*", "update leases.coordination.k8s.io kube-system/x", "impersonate users -/admin", "get nodes -/*",
			},
		},
		"function": {
			reason: "Functions are asked and ask nobody.",
			as:     function,
			not: []string{
				"get configmaps steading-system/x", "get secrets steading-system/x", "list environments.steading.dev tenant-acme/*", "get boundaries.runtime.steading.dev steading-system/x",
				"list pods acme-dev/*", "create events steading-system/*",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, q := range tc.may {
				if !c.allowed(t, tc.as, q) {
					t.Errorf("%s\n%s may %s: got no, want yes", tc.reason, tc.as.name, q)
				}
			}
			for _, q := range tc.not {
				if c.allowed(t, tc.as, q) {
					t.Errorf("%s\n%s may %s: got yes, want no", tc.reason, tc.as.name, q)
				}
			}
		})
	}
}

func (c *cluster) allowed(t *testing.T, u user, question string) bool {
	t.Helper()
	words := strings.Fields(question)
	what, subresource, _ := strings.Cut(words[1], "/")
	resource, group, _ := strings.Cut(what, ".")
	namespace, name, _ := strings.Cut(words[2], "/")
	r := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: u.name, Groups: append([]string{"system:authenticated"}, u.groups...),
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: words[0], Group: group, Resource: resource, Subresource: subresource,
			Namespace: strings.TrimPrefix(namespace, "-"), Name: strings.TrimPrefix(name, "*"),
		},
	}}
	if err := c.plane.Client().Create(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	return r.Status.Allowed
}

// testGrants tries to hand out power.
func (c *cluster) testGrants(t *testing.T) {
	role := func(name, namespace, rule string) string {
		return "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: " + name + ", namespace: " + namespace + "}\nrules: [" + rule + "]"
	}
	mine := func(kind, name string) string {
		return "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: mine, namespace: acme-dev}\n" +
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: " + kind + ", name: '" + name + "'}\nsubjects: [{kind: ServiceAccount, namespace: acme-dev, name: acme-devops}]"
	}
	cases := map[string]struct {
		attempt
		refused bool
	}{
		"a chart lets its account read secrets": {attempt: attempt{reason: "They are the environment's own.", as: deployer,
			do: create(role("mine", "acme-dev", "{apiGroups: [''], resources: [secrets], verbs: [get]}"))}},
		"a chart gives the owners' power": {attempt: attempt{reason: "The runtime may what its owners may.", as: deployer, do: create(mine("ClusterRole", "steading:environment-owner"))}},
		"a chart gives power over nodes": {refused: true, attempt: attempt{reason: "It has none.", as: deployer,
			do: create(role("mine", "acme-dev", "{apiGroups: [''], resources: [nodes], verbs: [get]}"))}},
		"a chart gives everything":       {refused: true, attempt: attempt{reason: "It has less.", as: deployer, do: create(mine("ClusterRole", "cluster-admin"))}},
		"a chart gives the admin's role": {refused: true, attempt: attempt{reason: "It has less.", as: deployer, do: create(mine("ClusterRole", "admin"))}},
		"the provider gives everything":  {refused: true, attempt: attempt{reason: "It may bind three roles.", as: provider, do: apply(binding("acme-dev", "cluster-admin"))}},
		"the provider makes a role that reads secrets": {refused: true, attempt: attempt{reason: "It makes no roles in namespaces.", as: provider,
			do: apply(role("steading-x", "acme-dev", "{apiGroups: [''], resources: [secrets], verbs: [get]}"))}},
		"the provider makes a secret of another name": {refused: true, attempt: attempt{reason: "Its right to create goes by name.", as: provider,
			do: apply(secret("another", "acme-dev", "Opaque"))}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := tc.do(t.Context(), c.as(t, tc.as))
			switch {
			case !tc.refused && err != nil:
				t.Errorf("%s\n%s: got refused: %v", tc.reason, tc.as.name, err)
			case tc.refused && (!kerrors.IsForbidden(err) || strings.Contains(err.Error(), "ValidatingAdmissionPolicy")):
				t.Errorf("%s\n%s: got %v, want refused by RBAC", tc.reason, tc.as.name, err)
			}
		})
	}
}
