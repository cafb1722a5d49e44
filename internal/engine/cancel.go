package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"countersign/internal/id"
	"countersign/internal/problem"
	"countersign/internal/store"
	"countersign/internal/workflow"
)

// reasonCharsMax bounds what a person writes about a cancel or a resolution.
const reasonCharsMax = 4000

// Cancel ends a run. It wins over everything that has not been sent; what this
// process is sending right now is awaited, what nobody heard of is unknown and
// stays listed until it is resolved. It needs neither the workflow nor an
// intact record, so that any run can be closed. Cancelling twice is the same
// as once; a run that has ended is already_finished.
func (e *Engine) Cancel(ctx context.Context, run id.Run, reason string, by Actor) (Run, error) {
	if err := checkWords("reason", reason); err != nil {
		return Run{}, err
	}
	var r Run
	err := e.update(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		if r, err = runByID(ctx, tx, run); err != nil {
			return err
		}
		if Final(r.Status) {
			return errFinished.With("status", r.Status).With("version", r.Version)
		}
		if !r.cancelled {
			r.CancelReason, r.cancelBy = reason, by
		}
		busy, err := e.busy(ctx, tx, r)
		if err != nil {
			return err
		}
		if busy {
			return e.askCancel(ctx, tx, &r)
		}
		return e.cancelNow(ctx, tx, &r)
	})
	if err != nil {
		return Run{}, err
	}
	if !Final(r.Status) {
		e.interrupt(run, errCancelAsked)
	}
	return e.find(ctx, run)
}

// busy reports whether a driver has to settle something first: it is at work,
// or it is about to ask the target what happened.
func (e *Engine) busy(ctx context.Context, q store.Querier, r Run) (bool, error) {
	if r.Lease.Owner != "" && r.epoch >= e.o.Epoch && r.Lease.Until.After(e.o.Now()) {
		return true, nil
	}
	if !slices.ContainsFunc(r.WaitingFor, func(w Waiting) bool { return w.Kind == WaitRetry }) {
		return false, nil
	}
	unknown, err := effectsWhere(ctx, q, "tenant = $1 AND run = $2 AND status = 'unknown'", r.Tenant, string(r.ID))
	return len(unknown) > 0, err
}

// askCancel leaves the cancel for the driver to find.
func (e *Engine) askCancel(ctx context.Context, tx *store.Tx, r *Run) error {
	if r.cancelled {
		return nil
	}
	err := tx.ExecOne(ctx, `UPDATE run SET cancel_reason = $1, cancel_by = $2, signals = signals + 1,
		wake_at = CASE WHEN lease_owner IS NULL THEN $3 ELSE wake_at END, updated_at = $3 WHERE tenant = $4 AND id = $5`,
		r.CancelReason, encode(r.cancelBy), store.Micros(tx.Now()), r.Tenant, string(r.ID))
	if err != nil {
		return fmt.Errorf("ask run %s to cancel: %w", r.ID, err)
	}
	tx.AfterCommit(e.hint)
	return e.record(ctx, tx, Record{Tenant: r.Tenant, Actor: r.cancelBy, Action: "run.cancel_asked", Subject: string(r.ID), Run: r.ID, Digest: r.head,
		Outcome: r.Status, Payload: map[string]any{"reason": r.CancelReason, "version": r.Version}})
}

// obeyCancel ends a run whose driver was asked to: it finds out what it can
// about an unknown effect first.
func (s *session) obeyCancel(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	s.settled, s.alone, s.planned = true, true, nil
	for _, path := range slices.Sorted(maps.Keys(s.state.Steps)) {
		st := s.state.Steps[path]
		step, ok := s.wf.Step(path)
		if !ok || st.Status != workflow.Waiting || step.Kind != workflow.Action {
			continue
		}
		w, err := s.settleUnknown(ctx, workflow.Task{Kind: workflow.TaskWait, Path: path, Pass: st.Pass, Step: step})
		if err != nil || s.left {
			return err
		}
		if w != nil {
			return s.leave(ctx, w)
		}
	}
	return s.e.cancelHeld(ctx, s.run)
}

// settleUnknown asks the target about an unknown effect of a run that is to be
// cancelled; nil when there is nothing more to ask.
func (s *session) settleUnknown(ctx context.Context, t workflow.Task) (*wait, error) {
	act, eff, err := s.ledger(ctx, t)
	if err != nil || eff.Status != Unknown {
		return nil, err
	}
	tool, ok := s.tools[act.ToolDigest]
	if !ok || !tool.CanQuery() || eff.ReconcileCount >= ReconcileMax {
		return nil, nil
	}
	if s.now.Before(eff.ReconcileAt) {
		return s.askLater(t, eff), nil
	}
	return s.query(ctx, t, tool, eff)
}

// cancelHeld ends a run whose lease this process holds.
func (e *Engine) cancelHeld(ctx context.Context, held Run) error {
	return e.update(ctx, func(ctx context.Context, tx *store.Tx) error {
		r, err := runByID(ctx, tx, held.ID)
		if err != nil {
			return err
		}
		if r.Lease.Fence != held.Lease.Fence || r.Lease.Owner != e.o.Owner {
			return ErrFenced
		}
		return e.cancelNow(ctx, tx, &r)
	})
}

