package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"countersign/internal/id"
	"countersign/internal/problem"
	"countersign/internal/store"
	"countersign/internal/workflow"
)

// driveWaitMax is how long Drive waits for a retry that is due soon instead of
// returning.
const driveWaitMax = time.Minute

// resume is the one way into a run (DESIGN section 8), for start-up recovery,
// people, timers, wake-ups and the command line alike: find it and compare the
// version; take the lease; verify the record and the definitions. What it
// sent and never heard of, and what is approved, are looked at by the drive
// that follows, in that order. A nil session means that the run did not get
// that far; its row says why.
func (e *Engine) resume(ctx context.Context, run id.Run, expected int64, by Actor) (*session, Run, error) {
	r, l, err := e.claim(ctx, run, expected, by)
	if err != nil {
		return nil, r, errors.Join(err, e.recordRefusal(ctx, r, expected, by, err))
	}
	if l == nil {
		return nil, r, nil
	}
	s, err := e.open(ctx, r, l, by)
	if err == nil {
		return s, s.run, nil
	}
	defer l.stop()
	fail, blocked := errors.AsType[*workflow.Failure](err)
	switch {
	case blocked && r.cancelled: // what cannot be continued can still be closed
		err = e.cancelHeld(ctx, r)
	case blocked:
		err = s.block(ctx, fail, "")
	default:
		s.log.Error("open run", "error", err)
		err = errors.Join(err, s.stumble(ctx, err))
	}
	s.ended()
	return nil, s.run, err
}

// recordRefusal audits that a person's resume was refused, and why.
func (e *Engine) recordRefusal(ctx context.Context, r Run, expected int64, by Actor, why error) error {
	p := problem.From(why)
	if by.Kind == ActorEngine || p.Kind != problem.Conflict || r.ID == "" {
		return nil
	}
	return e.update(ctx, func(ctx context.Context, tx *store.Tx) error {
		return e.record(ctx, tx, Record{Tenant: r.Tenant, Actor: by, Action: "run.resume_refused", Subject: string(r.ID), Run: r.ID, Digest: r.head,
			Outcome: p.Code, Payload: map[string]any{"version": r.Version, "expected": expected, "status": r.Status}})
	})
}

// carry drives a session to its end. A simulated crash passes through.
func (e *Engine) carry(ctx context.Context, s *session) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer s.lease.stop()
	s.lease.onLoss(cancel)
	e.enter(s.run.ID, cancel)
	defer e.exit(s.run.ID)
	s.finish(ctx, s.guarded(ctx))
	s.ended()
}

// guarded turns a panic of ours into the failure of this run alone.
func (s *session) guarded(ctx context.Context) (err error) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		if c, ok := v.(Crashed); ok {
			panic(c)
		}
		s.log.Error("driver panicked", "panic", v)
		err = &workflow.Failure{Class: workflow.Bug, Code: "panic", Message: fmt.Sprintf("The engine broke while driving this run: %v.", v)}
	}()
	return s.drive(ctx)
}

// enter and exit keep the list of runs that this process drives.
func (e *Engine) enter(run id.Run, cancel context.CancelCauseFunc) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.active[run] = cancel
}

func (e *Engine) exit(run id.Run) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.active, run)
}

// interrupt ends what this process is doing for the run, but no sending.
func (e *Engine) interrupt(run id.Run, why error) {
	e.mu.Lock()
	cancel := e.active[run]
	e.mu.Unlock()
	if cancel != nil {
		cancel(why)
	}
}

// Resume continues a run: it answers as soon as the run is claimed and
// verified, and drives it in the background. expected is the version the
// caller has seen, -1 for whatever it is. It refuses with the problems
// version_conflict (with version), lease_held (with holder and until) and
// already_finished (with status).
func (e *Engine) Resume(ctx context.Context, run id.Run, expected int64, by Actor) (Resumed, error) {
	if e.stopping() {
		return Resumed{}, errStopping
	}
	s, r, err := e.resume(ctx, run, expected, by)
	if err != nil {
		return Resumed{}, err
	}
	if s == nil {
		r, err = e.find(ctx, run)
		return Resumed{Outcome: OutcomeBlocked, Run: r}, err
	}
	if !e.background(func() { e.carry(e.hard, s) }) {
		s.finish(ctx, errStopping)
	}
	return Resumed{Outcome: OutcomeResumed, Run: r}, nil
}

// Drive drives a run in this goroutine until it waits for somebody, sleeps,
// blocks or ends; retries that are due within a minute are waited for.
func (e *Engine) Drive(ctx context.Context, run id.Run) (Run, error) {
	return e.DriveFrom(ctx, run, -1, engineActor)
}

// DriveFrom is Drive by somebody who has seen a version of the run. It refuses
// as Resume does.
func (e *Engine) DriveFrom(ctx context.Context, run id.Run, expected int64, by Actor) (Run, error) {
	for {
		s, _, err := e.resume(ctx, run, expected, by)
		if err != nil {
			return Run{}, err
		}
		if s != nil {
			e.carry(ctx, s)
			if s.left && Final(s.run.Status) {
				return s.run, nil
			}
		}
		r, err := e.find(context.WithoutCancel(ctx), run)
		if err != nil || !e.soon(ctx, r) {
			return r, err
		}
		expected, by = -1, engineActor
	}
}

// soon waits for a run that goes on by itself within a minute.
func (e *Engine) soon(ctx context.Context, r Run) bool {
	if Final(r.Status) || r.WakeAt.IsZero() || r.Lease.Owner != "" || ctx.Err() != nil || e.stopping() {
		return false
	}
	in := r.WakeAt.Sub(e.o.Now())
	if in > driveWaitMax || in > 0 && r.Status != Retrying {
		return false
	}
	select {
	case <-time.After(max(in, 0)):
		return true
	case <-ctx.Done():
		return false
	case <-e.halt:
		return false
	}
}

const sqlWake = `UPDATE run SET signals = signals + 1, wake_at = CASE WHEN lease_owner IS NULL THEN $1 ELSE wake_at END
	WHERE id = $2 AND finished_at IS NULL AND (status <> 'blocked' OR waiting_for LIKE '%"kind":"approval"%')`

// Wake has the run looked at now, because something it waits for has changed:
// call it in the transaction that changes it. A blocked run stays blocked, unless
// only one branch of it is and another waits for a decision. A
// wake-up that comes while a driver is putting the run to sleep is not lost.
func (e *Engine) Wake(ctx context.Context, tx *store.Tx, run id.Run) error {
	if _, err := tx.Exec(ctx, sqlWake, store.Micros(tx.Now()), string(run)); err != nil {
		return fmt.Errorf("wake run %s: %w", run, err)
	}
	tx.AfterCommit(e.hint)
	return nil
}
