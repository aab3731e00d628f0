package edgeoperators

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

var dnsEndpoint = schema.GroupVersionKind{Group: "externaldns.k8s.io", Version: "v1alpha1", Kind: "DNSEndpoint"}

// DNS stands in for external-dns: it holds a zone to what the DNSEndpoints of a namespace say.
type DNS struct {
	*operator
	namespace string

	zone    sync.Mutex
	records map[string][]string
}

// StartDNS runs one on a control plane until ctx is done.
func StartDNS(ctx context.Context, cfg *rest.Config, namespace string) (*DNS, error) {
	o, err := newOperator(cfg, dnsEndpoint)
	if err != nil {
		return nil, fmt.Errorf("cannot start the DNS operator: %w", err)
	}
	d := &DNS{operator: o, namespace: namespace, records: map[string][]string{}}
	o.step = d.sync
	go o.run(ctx)
	return d, nil
}

// Records are what a name resolves to, as "A 203.0.113.7", sorted.
func (d *DNS) Records(name string) []string {
	d.zone.Lock()
	defer d.zone.Unlock()
	return slices.Clone(d.records[name])
}

// sync the zone, and say so on each DNSEndpoint.
func (d *DNS) sync(ctx context.Context) error {
	records := map[string][]string{}
	var errs []error
	for _, e := range d.all(ctx, dnsEndpoint, d.namespace) {
		endpoints, _, _ := unstructured.NestedSlice(e.Object, "spec", "endpoints")
		for _, raw := range endpoints {
			m, ok := raw.(map[string]any)
			if !ok {
				continue
			}
			targets, _, _ := unstructured.NestedStringSlice(m, "targets")
			for _, t := range targets {
				name := fmt.Sprint(m["dnsName"])
				records[name] = append(records[name], fmt.Sprintf("%s %s", m["recordType"], t))
			}
		}
		if seen, _, _ := unstructured.NestedInt64(e.Object, "status", "observedGeneration"); seen != e.GetGeneration() {
			errs = append(errs, unstructured.SetNestedField(e.Object, e.GetGeneration(), "status", "observedGeneration"), d.Status().Update(ctx, &e))
		}
	}
	for _, r := range records {
		slices.Sort(r)
	}
	d.zone.Lock()
	d.records = records
	d.zone.Unlock()
	return errors.Join(errs...)
}
