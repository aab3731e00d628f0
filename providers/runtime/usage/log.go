// Package usage records what environments did, once a transition, for longer than they live.
package usage

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// A Log of usage events, kept in steading-system.
type Log struct {
	// Client to write with.
	Client client.Client
	// Reader that does not cache. What was ever provisioned is asked of it.
	Reader client.Reader
}

// An Entry is one transition of an environment.
type Entry struct {
	// Identity of the environment.
	Identity v1alpha1.Identity
	// Transition that happened.
	Transition v1alpha1.Transition
	// Revision of the Helm release that it happened with; 0 for Deleted.
	Revision int64
	// Made is when that revision was, by the cluster's clock: a release that is installed anew counts from 1 again. Zero for Deleted.
	Made time.Time
	// Time it was seen to have happened.
	Time time.Time
	// Version deployed, if any.
	Version string
	// Context it runs on.
	Context string
	// Caps it has.
	Caps *steading.Resources
}

// Name of the event, the same each time the transition is recorded.
func (e Entry) Name() string {
	of := fmt.Appendf(nil, "%s/%s/%d", e.Identity.UID, e.Transition, e.Revision)
	if !e.Made.IsZero() {
		of = fmt.Appendf(of, "/%d", e.Made.Unix())
	}
	sum := sha256.Sum256(of)
	return fmt.Sprintf("%s-%s-%s", names.Environment(e.Identity.Tenant, e.Identity.Environment),
		strings.ToLower(string(e.Transition)), hex.EncodeToString(sum[:5]))
}

// Record a transition. To record it again is no error and changes nothing.
func (l Log) Record(ctx context.Context, e Entry) error {
	event := &v1alpha1.UsageEvent{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: names.SystemNamespace,
			Name:      e.Name(),
			Labels: map[string]string{
				names.LabelTenant:      e.Identity.Tenant,
				names.LabelEnvironment: e.Identity.Environment,
				names.LabelComposite:   string(e.Identity.UID),
			},
		},
		Spec: v1alpha1.UsageEventSpec{
			Identity:   e.Identity,
			Transition: e.Transition,
			Time:       metav1.NewTime(e.Time),
			Version:    e.Version,
			Context:    e.Context,
			Caps:       e.Caps,
		},
	}
	err := l.Client.Create(ctx, event)
	if kerrors.IsAlreadyExists(err) {
		return nil
	}
	return errors.Wrapf(err, "cannot record that environment %s/%s was %s", e.Identity.Tenant, e.Identity.Environment,
		strings.ToLower(string(e.Transition)))
}

// Provisioned is the last time that the environment with this composite was provisioned, nil if it never was.
func (l Log) Provisioned(ctx context.Context, composite types.UID) (*v1alpha1.UsageEventSpec, error) {
	events := &v1alpha1.UsageEventList{}
	err := l.Reader.List(ctx, events, client.InNamespace(names.SystemNamespace), client.MatchingLabels{names.LabelComposite: string(composite)})
	if err != nil {
		return nil, errors.Wrap(err, "cannot list the usage events of an environment")
	}
	slices.SortFunc(events.Items, newestFirst)
	i := slices.IndexFunc(events.Items, func(e v1alpha1.UsageEvent) bool { return e.Spec.Transition == v1alpha1.TransitionProvisioned })
	if i < 0 {
		return nil, nil //nolint:nilnil // Nil is what there is.
	}
	return &events.Items[i].Spec, nil
}

// Recent lists the tenant's last n transitions, newest first.
func Recent(ctx context.Context, r client.Reader, tenant string, n int) ([]steading.UsageRecord, error) {
	events := &v1alpha1.UsageEventList{}
	err := r.List(ctx, events, client.InNamespace(names.SystemNamespace), client.MatchingLabels{names.LabelTenant: tenant})
	if err != nil {
		return nil, errors.Wrapf(err, "cannot list the usage events of tenant %s", tenant)
	}
	slices.SortFunc(events.Items, newestFirst)
	records := make([]steading.UsageRecord, 0, n)
	for _, e := range events.Items[:min(n, len(events.Items))] {
		records = append(records, steading.UsageRecord{
			Time:        e.Spec.Time,
			Environment: e.Spec.Identity.Environment,
			Transition:  string(e.Spec.Transition),
			Version:     e.Spec.Version,
			Context:     e.Spec.Context,
		})
	}
	return records, nil
}

// newestFirst orders events by time, and those of one second by what an environment goes through.
func newestFirst(a, b v1alpha1.UsageEvent) int {
	return cmp.Or(
		b.Spec.Time.Compare(a.Spec.Time.Time),
		cmp.Compare(stage[b.Spec.Transition], stage[a.Spec.Transition]),
		cmp.Compare(a.Name, b.Name),
	)
}

var stage = map[v1alpha1.Transition]int{
	v1alpha1.TransitionProvisioned: 1,
	v1alpha1.TransitionStarted:     2,
	v1alpha1.TransitionStopped:     3,
	v1alpha1.TransitionDeleted:     4,
}
