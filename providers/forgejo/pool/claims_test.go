package pool

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/providers/forgejo/api"
)

// bidder is an open pool with room for ten, that was made n minutes after the epoch.
func bidder(name string, n int, edit ...func(*Bidder)) Bidder {
	b := Bidder{
		Pool: client.ObjectKey{Namespace: names.SystemNamespace, Name: name}, Created: epoch.Add(time.Duration(n) * time.Minute),
		Labels: []string{"docker"}, Session: "one", Open: true, Room: 10, Pinned: map[jobKey]bool{},
	}
	for _, e := range edit {
		e(&b)
	}
	return b
}

func TestOnePoolClaimsAJob(t *testing.T) {
	closed := func(b *Bidder) { b.Open = false }
	room := func(n int) func(*Bidder) { return func(b *Bidder) { b.Room = n } }
	labels := func(l ...string) func(*Bidder) { return func(b *Bidder) { b.Labels = l } }
	session := func(s string) func(*Bidder) { return func(b *Bidder) { b.Session = s } }
	both := func(b *Bidder) {
		b.Waiting = []api.Job{job(1, func(j *api.Job) { j.RunsOn = []string{"docker", "arm"} })}
	}
	pin := func(id int64) func(*Bidder) {
		return func(b *Bidder) { b.Pinned = map[jobKey]bool{keyOf(queued(job(id))): true} }
	}
	cases := map[string]struct {
		reason string
		bids   []Bidder // in this order, each seeing two jobs
		want   map[string]int
	}{
		"Oldest":         {reason: "the oldest that serves it", bids: []Bidder{bidder("a-old", 0), bidder("a-young", 1)}, want: map[string]int{"a-old": 2}},
		"AskedLater":     {reason: "whoever asks first keeps what it has room for", bids: []Bidder{bidder("a-young", 1), bidder("a-old", 0), bidder("a-young", 1)}, want: map[string]int{"a-old": 0, "a-young": 2}},
		"Labels":         {reason: "a pool without the labels is none", bids: []Bidder{bidder("a-old", 0, labels("arm")), bidder("a-young", 1)}, want: map[string]int{"a-young": 2}},
		"AllLabels":      {reason: "nor is one that has some of them", bids: []Bidder{bidder("a-old", 0, both), bidder("a-young", 1, both, labels("arm", "docker", "x64"))}, want: map[string]int{"a-young": 1}},
		"Suspended":      {reason: "one that makes no runners leaves jobs to others", bids: []Bidder{bidder("a-old", 0, closed), bidder("a-young", 1), bidder("a-old", 0, closed)}, want: map[string]int{"a-old": 0, "a-young": 2}},
		"NoneOpen":       {reason: "if none makes runners, the oldest says why", bids: []Bidder{bidder("a-old", 0, closed), bidder("a-young", 1, closed)}, want: map[string]int{"a-old": 2}},
		"Full":           {reason: "what the oldest has no room for goes to the next", bids: []Bidder{bidder("a-old", 0, room(1)), bidder("a-young", 1), bidder("a-old", 0, room(1))}, want: map[string]int{"a-old": 1, "a-young": 1}},
		"AllFull":        {reason: "if all are full it waits for the oldest", bids: []Bidder{bidder("a-old", 0, room(0)), bidder("a-young", 1, room(0))}, want: map[string]int{"a-old": 2}},
		"Pinned":         {reason: "a job stays with the pool that made a runner for it, as after a restart", bids: []Bidder{bidder("a-young", 1, pin(1), room(0)), bidder("a-old", 0), bidder("a-young", 1, pin(1), room(0))}, want: map[string]int{"a-old": 1, "a-young": 1}},
		"OtherSession":   {reason: "claims hold across the sessions of a server", bids: []Bidder{bidder("a-old", 0), bidder("b-young", 1, session("two"))}, want: map[string]int{"a-old": 2}},
		"NotSeenByOther": {reason: "a pool in whose scope a job is not does not claim it", bids: []Bidder{bidder("b-old", 0, session("two"), func(b *Bidder) { b.Waiting = []api.Job{} }), bidder("a-young", 1)}, want: map[string]int{"b-old": 0, "a-young": 2}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, got := NewClaims(), map[string]int{}
			for _, b := range tc.bids {
				if b.Waiting == nil {
					b.Waiting = jobs(2)
				}
				got[b.Pool.Name] = len(c.Bid("https://git.example.com", b))
			}
			for p, n := range got {
				if tc.want[p] != n {
					t.Errorf("%s: %s", tc.reason, cmp.Diff(tc.want, got))
					break
				}
			}
		})
	}
}

func TestClaimsOfAPoolThatLeavesAreFree(t *testing.T) {
	c := NewClaims()
	waiting := func(b *Bidder) { b.Waiting = jobs(2) }
	c.Bid("https://git.example.com", bidder("a-old", 0, waiting))
	if mine := c.Bid("https://git.example.com", bidder("a-young", 1, waiting)); len(mine) != 0 {
		t.Fatalf("the younger claims %d", len(mine))
	}
	c.Leave(bidder("a-old", 0).Pool)
	if mine := c.Bid("https://git.example.com", bidder("a-young", 1, waiting)); len(mine) != 2 {
		t.Errorf("the younger claims %d after the older left", len(mine))
	}
	c.Bid("https://other.example.com", bidder("a-young", 1))
	if len(c.servers) != 1 {
		t.Errorf("a pool that moved claims on %d servers", len(c.servers))
	}
}

func TestLabelsThatNobodyServes(t *testing.T) {
	c := NewClaims()
	runsOn := func(l ...string) func(*api.Job) { return func(j *api.Job) { j.RunsOn = l } }
	c.Bid("s", bidder("a-old", 0, func(b *Bidder) { b.Labels = []string{"docker", "arm"} }))
	c.Bid("s", bidder("a-young", 1, func(b *Bidder) { b.Labels = []string{"gpu"} }))
	got := c.Unserved("s", []api.Job{job(1), job(2, runsOn("docker", "big")), job(3, runsOn("docker", "big")), job(4, runsOn("gpu", "arm", "docker"))})
	if diff := cmp.Diff(map[string]int{"big": 2, "gpu": 1}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
