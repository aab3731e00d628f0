package release

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
)

// joined is what Helm has to take an object for that may be as either of two manifests has it, or in between, so that the next
// one comes out whole. It has every field that either has, so that each is removed which the next has not; and none with a
// value that the next could share with it while the object on the cluster has the other, since Helm compares kinds that it does
// not know with nothing else.
func joined(a, b *unstructured.Unstructured) *unstructured.Unstructured {
	if a.GroupVersionKind() != b.GroupVersionKind() {
		return b
	}
	return &unstructured.Unstructured{Object: joinedMaps(a.Object, b.Object, fieldsOf(a))}
}

// fieldsOf a kind as strategic merge patches see them, which Helm makes for the kinds that it knows. Nil: it knows it not.
func fieldsOf(obj *unstructured.Unstructured) strategicpatch.LookupPatchMeta {
	typed, err := scheme.Scheme.New(obj.GroupVersionKind())
	if err != nil {
		return nil
	}
	fields, err := strategicpatch.NewPatchMetaFromStruct(typed)
	if err != nil {
		return nil
	}
	return fields
}

func joinedMaps(a, b map[string]any, fields strategicpatch.LookupPatchMeta) map[string]any {
	out := make(map[string]any, len(a)+len(b))
	for _, m := range []map[string]any{a, b} {
		for k := range m {
			out[k] = joinedValues(a[k], b[k], k, fields)
		}
	}
	return out
}

// joinedValues of a field. Nil is a value that is in neither.
func joinedValues(a, b any, key string, fields strategicpatch.LookupPatchMeta) any {
	mapA, isA := a.(map[string]any)
	mapB, isB := b.(map[string]any)
	if isA && isB || len(mapA)+len(mapB) > 0 {
		return joinedMaps(mapA, mapB, fieldsIn(key, fields))
	}
	if equality.Semantic.DeepEqual(a, b) {
		return a
	}
	listA, _ := a.([]any)
	listB, _ := b.([]any)
	if id, in, ok := itemsIn(key, fields); ok && len(listA)+len(listB) > 0 {
		return joinedLists(listA, listB, id, in)
	}
	return nil
}

// joinedLists of items that are told apart by a key, or by themselves if it is empty.
func joinedLists(a, b []any, id string, fields strategicpatch.LookupPatchMeta) []any {
	idOf := func(item any) string {
		if m, ok := item.(map[string]any); ok {
			item = m[id]
		}
		return fmt.Sprint(item)
	}
	out, at := slices.Clone(a), map[string]int{}
	for i, item := range a {
		at[idOf(item)] = i
	}
	for _, item := range b {
		i, ok := at[idOf(item)]
		if !ok {
			out = append(out, item)
			continue
		}
		mapA, okA := out[i].(map[string]any)
		mapB, okB := item.(map[string]any)
		if okA && okB {
			out[i] = joinedMaps(mapA, mapB, fields)
		}
	}
	return out
}

// fieldsIn a field.
func fieldsIn(key string, fields strategicpatch.LookupPatchMeta) strategicpatch.LookupPatchMeta {
	if fields == nil {
		return nil
	}
	in, _, err := fields.LookupPatchMetadataForStruct(key)
	if err != nil {
		return nil
	}
	return in
}

// itemsIn a field that is a list which patches merge: what tells them apart, and their fields.
func itemsIn(key string, fields strategicpatch.LookupPatchMeta) (string, strategicpatch.LookupPatchMeta, bool) {
	if fields == nil {
		return "", nil, false
	}
	in, meta, err := fields.LookupPatchMetadataForSlice(key)
	if err != nil || !slices.Contains(meta.GetPatchStrategies(), "merge") {
		return "", nil, false
	}
	return meta.GetPatchMergeKey(), in, true
}
