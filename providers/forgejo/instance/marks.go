package instance

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A mark is since when something is so, of what no object tells. It is kept in memory: after a restart everything is so since
// then, and a verdict that needs it comes later, never earlier.
type mark struct {
	// registered is when the runner was registered by this process.
	registered time.Time
	// gone, ended and idle are since when the registration is gone, the runner ended, and an answer of the server said that it
	// has no job.
	gone, ended, idle time.Time
	// secret is the credential, and seen when it was last known to be there.
	secret types.UID
	seen   time.Time
	// spent is whether the credential was deleted after the verdict.
	spent bool
	// child was made by this process.
	child types.UID
	// tasks ran when idle began, of those that the runner could have.
	tasks map[int64]bool
}

// marks of all instances, by UID.
type marks struct {
	mu sync.Mutex
	by map[types.UID]*mark
}

// of an instance. Only one look at it is at work at a time.
func (m *marks) of(uid types.UID) *mark {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.by == nil {
		m.by = map[types.UID]*mark{}
	}
	if m.by[uid] == nil {
		m.by[uid] = &mark{}
	}
	return m.by[uid]
}

func (m *marks) forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.by, uid)
}

// since keeps in t since when something is so, and returns for how long.
func since(t *time.Time, so bool, now time.Time) time.Duration {
	switch {
	case !so:
		*t = time.Time{}
		return 0
	case t.IsZero():
		*t = now
	}
	return now.Sub(*t)
}
