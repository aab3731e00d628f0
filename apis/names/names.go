// Package names derives every name that Steading gives. Nothing else concatenates names.
package names

import "strings"

// Fixed names.
const (
	// SystemNamespace holds the tenants' claims and all managed resources.
	SystemNamespace = "steading-system"
	// ProviderRuntime and ProviderForgejo are providers' names: of their packages, accounts, leases, and as which they write.
	ProviderRuntime = "provider-runtime"
	ProviderForgejo = "provider-forgejo"
	// CrossplaneNamespace is where Crossplane runs, and what it runs as packages.
	CrossplaneNamespace = "crossplane-system"
	// EdgeNamespace holds DNS records and certificates of exposed services.
	EdgeNamespace = "steading-edge"
	// Deployer is the ServiceAccount of an environment's namespace as which Helm acts.
	Deployer = "steading-deployer"
	// Owners names the Role and RoleBinding of a tenant's owners, in its namespace and in its environments.
	Owners = "steading-owners"
	// TenantOwnerRole is the ClusterRole that a tenant's owners have in its namespace.
	TenantOwnerRole = "steading:tenant-owner"
	// EnvironmentOwnerRole is the ClusterRole that a tenant's owners have in its environments.
	EnvironmentOwnerRole = "steading:environment-owner"
	// EnvironmentDeployerRole is the ClusterRole that an environment's [Deployer] has in it.
	EnvironmentDeployerRole = "steading:environment-deployer"
	// Quota names the ResourceQuota of a namespace that Steading makes.
	Quota = "steading-quota"
	// Limits names the LimitRange of an environment's namespace.
	Limits = "steading-limits"
	// PullSecret names the copy of the tenant's image pull Secret in an environment's namespace.
	PullSecret = "steading-pull"
	// Finalizer of a managed resource is Crossplane's own for them. Composers desire it, so that none can go before its
	// controller has seen it, and no controller has to write it.
	Finalizer = "finalizer.managedresource.crossplane.io"
	// DefaultProviderConfig is the ClusterProviderConfig that Steading's managed resources use.
	DefaultProviderConfig = "default"
)

// Labels and annotations that carry the identity of what Steading makes.
const (
	// LabelTenant names the tenant.
	LabelTenant = "steading.dev/tenant"
	// LabelEnvironment names the environment.
	LabelEnvironment = "steading.dev/environment"
	// LabelComponent names the component, on what a component is made of. What is the runtime's does not have it.
	LabelComponent = "steading.dev/component"
	// LabelContext names the context, on what serves a context.
	LabelContext = "steading.dev/context"
	// LabelComposite has the UID of the composite.
	LabelComposite = "steading.dev/composite-uid"
	// LabelManagedBy is Kubernetes' own; its value is ManagedBy on all that Steading makes outside.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// ManagedBy is the value of LabelManagedBy.
	ManagedBy = "steading"
	// AnnotationHostSuffix on a namespace says what the hosts of its Ingresses must end in.
	AnnotationHostSuffix = "steading.dev/host-suffix"
	// AnnotationAdoptFrom on a claim lets its composite take over what carries the UID it names. Operators only.
	AnnotationAdoptFrom = "steading.dev/adopt-from"
	// AnnotationAbandon on a claim gives up a target that is gone for good. Its value is the composite's UID.
	// Operators only.
	AnnotationAbandon = "steading.dev/abandon"
	// AnnotationBreakGlass on a managed resource lets it be deleted while its composite lives. Operators only.
	AnnotationBreakGlass = "steading.dev/break-glass"
)

// tenantNamespacePrefix is reserved as a tenant's name, so that no environment's namespace has it.
const tenantNamespacePrefix = "tenant-"

// TenantNamespace is where a tenant's claims live.
func TenantNamespace(tenant string) string { return tenantNamespacePrefix + tenant }

// TenantOf is the tenant whose claims live in namespace, if any.
func TenantOf(namespace string) (tenant string, ok bool) {
	tenant, ok = strings.CutPrefix(namespace, tenantNamespacePrefix)
	return tenant, ok && tenant != ""
}

// Home is a tenant's Home, and its Ledger.
func Home(tenant string) string { return tenant }

