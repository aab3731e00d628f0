package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/scheme"
)

// Group is the API group of provider-forgejo.
const Group = "forgejo.steading.dev"

var (
	// GroupVersion of provider-forgejo's kinds.
	GroupVersion = schema.GroupVersion{Group: Group, Version: "v1alpha1"}

	// SchemeBuilder collects provider-forgejo's kinds.
	SchemeBuilder = &scheme.Builder{GroupVersion: GroupVersion}

	// AddToScheme adds provider-forgejo's kinds to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

// Kinds of provider-forgejo.
const (
	RunnerKind                = "Runner"
	RunnerInstanceKind        = "RunnerInstance"
	ProviderConfigKind        = "ProviderConfig"
	ClusterProviderConfigKind = "ClusterProviderConfig"
	ProviderConfigUsageKind   = "ProviderConfigUsage"
)
