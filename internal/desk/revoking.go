package desk

import (
	"context"

	"countersign/internal/approvals"
	"countersign/internal/audit"
	"countersign/internal/id"
	"countersign/internal/identity"
	"countersign/internal/store"
)

// Revoke takes an approval back before anything was sent; the request becomes
// pending again as a new revision. Problems: already_sent, not_eligible,
// invalid, not_found.
func (d *Desk) Revoke(ctx context.Context, p identity.Principal, ref, reason string) (Approval, error) {
	if err := d.mayDecide(p); err != nil {
		return Approval{}, err
	}
	reason, err := words("/reason", reason, reasonCharsMax)
	if err != nil {
		return Approval{}, err
	}
	err = d.db.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		request, err := d.book.Get(ctx, tx, Tenant, id.Approval(ref))
		if err != nil {
			return err
		}
		who, err := folk{d.people}.Person(ctx, tx, Tenant, p.Person)
		if err != nil {
			return err
		}
		v, policy, err := d.present(ctx, tx, request, request.Params, request.Target, tx.Now())
		if err != nil {
			return err
		}
		next, err := d.book.Revoke(ctx, tx, approvals.Revocation{Tenant: Tenant, Request: request.ID, Person: who, MayOperate: may(p, capOperate), Reason: reason, Verdict: v, Policy: policy})
		if err != nil {
			return err
		}
		if err := d.recordRevision(ctx, tx, d.entry(p, audit.Entry{}), next, "approval.revoked", reason); err != nil {
			return err
		}
		return d.engine.Wake(ctx, tx, request.Run)
	})
	if err != nil {
		return Approval{}, err
	}
	return d.Approval(ctx, p, ref)
}