// EnvironmentNamespace is where an environment runs. Since a tenant's name has no hyphen, it splits one way only.
func EnvironmentNamespace(tenant, environment string) string { return tenant + "-" + environment }

// Environment is the name of an environment's Placement, Boundary, Edge and of the Release of its runtime.
func Environment(tenant, environment string) string { return EnvironmentNamespace(tenant, environment) }

// Context is the name of a context's Cluster.
func Context(tenant, context string) string { return tenant + "-" + context }

// Release is the Helm release of a tenant's runtime, and its ServiceAccount.
func Release(tenant string) string { return tenant + "-devops" }

// Component is the name of the Release of a component. The dot keeps it apart from all environments: acme-dev-db is an
// environment, acme-dev.db the component db of acme-dev. Neither name has a dot of its own.
func Component(tenant, environment, component string) string {
	return ComponentIn(EnvironmentNamespace(tenant, environment), component)
}

// ComponentIn is the same by the environment's namespace.
func ComponentIn(namespace, component string) string { return namespace + "." + component }

// ComponentRelease is the Helm release of a component. No component is called as what is [OfRuntime].
func ComponentRelease(tenant, component string) string { return tenant + "-" + component }

// OfRuntime reports whether an object of an environment has a name that the objects of its runtime, or the route to it,
// have: no component may have one of them.
func OfRuntime(tenant, object string) bool {
	return object == Release(tenant) || strings.HasPrefix(object, Release(tenant)+"-") || object == ServiceOf(tenant, "mcp") || object == Route(tenant)
}

// ComponentChart is the repository of a component's chart in one that the operator allows.
func ComponentChart(prefix, chart string) string {
	return strings.TrimSuffix(prefix, "/") + "/" + chart
}

// ValuesReader is the RoleBinding in a tenant's namespace by which the provider reads the values of a component there.
func ValuesReader(environment, component string) string {
	return "steading-values-" + environment + "." + component
}

// ComponentValuesReader is the ClusterRole that a [ValuesReader] binds.
const ComponentValuesReader = "steading:component-values-reader"

// ServiceOf is the Service in an environment that an exposed service is reached by.
func ServiceOf(tenant, service string) string { return tenant + "-" + service }

// RuntimeImage is a tenant's own runtime image, without tag.
func RuntimeImage(prefix, tenant string) string { return prefix + "/" + Release(tenant) }

// HostSuffix is what every host of an environment ends in.
func HostSuffix(tenant, environment, zone string) string {
	return "." + EnvironmentNamespace(tenant, environment) + "." + zone
}

// Host is where an exposed service of an environment is reached.
func Host(service, tenant, environment, zone string) string {
	return service + HostSuffix(tenant, environment, zone)
}

// TLSSecret holds the certificate of an environment's hosts.
func TLSSecret(tenant, environment string) string {
	return EnvironmentNamespace(tenant, environment) + "-wildcard-tls"
}

// TenantReader is the Role and RoleBinding in steading-system with which a tenant's owners read their Tenant.
func TenantReader(tenant string) string { return Owners + "-" + tenant }

// Route is the Ingress of an environment's exposed services.
func Route(tenant string) string { return tenant + "-edge" }

// RouteOf is the HTTPRoute of one exposed service, where there is a Gateway instead of an ingress class.
func RouteOf(tenant, service string) string { return Route(tenant) + "-" + service }

// Domain is what an environment's certificate is for, by an asterisk in front of it.
func Domain(tenant, environment, zone string) string {
	return EnvironmentNamespace(tenant, environment) + "." + zone
}

// EdgeRemainder is what is left of the Edge of the composite with this UID.
func EdgeRemainder(tenant, environment, uid string) string {
	return Environment(tenant, environment) + "-" + uid
}

// ContextCredential holds the last good credential of a context, in steading-system.
func ContextCredential(tenant, context string) string {
	return Context(tenant, context) + "-credential"
}

// ContextReader is the RoleBinding in a tenant's namespace by which the provider reads a context's credential there.
func ContextReader(context string) string { return "steading-context-" + context }

// ExternalCredential is the ExternalSecret in a tenant's namespace that fetches a context's credential, and the Secret that
// it is fetched to.
func ExternalCredential(context string) string { return "context-" + context + "-credential" }

