package main

import (
	"context"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/cluster/local/platform"
	"github.com/steading-dev/steading/test/bench/figures"
	"github.com/steading-dev/steading/test/versions"
)

// settling is how long what was done before may take to come to rest.
const settling = 20 * time.Second

// environments is the controller of composites that the tokens of environments are counted of.
const environments = "composite/xenvironments.steading.dev"

// Metrics of breakers: Crossplane's for composites, and the provider's for targets.
const (
	compositeBreakers = "circuit_breaker_opens_total"
	compositeTokens   = "circuit_breaker_events_total"
	targetBreakers    = "steading_target_breakers_open"
)

// quiet leaves everything alone for a while, and tells what changed of ours.
func (b *bench) quiet(ctx context.Context, d time.Duration) (figures.Quiet, error) {
	say("leaving %d environments alone for %s", b.idle, d)
	if err := pause(ctx, settling); err != nil {
		return figures.Quiet{}, err
	}
	before, err := b.ours(ctx)
	if err != nil {
		return figures.Quiet{}, err
	}
	opened, err := b.breakers(ctx)
	if err != nil {
		return figures.Quiet{}, err
	}
	if err := pause(ctx, d); err != nil {
		return figures.Quiet{}, err
	}
	after, err := b.ours(ctx)
	if err != nil {
		return figures.Quiet{}, err
	}
	now, err := b.breakers(ctx)
	if err != nil {
		return figures.Quiet{}, err
	}
	changed := versions.Changes(before, after)
	q := figures.Quiet{Environments: b.idle, Objects: len(after), Breakers: now - opened, Changed: len(changed), Examples: changed[:min(5, len(changed))]}
	say("%d of %d objects changed, %d breakers opened: %v", q.Changed, q.Objects, q.Breakers, q.Examples)
	return q, nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// ours are the resource versions of all objects of our kinds, and of all that carry an identity of ours; leases are not.
func (b *bench) ours(ctx context.Context) (map[string]string, error) {
	return versions.Of(ctx, b.Plane.Config(), func(kind schema.GroupKind, o metav1.Object) bool {
		return strings.HasSuffix(kind.Group, "steading.dev") || o.GetLabels()[names.LabelTenant] != ""
	})
}

// breakers that have opened since the processes started, and those of targets that are open.
func (b *bench) breakers(ctx context.Context) (int, error) {
	composites, err := b.sum(ctx, "crossplane", compositeBreakers, "")
	if err != nil {
		return 0, err
	}
	targets, err := b.sum(ctx, platform.Provider, targetBreakers, "")
	return int(composites + targets), err
}
