package pool

import (
	"sync"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/forgejo/server"
)

// A memory is what is known of a pool from pass to pass. All of it follows from what is on record when it is lost.
type memory struct {
	// token is whether the token's Secret may have changed since it was read.
	token atomic.Bool

	// right is whether the right to read it was given.
	right bool

	session *server.Session
	trouble error
	plan    Plan
	tally   Tally
	// replaced is whether the token was, and lifted the time of the next try that does not count any more since.
	replaced bool
	lifted   time.Time
	// recent are the last runners that ended, nil until one did or the status was read.
	recent []steading.EndedRunner
	// asked are the registrations that the plan's look did not list: whether each is gone.
	askedOf LookID
	asked   map[int64]bool
	// offline are the registrations that look after look lists as offline, and when the first of these looks began.
	offline map[int64]time.Time
	// made are the runners that were made and that the cache does not show yet, by name.
	made map[string]madeRunner
	// read is whether a look was acted on by runners that were read uncached, and of all that were made since it is known.
	read bool
	// starting are the runners that were made and are not registered yet with a child, and when their look began.
	starting map[string]time.Time
	// waiting since when jobs are seen to.
	waiting map[jobKey]time.Time
	ground  ground
	// taken is the generation of the settings by which the API server would make what runners run in.
	taken int64
	// served is whether the cluster was seen to serve the kinds that not every cluster has.
	served bool
	swept  sweeps
	// namespaces that runners were made in, nil until it is read.
	namespaces map[string]bool
	status     written
}

// A madeRunner is one that the cache may not show yet.
type madeRunner struct {
	instance forgejov1.RunnerInstance
	at       time.Time
}

// ground is what the pool stands on in its job namespace, and what it was found for.
type ground struct {
	look       LookID
	generation int64
	known      bool
	gate       *Gate
}

// sweeps that were made.
type sweeps struct {
	look     LookID
	children time.Time
}

// written is the status that was last written.
type written struct {
	at     time.Time
	status *forgejov1.RunnerStatus
}

// memories of all pools.
type memories struct {
	mu  sync.Mutex
	all map[client.ObjectKey]*memory
}

func newMemories() *memories { return &memories{all: map[client.ObjectKey]*memory{}} }

// of a pool. Only one pass of it is at work at a time.
func (m *memories) of(key client.ObjectKey) *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	have := m.all[key]
	if have == nil {
		have = &memory{
			asked: map[int64]bool{}, made: map[string]madeRunner{}, starting: map[string]time.Time{}, waiting: map[jobKey]time.Time{},
		}
		have.token.Store(true)
		m.all[key] = have
	}
	return have
}

func (m *memories) forget(key client.ObjectKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, key)
}
