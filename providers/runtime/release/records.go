package release

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	helm "helm.sh/helm/v3/pkg/release"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// Labels of Helm's records, beside Helm's own and the identity.
const (
	// labelRequest is the digest of the request that the revision was made for.
	labelRequest = "release.steading.dev/request"
	// labelFailed is the digest of the request that failed, on the revision that rolled it back.
	labelFailed = "release.steading.dev/failed-request"
	// labelChoice and labelReason say whose image runs, and why.
	labelChoice = "release.steading.dev/image-choice"
	labelReason = "release.steading.dev/image-reason"

	// labelPower is the power that a component was deployed in. The runtime's is among its values.
	labelPower = "release.steading.dev/power"

	// labelWorkloads is how many Deployments and StatefulSets the chart made.
	labelWorkloads = "release.steading.dev/workloads"

	// unset is how Helm is told to drop a label that the revision before had.
	unset = "null"
)

// historyMax revisions are kept.
const historyMax = 3

// A record is what a revision's labels tell of it.
type record struct {
	revision int64
	status   helm.Status
	request  string
	failed   string
	choice   steading.ImageChoice
	reason   string
	// power of a component.
	power steading.Power
	// workloads that the revision has.
	workloads int
	identity  v1alpha1.Identity
	created   time.Time
}

func (r record) pending() bool { return r.status.IsPending() }

// made is when the revision was, as status has it.
func (r record) made() *metav1.Time { return &metav1.Time{Time: r.created} }

// serves reports whether it is the revision of what serves, and not one of the same number before the release was installed anew.
func (r record) serves(d *v1alpha1.Deployed) bool {
	return d != nil && d.Revision == r.revision && (d.Made == nil || d.Made.Time.Equal(r.created))
}

// A history is a release's records, oldest first.
type history []record

func (h history) last() *record {
	if len(h) == 0 {
		return nil
	}
	return &h[len(h)-1]
}

func (h history) get(revision int64) *record {
	i := slices.IndexFunc(h, func(r record) bool { return r.revision == revision })
	if i < 0 {
		return nil
	}
	return &h[i]
}

// good is the revision to roll back to from the last one: that which last served. Nil if it is not there any more.
func (h history) good(deployed *v1alpha1.Deployed) *record {
	last := h.last()
	if last == nil {
		return nil
	}
	if deployed != nil {
		if r := h.get(deployed.Revision); r != nil && r.revision != last.revision && r.serves(deployed) {
			return r
		}
		return nil
	}
	for i := len(h) - 2; i >= 0; i-- {
		if h[i].status == helm.StatusDeployed {
			return &h[i]
		}
	}
	return nil
}

// stale revisions are still called deployed though a later one is. Helm writes that they are superseded once, and goes on if
// that fails.
func (h history) stale() []int64 {
	last := h.last()
	if last == nil || last.status != helm.StatusDeployed {
		return nil
	}
	var out []int64
	for _, r := range h[:len(h)-1] {
		if r.status == helm.StatusDeployed {
			out = append(out, r.revision)
		}
	}
	return out
}

var secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// readHistory lists the records of a release. They are Secrets, of which only the metadata is read.
func readHistory(ctx context.Context, m metadata.Interface, namespace, release string) (history, error) {
	list, err := m.Resource(secrets).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(&metav1.LabelSelector{
		MatchLabels: map[string]string{"owner": "helm", "name": release},
	})})
	if err != nil {
		return nil, errors.Wrapf(err, "cannot list the records of Helm release %s/%s", namespace, release)
	}
	var h history
	for i := range list.Items {
		h = append(h, recordOf(list.Items[i].GetLabels(), list.Items[i].GetCreationTimestamp().Time))
	}
	slices.SortFunc(h, func(a, b record) int { return int(a.revision - b.revision) })
	return h, nil
}

func recordOf(l map[string]string, created time.Time) record {
	revision, err := strconv.ParseInt(l["version"], 10, 64)
	if err != nil {
		revision = 0
	}
	workloads, err := strconv.Atoi(l[labelWorkloads])
	if err != nil {
		workloads = 0
	}
	return record{
		revision: revision, workloads: workloads,
		status:   helm.Status(l["status"]),
		request:  l[labelRequest],
		failed:   l[labelFailed],
		choice:   steading.ImageChoice(l[labelChoice]),
		reason:   l[labelReason],
		power:    steading.Power(l[labelPower]),
		identity: v1alpha1.Identity{Tenant: l[names.LabelTenant], Environment: l[names.LabelEnvironment], UID: types.UID(l[names.LabelComposite])},
		created:  created,
	}
}
