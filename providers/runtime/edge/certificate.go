package edge

import (
	"context"
	"fmt"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
)

// requestKind is how cert-manager asks an issuer.
var requestKind = schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: "CertificateRequest"}

// An issue is what was seen of an Edge's certificate on the control plane.
type issue struct {
	todo    []change
	problem *problem
	// source is the Secret with the certificate, nil while there is none.
	source *corev1.Secret
	// asked is whether the operator has certificates issued at all.
	asked bool
}

// lookAtCertificate compares the certificate that is asked for with what should be, and says how far its issuer came.
// When the operator no longer names an issuer, a certificate that there is stays: losing an issuer for a moment must not
// cost a certificate, of which issuers give few.
func (e *external) lookAtCertificate(ctx context.Context, mg *v1alpha1.Edge) (*issue, error) {
	p := mg.Spec.ForProvider
	is := &issue{}
	config := &v1alpha1.ClusterProviderConfig{}
	name := configOf(mg)
	if err := e.cache.Get(ctx, client.ObjectKey{Name: name}, config); client.IgnoreNotFound(err) != nil {
		return nil, errors.Wrapf(err, "cannot read ClusterProviderConfig %s", name)
	}
	issuer := v1alpha1.IssuerReference{}
	if c := config.Spec.Certificates; c != nil {
		issuer, is.asked = c.IssuerRef, true
	}
	installed, err := e.operators.Installed(ctx, certificateKind)
	if err != nil {
		return nil, err
	}
	if !is.asked {
		is.problem = problemf(steading.ReasonNoCertificate, "nobody issues certificates, so services are reached by http: the operator sets spec.certificates.issuerRef of ClusterProviderConfig %s to an issuer of cert-manager", name)
	} else if !installed {
		is.problem = problemf(steading.ReasonOperatorMissing, "cert-manager is not installed on the control plane (kind Certificate of cert-manager.io is not served): the operator installs it, or takes spec.certificates out of ClusterProviderConfig %s", name)
	}
	if why := refuseName("*."+domainOf(p), "certificate"); why != "" {
		is.problem = first(is.problem, &problem{steading.ReasonNameRefused, why})
	}
	if err := e.findSource(ctx, p, is); err != nil || !installed {
		return is, err
	}
	return is, e.compareCertificate(ctx, p, issuer, is)
}

// configOf is the provider config that an Edge uses.
func configOf(mg *v1alpha1.Edge) string {
	if ref := mg.GetProviderConfigReference(); ref != nil && ref.Name != "" {
		return ref.Name
	}
	return names.DefaultProviderConfig
}

// findSource finds the Secret that cert-manager wrote.
func (e *external) findSource(ctx context.Context, p v1alpha1.EdgeParameters, is *issue) error {
	s, exists, err := find(ctx, e.system, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: names.EdgeNamespace, Name: p.CertificateSecret}})
	if err != nil || !exists {
		return err
	}
	if err := e.ours(ctx, s, p); err != nil {
		pr, err := asProblem(err)
		is.problem = first(is.problem, pr)
		return err
	}
	if len(s.Data[corev1.TLSCertKey]) > 0 && len(s.Data[corev1.TLSPrivateKeyKey]) > 0 {
		is.source = s
	}
	return nil
}

func (e *external) compareCertificate(ctx context.Context, p v1alpha1.EdgeParameters, issuer v1alpha1.IssuerReference, is *issue) error {
	want := certificate(p, issuer)
	have, exists, err := find(ctx, e.system, want)
	if err != nil {
		return err
	}
	if exists {
		if err := e.ours(ctx, have, p); err != nil {
			pr, err := asProblem(err)
			is.problem = first(is.problem, pr)
			return err
		}
	}
	switch {
	case exists && !is.asked:
		is.problem = nil // It is kept, and judged by what cert-manager says of it.
	case is.problem != nil:
		return nil
	case !exists:
		is.todo = append(is.todo, change{as: e.control, want: want})
		is.problem = issuing
		return nil
	case differs(want, have):
		is.todo = append(is.todo, change{as: e.control, want: want, have: have})
		is.problem = issuing
		return nil
	}
	is.problem, err = e.judge(ctx, p, have, is.source != nil)
	return err
}