const sqlCancel = `UPDATE run SET status = 'cancelled', version = $1, head = $2, waiting_for = $3, error = NULL, lease_owner = NULL, lease_until = NULL,
	fence = fence + 1, wake_at = NULL, cancel_reason = $4, cancel_by = $5, updated_at = $6, finished_at = $6
	WHERE tenant = $7 AND id = $8 AND fence = $9 AND version = $10`

// cancelNow ends the run in this transaction and fences out whoever drove it.
func (e *Engine) cancelNow(ctx context.Context, tx *store.Tx, r *Run) error {
	if err := e.strand(ctx, tx, *r); err != nil {
		return err
	}
	if err := e.closeOpen(ctx, tx, *r, "The run was cancelled: "+r.CancelReason, r.cancelBy, func(*Step) bool { return true }); err != nil {
		return err
	}
	unknown, err := effectsWhere(ctx, tx, "tenant = $1 AND run = $2 AND status = 'unknown'", r.Tenant, string(r.ID))
	if err != nil {
		return err
	}
	version, head, err := e.appendCancelled(ctx, tx, *r)
	if err != nil {
		return err
	}
	list := []Waiting{}
	for _, eff := range unknown {
		list = append(list, Waiting{Kind: WaitPerson, Path: eff.Path, Subject: string(eff.ID), ResumesWhen: "never: the run is cancelled",
			NextAction: "Find out at the target whether it happened, and say so here.", ErrorClass: workflow.Unknown})
	}
	now := store.Micros(tx.Now())
	err = tx.ExecOne(ctx, sqlCancel, version, head, encode(list), r.CancelReason, encode(r.cancelBy), now, r.Tenant, string(r.ID), r.Lease.Fence, r.Version)
	if err != nil {
		return fmt.Errorf("cancel run %s: %w", r.ID, err)
	}
	was := r.Status
	r.Status, r.Version, r.head = Cancelled, version, head
	ended := *r
	at := tx.Now()
	tx.AfterCommit(func() { e.runEnded(ended, at) })
	tx.AfterCommit(func() { e.notify("runs", string(r.ID)) })
	return e.record(ctx, tx, Record{Tenant: r.Tenant, Actor: r.cancelBy, Action: "run.cancel", Subject: string(r.ID), Run: r.ID, Digest: head,
		Outcome: Cancelled, Payload: map[string]any{"reason": r.CancelReason, "status": was, "version": version, "unknown_effects": len(unknown)}})
}

// appendCancelled records the end, unless somebody put a row in its place: a
// run whose record was altered must still be closable.
func (e *Engine) appendCancelled(ctx context.Context, tx *store.Tx, r Run) (int64, string, error) {
	var n int
	err := tx.QueryRow(ctx, "SELECT count(*) FROM checkpoint WHERE tenant = $1 AND run = $2 AND version = $3", r.Tenant, string(r.ID), r.Version+1).Scan(&n)
	if err != nil || n > 0 {
		return r.Version, r.head, err
	}
	ev := workflow.Event{Kind: workflow.Cancelled, At: tx.Now(),
		Error: &workflow.Failure{Class: workflow.Permanent, Code: "cancelled", Message: r.CancelReason}}
	head, err := appendEvent(ctx, tx, r.Tenant, r.ID, r.Version+1, r.head, Creator{Person: &r.cancelBy}, ev)
	return r.Version + 1, head, err
}

// closeOpen takes back what was asked for and not sent, of the steps that the
// filter takes.
func (e *Engine) closeOpen(ctx context.Context, tx *store.Tx, r Run, why string, by Actor, takes func(*Step) bool) error {
	rows, err := stepRows(ctx, tx, r.Tenant, r.ID)
	if err != nil {
		return err
	}
	for i := range rows {
		row := &rows[i]
		if row.Status != string(workflow.Waiting) && row.Status != string(workflow.Pending) || !takes(row) {
			continue
		}
		if row.Approval != "" {
			if err := e.o.Gate.Withdraw(ctx, tx, row.Approval, why, by); err != nil {
				return fmt.Errorf("withdraw request %s: %w", row.Approval, err)
			}
		}
		row.Status = Cancelled
		if err := putStep(ctx, tx, r.Tenant, r.ID, row); err != nil {
			return err
		}
	}
	if err := withdrawQuestions(ctx, tx, r); err != nil {
		return err
	}
	prepared, err := effectsWhere(ctx, tx, "tenant = $1 AND run = $2 AND status = 'prepared'", r.Tenant, string(r.ID))
	for _, eff := range prepared {
		err = errors.Join(err, e.settle(ctx, tx, r, &eff, resolution{status: Abandoned, message: r.unasked(&eff, why), by: by}))
	}
	return err
}

// checkWords refuses an empty or endless statement of a person.
func checkWords(field, words string) error {
	switch n := utf8.RuneCountInString(words); {
	case strings.TrimSpace(words) == "":
		return problem.New(problem.Invalid, field+"_needed", "Say why: the %s must not be empty.", field).At("/"+field, "must not be empty")
	case n > reasonCharsMax:
		return problem.New(problem.Invalid, field+"_too_long", "The %s has %d characters; at most %d are allowed.", field, n, reasonCharsMax).At("/"+field, "too long")
	}
	return nil
}
