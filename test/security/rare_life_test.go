package security

import (
	"context"
	"errors"
	"fmt"
	"testing"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/test/fakes/edgeoperators"
	"github.com/steading-dev/steading/test/harness"
	"github.com/steading-dev/steading/test/harness/try"
)

// What follows are days that few tenants have. Power that is needed on these only is used on these.

// liveDrifted takes a label off the tenant's namespace, which is put back.
func liveDrifted(t *testing.T) {
	t.Helper()
	const label = "pod-security.kubernetes.io/enforce"
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tenant-lifea"}}
	harness.Change(t, &suite, ns, func(ns *corev1.Namespace) { delete(ns.Labels, label) })
	harness.Eventually(t, "the label is put back", func(ctx context.Context) error {
		if err := suite.Reload(ctx, ns); err != nil {
			return err
		}
		if ns.Labels[label] == "" {
			return fmt.Errorf("labels %v", ns.Labels)
		}
		return nil
	})
}

// liveUsed leaves a use of a config that nothing makes any more, which is taken away, and has that of the context say
// another config. What it returns waits until that is put right, as it is when the context is looked at again.
func liveUsed(t *testing.T, config *runtimev1.ProviderConfig) (putRight func(t *testing.T)) {
	t.Helper()
	orphan := &runtimev1.ProviderConfigUsage{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: config.Namespace, Name: "life-orphan",
			Labels: map[string]string{xpv2.LabelKeyProviderName: config.Name, xpv2.LabelKeyProviderKind: runtimev1.ProviderConfigKind},
		},
		TypedProviderConfigUsage: xpv2.TypedProviderConfigUsage{
			ProviderConfigReference: xpv2.ProviderConfigReference{Kind: runtimev1.ProviderConfigKind, Name: config.Name},
			ResourceReference:       xpv2.TypedReference{APIVersion: runtimev1.GroupVersion.String(), Kind: runtimev1.ClusterKind, Name: "gone"},
		},
	}
	suite.Create(t, orphan)
	suite.WantGone(t, orphan)

	edge := harness.Get(t, &suite, &runtimev1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: names.Context("lifea", "edge")}})
	used := &runtimev1.ProviderConfigUsage{ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: string(edge.UID)}}
	harness.Change(t, &suite, used, func(u *runtimev1.ProviderConfigUsage) { u.ProviderConfigReference.Name = "another" })
	return func(t *testing.T) {
		t.Helper()
		harness.Eventually(t, "the use of a config is put right", func(ctx context.Context) error {
			if err := suite.Reload(ctx, used); err != nil {
				return err
			}
			if name := used.ProviderConfigReference.Name; name != names.DefaultProviderConfig {
				return fmt.Errorf("it is of %s", name)
			}
			return nil
		})
	}
}

// liveReissued has the operator name another issuer, whom the certificate of lifea-far is from then on.
func liveReissued(t *testing.T) {
	t.Helper()
	suite.Configure(t, func(s *runtimev1.ProviderConfigSpec) { s.Certificates.IssuerRef.Name = "another" })
	harness.Eventually(t, "the certificate is another issuer's", func(ctx context.Context) error {
		c := try.Object("Certificate.cert-manager.io/v1 " + names.EdgeNamespace + "/lifea-far")
		if err := suite.Admin.Get(ctx, client.ObjectKeyFromObject(c), c); err != nil {
			return err
		}
		if issuer, _, _ := unstructured.NestedString(c.Object, "spec", "issuerRef", "name"); issuer != "another" {
			return fmt.Errorf("it is of %s", issuer)
		}
		return nil
	})
}

// liveGateway exposes an environment on the platform's own cluster, by the Gateway API.
func liveGateway(t *testing.T) {
	t.Helper()
	suite.Define(t, edgeoperators.GatewayModule)
	suite.Configure(t, func(s *runtimev1.ProviderConfigSpec) {
		s.PlatformCluster = &runtimev1.PlatformCluster{Exposure: &runtimev1.Exposure{Zone: "platform.example.com", Ingress: steading.ContextIngress{
			Addresses: []string{"203.0.113.9"}, GatewayRef: &steading.GatewayReference{Namespace: "gateways", Name: "public"},
		}}}
	})
	e := harness.Environment("lifea", "gated")
	e.Spec.ContextRef = &steading.ContextReference{Name: steading.PlatformContext}
	e.Spec.Expose = steading.Expose{Services: []string{"mcp"}}
	suite.Create(t, e)
	harness.Eventually(t, "a route of lifea-gated", func(ctx context.Context) error {
		l := &unstructured.UnstructuredList{}
		l.SetAPIVersion("gateway.networking.k8s.io/v1")
		l.SetKind("HTTPRouteList")
		if err := suite.Admin.List(ctx, l, client.InNamespace("lifea-gated")); err != nil {
			return err
		}
		if len(l.Items) == 0 {
			return errors.New(harness.Describe(e))
		}
		return nil
	})
	suite.Delete(t, e)
	suite.WantGone(t, e)
}

