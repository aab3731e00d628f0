package faults

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/steading-dev/steading/cluster/local/platform"
)

// allSeeds is how many seeds there are.
const allSeeds = 30

// An operation on an environment, during which something is killed.
type operation string

const (
	create  operation = "create"
	upgrade operation = "upgrade"
	stop    operation = "stop"
	start   operation = "start"
	remove  operation = "delete"
)

// What fails besides processes: a connection to the API server, whose request or answer is lost. Who asked goes on.
const (
	providersConnection   = "provider's connection"
	crossplanesConnection = "crossplane's connection"
)

var (
	operations = []operation{create, upgrade, stop, start, remove}
	targets    = []string{platform.Function, platform.Provider, crossplane, providersConnection, crossplanesConnection}
)

// asker is whose requests are counted: for the function, which makes none, they are Crossplane's.
func asker(target string) string {
	switch target {
	case platform.Provider, providersConnection:
		return platform.Provider
	default:
		return crossplane
	}
}

// process that is killed, none for a connection.
func process(target string) string {
	switch target {
	case providersConnection, crossplanesConnection:
		return ""
	default:
		return target
	}
}

// requests about the environment that change something, from the moment the operation is asked for until it is done. There
// are a few more, which vary with what is seen when. What is drawn stays within.
var requests = map[string]map[operation]int{
	platform.Provider: {create: 35, upgrade: 24, stop: 12, start: 12, remove: 40},
	crossplane:        {create: 130, upgrade: 95, stop: 55, start: 85, remove: 20},
}

// A kill of one target at the k-th request, before or after the API server did what it asks for.
type kill struct {
	target string
	k      int
	before bool
}

func (k kill) String() string {
	when := "after"
	if k.before {
		when = "before"
	}
	return fmt.Sprintf("%s fails %s request %d", k.target, when, k.k)
}

// killsOf a seed. Any five seeds in a row kill every target in every operation.
func killsOf(seed int) map[operation]kill {
	r := rand.New(rand.NewPCG(uint64(seed), 0)) // The same each time.
	kills := map[operation]kill{}
	for i, o := range operations {
		t := targets[(seed+i)%len(targets)]
		kills[o] = kill{target: t, k: 1 + r.IntN(requests[asker(t)][o]), before: r.IntN(2) == 0}
	}
	return kills
}

// seeds to run: those of FAULT_SEEDS, or all, or six that change from day to day.
func seeds(t *testing.T) []int {
	t.Helper()
	var chosen []int
	if given := os.Getenv("FAULT_SEEDS"); given != "" {
		for s := range strings.SplitSeq(given, ",") {
			n, err := strconv.Atoi(strings.TrimSpace(s))
			if err != nil || n < 0 {
				t.Fatalf("cannot read FAULT_SEEDS=%s: it takes numbers with commas between", given)
			}
			chosen = append(chosen, n)
		}
		return chosen
	}
	first, count := 0, allSeeds
	if !everySeed {
		const some = 6
		first, count = int(time.Now().Unix()/int64((24*time.Hour)/time.Second))*some, some
	}
	for i := range count {
		chosen = append(chosen, (first+i)%allSeeds)
	}
	return chosen
}

// TestEverySeedsKills: every cell of the table is filled by any six seeds in a row, and k stays within what there is.
func TestEverySeedsKills(t *testing.T) {
	for first := range allSeeds {
		hit := map[string]bool{}
		for i := range 6 {
			for o, k := range killsOf((first + i) % allSeeds) {
				hit[k.target+" "+string(o)] = true
				if k.k < 1 || k.k > requests[asker(k.target)][o] {
					t.Errorf("seed %d, %s: %s, of %d requests", first+i, o, k, requests[asker(k.target)][o])
				}
			}
		}
		if len(hit) != len(targets)*len(operations) {
			t.Errorf("seeds from %d on hit %d of %d cells", first, len(hit), len(targets)*len(operations))
		}
	}
}
