package security

import (
	"maps"
	"strings"
)

// Policies that refuse.
const (
	accountTokens    = "refuse-account-tokens"
	composites       = "refuse-changing-composites"
	guardRails       = "refuse-changing-guard-rails"
	managedResources = "refuse-changing-managed-resources"
	namespaces       = "refuse-changing-namespaces"
	usageEvents      = "refuse-changing-usage-events"
	claimNames       = "refuse-claim-names"
	claimsElsewhere  = "refuse-claims-elsewhere"
	contextPlatform  = "refuse-context-platform"
	deletingManaged  = "refuse-deleting-managed-resources"
	externalServices = "refuse-external-services"
	foreignHosts     = "refuse-foreign-hosts"
	hostAnnotations  = "refuse-host-annotations"
	machinery        = "refuse-machinery-fields"
	moving           = "refuse-moving-environments"
	reservedNames    = "refuse-reserved-tenant-names"
	runnersFor       = "refuse-runners-for"
	runnersGuarded   = "refuse-changing-runners"
	tenantNames      = "refuse-tenant-names"
	tenantsElsewhere = "refuse-tenants-elsewhere"
	ledgers          = "refuse-writing-ledgers"
)

const (
	dev     = "Environment.steading.dev/v1alpha1 tenant-esc/dev"
	edge    = "Context.steading.dev/v1alpha1 tenant-esc/edge"
	longest = "a23456789012345678901234567890123456789012"
)

func environment(namespace, name, spec string) string {
	return "apiVersion: steading.dev/v1alpha1\nkind: Environment\nmetadata: {name: " + name + ", namespace: " + namespace + "}\nspec: " + spec
}

func contextOf(namespace, name string) string {
	return "apiVersion: steading.dev/v1alpha1\nkind: Context\nmetadata: {name: " + name + ", namespace: " + namespace + "}\n" +
		"spec: {server: 'https://203.0.113.7:6443', caBundle: LS0t, credentials: {secretRef: {name: x}}}"
}

func tenant(namespace, name string) string {
	return "apiVersion: steading.dev/v1alpha1\nkind: Tenant\nmetadata: {name: " + name + ", namespace: " + namespace + "}\nspec: {}"
}

func configMap(namespace string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: " + namespace + "}"
}

func ingress(namespace, host string) string {
	return "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: x, namespace: " + namespace + "}\n" +
		"spec: {rules: [{host: '" + host + "', http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: s, port: {number: 80}}}}]}}]}"
}

func service(namespace, annotations, spec string) string {
	return "apiVersion: v1\nkind: Service\nmetadata: {name: x, namespace: " + namespace + ", annotations: " + annotations + "}\nspec: " + spec
}

func networkPolicy(namespace, name string) string {
	return "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: " + name + ", namespace: " + namespace + "}\nspec: {podSelector: {}, ingress: [{}], egress: [{}]}"
}

func bindingOf(namespace, name, role, subject string) string {
	return "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: " + name + ", namespace: " + namespace + "}\n" +
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: " + role + "}\nsubjects: [" + subject + "]"
}

const runtimeType = "{type: runtime}"

// attempts to escape from tenant esc, whose neighbour is tenant vic.
func attempts() map[string]attempt {
	all := map[string]attempt{}
	for _, some := range []map[string]attempt{allowed(), onTenants(), onClaims(), onMachinery(), onPlatform(), inside(), onTheEdge(), onRunners()} {
		maps.Copy(all, some)
	}
	return all
}

// allowed is what an owner does every day: without it the rest would show nothing.
func allowed() map[string]attempt {
	return map[string]attempt{
		"own/environment": {reason: "It is what he is there for.", as: owner, do: create(environment("tenant-esc", longest, runtimeType))},
		"own/context":     {reason: "As above.", as: owner, do: create(contextOf("tenant-esc", "more"))},
		"own/secret":      {reason: "Contexts need credentials.", as: owner, do: read("Secret.v1 tenant-esc/x")},
		"own/store":       {reason: "Contexts' credentials may be fetched from it.", as: owner, do: create(store("tenant-esc"))},
		"own/tenant":      {reason: "He sees his quota.", as: owner, do: read("Tenant.steading.dev/v1alpha1 steading-system/esc")},
		"own/version":     {reason: "He decides what runs.", as: owner, do: change(dev, "spec: {version: 1.4.3}")},
		"own/label":       {reason: "Labels of his own.", as: owner, do: change(dev, "metadata: {labels: {team: web}}")},
		"own/pods":        {reason: "He looks at what runs.", as: owner, do: list("Pod.v1 esc-dev/")},
		"own/chart":       {reason: "Charts make things.", as: deployer, do: create(configMap("esc-dev"))},
		"own/far chart":   {reason: "On the edge too.", as: onEdge, do: create(configMap("esc-far"))},
		"own/role":        {reason: "A chart hands on what it has.", as: deployer, do: create(bindingOf("esc-dev", "x", "steading:environment-owner", "{kind: ServiceAccount, name: x, namespace: esc-dev}"))},
	}
}

