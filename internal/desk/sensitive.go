package desk

import (
	"context"
	"encoding/json"
	"errors"

	"countersign/internal/audit"
	"countersign/internal/canon"
	"countersign/internal/engine"
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
	open, err := box.Open(ctx, q, doc)
	if errors.Is(err, vault.ErrGone) || errors.Is(err, vault.ErrAltered) {
		return doc, nil // nothing is sent without it, whatever the rules say
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

// Erased is what an erasure did.
type Erased struct {
	Run    id.Run `json:"run"`
	Values int64  `json:"values"` // that were destroyed
}

// Erase destroys the sensitive values of a run that has ended, for a reason:
// they are gone from the database, and again from one that is put back from a
// backup. Everything else of the run, digests and log included, stays and
// still verifies. Problems: forbidden, not_found, run_open, invalid.
func (d *Desk) Erase(ctx context.Context, p identity.Principal, ref, reason string) (out Erased, err error) {
	if err := require(p, capAdmin, "erase sensitive values"); err != nil {
		return out, err
	}
	reason, err = words("/reason", reason, reasonCharsMax)
	if err != nil {
		return out, err
	}
	err = d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		if out.Run, err = d.runID(ctx, q, ref); err != nil {
			return err
		}
		return d.ended(ctx, q, out.Run)
	})
	if err != nil {
		return out, err
	}
	if err := d.vault.Intend(Tenant, out.Run); err != nil {
		return out, err
	}
	err = d.db.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		if out.Values, err = d.vault.Erase(ctx, tx, Tenant, out.Run); err != nil {
			return err
		}
		_, err := d.log.Append(ctx, tx, d.entry(p, audit.Entry{Action: "sensitive.erased", Subject: string(out.Run), Run: out.Run,
			Outcome: "erased", Payload: payload(map[string]any{"reason": reason, "values": out.Values})}))
		d.announce(tx, TopicRuns, string(out.Run))
		return err
	})
	if err != nil {
		return out, err
	}
	return out, d.db.Shred(ctx)
}

// ended refuses a run that is still open, or ended while nobody knows what
// became of something it sent.
func (d *Desk) ended(ctx context.Context, q store.Querier, run id.Run) error {
	r, err := d.engine.Run(ctx, q, Tenant, run)
	if err != nil {
		return err
	}
	if !engine.Final(r.Status) {
		return problem.New(problem.Conflict, "run_open", "The run is %s and has not ended. Wait for its end, or cancel it first.", r.Status).With("status", r.Status)
	}
	effects, err := d.engine.Effects(ctx, q, Tenant, run)
	if err != nil {
		return err
	}
	for _, e := range effects {
		if e.Status == engine.Unknown {
			return problem.New(problem.Conflict, "run_open", "Nobody knows yet what became of effect %s of the run. Settle it first.", e.ID).With("effect", e.ID)
		}
	}
	return nil
}
