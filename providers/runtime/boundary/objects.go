package boundary

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/address"
	"github.com/steading-dev/steading/providers/internal/kit"
)

// ClusterRoles that are bound in an environment's namespace. They are installed beside the provider, and on registered
// clusters by Cluster. The provider may bind them, and needs none of their power itself.
const (
	deployerRole = names.EnvironmentDeployerRole
	ownerRole    = names.EnvironmentOwnerRole
)

// Names of the network policies.
const (
	ingressPolicy = "steading-ingress"
	egressPolicy  = "steading-egress"
)

// Pod Security labels.
const (
	podSecurityEnforce = "pod-security.kubernetes.io/enforce"
	podSecurityAudit   = "pod-security.kubernetes.io/audit"
	podSecurityWarn    = "pod-security.kubernetes.io/warn"
)

// namespace of the environment. Pods are held to baseline, and told about restricted; only the privileged docker sidecar,
// which the operator allows by tenant, needs more.
func namespace(p v1alpha1.BoundaryParameters) *corev1.Namespace {
	ns := &corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: p.Namespace, Labels: map[string]string{}},
	}
	enforce, tell := "baseline", "restricted"
	if p.Docker {
		enforce, tell = "privileged", "baseline"
	}
	ns.Labels[podSecurityEnforce], ns.Labels[podSecurityAudit], ns.Labels[podSecurityWarn] = enforce, tell, tell
	kit.Stamp(ns, p.Identity)
	return ns
}

// contents of the namespace, in the order in which they are made: what limits comes before what may act.
func contents(p v1alpha1.BoundaryParameters, pull *corev1.Secret) []client.Object {
	objs := []client.Object{quota(p), limits(p), ingress(p), egress(p), deployer(p), deployerBinding(p)}
	if len(p.Owners) > 0 {
		objs = append(objs, ownersBinding(p))
	}
	if pull != nil {
		objs = append(objs, pullSecret(p, pull))
	}
	for _, obj := range objs {
		kit.Stamp(obj, p.Identity)
	}
	return objs
}

func meta(p v1alpha1.BoundaryParameters, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: p.Namespace, Name: name}
}

// quota holds the sums in the namespace to the caps. Beside them it allows no Service that opens a port outside of the
// cluster's ingress, whose hosts are checked.
func quota(p v1alpha1.BoundaryParameters) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ResourceQuota"},
		ObjectMeta: meta(p, names.Quota),
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
			corev1.ResourceLimitsCPU:             p.Caps.CPU,
			corev1.ResourceLimitsMemory:          p.Caps.Memory,
			corev1.ResourceRequestsStorage:       p.Caps.Storage,
			corev1.ResourceServicesNodePorts:     resource.MustParse("0"),
			corev1.ResourceServicesLoadBalancers: resource.MustParse("0"),
		}},
	}
}

// limits size the containers that say nothing.
func limits(p v1alpha1.BoundaryParameters) *corev1.LimitRange {
	cpu, mem := v1alpha1.DefaultLimits(p.Caps)
	return &corev1.LimitRange{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "LimitRange"},
		ObjectMeta: meta(p, names.Limits),
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypeContainer,
			Default: corev1.ResourceList{
				corev1.ResourceCPU:    cpu,
				corev1.ResourceMemory: mem,
			},
			DefaultRequest: corev1.ResourceList{
				corev1.ResourceCPU:    *resource.NewMilliQuantity(cpu.MilliValue()/10, resource.DecimalSI),
				corev1.ResourceMemory: *resource.NewQuantity(mem.Value()/4, resource.BinarySI),
			},
		}}},
	}
}

// ingress lets in only what comes from the namespace itself. Charts open ports of their own pods to others.
func ingress(p v1alpha1.BoundaryParameters) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"},
		ObjectMeta: meta(p, ingressPolicy),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{{
				From: []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}},
			}},
		},
	}
}

// egress lets pods reach everything but addresses where clouds give their nodes' credentials away.
func egress(p v1alpha1.BoundaryParameters) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"},
		ObjectMeta: meta(p, egressPolicy),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
			Egress:      address.Egress(),
		},
	}
}

// deployer is the account as which Helm acts. Its token is asked for when it is needed and mounted nowhere.
func deployer(p v1alpha1.BoundaryParameters) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{
		TypeMeta:                     metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
		ObjectMeta:                   meta(p, names.Deployer),
		AutomountServiceAccountToken: ptr.To(false),
	}
}

func deployerBinding(p v1alpha1.BoundaryParameters) *rbacv1.RoleBinding {
	return binding(p, names.Deployer, deployerRole, []rbacv1.Subject{
		{Kind: rbacv1.ServiceAccountKind, Namespace: p.Namespace, Name: names.Deployer},
	})
}

func ownersBinding(p v1alpha1.BoundaryParameters) *rbacv1.RoleBinding {
	return binding(p, names.Owners, ownerRole, subjects(p.Owners))
}

func binding(p v1alpha1.BoundaryParameters, name, role string, to []rbacv1.Subject) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
		ObjectMeta: meta(p, name),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   to,
	}
}

func subjects(owners []steading.Subject) []rbacv1.Subject {
	out := make([]rbacv1.Subject, 0, len(owners))
	for _, o := range owners {
		out = append(out, o.RBAC())
	}
	return out
}

// pullSecret copies the one key that the kubelet reads.
func pullSecret(p v1alpha1.BoundaryParameters, from *corev1.Secret) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: meta(p, names.PullSecret),
		Type:       corev1.SecretTypeDockerConfigJson,
		Data:       map[string][]byte{corev1.DockerConfigJsonKey: from.Data[corev1.DockerConfigJsonKey]},
	}
}
