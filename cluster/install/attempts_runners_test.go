package install

import (
	"context"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
)

// ofRunner are the labels of what belongs to a runner of acme, and ofPool of what belongs to all of them.
const (
	ofRunner = "{app.kubernetes.io/managed-by: steading, steading.dev/tenant: acme, steading.dev/runner: acme-linux-cccccccc}"
	ofPool   = "{app.kubernetes.io/managed-by: steading, steading.dev/tenant: acme}"
)

func pool(name string) string {
	return "apiVersion: steading.dev/v1alpha1\nkind: RunnerPool\nmetadata: {name: " + name + ", namespace: tenant-acme}\n" +
		"spec: {forgejo: {url: 'https://git.example.com', scope: {organization: acme}, tokenSecretRef: {name: forgejo-pat}}, labels: [docker], jobNamespace: acme-ci,\n" +
		"  pod: {template: {spec: {containers: [{name: job, image: alpine}]}}}}"
}

func job(namespace, labels string) string {
	return "apiVersion: batch/v1\nkind: Job\nmetadata: {name: acme-linux-cccccccc, namespace: " + namespace + ", labels: " + labels + "}\n" +
		"spec: {template: {spec: {restartPolicy: Never, containers: [{name: job, image: alpine}]}}}"
}

func machine(namespace, labels string) string {
	return "apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata: {name: acme-linux-cccccccc, namespace: " + namespace + ", labels: " + labels + "}\n" +
		"spec: {runStrategy: Once, template: {spec: {domain: {devices: {}}}}}"
}

func credentials(name, namespace string) string {
	return "apiVersion: v1\nkind: Secret\nmetadata: {name: " + name + ", namespace: " + namespace + ", labels: " + ofRunner + "}\ntype: Opaque"
}

// guard is a guard rail of a job namespace.
func guard(version, kind, name, labels, more string) string {
	return "apiVersion: " + version + "\nkind: " + kind + "\nmetadata: {name: " + name + ", namespace: acme-ci, labels: " + labels + "}\n" + more
}

// right is a binding of provider-forgejo's, or of another account.
func right(name, namespace, role, account string) string {
	return "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: " + name + ", namespace: " + namespace + ", labels: " + ofPool + "}\n" +
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: '" + role + "'}\n" +
		"subjects: [{kind: ServiceAccount, namespace: steading-system, name: " + account + "}, {kind: ServiceAccount, namespace: crossplane-system, name: " + account + "}]"
}

// typedInstance does what the provider does that reads a record into its type and writes all of it back.
func typedInstance(change func(*forgejov1.RunnerInstance)) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		i := &forgejov1.RunnerInstance{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: "steading-system", Name: "acme-linux-bbbbbbbb"}, i); err != nil {
			return err
		}
		change(i)
		return c.Update(ctx, i)
	}
}

