package install

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// allAttempts by the policy they are about.
func allAttempts() map[string]map[string]attempt {
	all := map[string]map[string]attempt{}
	for _, some := range []map[string]map[string]attempt{attemptsOnNames(), attemptsOnClaims(), attemptsOnMachinery(), attemptsOnNamespaces(), attemptsOnServices(), attemptsOnTokens(), attemptsByProvider()} {
		maps.Copy(all, some)
	}
	// Runners have policies of their own, and add to others'.
	for policy, attempts := range attemptsOnRunners() {
		if all[policy] == nil {
			all[policy] = map[string]attempt{}
		}
		maps.Copy(all[policy], attempts)
	}
	return all
}

func tenant(name, namespace string) string {
	return "apiVersion: steading.dev/v1alpha1\nkind: Tenant\nmetadata: {name: " + name + ", namespace: " + namespace + "}\nspec: {}\n"
}

func environment(name, namespace, spec string) string {
	return "apiVersion: steading.dev/v1alpha1\nkind: Environment\nmetadata: {name: " + name + ", namespace: " + namespace + "}\nspec: " + spec + "\n"
}

func contextClaim(name, namespace string) string {
	return "apiVersion: steading.dev/v1alpha1\nkind: Context\nmetadata: {name: " + name + ", namespace: " + namespace + "}\n" +
		"spec: {server: 'https://203.0.113.7:6443', caBundle: LS0t, credentials: {secretRef: {name: edge}}}\n"
}

const (
	runtimeType = "{type: runtime}"
	fortyTwo    = "a23456789012345678901234567890123456789012"
)