// onRunners are attempts on namespaces that runners run in: esc-ci was given to the tenant.
func onRunners() map[string]attempt {
	return map[string]attempt{
		"runners/take a namespace": {reason: "An operator says where jobs run.", as: owner, do: create("apiVersion: v1\nkind: Namespace\nmetadata: {name: esc-taken, labels: {steading.dev/runners-for: esc}}"), by: []string{rbac, runnersFor}},
		"runners/open the network": {reason: "Jobs would be reached, and reach what they may not.", as: owner, do: create(networkPolicy("esc-ci", "steading-open")), by: []string{rbac, runnersGuarded}},
		"runners/read credentials": {reason: "They are a runner's own.", as: owner, do: list("Secret.v1 esc-ci/"), by: []string{rbac}},
		"runners/read all records": {reason: "They are of all tenants.", as: owner, do: list("RunnerInstance.forgejo.steading.dev/v1alpha1 steading-system/"), by: []string{rbac}},
	}
}

// onTenants are attempts on other tenants, and on tenants as such.
func onTenants() map[string]attempt {
	return map[string]attempt{
		"tenant/read another's claims":    {reason: "They are not his.", as: owner, do: list("Environment.steading.dev/v1alpha1 tenant-vic/"), by: []string{rbac}},
		"tenant/read everybody's claims":  {reason: "Neither are all.", as: owner, do: list("Environment.steading.dev/v1alpha1 /"), by: []string{rbac}},
		"tenant/make another's claim":     {reason: "It would use his budget.", as: owner, do: create(environment("tenant-vic", "x", runtimeType)), by: []string{rbac}},
		"tenant/stop another's":           {reason: "It is not his to stop.", as: owner, do: change("Environment.steading.dev/v1alpha1 tenant-vic/web", "spec: {state: Stopped}"), by: []string{rbac}},
		"tenant/delete another's":         {reason: "As above.", as: owner, do: remove("Environment.steading.dev/v1alpha1 tenant-vic/web"), by: []string{rbac}},
		"tenant/read another's secrets":   {reason: "Credentials of contexts are there.", as: owner, do: list("Secret.v1 tenant-vic/"), by: []string{rbac}},
		"tenant/use another's store":      {reason: "Credentials of contexts are there.", as: owner, do: create(store("tenant-vic")), by: []string{rbac}},
		"tenant/read another's store":     {reason: "It says where they are.", as: owner, do: list("SecretStore.external-secrets.io/v1 tenant-vic/"), by: []string{rbac}},
		"tenant/store of the environment": {reason: "Its Secrets are its release's.", as: owner, do: create(store("esc-dev")), by: []string{rbac}},
		"tenant/look into another's":      {reason: "What runs there is not his.", as: owner, do: list("Pod.v1 vic-web/"), by: []string{rbac}},
		"tenant/read another's tenant":    {reason: "His quota is his.", as: owner, do: read("Tenant.steading.dev/v1alpha1 steading-system/vic"), by: []string{rbac}},
		"tenant/list tenants":             {reason: "Who else is there is not his business.", as: owner, do: list("Tenant.steading.dev/v1alpha1 steading-system/"), by: []string{rbac}},
		"tenant/raise the own quota":      {reason: "The operator gives it.", as: owner, do: change("Tenant.steading.dev/v1alpha1 steading-system/esc", "spec: {quota: {maxEnvironments: 1000}}"), by: []string{rbac}},
		"tenant/allow docker":             {reason: "It is privileged.", as: owner, do: change("Tenant.steading.dev/v1alpha1 steading-system/esc", "spec: {docker: Allowed}"), by: []string{rbac}},
		"tenant/write the own status":     {reason: "It would say what is not so.", as: owner, do: changeStatus("Tenant.steading.dev/v1alpha1 steading-system/esc", "status: {phase: Ready}"), by: []string{rbac}},
		"tenant/make one":                 {reason: "Operators do.", as: owner, do: create(tenant("steading-system", "esc2")), by: []string{rbac}},
		"tenant/make one at home":         {reason: "Tenants live in steading-system.", as: owner, do: create(tenant("tenant-esc", "esc2")), by: []string{rbac, tenantsElsewhere}},
		"tenant/kube":                     {reason: "Its environment system would be kube-system.", as: owner, do: create(tenant("steading-system", "kube")), by: []string{rbac, reservedNames}},
		"tenant/steading":                 {reason: "Its environment system would be steading-system.", as: owner, do: create(tenant("steading-system", "steading")), by: []string{rbac, reservedNames}},
		"tenant/tenant":                   {reason: "Its environment vic would be tenant-vic.", as: owner, do: create(tenant("steading-system", "tenant")), by: []string{rbac, reservedNames}},
		"tenant/kube-system":              {reason: "A hyphen would split two ways.", as: owner, do: create(tenant("steading-system", "kube-system")), by: []string{rbac, tenantNames}},
		"tenant/vic-web":                  {reason: "Its namespaces would begin like another's.", as: owner, do: create(tenant("steading-system", "vic-web")), by: []string{rbac, tenantNames}},
	}
}

