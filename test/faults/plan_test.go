package faults

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// evenly is as many requests of everybody in every operation.
func evenly(s *story, n int) counts {
	all := counts{}
	for _, o := range s.operations {
		all[o] = map[string]int{}
		for _, target := range s.targets {
			all[o][asker(target)] = n
		}
	}
	return all
}

// TestSeedsFillTheTable: every cell is filled by as many seeds in a row as there are targets, and k stays within what was
// counted, however little that is.
func TestSeedsFillTheTable(t *testing.T) {
	for _, s := range []*story{&atHome, &onAContext} {
		for first := range allSeeds {
			filled := map[string]bool{}
			for _, n := range []int{1, 7, 150} {
				for _, c := range s.row(first, len(s.targets)) {
					for o, k := range s.killsOf(c, evenly(s, n)) {
						filled[cell(k.target, o)] = true
						if k.k < 1 || k.k > n {
							t.Errorf("seed %d, %s: %s, of %d requests", c.seed, o, k, n)
						}
					}
				}
			}
			if len(filled) != len(s.targets)*len(s.operations) {
				t.Errorf("tenant %s: seeds from %d on fill %d cells", s.tenant, first, len(filled))
			}
		}
	}
}

// TestMissedIsStruckEarlier: what did not come is struck again, and nothing else is, at ever fewer requests.
func TestMissedIsStruckEarlier(t *testing.T) {
	s := &atHome
	l := &life{story: s, counted: evenly(s, 20), missed: map[operation]kill{stop: {target: crossplane, k: 33, before: true}}}
	for lives, most := range map[int]int{1: 20, 2: 10, 3: 5, 4: 2, 6: 1} {
		for seed := range allSeeds {
			kills := l.again(seed, lives)
			k, ok := kills[stop]
			if !ok || len(kills) != 1 || k.target != crossplane || !k.before {
				t.Fatalf("seed %d after %d lives: %v", seed, lives, kills)
			}
			if k.k < 1 || k.k > most {
				t.Errorf("seed %d after %d lives: request %d, want at most %d", seed, lives, k.k, most)
			}
		}
	}
}

// TestLifeIsRepeated by what it prints, in all that was drawn.
func TestLifeIsRepeated(t *testing.T) {
	s := &atHome
	drawn := s.killsOf(choice{seed: 7}, evenly(s, 40))
	delete(drawn, upgrade)
	all, err := s.parse("3, " + s.repeat(7, drawn))
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || all[0].seed != 3 || all[0].at != nil {
		t.Errorf("have %+v", all)
	}
	if diff := cmp.Diff(drawn, s.killsOf(all[1], evenly(s, 5)), cmp.AllowUnexported(kill{})); diff != "" {
		t.Errorf("-want, +have:\n%s", diff)
	}
	for _, wrong := range []string{"x", "-1", "7:", "7:1.2", "7:1.2.3.4.x"} {
		if _, err := s.parse(wrong); err == nil {
			t.Errorf("FAULT_SEEDS=%s is taken", wrong)
		}
	}
}