func attemptsOnNames() map[string]map[string]attempt {
	return map[string]map[string]attempt{
		"refuse-tenant-names": {
			"twenty letters and digits": {reason: "The longest name that fits.", as: operator, do: create(tenant("abcdefghij0123456789", "steading-system"))},
			"a digit first":             {reason: "Digits may stand anywhere.", as: operator, do: create(tenant("3com", "steading-system"))},
			"a hyphen": {reason: "tenant a with environment b-c and tenant a-b with environment c would share a-b-c.", as: operator,
				do: create(tenant("a-b", "steading-system")), want: `tenant name "a-b" does not fit: use at most 20 lower-case letters and digits`},
			"a dot": {reason: "A namespace has no dots.", as: operator,
				do: create(tenant("a.b", "steading-system")), want: `tenant name "a.b" does not fit`},
			"twenty-one letters": {reason: "Twenty, a hyphen and forty-two make sixty-three.", as: admin,
				do: create(tenant("abcdefghij01234567890", "steading-system")), want: "does not fit"},
		},
		"refuse-reserved-tenant-names": {
			"begins with a reserved name": {reason: "kubernetes-dev is not kube-dev.", as: operator, do: create(tenant("kubernetes", "steading-system"))},
			"an existing tenant changes":  {reason: "Names that become reserved later do not stop tenants.", as: operator, do: change("Tenant.steading.dev/v1alpha1 steading-system/acme", "spec: {displayName: Acme}")},
			"kube": {reason: "kube-system would be an environment.", as: operator,
				do: create(tenant("kube", "steading-system")), want: `tenant name "kube" is reserved: namespaces that begin with it belong to the platform`},
			"tenant": {reason: "tenant-acme would be an environment.", as: admin,
				do: create(tenant("tenant", "steading-system")), want: `tenant name "tenant" is reserved`},
			"argocd":     {reason: "It is listed.", as: operator, do: create(tenant("argocd", "steading-system")), want: "is reserved"},
			"cert":       {reason: "It is listed.", as: operator, do: create(tenant("cert", "steading-system")), want: "is reserved"},
			"crossplane": {reason: "It is listed.", as: operator, do: create(tenant("crossplane", "steading-system")), want: "is reserved"},
			"default":    {reason: "It is listed.", as: operator, do: create(tenant("default", "steading-system")), want: "is reserved"},
			"steading":   {reason: "It is listed.", as: operator, do: create(tenant("steading", "steading-system")), want: "is reserved"},
		},
		"refuse-tenants-elsewhere": {
			"in steading-system": {reason: "Where tenants live.", as: operator, do: create(tenant("globex", "steading-system"))},
			"in a tenant's namespace": {reason: "Whoever may write there is no operator.", as: argocd,
				do: create(tenant("globex", "tenant-acme")), want: "a Tenant lives in namespace steading-system, not in tenant-acme: set metadata.namespace"},
		},
		"refuse-claim-names": {
			"forty-two characters": {reason: "The longest name that fits.", as: owner, do: create(environment(fortyTwo, "tenant-acme", runtimeType))},
			"one character":        {reason: "The shortest.", as: owner, do: create(environment("a", "tenant-acme", runtimeType))},
			"single hyphens":       {reason: "They are fine.", as: owner, do: create(contextClaim("a-b-c", "tenant-acme"))},
			"two hyphens": {reason: "Hyphen runs are folded by others, so that two names would be one.", as: owner,
				do: create(environment("a--b", "tenant-acme", runtimeType)), want: "it may not contain two hyphens in a row"},
			"forty-three characters": {reason: "One too many.", as: owner,
				do: create(environment(fortyTwo+"3", "tenant-acme", runtimeType)), want: "it has 43 characters, 42 are allowed"},
			"a dot": {reason: "The name is part of a DNS label.", as: owner,
				do: create(environment("a.b", "tenant-acme", runtimeType)), want: `name "a.b" does not fit: use lower-case letters, digits and hyphens`},
			"a context with two hyphens": {reason: "Contexts are named like environments.", as: owner,
				do: create(contextClaim("a--b", "tenant-acme")), want: "two hyphens in a row"},
		},
		"refuse-context-platform": {
			"an environment called platform": {reason: "The name is reserved for contexts only.", as: owner, do: create(environment("platform", "tenant-acme", runtimeType))},
			"a context called edge":          {reason: "Any other name.", as: owner, do: create(contextClaim("edge", "tenant-acme"))},
			"a context called platform": {reason: "It would shadow the platform's own cluster.", as: owner,
				do: create(contextClaim("platform", "tenant-acme")), want: `context name "platform" is reserved for the platform's own cluster`},
		},
		"refuse-claims-elsewhere": {
			"in the tenant's namespace": {reason: "Where they live.", as: owner, do: create(environment("test", "tenant-acme", runtimeType))},
			"in a foreign namespace": {reason: "Nobody's claim.", as: argocd, do: create(environment("test", "foreign", runtimeType)),
				want: "Environment claims live in their tenant's namespace, tenant-<tenant>, not in foreign: set metadata.namespace"},
			"in steading-system": {reason: "Only tenants live there.", as: operator, do: create(contextClaim("test", "steading-system")),
				want: "Context claims live in their tenant's namespace"},
			"in an environment's namespace": {reason: "Claims live in tenant-acme.", as: argocd, do: create(environment("test", "acme-dev", runtimeType)),
				want: "not in acme-dev"},
			"in a namespace that only has the name": {reason: "Whoever can make namespaces could act for a tenant to come.", as: argocd,
				do: create(environment("test", "tenant-squatter", runtimeType)), want: "namespace tenant-squatter was not made by Steading for a tenant squatter: create Tenant squatter"},
		},
	}
}