// onClaims are attempts by claims: in the wrong place, and with names that do not fit.
func onClaims() map[string]attempt {
	all := map[string]attempt{
		"claim/double hyphen":    {reason: "Others fold hyphens.", as: owner, do: create(environment("tenant-esc", "a--b", runtimeType)), by: []string{claimNames}},
		"claim/dot":              {reason: "A namespace has none.", as: owner, do: create(environment("tenant-esc", "a.b", runtimeType)), by: []string{claimNames}},
		"claim/too long":         {reason: "A namespace has at most 63 characters.", as: owner, do: create(environment("tenant-esc", longest+"3", runtimeType)), by: []string{claimNames}},
		"claim/long context":     {reason: "As above.", as: owner, do: create(contextOf("tenant-esc", longest+"3")), by: []string{claimNames}},
		"claim/context platform": {reason: "It would shadow the platform's own cluster.", as: owner, do: create(contextOf("tenant-esc", "platform")), by: []string{contextPlatform}},
		"claim/move":             {reason: "Its volumes would stay behind.", as: owner, do: change(dev, "spec: {contextRef: {name: edge}}"), by: []string{moving}},
		"claim/write the status": {reason: "A grant is told there.", as: owner, do: changeStatus(dev, "status: {caps: {cpu: '64'}}"), by: []string{rbac}},
	}
	for _, namespace := range []string{"default", "kube-system", "steading-system", "steading-edge", "esc-dev", "vic-web"} {
		all["claim/environment in "+namespace] = attempt{reason: "Claims live in tenant-<tenant>.", as: owner, do: create(environment(namespace, "x", runtimeType)), by: []string{rbac, claimsElsewhere}}
		all["claim/context in "+namespace] = attempt{reason: "As above.", as: owner, do: create(contextOf(namespace, "x")), by: []string{rbac, claimsElsewhere}}
	}
	return all
}

