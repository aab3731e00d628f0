package kit

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Times of waiting for kinds.
const (
	kindsEvery = 250 * time.Millisecond
	kindsSaid  = 10 * time.Second
)

// Discovery tells which kinds of a group and version the API server serves.
type Discovery interface {
	ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
}

// AwaitKinds waits until the API server serves all the kinds, and logs now and then what it waits for. A provider is
// started beside the packages that bring the kinds it watches, its own and those of the claims; a controller that is
// started before its kinds are there looks for them every ten seconds only, and ends the process after two minutes.
func AwaitKinds(ctx context.Context, d Discovery, l logging.Logger, kinds ...schema.GroupVersionKind) error {
	var said time.Time
	for {
		missing, err := missingKinds(d, kinds)
		if err == nil && len(missing) == 0 {
			return nil
		}
		if time.Since(said) >= kindsSaid {
			said = time.Now()
			l.Info("Waiting for the API server to serve kinds", "missing", strings.Join(missing, ", "), "error", err)
		}
		select {
		case <-ctx.Done():
			return errors.Wrapf(ctx.Err(), "cannot wait any longer for the API server to serve %s", strings.Join(missing, ", "))
		case <-time.After(kindsEvery):
		}
	}
}

// KindsOf lists the kinds of objects in a scheme, of some groups and versions.
func KindsOf(s *runtime.Scheme, gvs ...schema.GroupVersion) []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for _, gv := range gvs {
		for kind, t := range s.KnownTypes(gv) {
			if _, ok := reflect.New(t).Interface().(client.Object); ok {
				kinds = append(kinds, gv.WithKind(kind))
			}
		}
	}
	slices.SortFunc(kinds, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	return kinds
}

func missingKinds(d Discovery, kinds []schema.GroupVersionKind) ([]string, error) {
	served := map[schema.GroupVersion]*metav1.APIResourceList{}
	var missing []string
	for _, k := range kinds {
		gv := k.GroupVersion()
		if _, ok := served[gv]; !ok {
			l, err := d.ServerResourcesForGroupVersion(gv.String())
			if err != nil && !kerrors.IsNotFound(err) {
				return nil, errors.Wrapf(err, "cannot discover the kinds of %s", gv)
			}
			if l == nil {
				l = &metav1.APIResourceList{}
			}
			served[gv] = l
		}
		if !slices.ContainsFunc(served[gv].APIResources, func(r metav1.APIResource) bool { return r.Kind == k.Kind }) {
			missing = append(missing, k.GroupKind().String())
		}
	}
	return missing, nil
}
