package platform

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	xpextensionsv1 "github.com/crossplane/crossplane/apis/v2/apiextensions/v1"

	"github.com/steading-dev/steading/cluster/local"
)

const (
	claimGroup   = "steading.dev"
	pollClaims   = 200 * time.Millisecond
	offerTimeout = time.Minute
)

// A Claim is the state of a claim as a person cares for it.
type Claim struct {
	GVK             schema.GroupVersionKind `json:"gvk"`
	Namespace, Name string
	Phase           string
	// Ready means that Crossplane found the claim ready as it is written now:
	// the condition's observedGeneration is the claim's generation.
	Ready bool
	// Why it is not ready: reason and message of the condition that says most.
	Reason, Message string
	Created         time.Time
}

func (c Claim) String() string {
	return fmt.Sprintf("%s %s/%s", c.GVK.Kind, c.Namespace, c.Name)
}

// ApplyClaims applies claims, and what they need, from a YAML file or the YAML
// files of a folder, and returns the claims among them.
func (p *Platform) ApplyClaims(ctx context.Context, path string) ([]Claim, error) {
	files, err := manifests(path)
	if err != nil {
		return nil, err
	}
	var claims []Claim
	for _, f := range files {
		objects, err := local.ReadObjects(f)
		if err != nil {
			return claims, err
		}
		for _, o := range objects {
			if o.GroupVersionKind().Group == claimGroup {
				claims = append(claims, Claim{GVK: o.GroupVersionKind(), Namespace: o.GetNamespace(), Name: o.GetName()})
			}
			if err := p.Plane.Apply(ctx, o); err != nil {
				return claims, err
			}
		}
	}
	return claims, nil
}

// WaitReady waits until all claims are ready and returns their last states. If
// they are not within the time given, the error names each and why.
func (p *Platform) WaitReady(ctx context.Context, claims []Claim, within time.Duration) ([]Claim, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	said := map[string]string{}
	for {
		now, err := p.States(ctx, claims)
		if err == nil {
			claims = now
			p.sayChanges(claims, said)
			if !slices.ContainsFunc(claims, func(c Claim) bool { return !c.Ready }) {
				return claims, nil
			}
		}
		select {
		case <-ctx.Done():
			return claims, notReady(claims, within)
		case <-time.After(pollClaims):
		}
	}
}

// States of claims, read anew.
func (p *Platform) States(ctx context.Context, claims []Claim) ([]Claim, error) {
	states := make([]Claim, 0, len(claims))
	for _, c := range claims {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(c.GVK)
		if err := p.Plane.Client().Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: c.Name}, u); err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", c, err)
		}
		states = append(states, stateOf(u))
	}
	return states, nil
}

// AllClaims are the states of all claims of the kinds that are offered.
func (p *Platform) AllClaims(ctx context.Context) ([]Claim, error) {
	xrds := &xpextensionsv1.CompositeResourceDefinitionList{}
	if err := p.Plane.Client().List(ctx, xrds); err != nil {
		return nil, fmt.Errorf("cannot list XRDs: %w", err)
	}
	var claims []Claim
	for i := range xrds.Items {
		gvk := xrds.Items[i].GetClaimGroupVersionKind()
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk)
		if err := p.Plane.Client().List(ctx, list); err != nil {
			if meta.IsNoMatchError(err) {
				continue
			}
			return nil, fmt.Errorf("cannot list claims: %w", err)
		}
		for i := range list.Items {
			claims = append(claims, stateOf(&list.Items[i]))
		}
	}
	return claims, nil
}

// waitOffered waits until the claims of all XRDs are served.
func (p *Platform) waitOffered(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, offerTimeout)
	defer cancel()
	for {
		missing, err := p.notOffered(ctx)
		if err == nil && missing == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("cannot offer claims: %s: %w", missing, err)
		case <-time.After(pollClaims):
		}
	}
}

// notOffered says which XRD is not yet, and why.
func (p *Platform) notOffered(ctx context.Context) (string, error) {
	xrds := &xpextensionsv1.CompositeResourceDefinitionList{}
	if err := p.Plane.Client().List(ctx, xrds); err != nil {
		return "", err
	}
	for i := range xrds.Items {
		x := &xrds.Items[i]
		if c := x.Status.GetCondition(xpextensionsv1.TypeOffered); c.Status != corev1.ConditionTrue {
			return fmt.Sprintf("XRD %s is not offered: %s %s", x.GetName(), c.Reason, c.Message), nil
		}
	}
	return "", nil
}

// sayChanges tells of each claim whose state has changed since it was last told.
func (p *Platform) sayChanges(claims []Claim, said map[string]string) {
	for _, c := range claims {
		state := c.describe()
		if said[c.String()] != state {
			said[c.String()] = state
			p.say(c.String() + ": " + state)
		}
	}
}

// describe a claim's state in a line.
func (c Claim) describe() string {
	if c.Ready {
		return strings.TrimSpace(c.Phase + " ready")
	}
	s := c.Phase
	for _, part := range []string{c.Reason, c.Message} {
		if part != "" {
			s += ": " + part
		}
	}
	return strings.TrimPrefix(s, ": ")
}

func notReady(claims []Claim, within time.Duration) error {
	var why []string
	for _, c := range claims {
		if !c.Ready {
			why = append(why, c.String()+" is not ready: "+c.describe())
		}
	}
	return fmt.Errorf("%s: waited %s", strings.Join(why, "; "), within)
}

func stateOf(u *unstructured.Unstructured) Claim {
	c := Claim{GVK: u.GroupVersionKind(), Namespace: u.GetNamespace(), Name: u.GetName(), Created: u.GetCreationTimestamp().Time}
	c.Phase, _, _ = unstructured.NestedString(u.Object, "status", "phase")
	conditions := conditionsOf(u)
	i := slices.IndexFunc(conditions, func(c metav1.Condition) bool { return c.Type == "Ready" })
	if i < 0 {
		c.Reason = "NotSeen"
		c.Message = "no controller has seen the claim yet"
		return c
	}
	r := conditions[i]
	switch {
	case r.Status == metav1.ConditionTrue && r.ObservedGeneration == u.GetGeneration():
		c.Ready = true
		return c
	case r.Status == metav1.ConditionTrue:
		c.Reason = "Outdated"
		c.Message = fmt.Sprintf("ready as of generation %d, but it is %d", r.ObservedGeneration, u.GetGeneration())
		return c
	}
	worst := worstOf(conditions, r)
	c.Reason, c.Message = worst.Type+" "+worst.Reason, worst.Message
	return c
}

// worstOf is the condition that says most about why a claim is not ready: one of
// ours is closer to the cause than Crossplane's, but for Synced.
func worstOf(conditions []metav1.Condition, ready metav1.Condition) metav1.Condition {
	worst := ready
	for _, c := range conditions {
		switch {
		case c.Status == metav1.ConditionTrue, c.Type == "Ready":
		case c.Type == "Synced":
			return c
		case worst.Type == "Ready":
			worst = c
		}
	}
	return worst
}

func conditionsOf(u *unstructured.Unstructured) []metav1.Condition {
	status := struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}{}
	// What cannot be read is treated like what is not there yet.
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &status)
	return status.Status.Conditions
}