// onMachinery are attempts on what Crossplane keeps in claims, and on what operators say by annotation.
func onMachinery() map[string]attempt {
	all := map[string]attempt{}
	for field, value := range map[string]string{
		"resourceRef":                 "{apiVersion: steading.dev/v1alpha1, kind: XEnvironment, name: vic}",
		"compositionRef":              "{name: mine}",
		"compositionSelector":         "{matchLabels: {a: b}}",
		"compositionRevisionRef":      "{name: mine}",
		"compositionRevisionSelector": "{matchLabels: {a: b}}",
		"compositionUpdatePolicy":     "Manual",
		"compositeDeletePolicy":       "Background",
		"writeConnectionSecretToRef":  "{name: mine}",
	} {
		all["machinery/new with "+field] = attempt{reason: "Crossplane keeps it.", as: owner, do: create(environment("tenant-esc", "x", "{type: runtime, "+field+": "+value+"}")), by: []string{machinery}}
		all["machinery/change "+field] = attempt{reason: "Crossplane keeps it.", as: owner, do: change(dev, "spec: {"+field+": "+value+"}"), by: []string{machinery}}
		all["machinery/change of a context "+field] = attempt{reason: "Contexts are claims.", as: owner, do: change(edge, "spec: {"+field+": "+value+"}"), by: []string{machinery}}
	}
	for _, field := range []string{"resourceRef", "compositionRef", "compositionRevisionRef"} {
		all["machinery/drop "+field] = attempt{reason: "The composite would be orphaned or bound anew.", as: owner, do: change(dev, "spec: {"+field+": null}"), by: []string{machinery}}
	}
	for _, mark := range []string{
		"crossplane.io/paused", "crossplane.io/external-name", "crossplane.io/composition-resource-name", "crossplane.io/external-create-pending",
		"internal.crossplane.io/x", "steading.dev/adopt-from", "steading.dev/abandon", "steading.dev/break-glass",
	} {
		all["machinery/annotation "+mark] = attempt{reason: "It tells Crossplane or us what to do.", as: owner, do: change(dev, "metadata: {annotations: {"+mark+": 'true'}}"), by: []string{machinery}}
		all["machinery/new with annotation "+mark] = attempt{reason: "As above.", as: owner,
			do: create(strings.Replace(environment("tenant-esc", "x", runtimeType), "metadata: {", "metadata: {annotations: {"+mark+": 'true'}, ", 1)), by: []string{machinery}}
	}
	for _, mark := range []string{"crossplane.io/composite", "crossplane.io/claim-name"} {
		all["machinery/label "+mark] = attempt{reason: "It says what belongs together.", as: owner, do: change(dev, "metadata: {labels: {"+mark+": vic}}"), by: []string{machinery}}
	}
	all["machinery/drop finalizers"] = attempt{reason: "It would be gone before what it stands for.", as: owner, do: change(dev, "metadata: {finalizers: null}"), by: []string{machinery}}
	all["machinery/add a finalizer"] = attempt{reason: "Nobody would take it away.", as: owner, do: change(dev, "metadata: {finalizers: [finalizer.apiextensions.crossplane.io, example.com/mine]}"), by: []string{machinery}}
	return all
}

