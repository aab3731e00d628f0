// Package try has the words in which suites write down what somebody attempts on a cluster. What is attempted is a function
// of a client, which says who attempts it and whether it is done in earnest.
package try

import (
	"context"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// A Deed is what is attempted.
type Deed = func(context.Context, client.Client) error

// Create an object from YAML.
func Create(manifest string) Deed {
	return func(ctx context.Context, c client.Client) error {
		o, err := parse(manifest)
		if err != nil {
			return err
		}
		return c.Create(ctx, o)
	}
}

// Apply an object from YAML, by force, as the provider does.
func Apply(manifest string) Deed {
	return func(ctx context.Context, c client.Client) error {
		o, err := parse(manifest)
		if err != nil {
			return err
		}
		return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("test"), client.ForceOwnership)
	}
}

// Change an object, "Kind.group/version namespace/name", by a merge patch in YAML.
func Change(id, patch string) Deed {
	return func(ctx context.Context, c client.Client) error {
		b, err := yaml.YAMLToJSON([]byte(patch))
		if err != nil {
			return err
		}
		return c.Patch(ctx, Object(id), client.RawPatch(types.MergePatchType, b))
	}
}

// ChangeStatus is Change of the subresource.
func ChangeStatus(id, patch string) Deed {
	return func(ctx context.Context, c client.Client) error {
		b, err := yaml.YAMLToJSON([]byte(patch))
		if err != nil {
			return err
		}
		return c.Status().Patch(ctx, Object(id), client.RawPatch(types.MergePatchType, b))
	}
}

// Replace an object by what edit makes of it, as kubectl replace and typed clients do.
func Replace(id string, edit func(*unstructured.Unstructured)) Deed {
	return func(ctx context.Context, c client.Client) error {
		o := Object(id)
		if err := c.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		edit(o)
		return c.Update(ctx, o)
	}
}

// Remove an object.
func Remove(id string) Deed {
	return func(ctx context.Context, c client.Client) error { return c.Delete(ctx, Object(id)) }
}

// Read an object. What is not there was not refused.
func Read(id string) Deed {
	return func(ctx context.Context, c client.Client) error {
		o := Object(id)
		return client.IgnoreNotFound(c.Get(ctx, client.ObjectKeyFromObject(o), o))
	}
}

// List the objects of a kind, "Kind.group/version namespace/", or of all namespaces, "Kind.group/version /".
func List(id string) Deed {
	return func(ctx context.Context, c client.Client) error {
		o := Object(id)
		l := &unstructured.UnstructuredList{}
		l.SetGroupVersionKind(o.GroupVersionKind())
		return c.List(ctx, l, client.InNamespace(o.GetNamespace()))
	}
}

// Token of a ServiceAccount, "namespace/name".
func Token(id string) Deed {
	return func(ctx context.Context, c client.Client) error {
		namespace, name, _ := strings.Cut(id, "/")
		sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		return c.SubResource("token").Create(ctx, sa, &authenticationv1.TokenRequest{})
	}
}

// Object by its id, "Kind.group/version namespace/name", or "Kind.group/version name" of one that is in no namespace.
func Object(id string) *unstructured.Unstructured {
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

func parse(manifest string) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	return o, yaml.Unmarshal([]byte(manifest), &o.Object)
}