func attemptsOnRunners() map[string]map[string]attempt {
	const (
		spawner = "steading:runner-spawner"
		reads   = "steading:runner-token-reader"
		account = "provider-forgejo"
		secret  = "acme-linux-cccccccc-credentials"
		quota   = "ResourceQuota.v1 acme-ci/steading-runners"
		given   = "Namespace.v1 acme-ci"
		runner  = "Runner.forgejo.steading.dev/v1alpha1 steading-system/acme-linux"
		record  = "RunnerInstance.forgejo.steading.dev/v1alpha1 steading-system/acme-linux-bbbbbbbb"
		drain   = "spec: {forProvider: {drain: true}}"
		more    = "spec: {forProvider: {settings: {maxRunners: 100}}}"
	)
	newRecord := "apiVersion: forgejo.steading.dev/v1alpha1\nkind: RunnerInstance\nmetadata: {name: acme-linux-cccccccc, namespace: steading-system}\n" +
		"spec: {forProvider: {identity: {tenant: acme, uid: x}, claim: {namespace: tenant-acme, name: linux}, pool: {name: acme-linux, uid: x},\n" +
		"  config: {forgejo: {url: 'https://git.example.com', scope: {organization: acme}, tokenSecretRef: {name: forgejo-pat}}, labels: [docker], jobNamespace: acme-ci, assignment: Any,\n" +
		"  startupTimeoutSeconds: 600, jobTimeoutSeconds: 11400, pod: {template: {spec: {containers: [{name: job, image: alpine}]}}}}}}"
	return map[string]map[string]attempt{
		"refuse-claim-names": {
			"a pool of thirty-two characters":   {reason: "The longest that fits.", as: owner, do: create(pool(fortyTwo[:32]))},
			"a pool of thirty-three characters": {reason: "A runner's name is that of a Job.", as: owner, do: create(pool(fortyTwo[:33])), want: "it has 33 characters, 32 are allowed"},
		},
		"refuse-runners-for": {
			"an operator gives a namespace":    {reason: "He does.", as: operator, do: change("Namespace.v1 foreign", "metadata: {labels: {steading.dev/runners-for: acme}}")},
			"an operator takes it back":        {reason: "He does.", as: operator, do: change(given, "metadata: {labels: {steading.dev/runners-for: null}}")},
			"somebody labels it otherwise":     {reason: "It is his namespace.", as: argocd, do: change(given, "metadata: {labels: {team: ci}}")},
			"somebody gives a namespace":       {reason: "It is where others' code runs.", as: argocd, do: change("Namespace.v1 foreign", "metadata: {labels: {steading.dev/runners-for: acme}}"), want: "namespace foreign: label steading.dev/runners-for can be set, changed or removed by the platform's operators only"},
			"somebody makes one":               {reason: "As above.", as: argocd, do: create(namespace("mine", "{steading.dev/runners-for: acme}")), want: "operators only"},
			"somebody gives it to another":     {reason: "As above.", as: argocd, do: change(given, "metadata: {labels: {steading.dev/runners-for: globex}}"), want: "operators only"},
			"somebody takes it back":           {reason: "Runners would be left there.", as: argocd, do: change(given, "metadata: {labels: {steading.dev/runners-for: null}}"), want: "operators only"},
			"the provider gives itself one":    {reason: "The operator's consent is not its own.", as: packagedForgejo, do: change("Namespace.v1 foreign", "metadata: {labels: {steading.dev/runners-for: acme}}"), want: "operators only"},
			"a tenant's namespace":             {reason: "The pools' tokens are there.", as: operator, do: change("Namespace.v1 tenant-acme", "metadata: {labels: {steading.dev/runners-for: acme}}"), want: "namespace tenant-acme cannot be for runners"},
			"kube-system":                      {reason: "The cluster's credentials are there.", as: operator, do: change("Namespace.v1 kube-system", "metadata: {labels: {steading.dev/runners-for: acme}}"), want: "cannot be for runners"},
			"steading-system":                  {reason: "The platform's are there.", as: operator, do: change("Namespace.v1 steading-system", "metadata: {labels: {steading.dev/runners-for: acme}}"), want: "cannot be for runners"},
			"default":                          {reason: "Nobody looks who else is there.", as: admin, do: change("Namespace.v1 default", "metadata: {labels: {steading.dev/runners-for: acme}}"), want: "cannot be for runners"},
			"a name that no tenant has":        {reason: "It would be given to nobody.", as: operator, do: create(namespace("ci", "{steading.dev/runners-for: acme-corp}")), want: "has to be a tenant's name"},
			"Crossplane's, by its own account": {reason: "It is no operator either.", as: crossplane, do: create(namespace("ci", "{steading.dev/runners-for: acme}")), want: "operators only"},
		},
		"refuse-changing-runners": {
			"the provider":                    {reason: "It keeps them.", as: forgejo, do: change(quota, "spec: {hard: {pods: '7'}}")},
			"an operator":                     {reason: "Operators may.", as: operator, do: remove(quota)},
			"the namespace controller":        {reason: "It empties namespaces.", as: namespaceController, do: remove(quota)},
			"somebody's own quota":            {reason: "It is his namespace.", as: argocd, do: create(guard("v1", "ResourceQuota", "mine", "{}", ""))},
			"somebody deletes a job":          {reason: "He kills his own runner.", as: argocd, do: remove("Job.batch/v1 acme-ci/theirs")},
			"in a namespace of somebody else": {reason: "It is none of our business.", as: argocd, do: create(networkPolicy("steading-runners", "foreign"))},
			"somebody lifts the quota":        {reason: "It is the sum of the pools' maxima.", as: argocd, do: change(quota, "spec: {hard: {pods: '700'}}"), want: "ResourceQuota steading-runners is one of Steading's own in namespace acme-ci, which is for runners"},
			"somebody opens the network":      {reason: "Jobs could reach the credentials of their node.", as: argocd, do: create(networkPolicy("steading-runners", "acme-ci")), want: "NetworkPolicy steading-runners"},
			"somebody swaps a credential":     {reason: "A runner would run another's jobs.", as: argocd, do: replace("Secret.v1 acme-ci/acme-linux-bbbbbbbb-credentials", setLabel("a", "b")), want: "Secret acme-linux-bbbbbbbb-credentials"},
			"somebody is there first":         {reason: "A credential would be taken for one of ours.", as: argocd, do: create(credentials(secret, "acme-ci")), want: "use others"},
			"somebody binds our account":      {reason: "The provider's right is the provider's.", as: argocd, do: remove("RoleBinding.rbac.authorization.k8s.io/v1 acme-ci/steading-runners"), want: "RoleBinding steading-runners"},
		},
		"refuse-changing-guard-rails": {
			"the provider of runners reads a token":     {reason: "By a binding of its own.", as: forgejo, do: apply(right("steading-runners-linux", "tenant-acme", reads, account))},
			"the provider of runners takes other names": {reason: "They are provider-runtime's.", as: packagedForgejo, do: create("apiVersion: v1\nkind: LimitRange\nmetadata: {name: steading-limits, namespace: acme-night}"), want: "LimitRange steading-limits"},
		},
		"refuse-changing-managed-resources": {
			"crossplane changes a pool":      {reason: "It does.", as: crossplane, do: change(runner, more)},
			"the provider lets go of a pool": {reason: "It does.", as: forgejo, do: change(runner, "metadata: {finalizers: null}")},
			"the provider reports on a pool": {reason: "It does.", as: packagedForgejo, do: changeStatus(runner, "status: {atProvider: {waiting: 1}}")},
			"the provider makes a record":    {reason: "They are its own.", as: forgejo, do: create(newRecord)},
			"the provider drains":            {reason: "It does.", as: forgejo, do: change(record, drain)},
			"the provider writes a record back": {reason: "A typed client changes nothing by the way.", as: forgejo, do: typedInstance(func(i *forgejov1.RunnerInstance) {
				i.SetAnnotations(map[string]string{"crossplane.io/external-name": "7"})
			})},
			"the provider judges":                {reason: "It does.", as: packagedForgejo, do: changeStatus(record, "status: {atProvider: {phase: Completed, reason: RunnerConsumed}}")},
			"the provider changes a pool":        {reason: "It reports; it does not decide.", as: forgejo, do: change(runner, more), want: "Runner acme-linux: its provider may change its metadata and status only"},
			"the other provider changes a pool":  {reason: "It is not its kind.", as: packaged, do: change(runner, "metadata: {finalizers: null}"), want: "Runner acme-linux is composed from a claim"},
			"the other provider judges":          {reason: "As above.", as: packaged, do: changeStatus(record, "status: {atProvider: {phase: Failed}}"), want: "RunnerInstance acme-linux-bbbbbbbb is kept by provider-forgejo"},
			"runners' provider changes boundary": {reason: "As above.", as: packagedForgejo, do: change("Boundary.runtime.steading.dev/v1alpha1 steading-system/acme-dev", "metadata: {finalizers: null}"), want: "Boundary acme-dev is composed from a claim"},
			"crossplane makes a record":          {reason: "It composes none.", as: crossplane, do: create(newRecord), want: "is kept by provider-forgejo"},
			"somebody makes a record":            {reason: "It would be registered with a token that is not his.", as: argocd, do: create(newRecord), want: "is kept by provider-forgejo"},
			"somebody drains":                    {reason: "The claim's owner suspends the pool.", as: argocd, do: change(record, drain), want: "is kept by provider-forgejo"},
			"an operator drains":                 {reason: "He deletes it, or breaks the glass.", as: operator, do: change(record, drain), want: "once it carries the annotation steading.dev/break-glass"},
		},
		"refuse-deleting-managed-resources": {
			"the provider deletes a record": {reason: "History has its limits.", as: forgejo, do: remove(record)},
			"an operator kills a runner":    {reason: "By deleting its record, as it is.", as: operator, do: remove(record)},
			"the collector deletes records": {reason: "When the pool is gone.", as: garbageCollector, do: remove(record)},
			"crossplane deletes a pool":     {reason: "It does.", as: crossplane, do: remove(runner)},
			"somebody kills a runner":       {reason: "He is no operator.", as: argocd, do: remove(record), want: "RunnerInstance acme-linux-bbbbbbbb goes with the claim it serves"},
			"the provider deletes a pool":   {reason: "The claim's owner does.", as: packagedForgejo, do: remove(runner), want: "Runner acme-linux goes with the claim it serves"},
			"an operator deletes a pool":    {reason: "It has to be said.", as: operator, do: remove(runner), want: "or first set the annotation steading.dev/break-glass on it"},
		},
		"refuse-provider-forgejo-elsewhere": {
			"a job":                            {reason: "It makes them.", as: forgejo, do: create(job("acme-ci", ofRunner))},
			"a machine":                        {reason: "It makes them.", as: forgejo, do: create(machine("acme-ci", ofRunner))},
			"a credential":                     {reason: "It makes them.", as: forgejo, do: create(credentials(secret, "acme-ci"))},
			"a credential that is spent":       {reason: "It deletes them.", as: forgejo, do: remove("Secret.v1 acme-ci/acme-linux-bbbbbbbb-credentials")},
			"the quota":                        {reason: "It keeps it.", as: forgejo, do: change(quota, "spec: {hard: {pods: '7'}}")},
			"the network policy":               {reason: "It makes it.", as: forgejo, do: apply(guard("networking.k8s.io/v1", "NetworkPolicy", "steading-runners", ofPool, "spec: {podSelector: {}}"))},
			"its right":                        {reason: "It gives it itself.", as: forgejo, do: apply(right("steading-runners", "acme-ci", spawner, account))},
			"its right to read a token":        {reason: "It gives it itself.", as: forgejo, do: apply(right("steading-runners-linux", "tenant-acme", reads, account))},
			"stopping what is left":            {reason: "The operator took the namespace back.", as: forgejo, do: change("Job.batch/v1 taken-back/acme-linux-aaaaaaaa", "spec: {suspend: true}")},
			"deleting what is left":            {reason: "As above.", as: forgejo, do: remove("Job.batch/v1 taken-back/acme-linux-aaaaaaaa")},
			"deleting a credential left":       {reason: "As above.", as: forgejo, do: remove("Secret.v1 taken-back/acme-linux-aaaaaaaa-credentials")},
			"taking back its right":            {reason: "As above.", as: forgejo, do: remove("RoleBinding.rbac.authorization.k8s.io/v1 taken-back/steading-runners")},
			"somebody else elsewhere":          {reason: "The policy is the provider's only.", as: argocd, do: create(job("foreign", "{}"))},
			"a job elsewhere":                  {reason: "Nobody gave it that namespace.", as: packagedForgejo, do: create(job("foreign", ofRunner)), want: "namespace foreign does not carry the label steading.dev/runners-for: the provider may not write jobs in it"},
			"a job where it may not any more":  {reason: "The operator took the namespace back.", as: forgejo, do: create(job("taken-back", ofRunner)), want: "namespace taken-back does not carry the label"},
			"a job beside the claims":          {reason: "Tokens are there.", as: packagedForgejo, do: create(job("tenant-acme", ofRunner)), want: "the provider may not write jobs in it"},
			"a machine elsewhere":              {reason: "Nobody gave it that namespace.", as: packagedForgejo, do: create(machine("foreign", ofRunner)), want: "may not write virtualmachines in it"},
			"a lease of its own":               {reason: "It elects a leader.", as: forgejo, do: create(lease("steading-system"))},
			"a lease elsewhere":                {reason: "Others elect leaders.", as: packagedForgejo, do: create(lease("kube-system")), want: "may not write leases in it"},
			"a ConfigMap elsewhere":            {reason: "Some say who may do what in the cluster.", as: packagedForgejo, do: create(configMap("kube-system")), want: "may not write configmaps in it"},
			"a ConfigMap among runners":        {reason: "It makes none.", as: packagedForgejo, do: create(configMap("acme-ci")), want: "has to carry the labels"},
			"a secret elsewhere":               {reason: "Crossplane's RBAC manager gives it more than it needs.", as: packagedForgejo, do: create(credentials(secret, "foreign")), want: "may not write secrets in it"},
			"a secret in steading-system":      {reason: "As above.", as: packagedForgejo, do: create(credentials(secret, "steading-system")), want: "may not write secrets in it"},
			"a job of another tenant's":        {reason: "The namespace is acme's.", as: forgejo, do: create(job("acme-ci", strings.Replace(ofRunner, "acme,", "globex,", 1))), want: "has to carry the labels app.kubernetes.io/managed-by: steading and steading.dev/tenant: acme"},
			"a job of nobody's":                {reason: "It could not be told whose it is.", as: forgejo, do: create(job("acme-ci", "{}")), want: "has to carry the labels"},
			"a job of no runner's":             {reason: "As above.", as: forgejo, do: create(job("acme-ci", ofPool)), want: "that carry the label steading.dev/runner"},
			"somebody's job":                   {reason: "It is not its own.", as: forgejo, do: remove("Job.batch/v1 acme-ci/theirs"), want: "Job theirs in namespace acme-ci was not made by the provider"},
			"an account that was there first":  {reason: "It is not its own.", as: forgejo, do: change("ServiceAccount.v1 acme-ci/steading-runner", "metadata: {labels: "+ofPool+"}"), want: "was not made by the provider"},
			"another account":                  {reason: "It has one.", as: forgejo, do: apply(guard("v1", "ServiceAccount", "admin", ofPool, "")), want: "the provider may write the account steading-runner"},
			"another quota":                    {reason: "It has one.", as: forgejo, do: apply(guard("v1", "ResourceQuota", "steading-more", ofPool, "")), want: "called steading-runners"},
			"a token":                          {reason: "It acts as nobody else.", as: packagedForgejo, do: token("acme-ci/steading-runner"), want: "has to carry the labels"},
			"a role":                           {reason: "It makes none.", as: packagedForgejo, do: create(guard("rbac.authorization.k8s.io/v1", "Role", "steading-runners", ofPool, "rules: []")), want: "no tokens, roles or pods"},
			"a credential by another name":     {reason: "It could be mounted by a pod that knows that name.", as: forgejo, do: create(credentials("registry", "acme-ci")), want: "the provider may write Secrets called <runner>-credentials"},
			"a token by way of a secret":       {reason: "Kubernetes fills Secrets of that type with tokens.", as: forgejo, do: create("apiVersion: v1\nkind: Secret\nmetadata: {name: " + secret + ", namespace: acme-ci, labels: " + ofRunner + ", annotations: {kubernetes.io/service-account.name: steading-runner}}\ntype: kubernetes.io/service-account-token"), want: "of type Opaque only"},
			"tokens of an environment":         {reason: "There are none.", as: packagedForgejo, do: create(right("steading-runners-linux", "acme-dev", reads, account)), want: "may not write rolebindings in it"},
			"all secrets of a tenant's claims": {reason: "It reads them by the one role.", as: packagedForgejo, do: create(right("steading-runners-linux", "tenant-acme", "admin", account)), want: "the provider may read tokens in the namespaces of tenants' claims"},
			"another role where runners run":   {reason: "It has one.", as: packagedForgejo, do: create(right("steading-runner-admin", "acme-ci", "admin", account)), want: "and make runners by one called steading-runners"},
			"a token for somebody else":        {reason: "It reads them itself.", as: forgejo, do: create(right("steading-runners-linux", "tenant-acme", reads, "default")), want: "the provider may give rights to itself only"},
			"its right in kube-system":         {reason: "It would read everything there.", as: forgejo, do: create(right("steading-runners", "kube-system", spawner, account)), want: "namespace kube-system does not carry the label"},
		},
	}
}
