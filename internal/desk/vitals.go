package desk

import (
	"context"
	"errors"
	"time"

	"countersign/internal/approvals"
	"countersign/internal/engine"
	"countersign/internal/store"
)

// The kinds of requests that were answered with what they did before.
const (
	RepeatRun      = "run"      // run key or idempotency key
	RepeatAction   = "action"   // idempotency key
	RepeatDecision = "decision" // the same verdict again
	RepeatRejected = "rejected" // an action that was rejected within the last day
)

// Vitals are what an operator watches, as of now.
type Vitals struct {
	At time.Time
	engine.Vitals
	Pending       int       // requests that wait for a decision; at most approvals.PendingMax
	OldestPending time.Time // when the first of them was made; zero: there is none
	Store         store.Stats
}

// Vitals counts by indexes alone, so that it may be asked every few seconds.
func (d *Desk) Vitals(ctx context.Context) (v Vitals, err error) {
	err = d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		if v.Vitals, err = d.engine.Vitals(ctx, q, Tenant); err != nil {
			return err
		}
		v.Pending, v.OldestPending, err = d.book.PendingSince(ctx, q, Tenant)
		return err
	})
	v.At, v.Store = d.now(), d.db.Stats()
	return v, err
}

// repeated counts a request that was answered with what it did before.
func (d *Desk) repeated(what string) {
	if d.observer != nil {
		d.observer.Note(engine.Fact{Kind: engine.FactRepeat, Outcome: what})
	}
}

// waited tells how long the revision that was just closed waited for people,
// once that is durable. A record that cannot be read is still closed.
func (d *Desk) waited(ctx context.Context, tx *store.Tx, r approvals.Request) {
	if d.observer == nil {
		return
	}
	asked, err := d.book.Revision(ctx, tx, Tenant, r.ID, r.Revision)
	run, again := d.engine.Run(ctx, tx, Tenant, r.Run)
	if err = errors.Join(err, again); err != nil {
		d.logger.Warn("tell how long a request waited", "approval", r.ID, "run", r.Run, "cause", err)
		return
	}
	span := run.ApprovalSpan(r.ID, r.Revision)
	span.Step, span.Tool, span.Pass, span.Key = r.Path, r.Tool, r.Pass, r.Key
	span.Outcome, span.Start, span.End = string(r.Status), asked.CreatedAt, tx.Now()
	fact := engine.Fact{Kind: engine.FactApproval, Workflow: r.Workflow, Outcome: span.Outcome, Took: span.End.Sub(span.Start)}
	tx.AfterCommit(func() {
		d.observer.Note(fact)
		d.observer.Span(span)
	})
}
