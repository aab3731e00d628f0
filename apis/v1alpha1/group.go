package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/scheme"
)

// Group is the API group of the claims and their composites.
const Group = "steading.dev"

var (
	// GroupVersion of the claims and their composites.
	GroupVersion = schema.GroupVersion{Group: Group, Version: "v1alpha1"}

	// SchemeBuilder collects the claim kinds.
	SchemeBuilder = &scheme.Builder{GroupVersion: GroupVersion}

	// AddToScheme adds the claim kinds to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

// Kinds of claims and of the composites Crossplane binds them to.
const (
	TenantKind       = "Tenant"
	XTenantKind      = "XTenant"
	EnvironmentKind  = "Environment"
	XEnvironmentKind = "XEnvironment"
	ContextKind      = "Context"
	XContextKind     = "XContext"
	RunnerPoolKind   = "RunnerPool"
	XRunnerPoolKind  = "XRunnerPool"
)
