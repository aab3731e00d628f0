package main

import (
	"context"
	"encoding/json"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/runtime/floor"
	"github.com/steading-dev/steading/providers/runtime/oci"
	"github.com/steading-dev/steading/providers/runtime/placement"
)

// charts asks OCI registries for charts, with the operator's credential.
type charts struct {
	reader client.Reader
	pulled *oci.ChartCache
}

// resolve a chart's version to its digest, and render it to tell what it needs.
func (c *charts) resolve(ctx context.Context, s placement.ChartSource) (placement.ResolvedChart, error) {
	registry, err := c.registry(ctx, s)
	if err != nil {
		return placement.ResolvedChart{}, err
	}
	r := placement.ResolvedChart{Digest: s.Pinned}
	if r.Digest == "" {
		r.Digest, err = registry.Resolve(ctx, s.Repository, s.Version)
	}
	switch {
	case errors.Is(err, oci.ErrAbsent):
		return placement.ResolvedChart{}, &placement.AbsentError{Err: err}
	case err != nil:
		return placement.ResolvedChart{}, err
	case s.Values != "":
		return componentOf(ctx, registry, s, r)
	}
	return runtimeOf(ctx, registry, s, r)
}

// runtimeOf tells what the runtime's chart needs.
func runtimeOf(ctx context.Context, registry oci.Client, s placement.ChartSource, r placement.ResolvedChart) (placement.ResolvedChart, error) {
	for docker, to := range map[bool]*steading.Resources{false: &r.Floor, true: &r.DockerFloor} {
		chart, err := registry.PullChart(ctx, s.Repository, r.Digest)
		if err != nil {
			return placement.ResolvedChart{}, err
		}
		if *to, err = floor.Of(chart, docker); err != nil {
			return placement.ResolvedChart{}, errors.Wrapf(err, "cannot tell what chart %s version %s needs", s.Repository, s.Version)
		}
	}
	return r, nil
}

// componentOf tells what a component's chart needs.
func componentOf(ctx context.Context, registry oci.Client, s placement.ChartSource, r placement.ResolvedChart) (placement.ResolvedChart, error) {
	chart, err := registry.PullChart(ctx, s.Repository, r.Digest)
	if err != nil {
		return placement.ResolvedChart{}, err
	}
	values := map[string]any{}
	if err := json.Unmarshal([]byte(s.Values), &values); err != nil {
		return placement.ResolvedChart{}, errors.Wrapf(err, "cannot read the values for chart %s", s.Repository)
	}
	if r.Needs, err = floor.OfComponent(chart, values); err != nil {
		r.NeedsProblem = errors.Wrapf(err, "cannot tell what chart %s version %s needs", s.Repository, s.Version).Error()
	}
	return r, nil
}

// registry that the chart is in.
func (c *charts) registry(ctx context.Context, s placement.ChartSource) (oci.Client, error) {
	registry := oci.Client{Charts: c.pulled}
	if s.Insecure != "" {
		registry.Insecure = []string{s.Insecure}
	}
	if s.PullSecret == "" {
		return registry, nil
	}
	secret := &corev1.Secret{}
	if err := c.reader.Get(ctx, types.NamespacedName{Namespace: names.SystemNamespace, Name: s.PullSecret}, secret); err != nil {
		return oci.Client{}, errors.Wrapf(err, "cannot get Secret %s, the ClusterProviderConfig's pullSecretRef", s.PullSecret)
	}
	var err error
	registry.Credentials, err = oci.ParseCredentials(secret.Data[corev1.DockerConfigJsonKey])
	return registry, errors.Wrapf(err, "cannot read Secret %s, the ClusterProviderConfig's pullSecretRef", s.PullSecret)
}