func attemptsOnClaims() map[string]map[string]attempt {
	const (
		dev    = "Environment.steading.dev/v1alpha1 tenant-acme/dev"
		placed = "Environment.steading.dev/v1alpha1 tenant-acme/placed"
		chosen = "Environment.steading.dev/v1alpha1 tenant-acme/chosen"
		acme   = "Tenant.steading.dev/v1alpha1 steading-system/acme"
	)
	return map[string]map[string]attempt{
		"refuse-machinery-fields": {
			"an owner changes the version": {reason: "What claims are for, with all the machinery in place.", as: owner, do: change(dev, "spec: {version: 1.5.0}")},
			"an owner labels":              {reason: "Labels that are nobody's are free.", as: owner, do: change(dev, "metadata: {labels: {team: web}, annotations: {argocd.argoproj.io/sync-wave: '1'}}")},
			"an owner deletes":             {reason: "Deleting is not changing finalizers.", as: owner, do: remove(dev)},
			"an owner replaces with what he got": {reason: "An editor sends back everything.", as: owner, do: replace(dev, func(o *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(o.Object, "2.0.0", "spec", "version")
			})},
			"the policy that the XRD sets":  {reason: "What is read back can be applied.", as: owner, do: create(environment("test", "tenant-acme", "{type: runtime, compositeDeletePolicy: Foreground}"))},
			"crossplane binds":              {reason: "It keeps the machinery.", as: crossplane, do: change(placed, "{metadata: {finalizers: [finalizer.apiextensions.crossplane.io]}, spec: {resourceRef: {apiVersion: steading.dev/v1alpha1, kind: XEnvironment, name: x}}}")},
			"the garbage collector lets go": {reason: "It ends foreground deletion by a finalizer.", as: garbageCollector, do: change(dev, "metadata: {finalizers: []}")},
			"an operator pauses":            {reason: "Operators may.", as: operator, do: change(dev, "metadata: {annotations: {crossplane.io/paused: 'true'}}")},
			"an operator abandons":          {reason: "Operators may.", as: operator, do: change(dev, "metadata: {annotations: {steading.dev/abandon: x}}")},
			"an operator breaks the glass":  {reason: "Operators may.", as: operator, do: change(dev, "metadata: {annotations: {steading.dev/break-glass: 'ticket 1'}}")},
			"an administrator lets go":      {reason: "Administrators are operators.", as: admin, do: change(dev, "metadata: {finalizers: []}")},
			"pinning a composite": {reason: "It would bind another's composite.", as: owner,
				do:   create(environment("test", "tenant-acme", "{type: runtime, resourceRef: {apiVersion: steading.dev/v1alpha1, kind: XEnvironment, name: victim}}")),
				want: "spec.resourceRef cannot be set, changed or removed: Crossplane keeps it"},
			"dropping the composite": {reason: "What kubectl replace does.", as: owner, do: change(dev, "spec: {resourceRef: null}"), want: "use kubectl apply or patch, not replace"},
			"another composite":      {reason: "As above, later.", as: argocd, do: change(dev, "spec: {resourceRef: {name: victim}}"), want: "spec.resourceRef"},
			"a composition": {reason: "A composition says what is made.", as: owner,
				do: change(dev, "spec: {compositionRef: {name: mine}}"), want: "spec.compositionRef"},
			"a composition by label": {reason: "As above.", as: owner,
				do: change(dev, "spec: {compositionSelector: {matchLabels: {a: b}}}"), want: "spec.compositionSelector"},
			"a revision": {reason: "An old revision may lack what a new one guards.", as: owner,
				do: change(dev, "spec: {compositionRevisionRef: {name: old}, compositionUpdatePolicy: Manual}"), want: "spec.compositionRevisionRef, spec.compositionUpdatePolicy"},
			"a revision by label": {reason: "As above.", as: owner,
				do: change(dev, "spec: {compositionRevisionSelector: {matchLabels: {a: b}}}"), want: "spec.compositionRevisionSelector"},
			"background deletion": {reason: "The claim would be gone before what it stands for.", as: owner,
				do: create(environment("test", "tenant-acme", "{type: runtime, compositeDeletePolicy: Background}")), want: "spec.compositeDeletePolicy"},
			"a connection secret": {reason: "Credentials are not handed out.", as: owner,
				do: change(dev, "spec: {writeConnectionSecretToRef: {name: mine}}"), want: "spec.writeConnectionSecretToRef"},
			"pausing": {reason: "A paused claim is not deleted.", as: owner,
				do: change(dev, "metadata: {annotations: {crossplane.io/paused: 'true'}}"), want: "annotation or label crossplane.io/paused can be set, changed or removed by the platform's operators only"},
			"removing crossplane's annotation": {reason: "Removing is changing.", as: owner,
				do: change(dev, "metadata: {annotations: {crossplane.io/external-name: null}}"), want: "crossplane.io/external-name"},
			"crossplane's label": {reason: "Labels become the composite's.", as: owner,
				do: change(dev, "metadata: {labels: {crossplane.io/composite: victim}}"), want: "crossplane.io/composite"},
			"a subdomain of crossplane's": {reason: "They are Crossplane's too.", as: owner,
				do: change(dev, "metadata: {annotations: {internal.crossplane.io/x: z}}"), want: "internal.crossplane.io/x"},
			"adopting": {reason: "Taking over what is there is the operator's decision.", as: owner,
				do: change(dev, "metadata: {annotations: {steading.dev/adopt-from: x}}"), want: "steading.dev/adopt-from"},
			"abandoning": {reason: "So is leaving things behind.", as: argocd,
				do: change(dev, "metadata: {annotations: {steading.dev/abandon: x}}"), want: "steading.dev/abandon"},
			"breaking the glass": {reason: "Its composite would be open to changes for good.", as: owner,
				do: change(dev, "metadata: {annotations: {steading.dev/break-glass: x}}"), want: "steading.dev/break-glass"},
			"dropping finalizers": {reason: "The claim would be gone before what it stands for.", as: owner,
				do: change(dev, "metadata: {finalizers: null}"), want: "metadata.finalizers cannot be changed"},
			"adding a finalizer": {reason: "Nobody would remove it.", as: owner,
				do: change(dev, "metadata: {finalizers: [finalizer.apiextensions.crossplane.io, example.com/mine]}"), want: "metadata.finalizers cannot be changed"},
			"dropping a tenant's finalizers": {reason: "Tenants are claims.", as: argocd,
				do: change(acme, "metadata: {finalizers: null}"), want: "metadata.finalizers cannot be changed"},
		},
		"refuse-losing-composites": {
			"an operator changing something else": {reason: "The composite stays.", as: operator, do: change(dev, "spec: {version: 1.5.0}")},
			"an operator replacing a claim":       {reason: "It would make a second composite.", as: operator, do: change(dev, "spec: {resourceRef: null}"), want: "use kubectl apply or patch, not replace"},
			"an operator binding another":         {reason: "As above.", as: operator, do: change(dev, "spec: {resourceRef: {name: other}}"), want: "spec.resourceRef cannot be changed"},
		},
		"refuse-moving-environments": {
			"choosing before it is placed":  {reason: "Nothing is anywhere yet.", as: owner, do: change(dev, "spec: {contextRef: {name: edge}}")},
			"naming where it is":            {reason: "It moves nothing.", as: owner, do: change(chosen, "spec: {contextRef: {name: edge}}")},
			"changing something else":       {reason: "It moves nothing.", as: owner, do: change(placed, "spec: {version: 1.5.0}")},
			"moving to another context":     {reason: "Volumes would stay behind.", as: owner, do: change(placed, "spec: {contextRef: {name: spare}}"), want: `spec.contextRef cannot be changed: the environment is placed on "edge"`},
			"asking another after a choice": {reason: "As above.", as: owner, do: change(chosen, "spec: {contextRef: {name: platform}}"), want: `placed on "edge"`},
			"leaving the choice open":       {reason: "It was made.", as: owner, do: change(placed, "spec: {contextRef: null}"), want: `placed on "edge"`},
			"an operator moving it":         {reason: "Operators cannot move volumes either.", as: operator, do: change(placed, "spec: {contextRef: {name: spare}}"), want: `placed on "edge"`},
		},
	}
}
