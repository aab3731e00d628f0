// Package versions reads the resource versions of what there is, so that two readings tell what was written between them.
package versions

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// unread kinds are written by what reports on others: leases all the time, and events up to minutes after what they tell of.
var unread = []string{"Lease", "Event"}

// Of all objects that count on a cluster, by "<kind> <namespace>/<name>". Leases and events are never among them.
func Of(ctx context.Context, cfg *rest.Config, counts func(kind schema.GroupKind, o metav1.Object) bool) (map[string]string, error) {
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, err
	}
	m, err := metadata.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	lists, err := d.ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, l := range lists {
		gv, err := schema.ParseGroupVersion(l.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range l.APIResources {
			if !slices.Contains(r.Verbs, "watch") || slices.Contains(unread, r.Kind) {
				continue
			}
			items, err := m.Resource(gv.WithResource(r.Name)).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
			if err != nil {
				return nil, fmt.Errorf("cannot list %s: %w", r.Name, err)
			}
			for i := range items.Items {
				if o := &items.Items[i]; counts(schema.GroupKind{Group: gv.Group, Kind: r.Kind}, o) {
					all[fmt.Sprintf("%s %s/%s", r.Kind, o.Namespace, o.Name)] = o.ResourceVersion
				}
			}
		}
	}
	return all, nil
}

// Changes from one reading to the next, sorted.
func Changes(before, now map[string]string) []string {
	var out []string
	for k, v := range now {
		switch b, ok := before[k]; {
		case !ok:
			out = append(out, k+" was made")
		case b != v:
			out = append(out, k+" changed")
		}
	}
	for k := range before {
		if _, ok := now[k]; !ok {
			out = append(out, k+" is gone")
		}
	}
	slices.Sort(out)
	return out
}
