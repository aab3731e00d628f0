package platform

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
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

	reasonNotApplied = "NotApplied"
)

// A Claim is the state of a claim as a person cares for it.
type Claim struct {
	GVK       schema.GroupVersionKind `json:"gvk"`
	Namespace string                  `json:"namespace"`
	Name      string                  `json:"name"`
	Phase     string                  `json:"phase"`
	// Ready means that Crossplane found the claim ready as it is written now:
	// the condition's observedGeneration is the claim's generation.
	Ready bool `json:"ready"`
	// Reason and Message are those of the condition that says most about why it
	// is not ready.
	Reason  string    `json:"reason,omitempty"`
	Message string    `json:"message,omitempty"`
	Created time.Time `json:"created"`
}

func (c Claim) String() string {
	return fmt.Sprintf("%s %s/%s", c.GVK.Kind, c.Namespace, c.Name)
}

// ApplyClaims applies claims, and what they need, from a YAML file or the YAML
// files of a folder, in the order of the files' names, with what they say about
// the edge filled in, and waits until all claims are ready. It returns their last states. If one is refused, or if not all are
// ready within the time given, the error names each and why.
func (p *Platform) ApplyClaims(ctx context.Context, path string, within time.Duration) ([]Claim, error) {
	p.say("applying " + path)
	todo, err := objectsOf(path)
	if err != nil {
		return nil, err
	}
	if err := p.fill(ctx, todo); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	claims := claimsAmong(todo)
	said := map[string]string{}
	for {
		var obstacle error
		if todo, obstacle = p.applyNext(ctx, todo); refused(obstacle) {
			return p.states(ctx, claims, nil), obstacle
		}
		claims = p.states(ctx, claims, obstacle)
		p.sayChanges(claims, obstacle, said)
		if len(todo) == 0 && !slices.ContainsFunc(claims, func(c Claim) bool { return !c.Ready }) {
			return claims, nil
		}
		select {
		case <-ctx.Done():
			return claims, notReady(claims, within)
		case <-time.After(pollClaims):
		}
	}
}

// refused tells whether an object was refused for good. That the namespace of a
// tenant's claims is not found, or that its quota was not counted yet, passes.
func refused(err error) bool {
	uncounted := err != nil && strings.Contains(err.Error(), "status unknown for quota")
	return kerrors.IsInvalid(err) || kerrors.IsBadRequest(err) || kerrors.IsForbidden(err) && !uncounted
}

// applyNext applies objects until one fails, and returns it and what follows.
func (p *Platform) applyNext(ctx context.Context, todo []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	for i, o := range todo {
		err := p.Plane.Client().Apply(ctx, client.ApplyConfigurationFromUnstructured(o.DeepCopy()), client.FieldOwner("steading-local"), client.ForceOwnership)
		if err != nil {
			return todo[i:], fmt.Errorf("cannot apply %s: %w", claimOf(o), err)
		}
	}
	return nil, nil
}

func objectsOf(path string) ([]*unstructured.Unstructured, error) {
	files, err := manifests(path)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, f := range files {
		o, err := local.ReadObjects(f)
		if err != nil {
			return nil, err
		}
		objects = append(objects, o...)
	}
	return objects, nil
}

func claimsAmong(objects []*unstructured.Unstructured) []Claim {
	var claims []Claim
	for _, o := range objects {
		if o.GroupVersionKind().Group == claimGroup {
			claims = append(claims, claimOf(o))
		}
	}
	return claims
}

func claimOf(o *unstructured.Unstructured) Claim {
	return Claim{GVK: o.GroupVersionKind(), Namespace: o.GetNamespace(), Name: o.GetName()}
}

// states of claims, read anew; of one that cannot be read, why. Obstacle is what
// keeps claims from being applied.
func (p *Platform) states(ctx context.Context, claims []Claim, obstacle error) []Claim {
	if ctx.Err() != nil {
		return claims
	}
	states := make([]Claim, 0, len(claims))
	for _, c := range claims {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(c.GVK)
		err := p.Plane.Client().Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: c.Name}, u)
		switch {
		case ctx.Err() != nil:
			states = append(states, c)
		case kerrors.IsNotFound(err):
			missing := Claim{GVK: c.GVK, Namespace: c.Namespace, Name: c.Name, Reason: reasonNotApplied}
			if obstacle != nil {
				missing.Message = obstacle.Error()
			}
			states = append(states, missing)
		case err != nil:
			states = append(states, Claim{GVK: c.GVK, Namespace: c.Namespace, Name: c.Name, Reason: "NotReadable", Message: err.Error()})
		default:
			states = append(states, stateOf(u))
		}
	}
	return states
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

// sayChanges tells of each claim that is there and whose state has changed since it was last told, and what keeps the rest
// from being applied.
func (p *Platform) sayChanges(claims []Claim, obstacle error, said map[string]string) {
	if obstacle != nil && said[""] != obstacle.Error() {
		said[""] = obstacle.Error()
		p.say("waiting: " + obstacle.Error())
	}
	for _, c := range claims {
		state := c.describe()
		if c.Reason == reasonNotApplied {
			continue
		}
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
	parts := slices.DeleteFunc([]string{c.Phase, c.Reason, c.Message}, func(s string) bool { return s == "" })
	return strings.Join(parts, ": ")
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
