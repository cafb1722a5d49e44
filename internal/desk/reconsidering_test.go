package desk_test

import (
	"testing"
	"time"

	"countersign/internal/engine"
)

// Whoever approved may take it back while others have not; the record keeps
// both, and the approval counts no more.
func TestRetract_ItCountsNoMoreAndMayBeGivenAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.refund(75_000, engine.WaitingApproval) // needs two
	a := w.request("ana", run)
	w.approve("ana", a)
	_, err := w.desk.Retract(t.Context(), w.principal("ben"), a.ID, "Not mine.")
	w.wantProblem(err, "nothing_to_retract")
	_, err = w.desk.Retract(t.Context(), w.principal("ana"), a.ID, " ")
	w.wantProblem(err, "invalid")
	now, err := w.desk.Retract(t.Context(), w.principal("ana"), a.ID, "I looked at the wrong order.")
	w.must(err)
	if now.Status != "pending" || now.Digest != a.Digest || now.Groups[0].Have != 0 || !now.Eligible.You {
		t.Errorf("afterwards the request is %s", asJSON(t, now))
	}
	if got := w.entries("approval.retracted", a.ID); len(got) != 1 || got[0].Digest != a.Digest || got[0].Actor.Name != "Ana" {
		t.Errorf("the log has %+v", got)
	}
	if d := w.approve("ben", w.request("ben", run)); d.Status != "pending" {
		t.Errorf("with one approval of two the request is %s: the retracted one counts", d.Status)
	}
	w.wantRefunds(0)
	w.approve("ana", w.request("ana", run))
	w.waitFor(run, engine.Completed)
	w.wantRefunds(1)
	_, err = w.desk.Retract(t.Context(), w.principal("ana"), a.ID, "Too late.")
	if err == nil {
		t.Error("an approval that was carried out is taken back")
	}
}

// More time changes neither digest nor votes, and the run waits as long.
func TestExtend_TheRequestStaysAndTheRunWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.refund(75_000, engine.WaitingApproval)
	a := w.request("ana", run)
	w.approve("ana", a)
	until := a.DecideBy.Add(48 * time.Hour)
	_, err := w.desk.Extend(t.Context(), w.principal("ben"), a.ID, until, "The weekend.")
	w.wantProblem(err, "forbidden")
	for _, bad := range []time.Time{a.DecideBy, a.DecideBy.Add(-time.Hour), time.Now().Add(100 * 24 * time.Hour)} {
		_, err := w.desk.Extend(t.Context(), w.principal("ana"), a.ID, bad, "The weekend.")
		w.wantProblem(err, "invalid")
	}
	now, err := w.desk.Extend(t.Context(), w.principal("ana"), a.ID, until, "The weekend.")
	w.must(err)
	if !now.DecideBy.Equal(until) || now.Digest != a.Digest || now.Groups[0].Have != 1 {
		t.Errorf("afterwards the request is %s", asJSON(t, now))
	}
	w.eventually(func() (bool, string) {
		run, err := w.desk.Run(t.Context(), w.principal("ana"), string(run.ID))
		w.must(err)
		return len(run.WaitingFor) == 1 && run.WaitingFor[0].Until.Equal(until), "the run waits for " + asJSON(t, run.WaitingFor)
	})
	w.close()
	w.ahead = a.DecideBy.Sub(a.CreatedAt) + time.Hour // past the first deadline
	w.open()
	w.start()
	w.approve("ben", w.request("ben", run))
	w.waitFor(run, engine.Completed)
	w.wantRefunds(1)
	w.must(w.desk.Check(t.Context()))
}
