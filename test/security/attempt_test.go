package security

import (
	"context"
	"fmt"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// rbac is the layer that knows who may do what to which kind. The others are admission policies, by name.
const rbac = "RBAC"

// An attempt to do what somebody may not.
type attempt struct {
	reason string
	as     who
	do     func(context.Context, client.Client) error
	// by names the layers that refuse it, the first one asked first. With all of them taken away it is let through.
	by []string
}

// who attempts.
type who string

const (
	// owner of tenant esc, by a client certificate.
	owner who = "owner"
	// deployer of environment dev of tenant esc, as which its charts are deployed.
	deployer who = "deployer"
	// onEdge is the deployer of environment far of tenant esc, on the edge.
	onEdge who = "deployer on the edge"
)

// last layer that refuses an attempt.
func (a attempt) last() string { return a.by[len(a.by)-1] }

// refusedBy names the layer that an error comes from, "" for none.
func refusedBy(err error) string {
	if err == nil {
		return ""
	}
	_, policy, byPolicy := strings.Cut(err.Error(), "ValidatingAdmissionPolicy '")
	switch {
	case byPolicy:
		policy, _, _ = strings.Cut(policy, ".steading.dev'")
		return policy
	case kerrors.IsForbidden(err) && (strings.Contains(err.Error(), ` is forbidden: User "`) || strings.Contains(err.Error(), "attempting to grant RBAC permissions not currently held")):
		return rbac
	default:
		return "other: " + err.Error()
	}
}

// create an object from YAML.
func create(manifest string) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(manifest), &o.Object); err != nil {
			return err
		}
		return c.Create(ctx, o)
	}
}

// change an object, "Kind.group/version namespace/name", by a merge patch in YAML.
func change(id, patch string) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		b, err := yaml.YAMLToJSON([]byte(patch))
		if err != nil {
			return err
		}
		return c.Patch(ctx, object(id), client.RawPatch(types.MergePatchType, b))
	}
}

// changeStatus is change of the subresource.
func changeStatus(id, patch string) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		b, err := yaml.YAMLToJSON([]byte(patch))
		if err != nil {
			return err
		}
		return c.Status().Patch(ctx, object(id), client.RawPatch(types.MergePatchType, b))
	}
}

// remove an object.
func remove(id string) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error { return c.Delete(ctx, object(id)) }
}

// read an object. What is not there was not refused.
func read(id string) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		o := object(id)
		return client.IgnoreNotFound(c.Get(ctx, client.ObjectKeyFromObject(o), o))
	}
}

// list the objects of a kind, "Kind.group/version namespace/", or of all namespaces, "Kind.group/version /".
func list(id string) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		o := object(id)
		l := &unstructured.UnstructuredList{}
		l.SetGroupVersionKind(o.GroupVersionKind())
		return c.List(ctx, l, client.InNamespace(o.GetNamespace()))
	}
}

// tokenOf a ServiceAccount, "namespace/name".
func tokenOf(id string) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		namespace, name, _ := strings.Cut(id, "/")
		sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		return c.SubResource("token").Create(ctx, sa, &authenticationv1.TokenRequest{})
	}
}

func object(id string) *unstructured.Unstructured {
	kind, key, _ := strings.Cut(id, " ")
	namespace, name, namespaced := strings.Cut(key, "/")
	if !namespaced {
		namespace, name = "", namespace
	}
	o := &unstructured.Unstructured{}
	kind, apiVersion, _ := strings.Cut(kind, ".")
	o.SetKind(kind)
	o.SetAPIVersion(apiVersion)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// want checks which layer refused.
func (a attempt) want(err error, layer string) error {
	got := refusedBy(err)
	if got == layer {
		return nil
	}
	say := func(s string) string {
		if s == "" {
			return "let through"
		}
		return "refused by " + s
	}
	return fmt.Errorf("%s was %s, want %s (%s)", a.as, say(got), say(layer), a.reason)
}
