package kit

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// growing serves one kind more each time it is asked.
type growing struct {
	kinds []string
	asked int
}

func (g *growing) ServerResourcesForGroupVersion(string) (*metav1.APIResourceList, error) {
	g.asked++
	switch g.asked {
	case 1:
		return nil, kerrors.NewNotFound(schema.GroupResource{}, "")
	case 2:
		return nil, errors.New("the API server is starting")
	}
	l := &metav1.APIResourceList{}
	for _, k := range g.kinds[:min(g.asked-2, len(g.kinds))] {
		l.APIResources = append(l.APIResources, metav1.APIResource{Kind: k})
	}
	return l, nil
}

func kind(k string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "runtime.steading.dev", Version: "v1alpha1", Kind: k}
}

func TestAwaitKinds(t *testing.T) {
	g := &growing{kinds: []string{"Home", "Placement"}}
	if err := AwaitKinds(context.Background(), g, logging.NewNopLogger(), kind("Home"), kind("Placement")); err != nil {
		t.Fatal(err)
	}
	if g.asked != 4 {
		t.Errorf("asked %d times", g.asked)
	}
}

func TestAwaitKindsEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	err := AwaitKinds(ctx, &growing{}, logging.NewNopLogger(), kind("Home"))
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "Home.runtime.steading.dev") {
		t.Errorf("error %v", err)
	}
}

func TestKindsOf(t *testing.T) {
	have := KindsOf(kube(t, interceptor.Funcs{}).Scheme(), steading.GroupVersion)
	var kinds []string
	for _, k := range have {
		kinds = append(kinds, k.Kind)
	}
	if want := []string{"Context", "Environment", "RunnerPool", "Tenant"}; !slices.Equal(want, kinds) {
		t.Errorf("have %v", kinds)
	}
}
