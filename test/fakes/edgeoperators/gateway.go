package edgeoperators

import (
	"context"
	"errors"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

var httpRoute = schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "HTTPRoute"}

// Gateways stands in for a controller of the Gateway API: it accepts every HTTPRoute, or none.
type Gateways struct {
	*operator

	mu      sync.Mutex
	refusal string
}

// StartGateways runs one on a cluster until ctx is done.
func StartGateways(ctx context.Context, cfg *rest.Config) (*Gateways, error) {
	o, err := newOperator(cfg, httpRoute)
	if err != nil {
		return nil, fmt.Errorf("cannot start the controller of gateways: %w", err)
	}
	g := &Gateways{operator: o}
	o.step = g.accept
	go o.run(ctx)
	return g, nil
}

// Refuse every route from now on, saying why; with nothing to say, accept them.
func (g *Gateways) Refuse(why string) {
	g.mu.Lock()
	g.refusal = why
	g.mu.Unlock()
	g.nudge()
}

func (g *Gateways) accept(ctx context.Context) error {
	g.mu.Lock()
	status, reason, message := "True", "Accepted", g.refusal
	if message != "" {
		status, reason = "False", "NotAllowedByListeners"
	}
	g.mu.Unlock()
	var errs []error
	for _, r := range g.all(ctx, httpRoute, "") {
		refs, _, _ := unstructured.NestedSlice(r.Object, "spec", "parentRefs")
		if said(r, status, message) || len(refs) == 0 {
			continue
		}
		now := metav1.Now().UTC().Format("2006-01-02T15:04:05Z")
		r.Object["status"] = map[string]any{"parents": []any{map[string]any{
			"parentRef": refs[0], "controllerName": "example.com/stand-in",
			"conditions": []any{map[string]any{
				"type": "Accepted", "status": status, "reason": reason, "message": message,
				"lastTransitionTime": now, "observedGeneration": r.GetGeneration(),
			}},
		}}}
		errs = append(errs, g.Status().Update(ctx, &r))
	}
	return errors.Join(errs...)
}

func said(r unstructured.Unstructured, status, message string) bool {
	parents, _, _ := unstructured.NestedSlice(r.Object, "status", "parents")
	for _, p := range parents {
		m, ok := p.(map[string]any)
		if !ok {
			continue
		}
		conditions, _, _ := unstructured.NestedSlice(m, "conditions")
		for _, c := range conditions {
			if m, ok := c.(map[string]any); ok && m["status"] == status && m["message"] == message {
				return true
			}
		}
	}
	return false
}