// judge a certificate by what cert-manager says of it.
func (e *external) judge(ctx context.Context, p v1alpha1.EdgeParameters, have *unstructured.Unstructured, issued bool) (*problem, error) {
	var ready, ongoing condition
	status, _, _ := unstructured.NestedMap(have.Object, "status")
	for _, c := range conditionsOf(map[string]any{"conditions": status["conditions"]}) {
		switch c.kind {
		case "Ready":
			ready = c
		case "Issuing":
			ongoing = c
		}
	}
	if ready.status == "True" && ready.generation == have.GetGeneration() && issued {
		return nil, nil //nolint:nilnil // There is no problem.
	}
	if attempts, _, _ := unstructured.NestedInt64(have.Object, "status", "failedIssuanceAttempts"); attempts > 0 && ongoing.status != "True" {
		return problemf(steading.ReasonIssueFailed, "cert-manager could not have the certificate issued, and tries again: %s", ongoing.words()), nil
	}
	if e.fresh(ctx, have) {
		return issuing, nil
	}
	if ready.status == "" && ongoing.status == "" {
		return problemf(steading.ReasonIssuing, "cert-manager has not taken up %s yet: if this stays, it does not run", called(have)), nil
	}
	why, err := e.pending(ctx, p)
	if err != nil {
		return nil, err
	}
	message := "cert-manager is having the certificate issued"
	if why = append([]string{ready.words()}, why...); strings.Join(why, "") != "" {
		message += ": " + strings.Join(why, "; ")
	}
	return &problem{steading.ReasonIssuing, message}, nil
}

// pending is what cert-manager says of its requests to the issuer, and of what the issuer wants proved.
func (e *external) pending(ctx context.Context, p v1alpha1.EdgeParameters) ([]string, error) {
	var out []string
	requests := &unstructured.UnstructuredList{}
	requests.SetGroupVersionKind(requestKind)
	// cert-manager copies the certificate's labels.
	if err := e.system.List(ctx, requests, client.InNamespace(names.EdgeNamespace), client.MatchingLabels(kit.Labels(p.Identity))); err != nil && !notServed(err) {
		return nil, errors.Wrap(err, "cannot read how far cert-manager came")
	}
	var latest *unstructured.Unstructured
	for i := range requests.Items {
		r := &requests.Items[i]
		if latest == nil || latest.GetCreationTimestamp().Time.Before(r.GetCreationTimestamp().Time) {
			latest = r
		}
	}
	if latest != nil {
		status, _, _ := unstructured.NestedMap(latest.Object, "status")
		for _, c := range conditionsOf(status) {
			if c.kind == "Ready" && c.status == "False" {
				out = append(out, c.words())
			}
		}
	}
	challenges, err := challengesOf(ctx, e.system, domainOf(p))
	for i := range challenges {
		if why, _, _ := unstructured.NestedString(challenges[i].Object, "status", "reason"); why != "" {
			out = append(out, fmt.Sprintf("challenge for %s: %s", domainOf(p), why))
		}
	}
	return out, err
}

// challengesOf are those by which an issuer has control of a domain proved. They carry no identity, only the domain.
func challengesOf(ctx context.Context, from client.Reader, domain string) ([]unstructured.Unstructured, error) {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(challengeKind)
	err := from.List(ctx, l, client.InNamespace(names.EdgeNamespace))
	if notServed(err) {
		return nil, nil
	}
	if err != nil {
		return nil, errors.Wrap(err, "cannot list cert-manager's challenges")
	}
	var out []unstructured.Unstructured
	for i := range l.Items {
		if name, _, _ := unstructured.NestedString(l.Items[i].Object, "spec", "dnsName"); name == domain {
			out = append(out, l.Items[i])
		}
	}
	return out, nil
}

// A condition of an object of any kind.
type condition struct {
	kind, status, reason, message string
	generation                    int64
}

func (c condition) words() string {
	if c.message != "" {
		return c.message
	}
	return c.reason
}

// conditionsOf reads what lies under the key conditions.
func conditionsOf(status map[string]any) []condition {
	raw, _ := status["conditions"].([]any)
	out := make([]condition, 0, len(raw))
	for _, r := range raw {
		m, ok := r.(map[string]any)
		if !ok {
			continue
		}
		c := condition{}
		c.kind, _ = m["type"].(string)
		c.status, _ = m["status"].(string)
		c.reason, _ = m["reason"].(string)
		c.message, _ = m["message"].(string)
		c.generation, _ = m["observedGeneration"].(int64)
		out = append(out, c)
	}
	return out
}
