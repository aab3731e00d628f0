package main

import (
	"context"
	"encoding/json"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/runtime/floor"
	"github.com/steading-dev/steading/providers/runtime/oci"
	"github.com/steading-dev/steading/providers/runtime/placement"
	"github.com/steading-dev/steading/providers/runtime/render"
)

// charts asks OCI registries for charts, with the operator's credential.
type charts struct {
	reader client.Reader
	pulled *oci.ChartCache
	render *render.Renderer
}

// resolve a chart's version to its digest, and render it to tell what it needs. The tenant is who waits for it, if any does.
func (c *charts) resolve(ctx context.Context, tenant string, s placement.ChartSource) (placement.ResolvedChart, error) {
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
		return c.componentOf(ctx, tenant, registry, s, r)
	}
	return c.runtimeOf(ctx, tenant, registry, s, r)
}

// runtimeOf tells what the runtime's chart needs.
func (c *charts) runtimeOf(ctx context.Context, tenant string, registry oci.Client, s placement.ChartSource, r placement.ResolvedChart) (placement.ResolvedChart, error) {
	archive, err := registry.PullChart(ctx, s.Repository, r.Digest)
	if err != nil {
		return placement.ResolvedChart{}, err
	}
	for docker, to := range map[bool]*steading.Resources{false: &r.Floor, true: &r.DockerFloor} {
		values, err := json.Marshal(floor.Values(docker))
		if err != nil {
			return placement.ResolvedChart{}, errors.Wrap(err, "cannot write the values")
		}
		objects, err := c.objects(ctx, tenant, render.Job{Chart: archive, Values: values})
		if err == nil {
			*to, err = floor.Sum(objects)
		}
		if err != nil {
			return placement.ResolvedChart{}, errors.Wrapf(err, "cannot tell what chart %s version %s needs", s.Repository, s.Version)
		}
	}
	return r, nil
}

// componentOf tells what a component's chart needs with the values of its claim. Those that a Secret gives are not known
// here, so that what the chart requires or its schema asks for may be missing.
func (c *charts) componentOf(ctx context.Context, tenant string, registry oci.Client, s placement.ChartSource, r placement.ResolvedChart) (placement.ResolvedChart, error) {
	archive, err := registry.PullChart(ctx, s.Repository, r.Digest)
	if err != nil {
		return placement.ResolvedChart{}, err
	}
	objects, err := c.objects(ctx, tenant, render.Job{Chart: archive, Values: []byte(s.Values), Loose: true})
	if err != nil && !errors.As(err, new(*render.RefusedError)) {
		return placement.ResolvedChart{}, err
	}
	if err == nil {
		r.Needs, err = floor.OfComponent(objects)
	}
	if err != nil {
		r.NeedsProblem = errors.Wrapf(err, "cannot tell what chart %s version %s needs", s.Repository, s.Version).Error()
	}
	return r, nil
}

// objects that a chart renders.
func (c *charts) objects(ctx context.Context, tenant string, j render.Job) ([]*unstructured.Unstructured, error) {
	j.Release, j.Namespace, j.Revision = floor.Release, floor.Namespace, 1
	rendered, err := c.render.Render(ctx, tenant, j, nil)
	if err != nil {
		return nil, err
	}
	return rendered.Unstructured()
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
