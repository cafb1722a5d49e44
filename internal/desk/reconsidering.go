package desk

import (
	"context"
	"time"

	"countersign/internal/approvals"
	"countersign/internal/audit"
	"countersign/internal/id"
	"countersign/internal/identity"
	"countersign/internal/store"
)

// Retract takes back one's own approval of a request that still waits for
// others; one may decide again. Problems: nothing_to_retract, already_decided,
// expired, invalid, forbidden, not_found.
func (d *Desk) Retract(ctx context.Context, p identity.Principal, ref, reason string) (Approval, error) {
	if err := d.mayDecide(p); err != nil {
		return Approval{}, err
	}
	return d.reconsider(ctx, p, ref, "approval.retracted", reason, func(ctx context.Context, tx *store.Tx, reason string) (approvals.Request, error) {
		return d.book.Retract(ctx, tx, Tenant, id.Approval(ref), p.Person, reason)
	})
}

// Extend gives more time to decide: until the instant, at most 90 days from
// now. Digest and votes stay. Problems: invalid, expired, forbidden, not_found,
// and those of a request that is closed.
func (d *Desk) Extend(ctx context.Context, p identity.Principal, ref string, until time.Time, reason string) (Approval, error) {
	if err := require(p, capOperate, "give more time"); err != nil {
		return Approval{}, err
	}
	return d.reconsider(ctx, p, ref, "approval.extended", reason, func(ctx context.Context, tx *store.Tx, reason string) (approvals.Request, error) {
		return d.book.Extend(ctx, tx, approvals.Extension{Tenant: Tenant, Request: id.Approval(ref), DecideBy: until, Person: approvals.Person{ID: p.Person, Name: p.Name}, Why: reason})
	})
}

// reconsider changes a pending request for a reason that its audit entry keeps,
// and has its run look at it again.
func (d *Desk) reconsider(ctx context.Context, p identity.Principal, ref, action, reason string, change func(ctx context.Context, tx *store.Tx, reason string) (approvals.Request, error)) (Approval, error) {
	reason, err := words("/reason", reason, reasonCharsMax)
	if err != nil {
		return Approval{}, err
	}
	err = d.db.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		r, err := change(ctx, tx, reason)
		if err != nil {
			return err
		}
		said := map[string]string{"reason": reason, "decide_by": r.DecideBy.Format(time.RFC3339)}
		if _, err := d.log.Append(ctx, tx, d.entry(p, audit.Entry{Action: action, Subject: string(r.ID), Run: r.Run, Digest: r.Digest, Outcome: string(r.Status), Payload: payload(said)})); err != nil {
			return err
		}
		d.announce(tx, TopicApprovals, string(r.ID))
		return d.engine.Wake(ctx, tx, r.Run)
	})
	if err != nil {
		return Approval{}, err
	}
	return d.Approval(ctx, p, ref)
}
