package acceptance

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func groupVersion(t *testing.T, s string) schema.GroupVersion {
	t.Helper()
	gv, err := schema.ParseGroupVersion(s)
	if err != nil {
		t.Fatal(err)
	}
	return gv
}
