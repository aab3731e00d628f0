package release

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

func statefulSet(wants, has, ready int32) appsv1.StatefulSet {
	return appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "db", UID: "s"},
		Spec:       appsv1.StatefulSetSpec{Replicas: ptr.To(wants)},
		Status:     appsv1.StatefulSetStatus{Replicas: has, ReadyReplicas: ready},
	}
}

// TestStarved: a StatefulSet that makes no pods is asked about, and only such a one.
func TestStarved(t *testing.T) {
	const quota = `pods "db-0" is forbidden: exceeded quota: steading-quota`
	waits := rollout{reason: steading.ReasonRollingOut, message: "StatefulSet db is rolling out"}
	again := waits
	again.settled = starvingAgain
	cases := map[string]struct {
		reason  string
		set     appsv1.StatefulSet
		refused string
		want    rollout
	}{
		"Refused":  {"The controller's own word is the rollout's.", statefulSet(1, 0, 0), quota, rollout{failing: true, reason: steading.ReasonQuotaExceeded, message: quota}},
		"Next":     {"Also of the second pod.", statefulSet(2, 1, 1), "pods is forbidden: violates PodSecurity", rollout{failing: true, reason: steading.ReasonDeployFailed, message: "pods is forbidden: violates PodSecurity"}},
		"NotYet":   {"It is asked again where nothing was said.", statefulSet(1, 0, 0), "", again},
		"InOrder":  {"A pod that waits for the one before it was refused nothing.", statefulSet(2, 1, 0), quota, waits},
		"Complete": {"Neither was one that is there and starts.", statefulSet(1, 1, 0), quota, waits},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.refusals = map[types.UID]string{"s": tc.refused}
			have, err := w.e.starved(t.Context(), w.mg.Spec.ForProvider, workloads{statefulSets: []appsv1.StatefulSet{tc.set}}, now, waits)
			must(t, err)
			if diff := cmp.Diff(tc.want, have, cmp.AllowUnexported(rollout{})); diff != "" {
				t.Errorf("%s: -want +got\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRefusalIsTheLatest since the revision, without what the controller was about.
func TestRefusalIsTheLatest(t *testing.T) {
	said := func(name, message string, ago time.Duration) *corev1.Event {
		return &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "acme-dev", Name: name}, Message: message, LastTimestamp: metav1.NewTime(now.Add(-ago)),
		}
	}
	c := fake.NewClientset(
		said("a", `create Pod db-0 in StatefulSet db failed error: pods "db-0" is forbidden: too much`, time.Minute),
		said("b", `create Pod db-0 in StatefulSet db failed error: pods "db-0" is forbidden: much too much`, 2*time.Minute),
	).CoreV1().Events("acme-dev")
	for since, want := range map[time.Duration]string{time.Hour: `pods "db-0" is forbidden: too much`, time.Second: ""} {
		if have, err := readRefusal(t.Context(), c, "s", now.Add(-since)); err != nil || have != want {
			t.Errorf("since %s: got %q, %v, want %q", since, have, err, want)
		}
	}
}