// onPlatform are attempts on what the platform keeps for itself.
func onPlatform() map[string]attempt {
	const (
		boundary  = "Boundary.runtime.steading.dev/v1alpha1 steading-system/esc-dev"
		placement = "Placement.runtime.steading.dev/v1alpha1 steading-system/esc-dev"
		theirs    = "Boundary.runtime.steading.dev/v1alpha1 steading-system/vic-web"
	)
	mine := func(namespace string) string {
		return "apiVersion: runtime.steading.dev/v1alpha1\nkind: Boundary\nmetadata: {name: mine, namespace: " + namespace + "}\n" +
			"spec: {forProvider: {identity: {tenant: esc, environment: mine, uid: x}, claim: {namespace: tenant-esc, name: mine}, context: platform, namespace: kube-system, caps: {cpu: '1', memory: 1Gi, storage: 1Gi}}}"
	}
	config := func(kind, namespace string) string {
		return "apiVersion: runtime.steading.dev/v1alpha1\nkind: " + kind + "\nmetadata: {name: mine" + namespace + "}\nspec: {canonicalImage: example.com/evil, runtimeChart: {repository: example.com/evil, version: 1.0.0}}"
	}
	composite := "apiVersion: steading.dev/v1alpha1\nkind: XEnvironment\nmetadata: {name: mine}\n" +
		"spec: {type: runtime, claimRef: {apiVersion: steading.dev/v1alpha1, kind: Environment, namespace: tenant-vic, name: web}}"
	usage := "apiVersion: runtime.steading.dev/v1alpha1\nkind: UsageEvent\nmetadata: {name: mine, namespace: steading-system}\n" +
		"spec: {identity: {tenant: vic, environment: web, uid: x}, transition: Deleted, time: '2026-01-01T00:00:00Z'}"
	return map[string]attempt{
		"platform/read the config":         {reason: "It names the operator's credentials.", as: owner, do: read("ClusterProviderConfig.runtime.steading.dev/v1alpha1 default"), by: []string{rbac}},
		"platform/change the config":       {reason: "All would run his chart.", as: owner, do: change("ClusterProviderConfig.runtime.steading.dev/v1alpha1 default", "spec: {canonicalImage: example.com/evil}"), by: []string{rbac}},
		"platform/make a config":           {reason: "As above.", as: owner, do: create(config("ClusterProviderConfig", "")), by: []string{rbac}},
		"platform/make a config at home":   {reason: "As above.", as: owner, do: create(config("ProviderConfig", ", namespace: tenant-esc")), by: []string{rbac}},
		"platform/make a config for all":   {reason: "As above.", as: owner, do: create(config("ProviderConfig", ", namespace: steading-system")), by: []string{rbac}},
		"platform/make a boundary":         {reason: "It names a namespace.", as: owner, do: create(mine("steading-system")), by: []string{rbac, managedResources}},
		"platform/make a boundary at home": {reason: "As above.", as: owner, do: create(mine("tenant-esc")), by: []string{rbac, managedResources}},
		"platform/raise the own caps":      {reason: "Admission decides.", as: owner, do: change(boundary, "spec: {forProvider: {caps: {cpu: '64'}}}"), by: []string{rbac, managedResources}},
		"platform/grant oneself":           {reason: "Admission decides.", as: owner, do: changeStatus(placement, "status: {atProvider: {grant: {docker: true}}}"), by: []string{rbac, managedResources}},
		"platform/take another's boundary": {reason: "It is not his.", as: owner, do: change(theirs, "spec: {forProvider: {owners: [{kind: User, name: esther}]}}"), by: []string{rbac, managedResources}},
		"platform/delete the own boundary": {reason: "It goes with the claim.", as: owner, do: remove(boundary), by: []string{rbac, deletingManaged}},
		"platform/delete another's":        {reason: "As above.", as: owner, do: remove(theirs), by: []string{rbac, deletingManaged}},
		"platform/list managed resources":  {reason: "They tell of all tenants.", as: owner, do: list("Release.runtime.steading.dev/v1alpha1 steading-system/"), by: []string{rbac}},
		"platform/make a composite":        {reason: "It says itself whose it is.", as: owner, do: create(composite), by: []string{rbac, composites}},
		"platform/list composites":         {reason: "They tell of all tenants.", as: owner, do: list("XEnvironment.steading.dev/v1alpha1 "), by: []string{rbac}},
		"platform/write a ledger":          {reason: "It is what was granted.", as: owner, do: change("Ledger.runtime.steading.dev/v1alpha1 steading-system/esc", "entries: []"), by: []string{rbac, ledgers}},
		"platform/write usage":             {reason: "It is what is billed.", as: owner, do: create(usage), by: []string{rbac, usageEvents}},
		"platform/read credentials":        {reason: "Those of all contexts are there.", as: owner, do: list("Secret.v1 steading-system/"), by: []string{rbac}},
		"platform/read certificates":       {reason: "Keys are there.", as: owner, do: list("Secret.v1 steading-edge/"), by: []string{rbac}},
		"platform/take a policy away":      {reason: "It holds him in.", as: owner, do: remove("ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io/v1 refuse-foreign-hosts.steading.dev"), by: []string{rbac}},
		"platform/take a role":             {reason: "It holds him in.", as: owner, do: create(bindingOf("tenant-esc", "mine", "cluster-admin", "{kind: User, apiGroup: rbac.authorization.k8s.io, name: esther}")), by: []string{rbac}},
		"platform/be the provider":         {reason: "It may do much.", as: owner, do: tokenOf("steading-system/provider-runtime"), by: []string{rbac}},
		"platform/keep its token":          {reason: "As above, without an end.", as: owner, do: create("apiVersion: v1\nkind: Secret\nmetadata: {name: x, namespace: steading-system, annotations: {kubernetes.io/service-account.name: provider-runtime}}\ntype: kubernetes.io/service-account-token"), by: []string{rbac, accountTokens}},
		"platform/write into kube-system":  {reason: "It is nobody's.", as: owner, do: create(configMap("kube-system")), by: []string{rbac}},
	}
}

