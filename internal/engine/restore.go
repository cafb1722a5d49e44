package engine

import (
	"context"
	"fmt"

	"countersign/internal/id"
	"countersign/internal/store"
	"countersign/internal/workflow"
)

// askFirst is why an effect is unknown that this database never saw sent.
const askFirst = "The database was put back from a backup while its run was open, so it may have been sent after the backup. It is asked about before it is sent."

// neverAsked is added to why an effect is given up that was not asked about.
const neverAsked = "The database was put back from a backup while its run was open: whether it was sent after the backup is not known here. Compare with the target."

// restoredFailure is why a restored run stands still.
var restoredFailure = &workflow.Failure{Class: workflow.Unknown, Code: codeRestored,
	Message: "The database was put back from a backup in which this run was open. What it did after the backup is not known here."}

const sqlBlockRestored = `UPDATE run SET status = 'blocked', waiting_for = $1, error = $2, lease_owner = NULL, lease_until = NULL, wake_at = NULL,
	fence = fence + 1, crashes = 0, restored_at = $3, updated_at = $3 WHERE tenant = $4 AND id = $5 AND fence = $6`

// Restore stops every open run of a database that was put back from a backup:
// it is blocked until a person resumes it, what was sent is unknown, and what
// it has not seen confirmed is asked about before it is sent. It returns the
// runs. The engine must not run.
func (e *Engine) Restore(ctx context.Context, tx *store.Tx) ([]id.Run, error) {
	open, err := e.openRuns(ctx, tx)
	if err != nil {
		return nil, err
	}
	var all []id.Run
	for _, r := range open {
		w := blockedBy(r.Step, "", restoredFailure, nextActions[codeRestored])
		err := tx.ExecOne(ctx, sqlBlockRestored, encode(w.list), encodeFailure(restoredFailure), store.Micros(tx.Now()), r.Tenant, string(r.ID), r.Lease.Fence)
		if err != nil {
			return nil, fmt.Errorf("stop run %s: %w", r.ID, err)
		}
		if err := e.recordBlocked(ctx, tx, r, restoredFailure); err != nil {
			return nil, err
		}
		all = append(all, r.ID)
	}
	return all, e.strandAll(ctx, tx)
}

func (e *Engine) openRuns(ctx context.Context, q store.Querier) (open []Run, err error) {
	rows, err := q.Query(ctx, "SELECT "+runColumns+" FROM run WHERE finished_at IS NULL ORDER BY id")
	if err != nil {
		return nil, fmt.Errorf("list open runs: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		r, err := scanRun(rows)
		if err != nil {
			return nil, fmt.Errorf("list open runs: %w", err)
		}
		open = append(open, r)
	}
	return open, rows.Err()
}

// strandAll makes everything unknown that was sent and not heard of.
func (e *Engine) strandAll(ctx context.Context, tx *store.Tx) error {
	sent, err := effectsWhere(ctx, tx, "status = 'sent'")
	if err != nil {
		return err
	}
	for _, eff := range sent {
		r, err := runByID(ctx, tx, eff.Run)
		if err != nil {
			return err
		}
		res := resolution{status: Unknown, by: engineActor, reconcile: tx.Now(), message: "It was sent before the backup was made, and the answer is not in it."}
		if err := e.settle(ctx, tx, r, &eff, res); err != nil {
			return err
		}
	}
	return nil
}

// mustAsk reports whether the effect may have been sent by what this database
// was before it was put back: its run was open, and this is the first try since.
func (r Run) mustAsk(eff *Effect) bool {
	return !r.RestoredAt.IsZero() && eff.SentAt.Before(r.RestoredAt)
}

// unasked completes why an effect is given up before anything was sent here.
func (r Run) unasked(eff *Effect, why string) string {
	if r.mustAsk(eff) {
		return textOf(why, neverAsked)
	}
	return why
}

// heldByBackup reports whether an effect that was given up, with nothing sent
// here, still stands for its key: what the database was before it was put back
// may have sent it.
func heldByBackup(ctx context.Context, q store.Querier, eff Effect) (bool, error) {
	r, err := runByID(ctx, q, eff.Run)
	return r.mustAsk(&eff) && !eff.UpdatedAt.Before(r.RestoredAt), err
}

// askBeforeSending leaves an intent that was just written as unknown: it is
// reconciled like one whose driver died. The lifetime of its key counts from a
// sending that this database does not know, so the key proves nothing.
func (s *session) askBeforeSending(ctx context.Context, tx *store.Tx, eff *Effect) error {
	return s.e.settle(ctx, tx, s.run, eff, resolution{status: Unknown, by: engineActor, reconcile: tx.Now(), message: askFirst})
}

// askedOnly reports whether the last try of the effect was never a sending.
func askedOnly(eff *Effect) bool { return eff.Message == askFirst }
