package faults

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// A table counts the kills of a story by target and operation.
type table struct {
	story *story

	mu     sync.Mutex
	hit    map[string]int
	missed map[string]int
}

func newTable(s *story) *table {
	return &table{story: s, hit: map[string]int{}, missed: map[string]int{}}
}

func cell(target string, o operation) string { return target + " in " + string(o) }

// add a kill, or that the request it was meant for did not come.
func (t *table) add(target string, o operation, hit bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if hit {
		t.hit[cell(target, o)]++
	} else {
		t.missed[cell(target, o)]++
	}
}

func (t *table) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "%-26s", "")
	for _, o := range t.story.operations {
		fmt.Fprintf(&b, "%12s", o)
	}
	for _, target := range t.story.targets {
		fmt.Fprintf(&b, "\n%-26s", target)
		for _, o := range t.story.operations {
			n := strconv.Itoa(t.hit[cell(target, o)])
			if missed := t.missed[cell(target, o)]; missed > 0 {
				n += fmt.Sprintf(" (-%d)", missed)
			}
			fmt.Fprintf(&b, "%12s", n)
		}
	}
	return b.String()
}
