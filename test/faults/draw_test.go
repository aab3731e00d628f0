package faults

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// allSeeds is how many seeds there are. Every story's number of targets divides it, so that seeds in a row fill a table
// wherever they begin.
const allSeeds = 30

// counts are how many requests each asker made about a life in each operation.
type counts map[operation]map[string]int

// least keeps what came in the life with the fewest of each.
func (c counts) least(of counts) {
	for o, byAsker := range of {
		for asker, n := range byAsker {
			c[o][asker] = min(c[o][asker], n)
		}
	}
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

// A choice of a seed, and of the k in each of the story's operations if they are not to be drawn.
type choice struct {
	seed int
	at   []int
}

// killsOf a choice. As many seeds in a row as there are targets kill every target in every operation.
func (s *story) killsOf(c choice, counted counts) map[operation]kill {
	r := rand.New(rand.NewPCG(uint64(c.seed), 0)) // The same each time.
	kills := map[operation]kill{}
	for i, o := range s.operations {
		k := kill{target: s.targets[(c.seed+i)%len(s.targets)], before: r.IntN(2) == 0}
		// How far through the operation is the seed's, whatever is counted.
		k.k = within(r.Float64(), counted[o][asker(k.target)])
		if c.at != nil {
			k.k = c.at[i]
		}
		if k.k > 0 {
			kills[o] = k
		}
	}
	return kills
}

// within n requests, the number of the one that comes after this part of them. The first, if there are none.
func within(part float64, n int) int { return 1 + int(part*float64(max(n, 1))) }

// again are the kills whose request did not come, at one that did, and earlier from life to life.
func (l *life) again(seed, lives int) map[operation]kill {
	r := rand.New(rand.NewPCG(uint64(seed), uint64(lives)))
	kills := map[operation]kill{}
	for _, o := range l.story.operations {
		if k, missed := l.missed[o]; missed {
			k.k = within(r.Float64(), l.counted[o][asker(k.target)]>>(lives-1))
			kills[o] = k
		}
	}
	return kills
}

// repeat is what FAULT_SEEDS has to be for these kills.
func (s *story) repeat(seed int, kills map[operation]kill) string {
	at := make([]string, 0, len(s.operations))
	for _, o := range s.operations {
		at = append(at, strconv.Itoa(kills[o].k))
	}
	return fmt.Sprintf("%d:%s", seed, strings.Join(at, "."))
}

// chosen seeds: those of FAULT_SEEDS, or all, or as many as there are targets, which change from day to day.
func (s *story) chosen(t *testing.T) []choice {
	t.Helper()
	if given := os.Getenv("FAULT_SEEDS"); given != "" {
		all, err := s.parse(given)
		if err != nil {
			t.Fatalf("cannot read FAULT_SEEDS=%s: %v", given, err)
		}
		return all
	}
	first, count := 0, allSeeds
	if !everySeed {
		count = len(s.targets)
		first = int(time.Now().Unix()/int64((24*time.Hour)/time.Second)) * count
	}
	return s.row(first, count)
}

// row of seeds.
func (s *story) row(first, count int) []choice {
	all := make([]choice, 0, count)
	for i := range count {
		all = append(all, choice{seed: (first + i) % allSeeds})
	}
	return all
}

// parse choices with commas between.
func (s *story) parse(given string) ([]choice, error) {
	var all []choice
	for one := range strings.SplitSeq(given, ",") {
		seed, at, drawn := strings.Cut(strings.TrimSpace(one), ":")
		n, err := strconv.Atoi(seed)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%q is no seed", seed)
		}
		c := choice{seed: n}
		if drawn {
			for k := range strings.SplitSeq(at, ".") {
				n, err := strconv.Atoi(k)
				if err != nil || n < 0 {
					return nil, fmt.Errorf("%q is no number of a request", k)
				}
				c.at = append(c.at, n)
			}
			if len(c.at) != len(s.operations) {
				return nil, fmt.Errorf("%s has %d numbers, and the story %d operations", one, len(c.at), len(s.operations))
			}
		}
		all = append(all, c)
	}
	return all, nil
}
