package cluster

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
)

func synced(err error) xpv2.Condition {
	if err != nil {
		return xpv2.ReconcileError(err)
	}
	return xpv2.ReconcileSuccess()
}

func ready(mg *v1alpha1.Cluster, err error) bool {
	return err == nil && kit.IsReady(mg) && mg.Status.AtProvider.Guarded
}

// not reports whether the Cluster is not ready for a reason.
func not(reason xpv2.ConditionReason, message string) func(*v1alpha1.Cluster, error) bool {
	return func(mg *v1alpha1.Cluster, _ error) bool {
		c := mg.GetCondition(xpv2.TypeReady)
		return c.Status == corev1.ConditionFalse && c.Reason == reason && strings.Contains(c.Message, message)
	}
}

func TestACredentialIsProvedThenKept(t *testing.T) {
	w := newWorld(t)
	w.until("no Secret", not(steading.ReasonCredentialMissing, "there is no Secret tenant-acme/edge-admin"))
	if w.kept() != nil {
		t.Error("something is kept before anything was proved")
	}
	w.put(tokenIn("edge-admin", "planted-secret"))
	mg := w.until("a wrong token", not(steading.ReasonCredentialRefused, "401"))
	notIn(t, describe(mg), "planted-secret")
	w.put(tokenIn("edge-admin", goodToken))
	mg = w.until("ready", ready)

	o := mg.Status.AtProvider
	if !o.Reachable || o.Version != "v1.35.4" || !strings.HasPrefix(o.Credential, "Secret tenant-acme/edge-admin at resource version") {
		t.Errorf("seen %+v", o)
	}
	k := w.kept()
	if k == nil || string(k.Data["token"]) != goodToken || k.Type != secretType || len(k.Finalizers) != 1 || !metav1.IsControlledBy(k, mg) || *k.OwnerReferences[0].BlockOwnerDeletion {
		t.Errorf("kept %+v", k)
	}
	if _, err := w.c.targets.Get(t.Context(), "acme-edge"); err != nil && strings.Contains(err.Error(), "no such context") {
		t.Errorf("the context is no target: %v", err)
	}
	if n := w.server.objects.count(); n != 12 {
		t.Errorf("%d guard objects", n)
	}
	notIn(t, describe(mg)+w.told(), goodToken)
}

