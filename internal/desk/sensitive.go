package desk

import (
	"context"
	"encoding/json"
	"errors"

	"countersign/internal/audit"
	"countersign/internal/canon"
	"countersign/internal/id"
	"countersign/internal/identity"
	"countersign/internal/problem"
	"countersign/internal/sealed"
	"countersign/internal/store"
	"countersign/internal/vault"
)

// opened returns a document of a run with its sensitive values in place, for
// what judges it. One whose values are gone is judged as it stands.
func (d *Desk) opened(ctx context.Context, q store.Querier, tenant string, run id.Run, doc json.RawMessage) (json.RawMessage, error) {
	if run == "" || !sealed.In(doc) {
		return doc, nil
	}
	box, err := d.vault.Box(ctx, q, tenant, run)
	if err != nil {
		return nil, err
	}
	open, _, err := box.Open(ctx, q, doc)
	if errors.Is(err, vault.ErrGone) || errors.Is(err, vault.ErrAltered) {
		return doc, nil // rules that name it have an error, which never allows
	}
	return open, err
}

// Reveal returns the sensitive value that a request has at a pointer into its
// parameters, and records who saw it. It is for whoever may decide the request,
// and for auditors. Problems: forbidden, not_found, sensitive_gone,
// sensitive_altered.
func (d *Desk) Reveal(ctx context.Context, p identity.Principal, ref, pointer string) (value json.RawMessage, err error) {
	if err := require(p, capApprovalsRead, "read approval requests"); err != nil {
		return nil, err
	}
	err = d.db.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		r, err := d.book.Get(ctx, tx, Tenant, id.Approval(ref))
		if err != nil {
			return err
		}
		e, err := d.book.Eligibility(ctx, tx, r.Tenant, r.ID, p.Person)
		if err != nil {
			return err
		}
		if !may(p, capAuditRead) && (!e.May || p.Kind != identity.KindPerson) {
			return problem.New(problem.Forbidden, "forbidden", "Only who may decide this request, and auditors, may see its sensitive values.")
		}
		params, err := canon.Value(r.Params)
		if err != nil {
			return err
		}
		x, _ := canon.Get(params, pointer)
		c, ok := sealed.Of(x)
		if !ok {
			return problem.New(problem.NotFound, "not_found", "There is no sensitive value at %q.", pointer)
		}
		box, err := d.vault.Box(ctx, tx, r.Tenant, r.Run)
		if err != nil {
			return err
		}
		v, err := box.Value(ctx, tx, c)
		if err != nil {
			return err
		}
		if value, err = canon.Marshal(v); err != nil {
			return err
		}
		_, err = d.log.Append(ctx, tx, d.entry(p, audit.Entry{Action: "sensitive.revealed", Subject: ref, Run: r.Run, Digest: r.Digest,
			Outcome: "shown", Payload: payload(map[string]string{"pointer": pointer})}))
		return err
	})
	if err != nil {
		return nil, err
	}
	return value, nil
}
