package faults

import (
	"fmt"
	"testing"

	"github.com/steading-dev/steading/cluster/local/platform"
)

// An operation during which something fails.
type operation string

const (
	register   operation = "register" // a context
	create     operation = "create"
	expose     operation = "expose"
	upgrade    operation = "upgrade"
	stop       operation = "stop"
	start      operation = "start"
	remove     operation = "delete"
	deregister operation = "deregister"
)

// What fails besides processes: a connection to an API server, whose request or answer is lost. Who asked goes on.
const (
	providersConnection   = "provider's connection"
	crossplanesConnection = "crossplane's connection"
	edgesConnection       = "the edge's connection"
)

// asker is whose requests are counted: for the function, which makes none, they are Crossplane's.
func asker(target string) string {
	switch target {
	case platform.Provider, providersConnection:
		return platform.Provider
	case edgesConnection:
		return edge
	default:
		return crossplane
	}
}

// process that is killed, none for a connection.
func process(target string) string {
	switch target {
	case providersConnection, crossplanesConnection, edgesConnection:
		return ""
	default:
		return target
	}
}

// A story is what happens in the lives of one kind. Its table has a row for each target and a column for each operation.
type story struct {
	tenant     string
	operations []operation
	targets    []string
	// live a life from the first operation to the last, and look after each.
	live func(*testing.T, *life)
}

// furtherLives is how many lives of a seed may follow the first until all that it says has failed.
const furtherLives = 4

// run the lives of the seeds, after one in which nothing fails and requests are counted.
func (s *story) run(t *testing.T) {
	struck := newTable(s)
	defer func() {
		t.Logf("what failed, by target and operation, and how often the request did not come:\n%s", struck)
	}()
	untouched := &life{story: s, name: "untouched", struck: struck}
	if !t.Run(untouched.name, func(t *testing.T) { s.live(t, untouched) }) {
		t.Fatal("even a life in which nothing fails does not go well, so nothing can be drawn from it")
	}
	for _, c := range s.chosen(t) {
		t.Run(fmt.Sprintf("seed=%d", c.seed), func(t *testing.T) { s.fill(t, c, untouched.counted, struck) })
	}
}

// fill the cells of a seed, in a life and as many further ones as it takes.
func (s *story) fill(t *testing.T, c choice, counted counts, struck *table) {
	t.Helper()
	kills := s.killsOf(c, counted)
	for lived := range 1 + furtherLives {
		l := &life{story: s, name: fmt.Sprintf("seed%02d-%d", c.seed, lived), kills: kills, struck: struck}
		t.Logf("repeat this life with FAULT_SEEDS=%s", s.repeat(c.seed, kills))
		s.live(t, l)
		counted.least(l.counted)
		if kills = l.again(c.seed, lived+1); len(kills) == 0 {
			return
		}
	}
	for o, k := range kills {
		t.Errorf("nothing failed for %s in %d lives", cell(k.target, o), 1+furtherLives)
	}
}
