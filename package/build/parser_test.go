package build

import (
	"io"
	"strings"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/xpkg/parser"
	xpv1 "github.com/crossplane/crossplane/apis/v2/apiextensions/v1"
	xpv1alpha1 "github.com/crossplane/crossplane/apis/v2/apiextensions/v1alpha1"
	xpv2 "github.com/crossplane/crossplane/apis/v2/apiextensions/v2"
	pkgmetav1 "github.com/crossplane/crossplane/apis/v2/pkg/meta/v1"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// parse a package's stream with Crossplane's own parser, which refuses what it does not know.
func parse(t *testing.T, stream string) *parser.Package {
	t.Helper()
	meta, objects := runtime.NewScheme(), runtime.NewScheme()
	for s, adds := range map[*runtime.Scheme][]func(*runtime.Scheme) error{
		meta:    {pkgmetav1.SchemeBuilder.AddToScheme},
		objects: {xpv1.AddToScheme, xpv1alpha1.AddToScheme, xpv2.AddToScheme, extv1.AddToScheme},
	} {
		for _, add := range adds {
			if err := add(s); err != nil {
				t.Fatal(err)
			}
		}
	}
	p, err := parser.New(meta, objects).Parse(t.Context(), io.NopCloser(strings.NewReader(stream)))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(p.GetMeta()); n != 1 {
		t.Errorf("a package has one metadata object, this one has %d", n)
	}
	return p
}
