package render

import (
	"os"
	"runtime/debug"
	"syscall"
	"time"
)

// Limits of rendering one chart. The zero value of a field is the default.
type Limits struct {
	// Memory in bytes that the process may have. Default: 192 MiB.
	Memory int64
	// CPU time that it may use, in whole seconds. Default: 10 s.
	CPU time.Duration
	// Wall time that it may take, what it looks up included. Default: 1 min.
	Wall time.Duration
	// Output is how many bytes of YAML the chart may render. Default: 4 MiB.
	Output int
	// Objects that it may render. Default: 2,000.
	Objects int
	// Lookups that it may make. Each asks the API server twice. Default: 100.
	Lookups int
	// Together is how many charts are rendered at a time. Default: 3.
	Together int
	// OfTenant is how many of them may be a tenant's. Default: 2.
	OfTenant int
}

func (l Limits) withDefaults() Limits {
	orDefault(&l.Memory, 192<<20)
	orDefault(&l.CPU, 10*time.Second)
	orDefault(&l.Wall, time.Minute)
	orDefault(&l.Output, 4<<20)
	orDefault(&l.Objects, 2000)
	orDefault(&l.Lookups, 100)
	orDefault(&l.Together, 3)
	orDefault(&l.OfTenant, 2)
	return l
}

func orDefault[T ~int | ~int64](v *T, or T) {
	if *v == 0 {
		*v = or
	}
}

// Bounds of every process, whatever the limits.
const (
	// maxDepth of a rendered object. Kubernetes' own are less deep than half of it.
	maxDepth = 64
	// maxStack of a goroutine.
	maxStack = 64 << 20
	// maxFiles that are open.
	maxFiles = 16
)

// holdIn this process by the limits. The kernel does: what the process has been made to do by a chart cannot undo it.
func (l Limits) holdIn() error {
	debug.SetMaxStack(maxStack)
	debug.SetMemoryLimit(l.Memory * 3 / 4)
	// Where memory is short all the same, it is this process that goes, not the provider.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	for resource, most := range map[int]uint64{
		syscall.RLIMIT_DATA:   uint64(l.Memory),            //nolint:gosec // It is positive.
		syscall.RLIMIT_CPU:    uint64(l.CPU / time.Second), //nolint:gosec // It is positive.
		syscall.RLIMIT_NOFILE: maxFiles,
		syscall.RLIMIT_FSIZE:  0,
		syscall.RLIMIT_CORE:   0,
	} {
		if err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: most, Max: most}); err != nil {
			return err
		}
	}
	return nil
}
