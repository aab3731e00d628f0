package server

import (
	"context"
	"fmt"
	"math"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/forgejo/api"
)

const (
	// atLeast this long is between the beginnings of two looks.
	atLeast = 2 * time.Second
	// unpooled is how often a session looks that only runners use, whose pool is gone.
	unpooled = 30 * time.Second
	// looking may take this long at most, however many pages there are.
	looking = 2 * time.Minute
)

// run looks, until nobody uses the session any more.
func (s *Session) run(ctx context.Context) {
	for {
		wait, used := s.due()
		if !used {
			return
		}
		if wait <= 0 {
			s.lookOnce(ctx)
			if ctx.Err() != nil {
				return
			}
			continue
		}
		t := s.servers.o.Clock.NewTimer(wait)
		left, used := s.due()
		if !used {
			t.Stop()
			return
		}
		if left <= 0 {
			// The clock moved on before the timer was set by it.
			t.Stop()
			continue
		}
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-s.nudge:
			t.Stop()
		case <-t.C():
		}
	}
}

// due says in how long the next look is. A session that nobody uses is not run any more, and who takes it up again waits for
// another look: nobody saw to it that the last one stays true.
func (s *Session) due() (wait time.Duration, used bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pools) == 0 && len(s.tracked) == 0 {
		s.running, s.fresh, s.asked = false, false, true
		return 0, false
	}
	if s.began.IsZero() {
		return 0, true
	}
	return s.every() - s.servers.o.Clock.Since(s.began), true
}

// every so often it is looked. The lock is held.
func (s *Session) every() time.Duration {
	if s.asked {
		return atLeast
	}
	if len(s.pools) == 0 {
		return unpooled
	}
	shortest := time.Duration(math.MaxInt64)
	for _, p := range s.pools {
		shortest = min(shortest, p.interval)
	}
	return max(atLeast, shortest)
}

// lookOnce, and wake whom it concerns.
func (s *Session) lookOnce(ctx context.Context) {
	began := s.servers.o.Clock.Now()
	s.mu.Lock()
	s.began, s.asked = began, false
	version := s.poll.Version
	if s.poll.Outcome == steading.PollFailed {
		// It may be another one that comes back.
		version = ""
	}
	s.mu.Unlock()

	ctx, cancel := context.WithTimeout(ctx, looking)
	defer cancel()
	l, version, err := s.ask(ctx, version)
	l.Began = began
	if err == nil {
		// Before anybody acts on the look, who then takes the token that is proven.
		s.servers.prove(s)
	}
	pools, instances := s.seen(l, version, s.dialer.explain(err))
	s.servers.instances.wake(instances)
	s.servers.pools.wake(pools)
}

// ask the server for everything. The version is asked for unless it is known.
func (s *Session) ask(ctx context.Context, version string) (Look, string, error) {
	if version == "" {
		v, err := s.client.Version(ctx)
		if err != nil {
			return Look{}, "", err
		}
		if version = v.Text; !v.Supported() {
			return Look{}, version, fmt.Errorf("%w: it is version %s, and runners take Forgejo %d or later: upgrade it", api.ErrUnsupported, v.Text, api.Required)
		}
	}
	user, err := s.User(ctx)
	if err != nil {
		return Look{}, version, err
	}
	listed, err := s.client.Runners(ctx)
	if err != nil {
		return Look{}, version, err
	}
	// All jobs, whatever their labels: it is told which are served by nobody.
	jobs, err := s.client.Jobs(ctx, nil)
	if err != nil {
		return Look{}, version, err
	}
	l := Look{User: user, Jobs: jobs, Runners: make(map[int64]api.Runner, len(listed))}
	for _, r := range listed {
		l.Runners[r.ID] = r
	}
	return l, version, nil
}

// seen keeps a look, or why there is none, and returns whom it concerns.
func (s *Session) seen(l Look, version string, err error) (pools, instances []client.ObjectKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := Poll{Outcome: steading.PollSucceeded, Since: s.poll.Since, Outage: s.poll.Outage, Version: version, Err: err}
	if err != nil {
		next.Outcome = steading.PollFailed
	}
	same := next.Outcome == s.poll.Outcome
	if !same {
		next.Since, next.Outage = s.servers.o.Clock.Now(), 0
	}
	if !same && err == nil && !s.poll.Since.IsZero() {
		next.Outage = next.Since.Sub(s.poll.Since)
	}
	same = same && message(next.Err) == message(s.poll.Err)
	s.poll, s.fresh = next, err == nil
	if err == nil {
		l.Number = s.look.Number + 1
		s.look = l
		instances = s.changed(l)
	}
	if err != nil && same {
		return nil, nil
	}
	for p := range s.pools {
		pools = append(pools, p)
	}
	return pools, instances
}

// changed lists the instances whose registration is not as it was, or not listed. The lock is held.
func (s *Session) changed(l Look) []client.ObjectKey {
	var all []client.ObjectKey
	for instance, t := range s.tracked {
		r, listed := l.Runners[t.id]
		state := string(r.Status)
		if listed && state == t.state {
			continue
		}
		t.state = state
		all = append(all, instance)
	}
	return all
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
