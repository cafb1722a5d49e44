package approvals_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"countersign/internal/approvals"
	"countersign/internal/store"
	"countersign/internal/testkit"
)

var errFault = errors.New("fault")

// broken is a desk on whose database the point fails while it is armed.
func broken(t *testing.T, point string) (*desk, *atomic.Bool) {
	d, armed := newDesk(t), &atomic.Bool{}
	d.db = testkit.OpenWith(t, store.Options{Lines: []store.Line{approvals.Migrations}, Now: d.clock.Now,
		OnFatal: func(error) {},
		Fault: func(at string) error {
			if at == point && armed.Load() {
				return errFault
			}
			return nil
		}})
	return d, armed
}

// It failed: nothing of a decision is there, and it can be made.
func TestDecide_AFailedWriteLeavesNothing(t *testing.T) {
	for _, point := range []string{"exec:request", "exec:decision", "exec:decision_entry"} {
		d, armed := broken(t, point)
		r := d.ask(role("finance", 1))
		armed.Store(true)
		if _, err := d.decide("ana", r, "approve"); !errors.Is(err, errFault) {
			t.Fatalf("%s: decide = %v, want the fault", point, err)
		}
		armed.Store(false)
		if c := d.check(r.ID); c.Status != approvals.Pending || len(c.Decisions) != 0 || c.Tampered != "" {
			t.Errorf("%s: status %s, %d decisions, tampered %q; want nothing changed", point, c.Status, len(c.Decisions), c.Tampered)
		}
		wantStatus(t, d.approve("ana", r), approvals.Approved)
	}
}

// It happened but nobody heard: asking again gives the answer.
func TestDecide_ALostAnswerIsGivenAgain(t *testing.T) {
	d, armed := broken(t, store.FaultAfterCommit)
	r := d.ask(role("finance", 1))
	armed.Store(true)
	if _, err := d.decide("ana", r, "approve"); !errors.Is(err, errFault) {
		t.Fatalf("decide = %v, want the fault", err)
	}
	armed.Store(false)
	out, err := d.decide("ana", r, "approve")
	if err != nil || !out.Replay || out.Request.Status != approvals.Approved || len(out.Request.Decisions) != 1 {
		t.Errorf("again: replay %v, status %s, %d decisions, %v; want the first answer", out.Replay, out.Request.Status, len(out.Request.Decisions), err)
	}
}

func TestRevise_AFailedWriteLeavesTheOldRevision(t *testing.T) {
	d, armed := broken(t, "exec:revision")
	r := d.ask(role("finance", 2))
	d.approve("ana", r)
	armed.Store(true)
	if _, err := d.edit("ben", r, amount("1"), asks(role("finance", 2))); !errors.Is(err, errFault) {
		t.Fatalf("edit = %v, want the fault", err)
	}
	armed.Store(false)
	if c := d.check(r.ID); c.Request.Revision != 1 || len(c.Decisions) != 1 || c.Tampered != "" {
		t.Errorf("revision %d, %d votes, tampered %q; want 1, 1 and none", c.Request.Revision, len(c.Decisions), c.Tampered)
	}
}
