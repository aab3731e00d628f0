package placement

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// Two writers with stale views, as when a lease was lost in the middle, never grant more than there is. The story is
// random: at any call of one writer to the API server the other may make a whole pass, environments may be claimed, changed
// and deleted, and calls may fail. After every call the ledger is held against the budgets.
func TestTwoWritersNeverGrantMoreThanThereIs(t *testing.T) {
	for seed := range uint64(stories) {
		t.Run(fmt.Sprintf("Seed%d", seed), func(t *testing.T) {
			newStory(t, seed).play()
		})
	}
}

// story of two writers.
type story struct {
	*world
	rand    *rand.Rand
	writers [2]*Reconciler
	depth   int // of the calls that are under way
	claimed int
	failing bool
	granted int
}

// The tenant's budgets: four environments, each of them room for one size or two.
const (
	mostEnvironments = 4
	mostCPU          = 20
	mostOnPlatform   = 5
)

func newStory(t *testing.T, seed uint64) *story {
	t.Helper()
	s := &story{rand: rand.New(rand.NewPCG(seed, 7)), failing: true}
	s.world = newWorld(t, homeOf(quotaOf(mostEnvironments), func(spec *steading.TenantSpec) {
		spec.Quota.Total = sizeOf(strconv.Itoa(mostCPU), "1Ti", "1Ti")
	}))
	most := int32(mostOnPlatform)
	config := &v1alpha1.ClusterProviderConfig{}
	if err := s.kube.Get(context.Background(), client.ObjectKey{Name: "default"}, config); err != nil {
		t.Fatal(err)
	}
	config.Spec.PlatformCluster = &v1alpha1.PlatformCluster{MaxEnvironments: &most}
	if err := s.kube.Update(context.Background(), config); err != nil {
		t.Fatal(err)
	}
	for i := range s.writers {
		s.writers[i] = s.writer(s.interrupted(i))
	}
	return s
}

func (s *story) play() {
	for range 12 {
		s.happen()
		s.pass(s.rand.IntN(2))
	}
	// In the end, undisturbed, one pass or two leave everything decided and told.
	s.failing, s.depth = false, 1
	for range 3 {
		s.pass(0)
	}
	s.settled()
	if s.granted == 0 {
		s.t.Error("nothing was ever granted: the story shows nothing")
	}
}

func (s *story) pass(writer int) {
	_, _ = s.writers[writer].Reconcile(context.Background(), acme) // It may fail: calls do.
	s.check()
}

// happen lets people do something.
func (s *story) happen() {
	switch s.rand.IntN(4) {
	case 0, 1:
		env := fmt.Sprintf("e%d", s.claimed)
		s.claimed++
		s.create(placementOf(env, sized(s.size())), claimOf(env, time.Duration(s.rand.IntN(3))*time.Second))
	case 2:
		if env, ok := s.any(); ok {
			s.ask(env, sized(s.size()), version(strconv.Itoa(s.rand.IntN(3))))
		}
	case 3:
		if env, ok := s.any(); ok {
			s.delete(placementOf(env))
		}
	}
}

func (s *story) size() *steading.Resources {
	return sizeOf(strconv.Itoa(4+4*s.rand.IntN(2)), "16Gi", "2Gi")
}

func (s *story) any() (string, bool) {
	l := s.list()
	if len(l) == 0 {
		return "", false
	}
	return l[s.rand.IntN(len(l))].Spec.ForProvider.Identity.Environment, true
}

func (s *story) list() []v1alpha1.Placement {
	l := &v1alpha1.PlacementList{}
	if err := s.kube.List(context.Background(), l); err != nil {
		s.t.Fatal(err)
	}
	return l.Items
}

// interrupt comes before every call of a writer. It fails the call, or lets the other writer, or people, act first.
func (s *story) interrupt(writer int) error {
	s.check()
	if s.depth > 0 {
		return nil
	}
	s.depth++
	defer func() { s.depth-- }()
	switch n := s.rand.IntN(20); {
	case n < 3:
		s.pass(1 - writer)
	case n < 5:
		s.happen()
	case n < 6 && s.failing:
		return errBroken
	}
	return nil
}

func (s *story) interrupted(writer int) client.Client {
	return interceptor.NewClient(s.kube, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return orElse(s.interrupt(writer), func() error { return c.Get(ctx, k, o, opts...) })
		},
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			return orElse(s.interrupt(writer), func() error { return c.List(ctx, l, opts...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return orElse(s.interrupt(writer), func() error { return c.Create(ctx, o, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return orElse(s.interrupt(writer), func() error { return c.Update(ctx, o, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			return orElse(s.interrupt(writer), func() error { return c.SubResource(sub).Update(ctx, o, opts...) })
		},
	})
}

func orElse(err error, call func() error) error {
	if err != nil {
		return err
	}
	return call()
}

// check holds what was granted against what there is.
func (s *story) check() {
	s.t.Helper()
	entries := s.ledger().Entries
	leaving := map[string]bool{}
	told := map[string]*v1alpha1.Grant{}
	for _, p := range s.list() {
		leaving[p.Name] = p.DeletionTimestamp != nil
		told[p.Name] = p.Status.AtProvider.Grant
	}
	environments, cpu := 0, int64(0)
	inLedger := map[string]bool{}
	for _, e := range entries {
		inLedger[e.Placement] = true
		if !leaving[e.Placement] {
			environments++
		}
		cpu += e.Grant.Caps.CPU.Value()
	}
	s.granted = max(s.granted, len(entries))
	if environments > mostEnvironments || cpu > mostCPU || len(entries) > mostOnPlatform {
		s.t.Fatalf("granted %d environments of %d, %d CPU of %d, %d places of %d:\n%+v",
			environments, mostEnvironments, cpu, mostCPU, len(entries), mostOnPlatform, entries)
	}
	for name, g := range told {
		if g != nil && !inLedger[name] && !leaving[name] {
			s.t.Fatalf("%s was told of a grant that is not in the ledger", name)
		}
	}
}

// settled checks that every placement was told what the ledger says, or why not.
func (s *story) settled() {
	held := map[string]v1alpha1.Grant{}
	for _, e := range s.ledger().Entries {
		held[e.Placement] = e.Grant
	}
	for _, p := range s.list() {
		o := p.Status.AtProvider
		g, ok := held[p.Name]
		switch {
		case ok != (o.Grant != nil):
			s.t.Errorf("%s: the ledger has a grant: %t, the placement %+v", p.Name, ok, o.Grant)
		case ok && !o.Grant.Caps.Equal(*g.Caps):
			s.t.Errorf("%s: the ledger says %+v, the placement %+v", p.Name, g, o.Grant)
		case o.Grant == nil && o.Refusal == nil:
			s.t.Errorf("%s is undecided", p.Name)
		}
	}
	if len(held) > len(s.list()) {
		s.t.Errorf("the ledger was not pruned: %+v", held)
	}
}
