package faults

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// A table counts kills by target and operation.
type table struct {
	mu     sync.Mutex
	hit    map[string]int
	missed map[string]int
}

func newTable() *table { return &table{hit: map[string]int{}, missed: map[string]int{}} }

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

// empty cells of the table.
func (t *table) empty() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var empty []string
	for _, target := range targets {
		for _, o := range operations {
			if t.hit[cell(target, o)] == 0 {
				empty = append(empty, cell(target, o))
			}
		}
	}
	return empty
}

func (t *table) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "%-26s", "")
	for _, o := range operations {
		fmt.Fprintf(&b, "%10s", o)
	}
	for _, target := range targets {
		fmt.Fprintf(&b, "\n%-26s", target)
		for _, o := range operations {
			n := strconv.Itoa(t.hit[cell(target, o)])
			if missed := t.missed[cell(target, o)]; missed > 0 {
				n += fmt.Sprintf(" (-%d)", missed)
			}
			fmt.Fprintf(&b, "%10s", n)
		}
	}
	return b.String()
}