// liveFetched registers a context whose credential is in the tenant's own store, which an owner makes.
func liveFetched(t *testing.T) {
	t.Helper()
	suite.Define(t, edgeoperators.SecretsModule)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	lena := ownerOfLife(t)
	vault, err := edgeoperators.StartExternalSecrets(ctx, suite.Plane.Config())
	if err != nil {
		t.Fatal(err)
	}
	vault.Hold("contexts/fetched", map[string]string{"token": suite.EdgeToken(t, "lifea-fetched")})
	// The API server takes a moment to serve the kind.
	harness.Eventually(t, "the owner makes a store", func(ctx context.Context) error { return create(store("tenant-lifea"))(ctx, lena) })
	c := suite.EdgeContext("lifea", "fetched", steading.ContextCredentials{ExternalSecret: &steading.ExternalCredential{
		StoreRef: steading.StoreReference{Kind: "SecretStore", Name: "vault"}, Key: "contexts/fetched",
	}})
	suite.Create(t, c)
	suite.WaitContext(t, c, "running", harness.ContextRunning)
	// Another key is asked for by changing what was made.
	vault.Hold("contexts/moved", map[string]string{"token": suite.EdgeToken(t, "lifea-moved")})
	harness.Change(t, &suite, c, func(c *steading.Context) { c.Spec.Credentials.ExternalSecret.Key = "contexts/moved" })
	harness.Eventually(t, "the other key is fetched", func(ctx context.Context) error {
		u := try.Object("ExternalSecret.external-secrets.io/v1 tenant-lifea/" + names.ExternalCredential("fetched"))
		if err := suite.Admin.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
			return err
		}
		from, _, _ := unstructured.NestedSlice(u.Object, "spec", "dataFrom")
		if fmt.Sprint(from) != "[map[extract:map[conversionStrategy:Default decodingStrategy:None key:contexts/moved metadataPolicy:None]]]" {
			return fmt.Errorf("dataFrom is %v", from)
		}
		return nil
	})
	suite.WaitContext(t, c, "running", harness.ContextRunning)
	suite.Delete(t, c)
	suite.WantGone(t, c)
}

// ownerOfLife is a client of an owner of the tenants that live.
func ownerOfLife(t *testing.T) client.Client {
	t.Helper()
	cfg, err := suite.Plane.ConfigFor("lena", "life-owners")
	if err != nil {
		t.Fatal(err)
	}
	c, err := harness.Client(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// livePools has an owner make a runner pool, which has neither token nor namespace and is to go with its tenant all the same.
func livePools(t *testing.T) client.Object {
	t.Helper()
	const pool = "apiVersion: steading.dev/v1alpha1\nkind: RunnerPool\nmetadata: {name: linux, namespace: tenant-lifea}\n" +
		"spec: {forgejo: {url: 'https://git.example.com', scope: {organization: lifea}, tokenSecretRef: {name: forgejo-pat}}, labels: [docker], jobNamespace: lifea-ci,\n" +
		"  pod: {template: {spec: {containers: [{name: job, image: alpine}]}}}}"
	if err := create(pool)(t.Context(), ownerOfLife(t)); err != nil {
		t.Fatal(err)
	}
	return try.Object("RunnerPool.steading.dev/v1alpha1 tenant-lifea/linux")
}

// store of secrets in a namespace.
func store(namespace string) string {
	return "apiVersion: external-secrets.io/v1\nkind: SecretStore\nmetadata: {name: vault, namespace: " + namespace + "}\n" +
		"spec: {provider: {fake: {data: [{key: contexts/fetched, value: x}]}}}"
}

// leaveRemainder deletes an environment that is exposed while cert-manager does not clean up after itself. After a minute
// what is left becomes a remainder, for which [wantRemainder] waits.
func leaveRemainder(t *testing.T, certs *edgeoperators.CertManager) *steading.Environment {
	t.Helper()
	e := harness.Environment("lifea", "late")
	e.Spec.ContextRef = &steading.ContextReference{Name: "edge"}
	e.Spec.Expose = steading.Expose{Services: []string{"mcp"}}
	suite.Create(t, e)
	suite.WaitFor(t, e, "exposed", harness.Exposed)
	certs.HoldsChallenges(true)
	t.Cleanup(func() { certs.HoldsChallenges(false) })
	suite.Delete(t, e)
	return e
}

// wantRemainder of an environment, and that it goes when cert-manager cleans up.
func wantRemainder(t *testing.T, certs *edgeoperators.CertManager, e *steading.Environment) {
	t.Helper()
	left := &runtimev1.EdgeRemainderList{}
	harness.Eventually(t, "a remainder of the edge of "+e.Name, func(ctx context.Context) error {
		if err := suite.Admin.List(ctx, left); err != nil {
			return err
		}
		if len(left.Items) == 0 {
			return errors.New("there is none")
		}
		return nil
	})
	suite.WantGone(t, e)
	certs.HoldsChallenges(false)
	for i := range left.Items {
		suite.WantGone(t, &left.Items[i])
	}
}
