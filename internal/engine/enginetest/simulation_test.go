package enginetest_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

var (
	seeds = flag.Int("seeds", 80, "simulated worlds; the nightly form takes 20000")
	seed  = flag.Uint64("seed", 0, "the first of them; with -seeds 1 it is played again and its story printed")
)

// Nothing but the seed decides what happens: two plays of one tell the same
// story.
func TestSimulation_OneSeedTellsOneStory(t *testing.T) {
	for _, s := range []uint64{7, 8} {
		var stories []string
		for range 2 {
			synctest.Test(t, func(t *testing.T) {
				sim := newSimulation(t, s)
				sim.play(false)
				stories = append(stories, strings.Join(sim.story, "\n"))
			})
		}
		if diff := cmp.Diff(stories[0], stories[1]); diff != "" {
			t.Errorf("seed %d: %s", s, diff)
		}
	}
}

// A seeded world in virtual time: two engines on one store, a target that
// loses answers, delays, refuses and forgets, commits that fail or whose
// answer is lost, crashes at any window, drivers that stand still until they
// are taken over, a clock that jumps, and people who decide, answer, resume,
// resolve and cancel in between. First all of that, then a time in which nothing goes
// wrong any more; the invariants are looked at throughout and at the end.
func TestSimulation(t *testing.T) {
	n := *seeds
	if testing.Short() {
		n = min(n, 20)
	}
	first := *seed
	if first == 0 {
		first = 1
	}
	const lanes = 4
	for lane := range lanes {
		t.Run(fmt.Sprint("lane ", lane), func(t *testing.T) {
			t.Parallel()
			for s := first + uint64(lane); s < first+uint64(n); s += lanes {
				ok := t.Run(fmt.Sprint("seed ", s), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { newSimulation(t, s).play(*seeds == 1) })
				})
				if !ok {
					t.Fatalf("seed %d fails; play it again with -run TestSimulation -seeds 1 -seed %d", s, s)
				}
			}
		})
	}
}
