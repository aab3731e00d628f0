package v1alpha1

import "k8s.io/apimachinery/pkg/api/resource"

// Defaults of a tenant's quota, the same as the schema's.
const (
	// DefaultMaxEnvironments is how many environments a tenant may have that says nothing else.
	DefaultMaxEnvironments = 10
	// DefaultMaxEnvironmentsOfContext is how many environments a context takes that says nothing else.
	DefaultMaxEnvironmentsOfContext = 20

	defaultCPU, defaultMemory, defaultStorage                = "16", "36864Mi", "72Gi"
	defaultTotalCPU, defaultTotalMemory, defaultTotalStorage = "160", "368640Mi", "720Gi"
)

// WithDefaults returns q with every absent field set to its default.
func (q Quota) WithDefaults() Quota {
	out := *q.DeepCopy()
	if out.MaxEnvironments == nil {
		n := int32(DefaultMaxEnvironments)
		out.MaxEnvironments = &n
	}
	if out.PerEnvironment == nil {
		out.PerEnvironment = MustResources(defaultCPU, defaultMemory, defaultStorage)
	}
	if out.Total == nil {
		out.Total = MustResources(defaultTotalCPU, defaultTotalMemory, defaultTotalStorage)
	}
	return out
}

// MustResources parses three quantities and panics when one is not a quantity. It is for constants.
func MustResources(cpu, memory, storage string) *Resources {
	return &Resources{CPU: resource.MustParse(cpu), Memory: resource.MustParse(memory), Storage: resource.MustParse(storage)}
}
