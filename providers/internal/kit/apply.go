package kit

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Apply makes an object that is ours as it should be, whoever changed it: a server-side apply, by force, of all but its
// status. What others have added beside it, as another rule of a network policy or another limit of a quota, is taken out;
// only their labels, annotations and the like stay. The object says its own kind. An object with a UID is changed only if it
// is that one still.
func Apply(ctx context.Context, c client.Client, obj client.Object, owner string) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return errors.Wrapf(err, "cannot encode %s", describe(obj))
	}
	u := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	wanted := u.DeepCopy()
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(owner), client.ForceOwnership); err != nil {
		return errors.Wrapf(err, "cannot apply %s", describe(obj))
	}
	restore, err := strangers(u, wanted, owner)
	if err != nil || restore == nil {
		return errors.Wrapf(err, "cannot tell what others added to %s", describe(obj))
	}
	return errors.Wrapf(c.Patch(ctx, u, client.RawPatch(types.JSONPatchType, restore), client.FieldOwner(owner)), "cannot take what others added out of %s", describe(obj))
}

// An operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// strangers is the patch that takes out what others than the owner's applies have set in the sections that are wanted, nil
// if there is nothing of theirs. An apply leaves what it never set.
func strangers(have, wanted *unstructured.Unstructured, owner string) ([]byte, error) {
	theirs := map[string]bool{}
	for _, m := range have.GetManagedFields() {
		if m.Subresource != "" || m.FieldsV1 == nil || m.Manager == owner && m.Operation == "Apply" {
			continue
		}
		fields := map[string]json.RawMessage{}
		if err := json.Unmarshal(m.FieldsV1.Raw, &fields); err != nil {
			return nil, err
		}
		for f := range fields {
			theirs[f] = true
		}
	}
	var sections []string
	for section := range wanted.Object {
		if section != "metadata" && theirs["f:"+section] {
			sections = append(sections, section)
		}
	}
	if len(sections) == 0 {
		return nil, nil
	}
	slices.Sort(sections)
	patch := []operation{{Op: "test", Path: "/metadata/resourceVersion", Value: have.GetResourceVersion()}}
	for _, section := range sections {
		patch = append(patch, operation{Op: "add", Path: "/" + section, Value: wanted.Object[section]})
	}
	return json.Marshal(patch)
}