// inside are attempts in the namespaces that Steading made for the tenant, by him and by his charts.
func inside() map[string]attempt {
	return map[string]attempt{
		"inside/make a namespace":         {reason: "It would look like an environment.", as: owner, do: create("apiVersion: v1\nkind: Namespace\nmetadata: {name: esc-evil, labels: {app.kubernetes.io/managed-by: steading, steading.dev/tenant: esc}}"), by: []string{rbac, namespaces}},
		"inside/give the own to another":  {reason: "The label says whose claims are there.", as: owner, do: change("Namespace.v1 tenant-esc", "metadata: {labels: {steading.dev/tenant: vic}}"), by: []string{rbac, namespaces}},
		"inside/let in privileged pods":   {reason: "They take over the node.", as: owner, do: change("Namespace.v1 esc-dev", "metadata: {labels: {pod-security.kubernetes.io/enforce: privileged}}"), by: []string{rbac, namespaces}},
		"inside/take all hosts":           {reason: "The annotation says which hosts are his.", as: owner, do: change("Namespace.v1 esc-dev", "metadata: {annotations: {steading.dev/host-suffix: .example.com}}"), by: []string{rbac, namespaces}},
		"inside/delete another's":         {reason: "It is not his.", as: owner, do: remove("Namespace.v1 vic-web"), by: []string{rbac, namespaces}},
		"inside/delete the own":           {reason: "The claim does.", as: owner, do: remove("Namespace.v1 esc-dev"), by: []string{rbac, namespaces}},
		"inside/raise the quota":          {reason: "It is what was granted.", as: owner, do: change("ResourceQuota.v1 esc-dev/steading-quota", "spec: {hard: {limits.cpu: '1000'}}"), by: []string{rbac, guardRails}},
		"inside/raise the count":          {reason: "It is the backstop.", as: owner, do: remove("ResourceQuota.v1 tenant-esc/steading-quota"), by: []string{rbac, guardRails}},
		"inside/read the deployer's":      {reason: "Helm's records hold values.", as: owner, do: list("Secret.v1 esc-dev/"), by: []string{rbac}},
		"inside/be the deployer":          {reason: "Charts are checked, tokens are not.", as: owner, do: tokenOf("esc-dev/steading-deployer"), by: []string{rbac}},
		"inside/run something":            {reason: "What runs comes from releases.", as: owner, do: create("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x, namespace: esc-dev}\nspec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}}"), by: []string{rbac}},
		"inside/another's host":           {reason: "He would take his traffic.", as: owner, do: create(ingress("esc-dev", "mcp.vic-web.services.example.com")), by: []string{rbac, foreignHosts}},
		"chart/another's host":            {reason: "As above.", as: deployer, do: create(ingress("esc-dev", "mcp.vic-web.services.example.com")), by: []string{foreignHosts}},
		"chart/every host":                {reason: "As above.", as: deployer, do: create(ingress("esc-dev", "")), by: []string{foreignHosts}},
		"chart/another's name":            {reason: "It would lead to this one.", as: deployer, do: create(service("esc-dev", "{external-dns.alpha.kubernetes.io/hostname: mcp.vic-web.services.example.com}", "{ports: [{port: 80}]}")), by: []string{hostAnnotations}},
		"chart/another's address":         {reason: "It would take its traffic (CVE-2020-8554).", as: deployer, do: create(service("esc-dev", "{}", "{externalIPs: [203.0.113.7], ports: [{port: 443}]}")), by: []string{externalServices}},
		"chart/another's service":         {reason: "The ingress would fetch it.", as: deployer, do: create(service("esc-dev", "{}", "{type: ExternalName, externalName: vic-mcp.vic-web.svc.cluster.local}")), by: []string{externalServices}},
		"chart/open the network":          {reason: "Ours are called steading-*.", as: deployer, do: create(networkPolicy("esc-dev", "steading-mine")), by: []string{guardRails}},
		"chart/change the network":        {reason: "It holds pods in.", as: deployer, do: change("NetworkPolicy.networking.k8s.io/v1 esc-dev/steading-egress", "spec: {egress: [{}]}"), by: []string{guardRails}},
		"chart/drop the network":          {reason: "It holds pods in.", as: deployer, do: remove("NetworkPolicy.networking.k8s.io/v1 esc-dev/steading-ingress"), by: []string{guardRails}},
		"chart/drop the limits":           {reason: "They are what was granted.", as: deployer, do: remove("LimitRange.v1 esc-dev/steading-limits"), by: []string{rbac, guardRails}},
		"chart/drop the quota":            {reason: "It is what was granted.", as: deployer, do: remove("ResourceQuota.v1 esc-dev/steading-quota"), by: []string{rbac, guardRails}},
		"chart/lock out the owners":       {reason: "They look at what runs.", as: deployer, do: remove("RoleBinding.rbac.authorization.k8s.io/v1 esc-dev/steading-owners"), by: []string{guardRails}},
		"chart/let itself in again":       {reason: "As whom it acts is ours.", as: deployer, do: change("RoleBinding.rbac.authorization.k8s.io/v1 esc-dev/steading-deployer", "subjects: [{kind: ServiceAccount, name: x, namespace: esc-dev}]"), by: []string{guardRails}},
		"chart/replace the pull secret":   {reason: "Another registry would be trusted.", as: deployer, do: create("apiVersion: v1\nkind: Secret\nmetadata: {name: steading-pull, namespace: esc-dev}"), by: []string{guardRails}},
		"chart/everything to its account": {reason: "It hands on what it has, not more.", as: deployer, do: create(bindingOf("esc-dev", "x", "cluster-admin", "{kind: ServiceAccount, name: x, namespace: esc-dev}")), by: []string{rbac}},
		"chart/another's namespace":       {reason: "It acts in its own only.", as: deployer, do: create(configMap("vic-web")), by: []string{rbac}},
		"chart/the tenant's namespace":    {reason: "Credentials of contexts are there.", as: deployer, do: list("Secret.v1 tenant-esc/"), by: []string{rbac}},
		"chart/another environment's":     {reason: "One environment is no other.", as: deployer, do: list("Secret.v1 vic-web/"), by: []string{rbac}},
		"chart/nodes":                     {reason: "They are none of its business.", as: deployer, do: list("Node.v1 "), by: []string{rbac}},
		"chart/a cluster role":            {reason: "It holds for all namespaces.", as: deployer, do: create("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: evil}\nrules: []"), by: []string{rbac}},
		"chart/a bare pod":                {reason: "Pods come from workloads.", as: deployer, do: create("apiVersion: v1\nkind: Pod\nmetadata: {name: x, namespace: esc-dev}\nspec: {containers: [{name: a, image: a}]}"), by: []string{rbac}},
		"chart/claims":                    {reason: "They are the owners'.", as: deployer, do: create(environment("tenant-esc", "x", runtimeType)), by: []string{rbac}},
	}
}

