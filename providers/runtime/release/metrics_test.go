package release

import (
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// measured is how often an environment was measured to be ready, and how long those took together, in seconds.
func measured(t *testing.T) (times uint64, seconds float64) {
	t.Helper()
	m := &dto.Metric{}
	must(t, readySeconds.Write(m))
	return m.GetHistogram().GetSampleCount(), m.GetHistogram().GetSampleSum()
}

// TestReadyIsMeasuredOnce: from the claim to the first version that serves, and not for what comes after.
func TestReadyIsMeasuredOnce(t *testing.T) {
	w := newWorld(t)
	claim := &steading.Environment{}
	must(t, w.Get(t.Context(), client.ObjectKey{Namespace: "tenant-acme", Name: "dev"}, claim))
	must(t, w.Delete(t.Context(), claim))
	claim.ResourceVersion, claim.CreationTimestamp = "", metav1.NewTime(w.clock.Now().Add(-7*time.Second))
	must(t, w.Create(t.Context(), claim))

	times, seconds := measured(t)
	w.runs(nil)
	w.settle()
	w.want(parameters("2"))
	w.settle()
	w.restart()
	w.settle()
	if n, s := measured(t); n != times+1 || s != seconds+7 {
		t.Errorf("measured %d times and %vs, want once and 7s", n-times, s-seconds)
	}
}
