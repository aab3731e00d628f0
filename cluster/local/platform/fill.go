package platform

import (
	"context"
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// edgeAdmin is the user of the edge that the examples' credential stands for.
const edgeAdmin = "edge-admin"

// placeholder of a value that is only known once the edge runs.
var placeholder = regexp.MustCompile(`\$\{EDGE_[A-Z]+\}`)

// fill in what objects say about the edge: ${EDGE_ADDRESS} of its API server,
// ${EDGE_CA}, and the client certificate ${EDGE_CERTIFICATE} with its
// ${EDGE_KEY}, these three in base64.
func (p *Platform) fill(ctx context.Context, objects []*unstructured.Unstructured) error {
	var values map[string]string
	for _, o := range objects {
		asks := false
		replaced(o.Object, func(s string) string { asks = asks || placeholder.MatchString(s); return s })
		if !asks {
			continue
		}
		if p.Edge == nil {
			return fmt.Errorf("cannot fill in %s: it asks for an edge, and this platform was started without", claimOf(o))
		}
		if values == nil {
			var err error
			if values, err = p.edgeValues(ctx); err != nil {
				return err
			}
		}
		replaced(o.Object, func(s string) string {
			return placeholder.ReplaceAllStringFunc(s, func(name string) string { return values[name] })
		})
	}
	return nil
}

// edgeValues lets the examples' user do everything on the edge, and returns how
// to be him.
func (p *Platform) edgeValues(ctx context.Context) (map[string]string, error) {
	err := p.Edge.Client().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: edgeAdmin},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: edgeAdmin}},
	})
	if err != nil && !kerrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("cannot make an administrator of the edge: %w", err)
	}
	config, err := p.Edge.ConfigFor(edgeAdmin)
	if err != nil {
		return nil, err
	}
	b64 := base64.StdEncoding.EncodeToString
	return map[string]string{
		"${EDGE_ADDRESS}":     strings.TrimPrefix(config.Host, "https://"),
		"${EDGE_CA}":          b64(p.Edge.CA()),
		"${EDGE_CERTIFICATE}": b64(config.CertData),
		"${EDGE_KEY}":         b64(config.KeyData),
	}, nil
}

// replaced is a value in which every string went through with. Maps and slices
// are changed in place.
func replaced(value any, with func(string) string) any {
	switch v := value.(type) {
	case string:
		return with(v)
	case map[string]any:
		for k := range v {
			v[k] = replaced(v[k], with)
		}
	case []any:
		for i := range v {
			v[i] = replaced(v[i], with)
		}
	}
	return value
}