// onTheEdge are attempts by charts on a context, where the policies are what Cluster installed.
func onTheEdge() map[string]attempt {
	return map[string]attempt{
		"edge/another's host":         {reason: "He would take his traffic.", as: onEdge, do: create(ingress("esc-far", "mcp.vic-web.services.example.com")), by: []string{foreignHosts}},
		"edge/every host":             {reason: "As above.", as: onEdge, do: create(ingress("esc-far", "")), by: []string{foreignHosts}},
		"edge/another's name":         {reason: "It would lead to this one.", as: onEdge, do: create(service("esc-far", "{external-dns.alpha.kubernetes.io/hostname: mcp.vic-web.services.example.com}", "{ports: [{port: 80}]}")), by: []string{hostAnnotations}},
		"edge/another's address":      {reason: "It would take its traffic.", as: onEdge, do: create(service("esc-far", "{}", "{externalIPs: [203.0.113.7], ports: [{port: 443}]}")), by: []string{externalServices}},
		"edge/change the network":     {reason: "It holds pods in.", as: onEdge, do: change("NetworkPolicy.networking.k8s.io/v1 esc-far/steading-egress", "spec: {egress: [{}]}"), by: []string{guardRails}},
		"edge/drop the quota":         {reason: "It is what was granted.", as: onEdge, do: remove("ResourceQuota.v1 esc-far/steading-quota"), by: []string{rbac, guardRails}},
		"edge/let in privileged pods": {reason: "They take over the node.", as: onEdge, do: change("Namespace.v1 esc-far", "metadata: {labels: {pod-security.kubernetes.io/enforce: privileged}}"), by: []string{rbac, namespaces}},
		"edge/kube-system":            {reason: "It acts in its own namespace only.", as: onEdge, do: list("Secret.v1 kube-system/"), by: []string{rbac}},
		"edge/a namespace":            {reason: "It would look like an environment.", as: onEdge, do: create("apiVersion: v1\nkind: Namespace\nmetadata: {name: esc-evil, labels: {app.kubernetes.io/managed-by: steading}}"), by: []string{rbac, namespaces}},
	}
}
