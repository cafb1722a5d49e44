package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"countersign/internal/id"
	"countersign/internal/problem"
	"countersign/internal/store"
)

// ErrFenced means that another driver took the run over: nothing of this
// driver's write remains, and it must stop.
var ErrFenced = errors.New("engine: another driver has taken the run over")

// Why a resume may be refused; each carries details.
var (
	errVersion  = problem.New(problem.Conflict, "version_conflict", "The run has moved on since you looked. Look again, then decide.")
	errHeld     = problem.New(problem.Conflict, "lease_held", "The run is being driven right now.")
	errFinished = problem.New(problem.Conflict, "already_finished", "The run has ended. Nothing was started.")
)

const sqlClaim = `UPDATE run SET lease_owner = $1, lease_until = $2, wake_at = $2, fence = fence + 1, epoch = $3, crashes = $4,
	status = 'running', waiting_for = '[]', error = NULL, updated_at = $5
	WHERE tenant = $6 AND id = $7 AND fence = $8 AND version = $9
	AND (lease_owner IS NULL OR lease_until <= $5 OR epoch < $3)`

// claim takes the lease of a run: the one compare-and-swap that makes a
// driver. A run whose drivers died too often without progress is set aside
// instead, unless a person asks. What the last driver left as `sent` becomes
// unknown in the same transaction.
func (e *Engine) claim(ctx context.Context, run id.Run, expected int64, by Actor) (r Run, l *lease, err error) {
	start := time.Now() // before the claim: the lease can only last longer than this side believes
	var before Run
	err = e.update(ctx, func(ctx context.Context, tx *store.Tx) error {
		if r, err = runByID(ctx, tx, run); err != nil {
			return err
		}
		before = r
		if err := e.claimable(r, expected, tx.Now()); err != nil {
			return err
		}
		if r.crashes >= e.o.MaxTakeovers && by.Kind == ActorEngine {
			return e.setAside(ctx, tx, &r)
		}
		return e.take(ctx, tx, &r, by)
	})
	if err != nil || r.Status == Blocked {
		return r, nil, err
	}
	e.observeClaim(before, by)
	return r, e.hold(r, start), nil
}

// claimable refuses with the reason that a person or a program can act on.
func (e *Engine) claimable(r Run, expected int64, now time.Time) error {
	switch {
	case Final(r.Status):
		return errFinished.With("status", r.Status).With("version", r.Version)
	case expected >= 0 && expected != r.Version:
		return errVersion.With("version", r.Version).With("expected", expected)
	case r.Lease.Owner != "" && r.Lease.Until.After(now) && r.epoch >= e.o.Epoch:
		return errHeld.With("holder", r.Lease.Owner).With("until", r.Lease.Until)
	}
	return nil
}

// take writes the lease.
func (e *Engine) take(ctx context.Context, tx *store.Tx, r *Run, by Actor) error {
	now := tx.Now()
	before := *r
	crashes := r.crashes + 1
	if by.Kind != ActorEngine {
		crashes = 1
	}
	err := tx.ExecOne(ctx, sqlClaim, e.o.Owner, store.Micros(now.Add(e.o.LeaseFor)), e.o.Epoch, crashes, store.Micros(now),
		r.Tenant, string(r.ID), r.Lease.Fence, r.Version)
	if err != nil {
		return fmt.Errorf("take lease of run %s: %w", r.ID, err)
	}
	r.Lease = Lease{Owner: e.o.Owner, Until: now.Add(e.o.LeaseFor), Fence: r.Lease.Fence + 1}
	r.Status, r.WaitingFor, r.Error, r.crashes, r.epoch = Running, []Waiting{}, nil, crashes, e.o.Epoch
	if before.Lease.Fence > 0 { // somebody drove it before
		if err := e.strand(ctx, tx, *r); err != nil {
			return err
		}
	}
	e.lostDrive(tx, before)
	tx.AfterCommit(func() { e.notify("runs", string(r.ID)) })
	return e.recordClaim(ctx, tx, before, *r, by)
}

