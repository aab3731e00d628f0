package install

func ingress(namespace, spec string) string {
	return "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: test, namespace: " + namespace + "}\nspec: " + spec
}

func rule(host string) string {
	return "{host: '" + host + "', http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: s, port: {number: 80}}}}]}}"
}

func route(namespace, spec string) string {
	return "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: test, namespace: " + namespace + "}\nspec: " + spec
}

func namespace(name, labels string) string {
	return "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + name + ", labels: " + labels + "}"
}

func networkPolicy(name, namespace string) string {
	return "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: " + name + ", namespace: " + namespace + "}\nspec: {podSelector: {}, ingress: [{}], egress: [{}]}"
}

func attemptsOnNamespaces() map[string]map[string]attempt {
	const (
		dev    = "Namespace.v1 acme-dev"
		own    = "mcp.acme-dev.services.example.com"
		theirs = "mcp.globex-web.services.example.com"
		rails  = "NetworkPolicy.networking.k8s.io/v1 acme-dev/steading-default"
		pull   = "Secret.v1 acme-dev/steading-pull"
	)
	return map[string]map[string]attempt{
		"refuse-foreign-hosts": {
			"a host of its own":          {reason: "It ends in the suffix.", as: deployer, do: create(ingress("acme-dev", "{rules: ["+rule(own)+"], tls: [{hosts: ["+own+"]}]}"))},
			"a wildcard of its own":      {reason: "It ends in the suffix.", as: deployer, do: create(ingress("acme-dev", "{rules: ["+rule("*.acme-dev.services.example.com")+"]}"))},
			"a route of its own":         {reason: "It ends in the suffix.", as: deployer, do: create(route("acme-dev", "{hostnames: ["+own+"]}"))},
			"anything in another's":      {reason: "Namespaces that are not ours are none of our business.", as: argocd, do: create(ingress("foreign", "{rules: ["+rule("www.example.com")+"]}"))},
			"a certificate without host": {reason: "The route has hosts; the Secret's name says nothing.", as: deployer, do: create(ingress("acme-dev", "{rules: ["+rule(own)+"], tls: [{secretName: tls}]}"))},
			"another's host": {reason: "It would take another's traffic.", as: deployer, do: create(ingress("acme-dev", "{rules: ["+rule(own)+", "+rule(theirs)+"]}")),
				want: "host mcp.globex-web.services.example.com is not this environment's: hosts in namespace acme-dev end in .acme-dev.services.example.com"},
			"another's host by an operator": {reason: "The policy binds the namespace.", as: admin, do: create(ingress("acme-dev", "{rules: ["+rule(theirs)+"]}")),
				want: "is not this environment's"},
			"a host that ends alike": {reason: "The suffix begins with a dot.", as: deployer, do: create(ingress("acme-dev", "{rules: ["+rule("evilacme-dev.services.example.com")+"]}")),
				want: "host evilacme-dev.services.example.com"},
			"every host": {reason: "A rule without a host takes all.", as: deployer, do: create(ingress("acme-dev", "{rules: [{http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: s, port: {number: 80}}}}]}}]}")),
				want: "a route for every host is not this environment's"},
			"every host by default": {reason: "So does a default backend.", as: deployer, do: create(ingress("acme-dev", "{defaultBackend: {service: {name: s, port: {number: 80}}}}")),
				want: "a route for every host"},
			"another's certificate": {reason: "Controllers serve it for the host.", as: deployer, do: create(ingress("acme-dev", "{rules: ["+rule(own)+"], tls: [{hosts: ["+theirs+"]}]}")),
				want: "host " + theirs},
			"another's host by route": {reason: "Routes like Ingresses.", as: deployer, do: create(route("acme-dev", "{hostnames: ["+theirs+"]}")), want: "host " + theirs},
			"every host by route":     {reason: "A route without hostnames takes the listener's.", as: deployer, do: create(route("acme-dev", "{}")), want: "a route for every host"},
			"a host where nothing is exposed": {reason: "The namespace has no suffix.", as: argocd, do: create(ingress("acme-night", "{rules: ["+rule("mcp.acme-night.services.example.com")+"]}")),
				want: "namespace acme-night exposes nothing; set spec.expose on the environment"},
			"a controller lets go of what leaves": {reason: "Or it would never be gone.", as: argocd, do: change("Ingress.networking.k8s.io/v1 acme-night/leaving", "metadata: {finalizers: null}")},
			"what leaves takes another host": {reason: "Controllers serve it until it is gone.", as: argocd, do: change("Ingress.networking.k8s.io/v1 acme-night/leaving", "spec: {rules: ["+rule(theirs)+"]}"),
				want: "namespace acme-night exposes nothing"},
		},
		"refuse-changing-namespaces": {
			"the provider labels":        {reason: "It keeps them.", as: provider, do: change(dev, "metadata: {labels: {pod-security.kubernetes.io/enforce: privileged}}")},
			"the namespace controller":   {reason: "It empties them.", as: namespaceController, do: remove(dev)},
			"an operator labels":         {reason: "Operators may.", as: operator, do: change(dev, "metadata: {labels: {a: b}}")},
			"somebody's own namespace":   {reason: "Namespaces without our label are none of our business.", as: argocd, do: create(namespace("mine", "{steading.dev/tenant: acme}"))},
			"somebody raises a level":    {reason: "A privileged pod takes the node.", as: argocd, do: change(dev, "metadata: {labels: {pod-security.kubernetes.io/enforce: privileged}}"), want: "namespace acme-dev carries the label app.kubernetes.io/managed-by: steading"},
			"somebody takes a suffix":    {reason: "It says which hosts are its own.", as: argocd, do: change(dev, "metadata: {annotations: {steading.dev/host-suffix: .com}}"), want: "only Steading makes, changes and deletes it"},
			"somebody sheds the label":   {reason: "Then nothing would bind it.", as: argocd, do: change(dev, "metadata: {labels: {app.kubernetes.io/managed-by: null}}"), want: "namespace acme-dev carries"},
			"somebody deletes":           {reason: "The claim does.", as: argocd, do: remove(dev), want: "change the Tenant or Environment it belongs to"},
			"somebody makes one of ours": {reason: "It would be taken for a tenant's.", as: argocd, do: create(namespace("tenant-mallory", "{app.kubernetes.io/managed-by: steading, steading.dev/tenant: mallory}")), want: "leave the label out"},
			"somebody labels his own":    {reason: "As above.", as: argocd, do: change("Namespace.v1 tenant-squatter", "metadata: {labels: {app.kubernetes.io/managed-by: steading, steading.dev/tenant: squatter}}"), want: "namespace tenant-squatter"},
		},
		"refuse-changing-guard-rails": {
			"a chart's own policy":             {reason: "Charts have network policies.", as: deployer, do: create(networkPolicy("mcp", "acme-dev"))},
			"an owner's own secret":            {reason: "Owners keep secrets.", as: owner, do: create("apiVersion: v1\nkind: Secret\nmetadata: {name: edge-admin, namespace: tenant-acme}")},
			"the provider":                     {reason: "It keeps them.", as: provider, do: change(rails, "spec: {policyTypes: [Ingress]}")},
			"the namespace controller":         {reason: "It empties namespaces.", as: namespaceController, do: remove(rails)},
			"an operator":                      {reason: "Operators may.", as: operator, do: remove(rails)},
			"in a namespace of somebody else":  {reason: "It is none of our business.", as: argocd, do: create(networkPolicy("steading-mine", "foreign"))},
			"a chart deletes the policy":       {reason: "It would let everybody in.", as: deployer, do: remove(rails), want: "NetworkPolicy steading-default is one of Steading's own in namespace acme-dev"},
			"a chart opens the policy":         {reason: "As above.", as: deployer, do: change(rails, "spec: {ingress: [{}]}"), want: "NetworkPolicy steading-default"},
			"a chart takes a name of ours":     {reason: "It would be there before us.", as: deployer, do: create(networkPolicy("steading-extra", "acme-dev")), want: "use others"},
			"a chart pretends to be us":        {reason: "Our label is looked for.", as: deployer, do: create("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: x, namespace: acme-dev, labels: {app.kubernetes.io/managed-by: steading}}"), want: "ServiceAccount x is one of Steading's own"},
			"a chart sheds our label":          {reason: "As above.", as: deployer, do: replace(pull, setLabel("app.kubernetes.io/managed-by", "Helm")), want: "Secret steading-pull"},
			"a chart binds the deployer":       {reason: "The deployer's power is given by us.", as: deployer, do: create("apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: steading-deployer, namespace: acme-dev}\nrules: []"), want: "Role steading-deployer"},
			"an owner takes a name of ours":    {reason: "As above.", as: owner, do: create("apiVersion: v1\nkind: Secret\nmetadata: {name: steading-x, namespace: tenant-acme}"), want: "Secret steading-x"},
			"a cluster's tool lifts the quota": {reason: "The claim says the size.", as: argocd, do: create("apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: steading-quota, namespace: acme-dev}"), want: "ResourceQuota steading-quota"},
		},
	}
}
