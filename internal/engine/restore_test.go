package engine_test

import (
	"context"
	"strings"
	"testing"

	"countersign/internal/engine"
	. "countersign/internal/engine/enginetest"
	"countersign/internal/store"
	"countersign/internal/tools"
)

// restore is what becomes of the database once it is put back.
func restore(r *Rig) {
	r.T.Helper()
	err := r.DB.Update(r.T.Context(), func(ctx context.Context, tx *store.Tx) error {
		_, err := r.Engine.Restore(ctx, tx)
		return err
	})
	if err != nil {
		r.T.Fatal(err)
	}
	r.Restart()
}

func wantRestored(t *testing.T, run engine.Run) {
	t.Helper()
	wantStatus(t, run, engine.Blocked)
	if run.Error == nil || run.Error.Code != engine.CauseRestored || run.RestoredAt.IsZero() || run.Lease.Owner != "" {
		t.Errorf("the run stands because of %+v (restored at %v)", run.Error, run.RestoredAt)
	}
}

func TestRestore_StopsOpenRunsUntilAPersonResumes(t *testing.T) {
	r, run := standing(t, "write.query")
	run = r.Drive(run.ID)
	wantStatus(t, run, engine.WaitingApproval)
	restore(r)
	wantRestored(t, r.Run(run.ID))
	r.Decide(run, engine.Approved, "fine") // wakes what waits for it
	wantRestored(t, r.Run(run.ID))
	if n := r.Script.Count("send", "write.query"); n != 0 {
		t.Errorf("sent %d times", n)
	}
}

func TestRestore_WhatWasApprovedIsAskedAboutBeforeItIsSent(t *testing.T) {
	for name, c := range map[string]struct {
		answer tools.Answer
		sends  int
	}{
		"it happened after the backup": {tools.Answer{Happened: true, Outcome: Done(`{"found":1}`)}, 0},
		"it did not":                   {tools.Answer{DidNot: true}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r, run := approved(t, "write.query")
			restore(r)
			asked := 0
			r.Script.OnQuery = func(context.Context, *tools.Tool, tools.Sending) tools.Answer {
				if asked++; r.Script.Count("send", "write.query") > 0 {
					t.Error("it was sent before it was asked about")
				}
				return c.answer
			}
			wantStatus(t, r.Drive(run.ID), engine.Completed)
			if n := r.Script.Count("send", "write.query"); n != c.sends || asked != 1 {
				t.Errorf("asked %d times, sent %d times; want once and %d", asked, n, c.sends)
			}
		})
	}
}

// Neither a key that a target would know for a day nor nothing at all tells
// what became of it: a person says.
func TestRestore_WhatCannotBeAskedIsUnknown(t *testing.T) {
	for _, tool := range []string{"write.plain", "write.key"} {
		r, run := approved(t, tool)
		restore(r)
		run = r.Drive(run.ID)
		wantStatus(t, run, engine.Blocked)
		if e := r.Effects(run.ID)[0]; e.Status != engine.Unknown || r.Script.Count("send", tool) != 0 {
			t.Errorf("%s: the effect is %s, sent %d times; want unknown and never", tool, e.Status, r.Script.Count("send", tool))
		}
	}
}

// What the run proposes only now may have been done after the backup, too.
func TestRestore_WhatIsProposedAfterItIsAskedAbout(t *testing.T) {
	r, run := standing(t, "write.query")
	restore(r)
	r.Gate.Policy = func(engine.Proposal) string { return engine.Allowed }
	r.Script.OnQuery = func(context.Context, *tools.Tool, tools.Sending) tools.Answer {
		return tools.Answer{Happened: true, Outcome: Done(`{"found":1}`)}
	}
	wantStatus(t, r.Drive(run.ID), engine.Completed)
	if n := r.Script.Count("send", "write.query"); n != 0 {
		t.Errorf("sent %d times", n)
	}
}

func TestRestore_WhatWasSentIsUnknown(t *testing.T) {
	r, run := approved(t, "write.plain")
	hook := CrashAt(t, "after-effect:write")
	r.Restart(func(o *engine.Options) { o.Crash = hook })
	if !r.CrashingDrive(run.ID) {
		t.Fatal("no crash")
	}
	restore(r)
	if e := r.Effects(run.ID)[0]; e.Status != engine.Unknown {
		t.Errorf("the effect is %s", e.Status)
	}
}

// Of what was given up without asking it is not known that it did not happen,
// so its business key is not free.
func TestRestore_ABusinessKeyThatWasGivenUpIsNotFree(t *testing.T) {
	src := strings.Replace(ReadThenWrite("write.plain"), "    reason:", "    key: \"w49\"\n    reason:", 1)
	r := NewRig(t, NewLibrary(t, AllTools...), offline)
	w := r.Lib.Add(t, src)
	first := r.Drive(r.Begin(w, `{}`, "a").ID)
	restore(r)
	r.Decide(first, engine.Rejected, "no")
	wantStatus(t, r.Drive(first.ID), engine.RunRejected)
	if e := r.Effects(first.ID)[0]; !strings.Contains(e.Message, "not known here") {
		t.Errorf("the effect says %q", e.Message)
	}
	second := r.Drive(r.Begin(w, `{}`, "b").ID)
	wantStatus(t, second, engine.Failed)
	if second.Error.Code != "duplicate_key" {
		t.Errorf("the error is %+v", second.Error)
	}
}
