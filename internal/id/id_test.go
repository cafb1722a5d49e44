package id_test

import (
	"testing"
	"time"

	"countersign/internal/id"

	"pgregory.net/rapid"
)

func TestIDs_SortByTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.Int64Range(0, 1<<47).Draw(t, "a")
		b := rapid.Int64Range(0, 1<<47).Draw(t, "b")
		x, y := id.NewRun(time.UnixMilli(a)), id.NewRun(time.UnixMilli(b))
		if a < b && x >= y || a > b && x <= y {
			t.Fatalf("ids %s (ms %d) and %s (ms %d) do not sort by time", x, a, y, b)
		}
	})
}

func TestIDs_AreUniqueInOneMillisecond(t *testing.T) {
	now, seen := time.Now(), map[id.Effect]bool{}
	for range 10_000 {
		e := id.NewEffect(now)
		if seen[e] {
			t.Fatalf("id %s was made twice", e)
		}
		seen[e] = true
	}
}

func TestValid(t *testing.T) {
	good := string(id.NewApproval(time.Now()))
	cases := map[string]bool{good: true, good[:len(good)-1]: false, good + "0": false, "run_" + good[4:]: false,
		"apr_" + "IIIIIIIIIIIIIIIIIIIIIIIIII": false, "": false}
	for s, want := range cases {
		if got := id.Valid("apr_", s); got != want {
			t.Errorf("Valid(%q) = %v, want %v", s, got, want)
		}
	}
}
