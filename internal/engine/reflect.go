package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"countersign/internal/store"
	"countersign/internal/workflow"
)

// reflect brings the step rows in line with the state an event led to.
func (s *session) reflect(before, after workflow.State, ev workflow.Event, version int64) {
	if ev.Path == "" || after.Over() {
		s.closeRows(before)
		return
	}
	if ev.Kind == workflow.StepRefreshed || ev.Kind == workflow.Goto {
		s.takeBack(before, after)
		return
	}
	row, st := s.row(ev.Path, ev.Pass), after.Step(ev.Path)
	row.Status, row.Error, row.ErrorClass = string(st.Status), ev.Error, ""
	if st.Status == workflow.Failed && row.Error == nil {
		row.Error = st.Error
	}
	if row.Error != nil {
		row.ErrorClass = row.Error.Class
	}
	if ev.Attempt > 0 {
		row.Attempts = ev.Attempt
	}
	if row.Attempts == 0 && st.Status != workflow.Skipped && row.Kind != string(workflow.Action) {
		row.Attempts = 1 // a step without tries of its own was done in one
	}
	if len(ev.Output) > 0 {
		row.outputAt = version
	}
	row.tries, row.triedAt, row.retryAt = 0, time.Time{}, time.Time{}
	s.touch(row)
}

// closeRows cancels what was open when the run ended.
func (s *session) closeRows(before workflow.State) {
	for path, st := range before.Steps {
		if st.Status == workflow.Waiting {
			row := s.row(path, st.Pass)
			row.Status = "cancelled"
			s.touch(row)
		}
	}
}

// takeBack cancels the rows of passes that were open and are not any more.
func (s *session) takeBack(before, after workflow.State) {
	for path, st := range before.Steps {
		if st.Status == workflow.Waiting && after.Step(path).Status != workflow.Waiting {
			row := s.row(path, st.Pass)
			row.Status = "cancelled"
			s.touch(row)
		}
	}
}

// settle computes the run's row after the commit.
func (s *session) settle(r *Run, state workflow.State, c *commit, now time.Time) {
	r.UpdatedAt, r.crashes = now, 0
	if n := len(c.events); n > 0 && c.events[n-1].Path != "" {
		r.Step = c.events[n-1].Path
	}
	r.Status, r.WaitingFor, r.Error = Running, []Waiting{}, nil
	switch {
	case state.Over():
		r.Status, r.Output, r.Error, r.FinishedAt = state.Finish.Status, state.Finish.Output, state.Finish.Error, now
		r.Lease.Owner, r.Lease.Until, r.WakeAt = "", time.Time{}, time.Time{}
	case c.wait != nil:
		r.Status, r.WaitingFor, r.Error, r.WakeAt = c.wait.status, c.wait.list, c.wait.fail, c.wait.wake
		r.Lease.Owner, r.Lease.Until = "", time.Time{}
	}
}

const sqlAdvance = `UPDATE run SET version = $1, head = $2, status = $3, step = $4, waiting_for = $5, output = $6, error = $7, crashes = 0,
	updated_at = $8, finished_at = $9 WHERE tenant = $10 AND id = $11 AND lease_owner = $12 AND fence = $13 AND version = $14
	AND ($15 OR cancel_reason IS NULL)`

const sqlLeave = `UPDATE run SET version = $1, head = $2, status = $3, step = $4, waiting_for = $5, output = $6, error = $7, crashes = 0,
	updated_at = $8, finished_at = $9, lease_owner = NULL, lease_until = NULL,
	wake_at = CASE WHEN $9 IS NULL AND signals <> $16 THEN $8 ELSE $17 END
	WHERE tenant = $10 AND id = $11 AND lease_owner = $12 AND fence = $13 AND version = $14 AND ($15 OR cancel_reason IS NULL)`

// put writes the run's row by compare-and-swap on owner, fence and version.
func (s *session) put(ctx context.Context, tx *store.Tx, r Run, c *commit) error {
	args := []any{r.Version, r.head, r.Status, r.Step, encode(r.WaitingFor), text(r.Output), encodeFailure(r.Error), store.Micros(r.UpdatedAt),
		nullable(r.FinishedAt), r.Tenant, string(r.ID), s.e.o.Owner, s.run.Lease.Fence, s.run.Version, c.settles || s.settled}
	query := sqlAdvance
	if r.Lease.Owner == "" {
		query, args = sqlLeave, append(args, s.run.signals, nullable(r.WakeAt))
	}
	err := tx.ExecOne(ctx, query, args...)
	if errors.Is(err, store.ErrConflict) {
		return s.refused(ctx, tx)
	}
	return err
}

// refused says why the run's row could not be written.
func (s *session) refused(ctx context.Context, tx *store.Tx) error {
	now, err := runByID(ctx, tx, s.run.ID)
	switch {
	case err != nil:
		return err
	case now.Lease.Owner != s.e.o.Owner || now.Lease.Fence != s.run.Lease.Fence:
		return ErrFenced
	case now.cancelled:
		return errCancelAsked
	}
	return fmt.Errorf("engine: run %s is at version %d, its driver at %d", s.run.ID, now.Version, s.run.Version)
}
