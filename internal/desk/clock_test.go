package desk_test

import (
	"testing"

	"countersign/internal/desk"
	"countersign/internal/engine"
)

// While the clock is an hour behind what was recorded nothing is decided;
// once an operator accepts it, everything goes on.
func TestAcceptClock_DecidingGoesOnOnceAnOperatorAccepts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.refund(12_500, engine.WaitingApproval)
	_, err := w.desk.AcceptClock(t.Context(), w.principal("ana"), "It is right.")
	w.wantProblem(err, "clock_is_fine")
	w.tamper(`UPDATE store_clock SET mark_us = mark_us + 3600000000`)
	_, err = w.decide("ben", "approve", w.request("ben", run))
	w.wantProblem(err, "clock_suspect")
	_, err = w.desk.AcceptClock(t.Context(), w.principal("ben"), "It is right.")
	w.wantProblem(err, "forbidden")

	back, err := w.desk.AcceptClock(t.Context(), w.principal("ana"), "It had run ahead.")
	if err != nil || back.Minutes() < 55 || back.Minutes() > 60 {
		t.Fatalf("AcceptClock = %s, %v; want about an hour", back, err)
	}
	w.approve("ben", w.request("ben", run))
	w.waitFor(run, engine.Completed)
	w.wantRefunds(1)
	if got := w.entries("clock.accepted", ""); len(got) != 1 || got[0].Actor.Name != "Ana" {
		t.Errorf("entries: %v", got)
	}
	report, err := w.desk.Verify(t.Context(), w.principal("chloe"))
	if err != nil || !report.OK {
		t.Errorf("the log does not verify: %+v, %v", report, err)
	}
}

// Beside a running console, as the command line does it.
func TestAcceptClock_BesideARunningConsole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.refund(12_500, engine.WaitingApproval)
	w.tamper(`UPDATE store_clock SET mark_us = mark_us + 3600000000`)
	if _, err := w.beside().Desk.AcceptClock(t.Context(), desk.Terminal(), "It had run ahead."); err != nil {
		t.Fatal(err)
	}
	w.approve("ben", w.request("ben", run))
	w.waitFor(run, engine.Completed)
}
