package install

func secret(name, namespace, kind string) string {
	return "apiVersion: v1\nkind: Secret\nmetadata: {name: " + name + ", namespace: " + namespace + "}\ntype: " + kind + "\nstringData: {.dockerconfigjson: '{\"auths\":{}}'}"
}

func binding(namespace, role string) string {
	return "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: steading-test, namespace: " + namespace + "}\n" +
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: '" + role + "'}\n" +
		"subjects: [{kind: ServiceAccount, namespace: steading-system, name: provider-runtime}]"
}

func configMap(namespace string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: test, namespace: " + namespace + "}"
}

func lease(namespace string) string {
	return "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: test, namespace: " + namespace + "}\nspec: {}"
}

func contextReader(name, namespace string) string {
	return tenantReader(name, namespace, "steading:context-credential-reader")
}

func valuesReader(name, namespace string) string {
	return tenantReader(name, namespace, "steading:component-values-reader")
}

// tenantReader is a binding by which the provider would read in a namespace.
func tenantReader(name, namespace, role string) string {
	return "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: " + name + ", namespace: " + namespace + "}\n" +
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: '" + role + "'}\n" +
		"subjects: [{kind: ServiceAccount, namespace: steading-system, name: provider-runtime}]"
}

func attemptsByProvider() map[string]map[string]attempt {
	const (
		dev    = "{app.kubernetes.io/managed-by: steading, steading.dev/tenant: acme, steading.dev/environment: test}"
		docker = "kubernetes.io/dockerconfigjson"
	)
	return map[string]map[string]attempt{
		"refuse-provider-foreign-namespaces": {
			"an environment's namespace":     {reason: "It makes them.", as: provider, do: create(namespace("acme-test", dev))},
			"a tenant's namespace":           {reason: "It makes them.", as: provider, do: create(namespace("tenant-globex", "{app.kubernetes.io/managed-by: steading, steading.dev/tenant: globex}"))},
			"deleting an environment's":      {reason: "It deletes them.", as: provider, do: remove("Namespace.v1 acme-dev")},
			"annotating an environment's":    {reason: "It keeps them.", as: provider, do: change("Namespace.v1 acme-dev", "metadata: {annotations: {steading.dev/host-suffix: .acme-dev.example.org}}")},
			"a composite made anew":          {reason: "Its UID changes when an operator lets it adopt.", as: provider, do: change("Namespace.v1 acme-dev", "metadata: {labels: {steading.dev/composite-uid: x}}")},
			"somebody else's own namespace":  {reason: "The policy is the provider's only.", as: argocd, do: create(namespace("whatever", "{}"))},
			"a namespace without identity":   {reason: "It could not be told whose it is.", as: provider, do: create(namespace("acme-test", "{}")), want: "namespace acme-test does not carry Steading's identity"},
			"a name that does not follow":    {reason: "Identity and name are one.", as: provider, do: create(namespace("kube-test", dev)), want: "namespace kube-test does not carry Steading's identity"},
			"deleting somebody's namespace":  {reason: "It is not ours.", as: provider, do: remove("Namespace.v1 foreign"), want: "namespace foreign does not carry Steading's identity"},
			"labelling somebody's namespace": {reason: "That does not make it ours.", as: provider, do: change("Namespace.v1 tenant-squatter", "metadata: {labels: {app.kubernetes.io/managed-by: steading, steading.dev/tenant: squatter}}"), want: "the provider may not touch it"},
			"giving one to another tenant":   {reason: "Whose it is does not change.", as: provider, do: change("Namespace.v1 acme-dev", "metadata: {labels: {steading.dev/tenant: globex}}"), want: "the provider may not change whose it is"},
		},
		"refuse-provider-elsewhere": {
			"a quota in an environment":         {reason: "It makes them.", as: provider, do: apply("apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: steading-quota, namespace: acme-dev}")},
			"a binding in an environment":       {reason: "It makes them.", as: provider, do: apply(binding("acme-dev", "steading:environment-deployer"))},
			"a binding in a tenant's namespace": {reason: "It makes them.", as: provider, do: apply(binding("tenant-acme", "steading:tenant-owner"))},
			"a pull secret in an environment":   {reason: "It copies them.", as: provider, do: apply(secret("steading-pull", "acme-night", docker))},
			"a pull secret that is there":       {reason: "It keeps them.", as: provider, do: apply(secret("steading-pull", "acme-dev", docker))},
			"a token of an environment":         {reason: "It deploys with them.", as: provider, do: token("acme-dev/steading-deployer")},
			"a role to read a Tenant":           {reason: "Owners see what they use.", as: provider, do: apply(reader("steading-system", "[tenants, tenants/status]", "[acme]", "[get, list, watch]"))},
			"a binding to read a Tenant":        {reason: "As above.", as: operator, do: apply(readerBinding("steading-owners-acme"))},
			"a context's credential":            {reason: "It keeps the last good one.", as: provider, do: create(secret("acme-test-credential", "steading-system", "steading.dev/context-credential"))},
			"a binding to read a credential":    {reason: "It reads what a Context names.", as: provider, do: apply(contextReader("steading-context-test", "tenant-acme"))},
			"a binding to read environments'":   {reason: "Their Secrets are none of its business.", as: provider, do: apply(contextReader("steading-context-test", "acme-dev")), want: "the provider may read Secrets in the namespaces of tenants' claims only"},
			"a binding to read values":          {reason: "It reads what a component refers to.", as: provider, do: apply(valuesReader("steading-values-dev.db", "tenant-acme"))},
			"a binding to read values inside":   {reason: "What an environment holds is none of its business.", as: provider, do: apply(valuesReader("steading-values-dev.db", "acme-dev")), want: "the provider may read Secrets in the namespaces of tenants' claims only"},
			"a reader by another's name":        {reason: "Its name tells what it is for.", as: provider, do: apply(valuesReader("steading-context-dev", "tenant-acme")), want: "by bindings called"},
			"a certificate that nobody needs":   {reason: "cert-manager leaves it behind.", as: provider, do: remove("Secret.v1 steading-edge/acme-dev-wildcard-tls")},
			"an issuer's account key":           {reason: "It is the operator's.", as: provider, do: remove("Secret.v1 steading-edge/account-key"), want: "may not write secrets in it"},
			"a secret of another type":          {reason: "Operators' Secrets are there.", as: provider, do: create(secret("acme-test-credential", "steading-system", docker)), want: "may not write secrets in it"},
			"somebody else elsewhere":           {reason: "The policy is the provider's only.", as: argocd, do: create(binding("foreign", "view"))},
			"a binding in kube-system":          {reason: "The deployer's role there is power over the cluster.", as: provider, do: apply(binding("kube-system", "steading:environment-deployer")), want: "namespace kube-system does not carry Steading's identity: the provider may not write rolebindings in it"},
			"a binding in steading-system":      {reason: "It would read what it may only get.", as: provider, do: apply(binding("steading-system", "steading:environment-deployer")), want: "namespace steading-system does not carry Steading's identity"},
			"a token elsewhere":                 {reason: "A name is not an identity.", as: provider, do: token("foreign/steading-deployer"), want: "may not write serviceaccounts in it"},
			"deleting a quota elsewhere":        {reason: "It is not ours.", as: provider, do: remove("ResourceQuota.v1 foreign/theirs"), want: "may not write resourcequotas in it"},
			"a pull secret elsewhere":           {reason: "It is copied into environments.", as: provider, do: apply(secret("steading-pull", "foreign", docker)), want: "may not write secrets in it"},
			"a token by way of a secret": {reason: "Kubernetes fills Secrets of that type with tokens.", as: provider,
				do:   apply("apiVersion: v1\nkind: Secret\nmetadata: {name: steading-pull, namespace: acme-night, annotations: {kubernetes.io/service-account.name: default}}\ntype: kubernetes.io/service-account-token"),
				want: "of type kubernetes.io/dockerconfigjson only"},
			"another secret as a package": {reason: "Crossplane's RBAC manager gives it more than it needs.", as: packaged,
				do: create(secret("another-one", "acme-dev", docker)), want: "the provider may write Secrets called steading-pull of type kubernetes.io/dockerconfigjson only"},
			"a role elsewhere as a package": {reason: "As above.", as: packaged,
				do: create(reader("foreign", "[tenants]", "[acme]", "[get]")), want: "may not write roles in it"},
			"a lease of its own":            {reason: "It elects a leader.", as: provider, do: create(lease("steading-system"))},
			"a lease elsewhere":             {reason: "Others elect leaders.", as: packaged, do: create(lease("kube-system")), want: "may not write leases in it"},
			"a lease in an environment":     {reason: "As above.", as: packaged, do: create(lease("acme-dev")), want: "leases in steading-system only"},
			"a ConfigMap elsewhere":         {reason: "Some say who may do what in the cluster.", as: packaged, do: create(configMap("kube-system")), want: "may not write configmaps in it"},
			"a ConfigMap in an environment": {reason: "What is there is its deployer's.", as: packaged, do: create(configMap("acme-dev")), want: "may write no ConfigMaps"},
			"a role to read every Tenant": {reason: "Owners see their own.", as: packaged,
				do: apply(reader("steading-system", "[tenants]", "[]", "[get]")), want: "the provider may let owners read the Tenant that it is named after, and nothing else"},
			"a role to read another Tenant": {reason: "As above.", as: provider,
				do: apply(reader("steading-system", "[tenants]", "[globex]", "[get]")), want: "the Tenant that it is named after"},
			"a role to change a Tenant": {reason: "Its quota is the operator's.", as: packaged,
				do: apply(reader("steading-system", "[tenants]", "[acme]", "[get, patch]")), want: "the Tenant that it is named after"},
			"a role to read secrets": {reason: "Registry credentials are there.", as: packaged,
				do: apply(reader("steading-system", "[tenants, secrets]", "[acme]", "[get]")), want: "the Tenant that it is named after"},
			"a binding to another role": {reason: "As above.", as: provider,
				do: apply(readerBinding("provider-runtime")), want: "the Tenant that it is named after"},
		},
	}
}

// reader is the Role by which the owners of acme would read their Tenant.
func reader(namespace, resources, resourceNames, verbs string) string {
	return "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: steading-owners-acme, namespace: " + namespace + "}\n" +
		"rules: [{apiGroups: [steading.dev], resources: " + resources + ", resourceNames: " + resourceNames + ", verbs: " + verbs + "}]"
}

func readerBinding(role string) string {
	return "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: steading-owners-acme, namespace: steading-system}\n" +
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: " + role + "}\n" +
		"subjects: [{kind: Group, apiGroup: rbac.authorization.k8s.io, name: acme-admins}]"
}
