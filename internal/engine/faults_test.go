package engine_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"countersign/internal/engine"
	. "countersign/internal/engine/enginetest"
	"countersign/internal/store"
	"countersign/internal/testkit"
)

// The K-th commit fails, in both ways: nothing of it happened, and it happened
// but nobody heard. For K = 1, 2, 3… until a whole run passes untouched.
func TestFaults_OfEveryCommitLeaveNothingDoubledOrHidden(t *testing.T) {
	for _, tool := range []string{"write.keyquery", "write.plain"} {
		for _, point := range []string{store.FaultBeforeCommit, store.FaultAfterCommit} {
			t.Run(tool+"/"+point, func(t *testing.T) {
				t.Parallel()
				for k := 1; ; k++ {
					if faultAt(t, tool, point, k) {
						if k < 6 { // claim, read, proposal with intent, outcome, end
							t.Errorf("only %d commits were tried", k)
						}
						return
					}
				}
			})
		}
	}
}

// faultAt fails the k-th commit of a run and reports whether there was none.
func faultAt(t *testing.T, tool, point string, k int) (clean bool) {
	t.Helper()
	armed, left := false, k
	fault := func(at string) error {
		if !armed || at != point {
			return nil
		}
		if left--; left == 0 {
			return errors.New("the disk is in a mood")
		}
		return nil
	}
	db := testkit.OpenWith(t, store.Options{Path: filepath.Join(t.TempDir(), "test.db"), Lines: Lines(), Fault: fault})
	out := NewOutside(t)
	r := NewRigOn(t, db, NewLibrary(t, AllTools...), out.Use, func(o *engine.Options) {
		o.PollEvery, o.MaxTakeovers, o.Logger = time.Millisecond, 10, slog.New(slog.DiscardHandler)
	})
	r.Gate.Policy = func(engine.Proposal) string { return engine.Allowed }
	run := r.Begin(r.Lib.Add(t, ReadThenWrite(tool)), `{}`, "k")
	armed = true
	for range 50 {
		_, err := r.Engine.Drive(context.Background(), run.ID)
		if run = r.Run(run.ID); engine.Final(run.Status) || run.Status == engine.Blocked {
			break
		}
		if err != nil || run.Lease.Owner != "" { // the release failed, too: as if the process had ended
			r.Restart()
		}
	}
	armed = false
	happened, effects := out.Count(tool), r.Effects(run.ID)
	switch {
	case happened > 1:
		t.Errorf("commit %d: it happened %d times", k, happened)
	case happened == 1 && len(effects) != 1:
		t.Errorf("commit %d: it happened, and the ledger has %d rows", k, len(effects))
	case run.Status == engine.Completed && effects[0].Status != engine.Confirmed:
		t.Errorf("commit %d: the run completed with an effect that is %s", k, effects[0].Status)
	case run.Status == engine.Blocked && effects[0].Status != engine.Unknown:
		t.Errorf("commit %d: the run is blocked (%+v) with an effect that is %s", k, run.Error, effects[0].Status)
	case run.Status != engine.Completed && run.Status != engine.Blocked:
		t.Errorf("commit %d: the run is %s (%+v)", k, run.Status, run.Error)
	}
	return left > 0
}
