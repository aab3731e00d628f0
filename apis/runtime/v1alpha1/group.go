package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/scheme"
)

// Group is the API group of provider-runtime.
const Group = "runtime.steading.dev"

var (
	// GroupVersion of provider-runtime's kinds.
	GroupVersion = schema.GroupVersion{Group: Group, Version: "v1alpha1"}

	// SchemeBuilder collects provider-runtime's kinds.
	SchemeBuilder = &scheme.Builder{GroupVersion: GroupVersion}

	// AddToScheme adds provider-runtime's kinds to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

// Kinds of provider-runtime.
const (
	HomeKind                  = "Home"
	PlacementKind             = "Placement"
	BoundaryKind              = "Boundary"
	ReleaseKind               = "Release"
	ClusterKind               = "Cluster"
	EdgeKind                  = "Edge"
	EdgeRemainderKind         = "EdgeRemainder"
	LedgerKind                = "Ledger"
	UsageEventKind            = "UsageEvent"
	ProviderConfigKind        = "ProviderConfig"
	ClusterProviderConfigKind = "ClusterProviderConfig"
	ProviderConfigUsageKind   = "ProviderConfigUsage"
)
