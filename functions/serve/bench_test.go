package serve

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/resource"
)

// BenchmarkRunFunction measures one call in process, with an observed composite and 4 KiB children. It reports the 99th
// percentile beside the mean.
func BenchmarkRunFunction(b *testing.B) {
	for _, children := range []int{4, 20, 100} {
		b.Run(fmt.Sprintf("children=%d", children), func(b *testing.B) {
			f, req := function(), request(xenvironment)
			req.Observed.Resources = map[string]*fnv1.Resource{}
			for i := range children {
				req.Observed.Resources[fmt.Sprintf("other-%d", i)] = &fnv1.Resource{Resource: resource.MustStructJSON(fmt.Sprintf(
					`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "o%d"}, "data": {"k": %q}}`, i, strings.Repeat("x", 4096)))}
			}
			took := make([]time.Duration, 0, b.N)
			for b.Loop() {
				start := time.Now()
				if _, err := f.RunFunction(context.Background(), req); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs/op")
		})
	}
}