func TestTheLastGoodCredentialStays(t *testing.T) {
	w := newWorld(t, tokenIn("edge-admin", goodToken))
	w.until("ready", ready)
	lastGood := func(mg *v1alpha1.Cluster, err error) bool {
		return err != nil && strings.Contains(err.Error(), "the last good credential stays in use") && kit.IsReady(mg) && string(w.kept().Data["token"]) == goodToken
	}
	w.put(tokenIn("edge-admin", "planted-secret"))
	w.until("a wrong token", lastGood)
	if told := w.told(); !strings.Contains(told, "CredentialRefused") {
		t.Errorf("events %q", told)
	}
	if err := w.kube.Delete(t.Context(), tokenIn("edge-admin", "")); err != nil {
		t.Fatal(err)
	}
	w.until("no Secret", lastGood)
	w.change(func(mg *v1alpha1.Cluster) { mg.Spec.ForProvider.CABundle = []byte("nonsense") })
	w.until("no CA", lastGood)

	cert, key := w.server.ca.issue(t, nil)
	w.put(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-acme", Name: "edge-admin"}, Data: map[string][]byte{"tls.crt": cert, "tls.key": key}})
	w.change(func(mg *v1alpha1.Cluster) { mg.Spec.ForProvider.CABundle = w.server.ca.pem })
	w.until("ready with a certificate", func(mg *v1alpha1.Cluster, err error) bool {
		return ready(mg, err) && len(w.kept().Data["tls.crt"]) > 0 && len(w.kept().Data["token"]) == 0
	})
	w.until("the guard lets pass the new user", func(*v1alpha1.Cluster, error) bool {
		return w.server.objects.named("steading:environment-owner").GetAnnotations()[names.AnnotationGuards+"acme-edge"] == "edge-admin"
	})
}

func TestAServerIsNotChangedUnderEnvironments(t *testing.T) {
	w := newWorld(t, tokenIn("edge-admin", goodToken))
	w.until("ready", ready)
	other := newAPIServer(t, nil)
	mg := w.get()
	mg.Status.AtProvider.Environments = &steading.ContextUse{Used: 2, Free: 18}
	if err := w.kube.Status().Update(t.Context(), mg); err != nil {
		t.Fatal(err)
	}
	w.change(func(mg *v1alpha1.Cluster) {
		mg.Spec.ForProvider.Server, mg.Spec.ForProvider.CABundle = other.URL, other.ca.pem
	})
	w.until("refused", func(_ *v1alpha1.Cluster, err error) bool {
		return err != nil && strings.Contains(err.Error(), "spec.server cannot be changed from "+w.server.URL+" while 2 environments are on the context")
	})
	mg = w.get()
	mg.Status.AtProvider.Environments = &steading.ContextUse{Free: 20}
	if err := w.kube.Status().Update(t.Context(), mg); err != nil {
		t.Fatal(err)
	}
	w.until("moved", func(mg *v1alpha1.Cluster, err error) bool {
		return ready(mg, err) && string(w.kept().Data[keyServer]) == other.URL
	})
}

func TestAClusterGoesAndComesBack(t *testing.T) {
	w := newWorld(t, tokenIn("edge-admin", goodToken))
	w.until("ready", ready)
	w.server.answerWith(overloaded)
	w.server.cut()
	mg := w.until("down", not(steading.ReasonTargetUnreachable, "503"))
	if _, err := w.c.targets.Get(t.Context(), "acme-edge"); err == nil || !strings.Contains(err.Error(), "not able to answer now (503") {
		t.Errorf("what is placed on it says %v", err)
	}
	if o := mg.Status.AtProvider; o.Reachable || o.Version != "v1.35.4" || w.kept() == nil {
		t.Errorf("seen %+v", o)
	}
	before := describe(mg)
	_ = w.look()
	if now := describe(w.get()); now != before {
		t.Errorf("the status changes without news:\n%s\n%s", before, now)
	}
	w.server.answerWith(nil)
	w.until("up", ready)
	if _, err := w.c.targets.Get(t.Context(), "acme-edge"); err == nil || strings.Contains(err.Error(), "503") {
		t.Errorf("what is placed on it still says %v", err)
	}
}

func TestAnUnguardedClusterIsUsed(t *testing.T) {
	w := newWorld(t, tokenIn("edge-admin", goodToken))
	w.server.objects.refuse = true
	mg := w.until("ready", func(mg *v1alpha1.Cluster, err error) bool {
		return err == nil && kit.IsReady(mg) && mg.Status.AtProvider.GuardMessage != ""
	})
	if o := mg.Status.AtProvider; o.Guarded || !strings.Contains(o.GuardMessage, `User "edge-admin" cannot post`) {
		t.Errorf("seen %+v", o)
	}
}

// TestGuardOfTwoContexts that write it at once: the one that comes second says nothing, and adds itself.
// TestAClusterThatSaysTooMuchIsNotReached: it answers as an API server does, until it is watched.
func TestAClusterThatSaysTooMuchIsNotReached(t *testing.T) {
	w := newWorld(t, tokenIn("edge-admin", goodToken))
	w.server.answerWith(func(out http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/namespaces" || r.URL.Query().Get("sendInitialEvents") == "" {
			w.server.usual(out, r)
			return
		}
		out.Header().Set("Content-Type", "application/json")
		for said := `{"type":"`; r.Context().Err() == nil; said = strings.Repeat("ADDED", 1<<14) {
			if _, err := io.WriteString(out, said); err != nil {
				return
			}
		}
	})
	woken := make(chan string, 10)
	w.c.targets.OnExcess(func(name string) { woken <- name })
	go func() { _ = w.c.targets.Start(t.Context()) }()
	mg := w.until("too much", not(steading.ReasonWrongAnswer, "sends a watch an event that would take more than 4 MiB of memory"))
	if name := <-woken; mg.Status.AtProvider.Reachable || name != mg.Name {
		t.Errorf("%s is woken, and it is said of the cluster: %+v", name, mg.Status.AtProvider)
	}
	w.server.answerWith(nil)
	w.change(func(mg *v1alpha1.Cluster) {
		mg.Spec.ForProvider.CABundle = slices.Concat(w.server.ca.pem, []byte("\n"))
	})
	w.until("another address is tried at once", ready)
}

func TestGuardOfTwoContexts(t *testing.T) {
	w := newWorld(t, tokenIn("edge-admin", goodToken))
	w.server.objects.overtaken = true
	w.until("guarded", func(mg *v1alpha1.Cluster, err error) bool {
		if err != nil || mg.Status.AtProvider.GuardMessage != "" {
			t.Errorf("seen %v, %q", err, mg.Status.AtProvider.GuardMessage)
		}
		return kit.IsReady(mg) && mg.Status.AtProvider.Guarded
	})
	if w.server.objects.overtaken {
		t.Error("nobody was faster")
	}
}

func TestAddressesAreRefused(t *testing.T) {
	w := newWorld(t, tokenIn("edge-admin", goodToken))
	w.change(func(mg *v1alpha1.Cluster) { mg.Spec.ForProvider.Server = "https://169.254.169.254" })
	w.until("metadata", not(steading.ReasonAddressRefused, "169.254.169.254 is a link-local address"))
	w.change(func(mg *v1alpha1.Cluster) { mg.Spec.ForProvider.Server = "https://10.96.0.1" })
	w.until("control plane", not(steading.ReasonAddressRefused, "10.96.0.1 is the control plane's own API server"))
}

