package install

func attemptsOnTokens() map[string]map[string]attempt {
	filled := func(namespace string) string {
		return "apiVersion: v1\nkind: Secret\nmetadata: {name: test, namespace: " + namespace + ", annotations: {kubernetes.io/service-account.name: provider-runtime}}\ntype: kubernetes.io/service-account-token"
	}
	const standing = "Secret.v1 steading-system/token"
	return map[string]map[string]attempt{
		"refuse-account-tokens": {
			"an operator's credential":    {reason: "Registry credentials are kept there.", as: operator, do: create(secret("test", "steading-system", "kubernetes.io/dockerconfigjson"))},
			"elsewhere":                   {reason: "Accounts there are none of ours.", as: argocd, do: create(filled("foreign"))},
			"the token controller":        {reason: "It fills what there is.", as: user{name: "system:kube-controller-manager"}, do: change(standing, "metadata: {labels: {a: b}}")},
			"removing one":                {reason: "That mends it.", as: operator, do: remove(standing)},
			"an operator":                 {reason: "He would have the provider's power.", as: operator, do: create(filled("steading-system")), want: "Secret test may not be of type kubernetes.io/service-account-token in namespace steading-system"},
			"an administrator too":        {reason: "Nobody needs one.", as: admin, do: create(filled("steading-system")), want: "kubectl create token"},
			"somebody who syncs from git": {reason: "As above.", as: argocd, do: create(filled("steading-system")), want: "Secret test"},
			"one there is, for another":   {reason: "It would be filled anew.", as: operator, do: change(standing, "metadata: {annotations: {kubernetes.io/service-account.name: provider-runtime}}"), want: "Secret token"},
			"even the controller":         {reason: "It fills them and makes none.", as: user{name: "system:kube-controller-manager"}, do: create(filled("steading-system")), want: "Secret test"},
		},
	}
}
