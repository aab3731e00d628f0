package pool

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/providers/forgejo/api"
)

// A Bidder is a pool as others that serve the same jobs see it.
type Bidder struct {
	// Pool by its Runner.
	Pool client.ObjectKey
	// Created is when the Runner was.
	Created time.Time
	// Labels that it serves.
	Labels []string
	// Session whose looks it goes by. Empty: it goes by none now.
	Session string
	// Open is whether it makes runners at all now.
	Open bool
	// Room is how many waiting jobs it can give a runner that is there or can be made. Those it has made runners for count.
	Room int
	// Pinned are the jobs that its runners were made for.
	Pinned map[jobKey]bool
	// Waiting jobs that it sees, oldest first.
	Waiting []api.Job
}

// Claims say which of the pools of one server a job is for: each job is claimed by one. A pool keeps a job that it made a
// runner for, or has room for. Else a job is for the oldest pool that serves it and has room, and if none has, for the oldest
// that serves it. They are kept in memory only: after a restart they follow from the runners on record.
type Claims struct {
	mu      sync.Mutex
	servers map[string]*claims
}

// claims of one server.
type claims struct {
	pools map[client.ObjectKey]Bidder
	jobs  map[jobKey]claim
}

type claim struct {
	pool client.ObjectKey
	// held is whether the pool has a runner for the job or room for one.
	held bool
}

// NewClaims returns claims of nothing.
func NewClaims() *Claims { return &Claims{servers: map[string]*claims{}} }

// Bid for the jobs of a server that a pool sees, and get those that it claims, oldest first.
func (c *Claims) Bid(server string, b Bidder) []api.Job {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leave(b.Pool, server)
	s := c.servers[server]
	if s == nil {
		s = &claims{pools: map[client.ObjectKey]Bidder{}, jobs: map[jobKey]claim{}}
		c.servers[server] = s
	}
	s.pools[b.Pool] = b
	return s.bid(b)
}

// Leave has a pool claim nothing any more.
func (c *Claims) Leave(pool client.ObjectKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leave(pool, "")
}

// Close a pool that cannot act now: it sees no job, and keeps its claims to those only that its runners were made for.
func (c *Claims) Close(pool client.ObjectKey, pinned map[jobKey]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.servers {
		b, ok := s.pools[pool]
		if !ok {
			continue
		}
		b.Session, b.Open, b.Room, b.Waiting, b.Pinned = "", false, 0, nil, pinned
		s.pools[pool] = b
		maps.DeleteFunc(s.jobs, func(k jobKey, have claim) bool { return have.pool == pool && !pinned[k] })
	}
}

// leave all servers but one.
func (c *Claims) leave(pool client.ObjectKey, but string) {
	for url, s := range c.servers {
		if url == but {
			continue
		}
		delete(s.pools, pool)
		s.drop(pool)
		if len(s.pools) == 0 {
			delete(c.servers, url)
		}
	}
}

// Unserved lists the labels that keep jobs from any pool of a server, with the number of such jobs: of each job the labels
// that the pool which is closest to it lacks.
func (c *Claims) Unserved(server string, waiting []api.Job) map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := map[string]int{}
	s := c.servers[server]
	if s == nil {
		return n
	}
	for _, j := range waiting {
		if lacks, ok := s.lacks(j.RunsOn); ok {
			n[strings.Join(lacks, ", ")]++
		}
	}
	return n
}

// lacks are the fewest labels of a job that a pool does not serve, false if one serves all.
func (s *claims) lacks(runsOn []string) ([]string, bool) {
	var fewest []string
	for _, p := range s.sorted() {
		m := missing(p.Labels, runsOn)
		if len(m) == 0 {
			return nil, false
		}
		if fewest == nil || len(m) < len(fewest) {
			fewest = m
		}
	}
	return fewest, len(fewest) > 0
}

// drop all claims of a pool, and return those that it had room for.
func (s *claims) drop(pool client.ObjectKey) (held map[jobKey]bool) {
	held = map[jobKey]bool{}
	for k, c := range s.jobs {
		if c.pool == pool {
			held[k] = c.held
			delete(s.jobs, k)
		}
	}
	return held
}

// bid anew for all jobs that a pool sees.
func (s *claims) bid(b Bidder) []api.Job {
	kept := s.drop(b.Pool)
	room := s.rooms()
	var mine []api.Job
	for _, j := range b.Waiting {
		if !serves(b.Labels, j.RunsOn) {
			continue
		}
		k := keyOf(queued(j))
		c := s.choose(k, j, b, room, kept[k])
		s.jobs[k] = c
		if c.held {
			room[c.pool]--
		}
		if c.pool == b.Pool {
			mine = append(mine, j)
		}
	}
	return mine
}

// rooms are how many more jobs each pool has room for.
func (s *claims) rooms() map[client.ObjectKey]int {
	room := map[client.ObjectKey]int{}
	for key, p := range s.pools {
		if p.Open {
			room[key] = p.Room
		}
	}
	for _, c := range s.jobs {
		if c.held {
			room[c.pool]--
		}
	}
	return room
}

// choose whose a job is that b sees. Kept is whether b had it, and room for it.
func (s *claims) choose(k jobKey, j api.Job, b Bidder, room map[client.ObjectKey]int, kept bool) claim {
	if have, ok := s.jobs[k]; ok && have.held {
		room[have.pool]++ // It is taken off again.
		return have
	}
	candidates := slices.DeleteFunc(s.sorted(), func(p Bidder) bool { return !serves(p.Labels, j.RunsOn) || !p.sees(k, b) })
	for _, p := range candidates {
		if p.Pinned[k] {
			return claim{pool: p.Pool, held: true}
		}
	}
	if kept && b.Open && room[b.Pool] > 0 {
		return claim{pool: b.Pool, held: true}
	}
	for _, p := range candidates {
		if p.Open && room[p.Pool] > 0 {
			return claim{pool: p.Pool, held: true}
		}
	}
	for _, p := range candidates {
		if p.Open {
			return claim{pool: p.Pool}
		}
	}
	return claim{pool: candidates[0].Pool}
}

// sees reports whether a pool sees a job that b does: by the same session, or because it said so.
func (p Bidder) sees(k jobKey, b Bidder) bool {
	return p.Session == b.Session || p.Pinned[k] || slices.ContainsFunc(p.Waiting, func(j api.Job) bool { return keyOf(queued(j)) == k })
}

// sorted pools, the oldest first.
func (s *claims) sorted() []Bidder {
	all := make([]Bidder, 0, len(s.pools))
	for _, p := range s.pools {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b Bidder) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Pool.Name, b.Pool.Name))
	})
	return all
}
