package v1alpha1

import "k8s.io/apimachinery/pkg/api/resource"

// Resources are the three amounts that Steading budgets: the sum of CPU limits, the sum of memory limits and the sum
// of storage requests in a namespace.
type Resources struct {
	// CPU is the sum of the containers' CPU limits, in cores ("16") or millicores ("500m").
	CPU resource.Quantity `json:"cpu"`

	// Memory is the sum of the containers' memory limits, in bytes with a unit ("36864Mi").
	Memory resource.Quantity `json:"memory"`

	// Storage is the sum of the volume claims' requests, in bytes with a unit ("72Gi").
	Storage resource.Quantity `json:"storage"`
}

// Add returns the sum of r and o.
func (r Resources) Add(o Resources) Resources {
	sum := *r.DeepCopy()
	sum.CPU.Add(o.CPU)
	sum.Memory.Add(o.Memory)
	sum.Storage.Add(o.Storage)
	return sum
}

// Max returns the larger amount of each resource.
func (r Resources) Max(o Resources) Resources {
	most := *r.DeepCopy()
	for _, a := range []struct{ have, other *resource.Quantity }{{&most.CPU, &o.CPU}, {&most.Memory, &o.Memory}, {&most.Storage, &o.Storage}} {
		if a.have.Cmp(*a.other) < 0 {
			*a.have = a.other.DeepCopy()
		}
	}
	return most
}

// Equal reports whether r and o are the same amounts, however they are written.
func (r Resources) Equal(o Resources) bool {
	return r.CPU.Cmp(o.CPU) == 0 && r.Memory.Cmp(o.Memory) == 0 && r.Storage.Cmp(o.Storage) == 0
}

// Amount is one named resource of Resources.
type Amount struct {
	// Name is cpu, memory or storage.
	Name string
	// Quantity is how much.
	Quantity resource.Quantity
}

// Amounts lists r in the order in which limits are checked and reported: cpu, memory, storage.
func (r Resources) Amounts() []Amount {
	return []Amount{{"cpu", r.CPU}, {"memory", r.Memory}, {"storage", r.Storage}}
}
