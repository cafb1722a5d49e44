package approvals

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// bruteForce is the size of a largest assignment, by trying all.
func bruteForce(can [][]int, needs []int) int {
	if len(can) == 0 {
		return 0
	}
	best := bruteForce(can[1:], needs) // the first person fills no place
	for _, g := range can[0] {
		if needs[g] > 0 {
			needs[g]--
			best = max(best, 1+bruteForce(can[1:], needs))
			needs[g]++
		}
	}
	return best
}

func TestMatching_IsALargestAssignmentOfDistinctPeople(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		groups := rapid.IntRange(1, 4).Draw(t, "groups")
		needs := rapid.SliceOfN(rapid.IntRange(0, 3), groups, groups).Draw(t, "needs")
		can := rapid.SliceOfN(rapid.SliceOfNDistinct(rapid.IntRange(0, groups-1), 0, groups, rapid.ID[int]), 0, 7).Draw(t, "can")
		who, size := matching(can, needs)
		if want := bruteForce(can, append([]int(nil), needs...)); size != want {
			t.Fatalf("matching(%v, %v) has size %d, want %d", can, needs, size, want)
		}
		filled, placed := make([]int, groups), 0
		for i, g := range who {
			if g < 0 {
				continue
			}
			placed++
			filled[g]++
			ok := false
			for _, x := range can[i] {
				ok = ok || x == g
			}
			if !ok || filled[g] > needs[g] {
				t.Fatalf("matching(%v, %v) = %v puts person %d where they cannot stand", can, needs, who, i)
			}
		}
		if placed != size {
			t.Fatalf("matching(%v, %v) = %v, but says %d", can, needs, who, size)
		}
	})
}

// A later vote may not turn a place that was filled into one that is open.
func TestCount_GrowsWithEveryVote(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		groups := []Group{{Name: "a", Need: rapid.IntRange(1, 3).Draw(t, "a")}, {Name: "b", Need: rapid.IntRange(1, 3).Draw(t, "b")}}
		can := rapid.SliceOfN(rapid.SliceOfNDistinct(rapid.IntRange(0, 1), 0, 2, rapid.ID[int]), 1, 8).Draw(t, "can")
		before, after := count(groups, can[:len(can)-1]), count(groups, can)
		if after.filled < before.filled || after.filled > before.filled+1 {
			t.Fatalf("filled went from %d to %d with one more vote", before.filled, after.filled)
		}
		if after.complete != (after.filled == groups[0].Need+groups[1].Need) {
			t.Fatalf("complete = %v with %d filled", after.complete, after.filled)
		}
	})
}

// A06: one person who is in two groups fills one place.
func TestCount_OnePersonInTwoGroupsFillsOnePlace(t *testing.T) {
	groups := []Group{{Name: "sre", Need: 1}, {Name: "dba", Need: 1}}
	got := count(groups, [][]int{{0, 1}})
	if got.complete || got.filled != 1 {
		t.Errorf("one person counts %d of 2, complete %v; want 1, not complete", got.filled, got.complete)
	}
	got = count(groups, [][]int{{0, 1}, {0}})
	if !got.complete {
		t.Errorf("the one who can do both must move to dba: have %v", got.have)
	}
	if diff := cmp.Diff([]int{1, 1}, got.have); diff != "" {
		t.Errorf("have (-want +got):\n%s", diff)
	}
}

func TestCount_NoPlacesAreNeverComplete(t *testing.T) {
	for name, groups := range map[string][]Group{"no groups": nil, "need 0": {{Name: "a"}}, "negative": {{Name: "a", Need: -1}}} {
		if count(groups, [][]int{{}}).complete {
			t.Errorf("%s: complete, want never: a quorum of zero is no quorum", name)
		}
	}
}
