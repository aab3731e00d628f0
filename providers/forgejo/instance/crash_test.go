package instance

import (
	"fmt"
	"testing"
	"time"

	"github.com/steading-dev/steading/apis/forgejo/v1alpha1"
)

// dies has a story told again and again, in which the process dies after the first of the calls that change anything, then after
// the second, and so on; each time once before the next call, and once with the last one's answer lost.
func dies(t *testing.T, begin, tell, end func(*world)) {
	t.Helper()
	for _, lost := range []bool{false, true} {
		for after := 0; ; after++ {
			survived := false
			t.Run(fmt.Sprintf("lost=%t/after=%d", lost, after), func(t *testing.T) {
				w := newWorld(t)
				begin(w)
				w.budget, w.lost = after, lost
				if lost {
					w.budget++
				}
				for range 4 {
					_, _ = w.reconcile()
				}
				tell(w)
				survived = !w.died
				w.restart()
				w.look()
				w.converge()
				end(w)
			})
			if survived {
				break
			}
			if after > 20 {
				t.Fatal("it never survives")
			}
		}
	}
}

// TestACrashWhileItIsMadeLeaksNothing: whichever call is the last, there is one runner afterwards, whose credential works; and
// nothing is left when it is deleted.
func TestACrashWhileItIsMadeLeaksNothing(t *testing.T) {
	dies(t, func(w *world) { w.runner() }, func(*world) {}, func(w *world) {
		w.wantOneRunner()
		w.delete()
		w.converge()
		w.wantNothing(false)
	})
}

// TestACrashWhileItIsMadeAndDeletedLeaksNothing: the record is deleted before the process is back.
func TestACrashWhileItIsMadeAndDeletedLeaksNothing(t *testing.T) {
	dies(t, func(w *world) { w.runner() }, func(w *world) {
		died := w.died
		w.restart()
		w.delete()
		w.died = died
	}, func(w *world) { w.wantNothing(false) })
}

// TestACrashWhileItIsReleasedLeaksNothing: whichever call is the last, the verdict stands, once, and nothing but history is left.
func TestACrashWhileItIsReleasedLeaksNothing(t *testing.T) {
	dies(t, func(w *world) {
		w.ready()
		w.podEnds(1)
		w.look()
	}, func(*world) {}, func(w *world) {
		if st := w.status(); st.Reason != v1alpha1.RunnerExited || !st.Released {
			w.t.Errorf("%+v", st)
		}
		w.wantNothing(true)
		at := w.status().CompletionTime
		w.later(time.Minute)
		if !w.status().CompletionTime.Equal(at) {
			w.t.Error("it was judged twice")
		}
	})
}

// TestACrashWhileItIsDeletedLeaksNothing: whichever call is the last.
func TestACrashWhileItIsDeletedLeaksNothing(t *testing.T) {
	dies(t, func(w *world) {
		w.ready()
		w.delete()
	}, func(*world) {}, func(w *world) { w.wantNothing(false) })
}
