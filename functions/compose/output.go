package compose

import (
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// How long until Crossplane calls again when nothing changes. Watches do the work; these are the rescue when an event
// was dropped.
const (
	TTLNotReady = 20 * time.Second
	TTLReady    = 7 * time.Minute
	// TTLUnresponsive holds while Crossplane's circuit breaker drops the composite's events, for five minutes after it
	// opened. Runs that a TTL asks for pass it, so that a change is taken up after this time at the latest.
	TTLUnresponsive = 5 * time.Second
)

// Output is what is desired.
type Output struct {
	// Status of the composite, a pointer to a typed status, whole: what is left out is removed.
	Status any
	// Children by name. A child that exists and is not here is deleted.
	Children map[string]Child
	// Conditions of the composite and its claim.
	Conditions []xpv2.Condition
	// Events for the claim.
	Events []Event
	// Ready is whether the composite is ready.
	Ready bool
}

// Add puts a child into the output.
func (o *Output) Add(name string, c Child) {
	if o.Children == nil {
		o.Children = map[string]Child{}
	}
	o.Children[name] = c
}

// A Child is a desired composed resource.
type Child struct {
	// Object as it should be.
	Object client.Object
	// Ready is whether the observed child is what Object asks for and ready.
	Ready bool
}

// An Event for the claim.
type Event struct {
	// Warning is whether the event needs a person's attention.
	Warning bool
	// Reason in a word.
	Reason string
	// Message in a sentence.
	Message string
}

// True is a condition that holds.
func True(t xpv2.ConditionType, reason xpv2.ConditionReason, message string) xpv2.Condition {
	return xpv2.Condition{Type: t, Status: "True", Reason: reason, Message: message}
}

// False is a condition that does not hold.
func False(t xpv2.ConditionType, reason xpv2.ConditionReason, message string) xpv2.Condition {
	return xpv2.Condition{Type: t, Status: "False", Reason: reason, Message: message}
}
