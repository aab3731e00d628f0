package main

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/providers/runtime/oci"
	"github.com/steading-dev/steading/providers/runtime/placement"
)

// charts asks OCI registries for charts, with the operator's credential.
type charts struct{ reader client.Reader }

func (c *charts) resolve(ctx context.Context, s placement.ChartSource) (string, error) {
	registry := oci.Client{}
	if s.Insecure != "" {
		registry.Insecure = []string{s.Insecure}
	}
	if s.PullSecret != "" {
		secret := &corev1.Secret{}
		if err := c.reader.Get(ctx, types.NamespacedName{Namespace: names.SystemNamespace, Name: s.PullSecret}, secret); err != nil {
			return "", errors.Wrapf(err, "cannot get Secret %s, the ClusterProviderConfig's pullSecretRef", s.PullSecret)
		}
		var err error
		if registry.Credentials, err = oci.ParseCredentials(secret.Data[corev1.DockerConfigJsonKey]); err != nil {
			return "", errors.Wrapf(err, "cannot read Secret %s, the ClusterProviderConfig's pullSecretRef", s.PullSecret)
		}
	}
	return registry.Resolve(ctx, s.Repository, s.Version)
}
