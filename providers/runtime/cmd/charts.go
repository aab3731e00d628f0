package main

import (
	"context"

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
	r := placement.ResolvedChart{}
	if r.Digest, err = registry.Resolve(ctx, s.Repository, s.Version); err != nil {
		return placement.ResolvedChart{}, err
	}
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