func TestCiphertext(t *testing.T) {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	set := func(text string) {
		w.change(func(mg *v1alpha1.Cluster) { mg.Spec.ForProvider.Credentials = steading.ContextCredentials{Age: text} })
	}
	set(w.sealed(id, "acme", "edge", goodToken))
	w.until("no identity", not(steading.ReasonCredentialMissing, "this platform has no age identity"))
	w.put(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: names.AgeIdentity}, Data: map[string][]byte{keyIdentity: []byte("# old and new\n" + id.String() + "\n")}})
	set(w.sealed(id, "globex", "edge", "planted-secret"))
	mg := w.until("another's", not(steading.ReasonCiphertextRefused, "it was made for another tenant"))
	notIn(t, describe(mg)+w.told(), "planted-secret", id.String())
	set("planted-secret")
	w.until("no ciphertext", not(steading.ReasonCiphertextRefused, "not armored age ciphertext"))
	set(w.sealed(id, "acme", "edge", goodToken))
	mg = w.until("ready", ready)
	if !strings.HasPrefix(mg.Status.AtProvider.Credential, "age ciphertext of the claim, generation") {
		t.Errorf("seen %+v", mg.Status.AtProvider)
	}
}

func TestExternalSecret(t *testing.T) {
	w := newWorld(t)
	w.change(func(mg *v1alpha1.Cluster) {
		mg.Spec.ForProvider.Credentials = steading.ContextCredentials{ExternalSecret: &steading.ExternalCredential{StoreRef: steading.StoreReference{Kind: "SecretStore", Name: "vault"}, Key: "contexts/edge"}}
	})
	w.until("no operator", not(steading.ReasonCredentialMissing, "the External Secrets operator is not installed"))
	w.externalSecrets()
	w.until("no answer", not(steading.ReasonCredentialPending, "has not answered to ExternalSecret context-edge-credential yet"))

	es := &unstructured.Unstructured{}
	es.SetAPIVersion("external-secrets.io/v1")
	es.SetKind("ExternalSecret")
	key := client.ObjectKey{Namespace: "tenant-acme", Name: "context-edge-credential"}
	if err := w.kube.Get(t.Context(), key, es); err != nil {
		t.Fatal(err)
	}
	if labels, _, _ := unstructured.NestedStringMap(es.Object, "spec", "target", "template", "metadata", "labels"); labels[names.LabelManagedBy] != "" {
		t.Error("the Secret would carry our label, and its operator could not write it")
	}
	answer := func(status, message string) {
		if err := w.kube.Get(t.Context(), key, es); err != nil {
			t.Fatal(err)
		}
		_ = unstructured.SetNestedSlice(es.Object, []any{map[string]any{"type": "Ready", "status": status, "reason": "SecretSynced", "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z"}}, "status", "conditions")
		if err := w.kube.Update(t.Context(), es); err != nil {
			t.Fatal(err)
		}
	}
	answer("False", `could not get SecretStore "vault"`)
	w.until("no store", not(steading.ReasonCredentialMissing, `cannot be fetched from SecretStore vault, key contexts/edge: could not get SecretStore "vault"`))
	answer("True", "")
	w.until("no Secret", not(steading.ReasonCredentialPending, "the External Secrets operator has not made it yet"))
	w.put(tokenIn("context-edge-credential", goodToken))
	w.until("ready", ready)

	w.put(tokenIn("edge-admin", goodToken))
	w.change(func(mg *v1alpha1.Cluster) {
		mg.Spec.ForProvider.Credentials = steading.ContextCredentials{SecretRef: &steading.LocalSecretReference{Name: "edge-admin"}}
	})
	w.until("ready", ready)
	w.delete()
	w.until("gone", gone)
	if err := w.kube.Get(t.Context(), key, es); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the ExternalSecret is left: %v", err)
	}
}

func TestTheRightToReadIsGivenInOnePlace(t *testing.T) {
	w := newWorld(t, tokenIn("edge-admin", goodToken))
	w.until("ready", ready)
	l := &rbacv1.RoleBindingList{}
	if err := w.kube.List(t.Context(), l); err != nil || len(l.Items) != 1 {
		t.Fatalf("bindings %v, %v", l.Items, err)
	}
	if b := l.Items[0]; b.Namespace != "tenant-acme" || b.Name != "steading-context-edge" || b.RoleRef.Name != names.ContextCredentialReader || !kit.Stamped(&b, edgeIdentity) {
		t.Errorf("binding %+v", b)
	}
}