// ContextCredentialReader is the ClusterRole that a [ContextReader] binds.
const ContextCredentialReader = "steading:context-credential-reader"

// AgeIdentity is the Secret in steading-system whose key identity.txt holds the identities that age ciphertext is made to.
const AgeIdentity = "steading-age-identity"

// AnnotationGuards followed by a context's tenant and name, is on each guard object of a target, once for every context that
// counts on it.
const AnnotationGuards = "contexts.steading.dev/"

// Runner is the name of the Runner of a pool.
func Runner(tenant, pool string) string { return tenant + "-" + pool }

// RunnerInstance is the name of one runner of a Runner: of its record, of its Job or VirtualMachine, and of its
// registration. The suffix is eight characters.
func RunnerInstance(runner, suffix string) string { return runner + "-" + suffix }

// RunnerCredentials is the Secret beside a runner's Job or VirtualMachine with what it registered as.
func RunnerCredentials(instance string) string { return instance + "-credentials" }

// RunnerDisk is the DataVolume of a runner's VirtualMachine that its template calls disk. Every runner has one of its own.
func RunnerDisk(instance, disk string) string { return instance + "-" + disk }

// What runners have in common in their job namespace.
const (
	// RunnerAccount is the ServiceAccount of runners' pods. No token of it is mounted.
	RunnerAccount = "steading-runner"
	// RunnerGuard names the ResourceQuota and the NetworkPolicy of a job namespace.
	RunnerGuard = "steading-runners"
	// RunnerSpawner is the RoleBinding in a job namespace by which the provider makes runners there.
	RunnerSpawner = "steading-runners"
	// RunnerSpawnerRole is the ClusterRole that a [RunnerSpawner] binds.
	RunnerSpawnerRole = "steading:runner-spawner"
	// TokenReaderRole is the ClusterRole that a [TokenReader] binds.
	TokenReaderRole = "steading:runner-token-reader"
	// LabelRunnersFor on a namespace lets the tenant that it names run its runners there. Operators only.
	LabelRunnersFor = "steading.dev/runners-for"
	// LabelRunner on what belongs to a runner in its job namespace has the name of its RunnerInstance.
	LabelRunner = "steading.dev/runner"
	// LabelPool on a RunnerInstance, and on what belongs to one in its job namespace, has the name of its Runner.
	LabelPool = "steading.dev/pool"
	// LabelPrefix begins all labels of Steading's own.
	LabelPrefix = "steading.dev/"
	// AnnotationRegistration and AnnotationRegistrationUUID on the credential of a runner say what it registered as.
	AnnotationRegistration     = "steading.dev/registration"
	AnnotationRegistrationUUID = "steading.dev/registration-uuid"
)

const (
	// AnnotationCounted on a RunnerInstance says that its pool has counted its verdict, and what it counts since: verdicts,
	// failures in a row, when the next try is, in seconds since 1970, and the verdicts that there were at the last failure.
	AnnotationCounted = "forgejo.steading.dev/counted"
	// AnnotationMadeAt on a RunnerInstance says how many verdicts its pool had counted when it was made.
	AnnotationMadeAt = "forgejo.steading.dev/made-at"
)

// TokenReader is the RoleBinding in a tenant's namespace by which the provider reads a pool's token there.
func TokenReader(pool string) string { return "steading-runners-" + pool }

// registrationMark begins what a registration with Forgejo is described by.
const registrationMark = "steading.dev/pool="

// RegistrationMark is the description of a runner's registration with Forgejo: by it the pool knows its own. The UID is
// that of the pool's composite.
func RegistrationMark(uid, instance string) string {
	return registrationMark + uid + " instance=" + instance
}

// RegistrationOf is the UID and the instance that a registration's description names, false when it is not one of a pool's.
func RegistrationOf(description string) (uid, instance string, ok bool) {
	rest, ok := strings.CutPrefix(description, registrationMark)
	if !ok {
		return "", "", false
	}
	uid, instance, ok = strings.Cut(rest, " instance=")
	return uid, instance, ok && uid != "" && instance != "" && !strings.Contains(instance, " ")
}
