package render

import (
	"context"
	"slices"
	"sync"
)

// Slots share out how many charts are rendered at a time. Whoever comes first is served first, but a tenant that has its
// share waits while others are served.
type slots struct {
	share int

	mu      sync.Mutex
	free    int
	used    map[string]int
	waiting []*waiter
}

type waiter struct {
	tenant string
	served chan struct{}
}

func newSlots(together, share int) *slots {
	return &slots{share: share, free: together, used: map[string]int{}}
}

// take a slot, or return the context's error. What is returned gives it back.
func (s *slots) take(ctx context.Context, tenant string) (func(), error) {
	w := &waiter{tenant: tenant, served: make(chan struct{})}
	s.mu.Lock()
	s.waiting = append(s.waiting, w)
	s.serve()
	s.mu.Unlock()
	select {
	case <-w.served:
		return func() { s.giveBack(tenant) }, nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	i := slices.Index(s.waiting, w)
	if i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
	}
	s.mu.Unlock()
	if i < 0 {
		s.giveBack(tenant) // It was served just now.
	}
	return nil, ctx.Err()
}

// serve those that may go.
func (s *slots) serve() {
	s.waiting = slices.DeleteFunc(s.waiting, func(w *waiter) bool {
		if s.free == 0 || s.used[w.tenant] >= s.share {
			return false
		}
		s.free--
		s.used[w.tenant]++
		close(w.served)
		return true
	})
}

func (s *slots) giveBack(tenant string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free++
	if s.used[tenant]--; s.used[tenant] == 0 {
		delete(s.used, tenant)
	}
	s.serve()
}