// recordClaim audits takeovers and resumes by people; a run that simply comes
// due is not worth an entry.
func (e *Engine) recordClaim(ctx context.Context, tx *store.Tx, before, after Run, by Actor) error {
	what := "run.resume"
	switch {
	case before.Lease.Owner != "":
		what = "run.takeover"
	case by.Kind == ActorEngine:
		return nil
	}
	return e.record(ctx, tx, Record{Tenant: after.Tenant, Actor: by, Action: what, Subject: string(after.ID), Run: after.ID, Digest: after.head,
		Outcome: before.Status, Payload: map[string]any{"version": before.Version, "status": before.Status, "fence": after.Lease.Fence,
			"holder_before": before.Lease.Owner, "crashes": before.crashes}})
}

// strand marks what an earlier driver sent and never heard of as unknown.
func (e *Engine) strand(ctx context.Context, tx *store.Tx, r Run) error {
	sent, err := effectsWhere(ctx, tx, "tenant = $1 AND run = $2 AND status = 'sent'", r.Tenant, string(r.ID))
	if err != nil {
		return err
	}
	for _, eff := range sent {
		res := resolution{status: Unknown, by: engineActor, reconcile: tx.Now(),
			message: "It was sent, but its driver ended before an answer was recorded."}
		e.lostAttempt(tx, r, eff)
		if err := e.settle(ctx, tx, r, &eff, res); err != nil {
			return err
		}
	}
	return nil
}

// lease is the right to drive one run, as this process knows it.
type lease struct {
	e     *Engine
	run   id.Run
	fence int64

	mu       sync.Mutex
	lost     context.CancelCauseFunc // ends the drive when another driver has taken over; guarded by mu
	deadline time.Time               // monotonic: after it the lease may be somebody else's; guarded by mu
	timer    *time.Timer
	over     bool
}

// hold starts the renewals of a lease that was just taken.
func (e *Engine) hold(r Run, start time.Time) *lease {
	l := &lease{e: e, run: r.ID, fence: r.Lease.Fence, deadline: start.Add(e.o.LeaseFor), lost: func(error) {}}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = time.AfterFunc(e.o.LeaseFor/3, l.renew)
	return l
}

const sqlRenew = `UPDATE run SET lease_until = $1, wake_at = $1 WHERE id = $2 AND lease_owner = $3 AND fence = $4`

// renew extends the lease by its whole length. It is called at a third of it,
// and after a failure at a tenth, until the deadline.
func (l *lease) renew() {
	if l.e.noRenew.Load() || l.ended() {
		return
	}
	start := time.Now()
	err := l.e.update(context.Background(), func(ctx context.Context, tx *store.Tx) error {
		return tx.ExecOne(ctx, sqlRenew, store.Micros(tx.Now().Add(l.e.o.LeaseFor)), string(l.run), l.e.o.Owner, l.fence)
	})
	if errors.Is(err, store.ErrConflict) {
		l.end()
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	next := l.e.o.LeaseFor / 3
	if err == nil {
		l.deadline = start.Add(l.e.o.LeaseFor)
	} else {
		next = l.e.o.LeaseFor / 10
		l.e.log.Warn("renew lease", "run", l.run, "error", err)
	}
	if !l.over && time.Now().Before(l.deadline) {
		l.timer.Reset(next)
	}
}

// safe reports whether the lease lasts long enough to begin sending: a tenth
// of its length is left for what differs between two clocks.
func (l *lease) safe() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Now().Add(l.e.o.LeaseFor / 10).Before(l.deadline)
}

// onLoss says whom to tell that another driver has taken over.
func (l *lease) onLoss(lost context.CancelCauseFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost = lost
}

// end tells the drive that the lease is lost, unless it is over anyway.
func (l *lease) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		l.over = true
		l.lost(ErrFenced)
	}
}

func (l *lease) ended() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over
}

// stop ends the renewals. It may be called twice.
func (l *lease) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	l.timer.Stop()
}
