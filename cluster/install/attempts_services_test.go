package install

func service(namespace, annotations, spec string) string {
	return "apiVersion: v1\nkind: Service\nmetadata: {name: test, namespace: " + namespace + ", annotations: " + annotations + "}\nspec: " + spec
}

func annotatedIngress(namespace, annotations string) string {
	return "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: test, namespace: " + namespace + ", annotations: " + annotations + "}\n" +
		"spec: {rules: [" + rule("mcp.acme-dev.services.example.com") + "]}"
}

func annotatedRoute(namespace, annotations string) string {
	return "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: test, namespace: " + namespace + ", annotations: " + annotations + "}\n" +
		"spec: {hostnames: [mcp.acme-dev.services.example.com]}"
}

func attemptsOnServices() map[string]map[string]attempt {
	const (
		leaving = "Service.v1 acme-dev/leaving"
		route   = "Ingress.networking.k8s.io/v1 acme-dev/leaving"
		plain   = "{ports: [{port: 80}]}"
		taking  = "{externalIPs: [203.0.113.7], ports: [{port: 80}]}"
		named   = "{type: ExternalName, externalName: mcp.globex-web.svc.cluster.local}"
	)
	annotations := map[string]attempt{
		"an annotation of its own":          {reason: "Charts have annotations.", as: deployer, do: create(annotatedIngress("acme-dev", "{nginx.ingress.kubernetes.io/proxy-body-size: 8m, example.com/snippet-of-text: x}"))},
		"anything in another's":             {reason: "Namespaces that are not ours are none of our business.", as: argocd, do: create(annotatedIngress("foreign", "{nginx.ingress.kubernetes.io/server-alias: www.example.com}"))},
		"a controller lets go":              {reason: "Or it would never be gone.", as: argocd, do: change(route, "metadata: {finalizers: null}")},
		"what leaves takes another host":    {reason: "Controllers serve it until it is gone.", as: argocd, do: change(route, "metadata: {annotations: {nginx.ingress.kubernetes.io/server-alias: b.example.com}}"), want: "server-alias may not be on Ingress leaving"},
		"a DNS name on a Service":           {reason: "external-dns makes a record of it.", as: deployer, do: create(service("acme-dev", "{external-dns.alpha.kubernetes.io/hostname: www.example.com}", plain)), want: "annotation external-dns.alpha.kubernetes.io/hostname may not be on Service test in namespace acme-dev"},
		"a DNS name on a route":             {reason: "As above.", as: deployer, do: create(annotatedRoute("acme-dev", "{external-dns.alpha.kubernetes.io/target: 203.0.113.7}")), want: "on HTTPRoute test in namespace acme-dev"},
		"another's host by an operator":     {reason: "The policy binds the namespace.", as: admin, do: create(annotatedIngress("acme-dev", "{nginx.ingress.kubernetes.io/server-alias: www.example.com}")), want: "name the service in spec.expose.services of the Environment"},
		"a DNS name where nothing is shown": {reason: "The namespace is ours.", as: argocd, do: create(service("acme-night", "{external-dns.alpha.kubernetes.io/hostname: www.example.com}", plain)), want: "in namespace acme-night"},
	}
	for _, key := range []string{
		"external-dns.alpha.kubernetes.io/hostname", "external-dns.kubernetes.io/hostname", "dns.gardener.cloud/dnsnames",
		"cert-manager.io/common-name", "cert-manager.io/cluster-issuer", "acme.cert-manager.io/http01-edit-in-place", "cert.gardener.cloud/commonname", "kubernetes.io/tls-acme",
		"traefik.ingress.kubernetes.io/router.tls.domains.0.main",
		"nginx.ingress.kubernetes.io/server-alias", "haproxy-ingress.github.io/server-alias-regex", "konghq.com/host-aliases", "alb.ingress.kubernetes.io/conditions.s", "getambassador.io/config",
		"nginx.ingress.kubernetes.io/configuration-snippet", "nginx.ingress.kubernetes.io/server-snippet", "nginx.org/server-snippets", "haproxy.org/backend-config-snippet", "haproxy-ingress.github.io/config-backend",
	} {
		annotations["annotation "+key] = attempt{reason: "A controller would act on it.", as: deployer, do: create(annotatedIngress("acme-dev", "{"+key+": x}")), want: "annotation " + key + " may not be on Ingress test in namespace acme-dev"}
	}
	services := map[string]attempt{
		"a service of its own":         {reason: "Charts have services.", as: deployer, do: create(service("acme-dev", "{}", plain))},
		"anything in another's":        {reason: "Namespaces that are not ours are none of our business.", as: argocd, do: create(service("foreign", "{}", taking))},
		"a controller lets go":         {reason: "Or it would never be gone.", as: argocd, do: change(leaving, "metadata: {finalizers: null}")},
		"no address is taken any more": {reason: "That mends it.", as: argocd, do: change(leaving, "spec: {externalIPs: null}")},
		"what leaves takes another":    {reason: "It is obeyed until it is gone.", as: argocd, do: change(leaving, "spec: {externalIPs: [203.0.113.8]}"), want: "Service leaving may not have spec.externalIPs"},
		"an address":                   {reason: "It would take the traffic of whoever has it.", as: deployer, do: create(service("acme-dev", "{}", taking)), want: "Service test may not have spec.externalIPs in namespace acme-dev"},
		"an address by an operator":    {reason: "The policy binds the namespace.", as: admin, do: create(service("acme-dev", "{}", taking)), want: "name the service in spec.expose.services of the Environment"},
		"another's service":            {reason: "An ingress would fetch it.", as: deployer, do: create(service("acme-dev", "{}", named)), want: "Service test may not be of type ExternalName in namespace acme-dev"},
	}
	return map[string]map[string]attempt{"refuse-host-annotations": annotations, "refuse-external-services": services}
}
