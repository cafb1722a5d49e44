package desk

import (
	"context"
	"encoding/json"
	"slices"

	"countersign/internal/approvals"
	"countersign/internal/audit"
	"countersign/internal/canon"
	"countersign/internal/engine"
	"countersign/internal/id"
	"countersign/internal/identity"
	"countersign/internal/problem"
	"countersign/internal/sealed"
	"countersign/internal/store"
	"countersign/internal/tools"
)

// Edit makes the next revision with editable fields changed: validated by the
// tool's schema, frozen anew, measured anew, judged anew, without votes.
// Problems: invalid (with pointers), stale_digest, not_eligible, not_found.
func (d *Desk) Edit(ctx context.Context, p identity.Principal, ref string, in Edit) (Approval, error) {
	err := d.edit(ctx, p, ref, in)
	if err != nil {
		d.recordRefusal(ctx, p, ref, "approval.edit", in.Digest, err)
		return Approval{}, err
	}
	return d.Approval(ctx, p, ref)
}

func (d *Desk) edit(ctx context.Context, p identity.Principal, ref string, in Edit) error {
	e, err := d.prepareEdit(ctx, p, ref, in)
	if err != nil {
		return err
	}
	return d.db.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := e.Keep(ctx, tx); err != nil { // first: the policy judges the values
			return err
		}
		v, policy, err := d.present(ctx, tx, e.request, e.Params, e.Target, tx.Now())
		if err != nil {
			return err
		}
		key, err := d.engine.KeyFor(ctx, tx, Tenant, e.request.Action, e.Request)
		if err != nil {
			return err
		}
		editor, err := folk{d.people}.Person(ctx, tx, Tenant, p.Person)
		if err != nil {
			return err
		}
		next, err := d.book.Revise(ctx, tx, approvals.Revision{
			Tenant: Tenant, Request: e.request.ID, OldDigest: in.Digest, Params: e.Params, FrozenRequest: e.Request, Key: key,
			Summary: e.Summary, Target: e.Target, Impact: e.Impact, Preview: reading(e.Preview), Precondition: reading(e.Precondition),
			Verdict: v, Policy: policy, Editor: &editor, Why: "Edited by " + editor.Name + ".", Comment: in.Comment,
		})
		if err != nil {
			return err
		}
		if err := d.recordRevision(ctx, tx, d.entry(p, audit.Entry{}), next, "approval.edited", in.Comment); err != nil {
			return err
		}
		return d.engine.Wake(ctx, tx, next.Run) // the policy may allow or deny the edited action by itself
	})
}

// EditOutcome is what an edit would come to.
type EditOutcome struct {
	Revision int // that saving makes
	Summary  string
	Changes  []Change // of the parameters
	Effect   string   // the policy's word on the edited action: allow, deny, approve
	Rule     string
	Groups   []GroupView
	Preview  json.RawMessage
	Problem  string // why the precondition does not hold; empty if it does
}

// CheckEdit says what Edit would come to, and changes nothing. Problems as of
// Edit.
func (d *Desk) CheckEdit(ctx context.Context, p identity.Principal, ref string, in Edit) (out EditOutcome, err error) {
	e, err := d.prepareEdit(ctx, p, ref, in)
	if err != nil {
		return out, err
	}
	out = EditOutcome{Revision: e.request.Revision + 1, Summary: e.Summary}
	if out.Changes, err = changesBetween(e.request.Params, e.Params); err != nil {
		return out, err
	}
	if e.Preview != nil && e.Preview.OK {
		out.Preview = e.Preview.Value
	}
	if e.Precondition != nil && !(e.Precondition.OK && e.Precondition.Met) {
		out.Problem = "the precondition does not hold" + because(e.Precondition.Error)
	}
	err = d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		policy, err := d.defs.PolicyInForce(ctx, q, Tenant)
		if err != nil {
			return err
		}
		f := requestFacts(e.request, e.Params, e.Target)
		if f.clear, err = e.Opened(ctx, q, e.Params); err != nil {
			return err
		}
		v, err := d.judge(ctx, q, policy, f, d.now())
		if err != nil {
			return err
		}
		said, err := d.explained(ctx, q, v)
		out.Effect, out.Rule, out.Groups = said.Effect, said.Rule, said.Groups
		return err
	})
	return out, err
}

type preparedEdit struct {
	engine.Refrozen
	request approvals.Request
}

// prepareEdit applies the edits to the current parameters and reads preview
// and precondition, outside any transaction.
func (d *Desk) prepareEdit(ctx context.Context, p identity.Principal, ref string, in Edit) (out preparedEdit, err error) {
	if err := d.mayDecide(p); err != nil {
		return out, err
	}
	if err := noSeal("/comment", in.Comment); err != nil {
		return out, err
	}
	if len(in.Edits) == 0 {
		return out, problem.New(problem.Invalid, "invalid", "Nothing was changed.").At("/edits", "say which fields to change")
	}
	var tool *tools.Tool
	err = d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		if out.request, err = d.book.Get(ctx, q, Tenant, id.Approval(ref)); err != nil {
			return err
		}
		if out.request.Kind != approvals.KindAction {
			return problem.New(problem.Invalid, "invalid", "A presented document cannot be edited here; reject it with the reason.")
		}
		if err := d.book.MayEdit(ctx, q, Tenant, out.request.ID, p.Person, d.now()); err != nil {
			return err // before the target is asked anything
		}
		tool, err = d.defs.Tool(ctx, q, Tenant, out.request.ToolDigest)
		return err
	})
	if err != nil {
		return out, err
	}
	if out.request.Digest != in.Digest {
		return out, d.stale(ctx, out.request, in.Digest)
	}
	params, err := edited(out.request, in.Edits)
	if err != nil {
		return out, err
	}
	out.Refrozen, err = d.engine.Refreeze(ctx, Tenant, out.request.Run, tool, params)
	return out, err
}

// edited returns the parameters with the edits applied; only editable leaves
// may be named.
func edited(r approvals.Request, edits []FieldEdit) (json.RawMessage, error) {
	params, err := canon.Value(r.Params)
	if err != nil {
		return nil, err
	}
	bad := problem.New(problem.Invalid, "invalid", "The change does not fit; nothing was saved.")
	fits := true
	for _, e := range edits {
		if !slices.Contains(r.Editable, e.Pointer) {
			bad, fits = bad.At(e.Pointer, "may not be changed here; only %v may", r.Editable), false
			continue
		}
		raw, err := canon.Canonical(e.Value, canon.DefaultLimits)
		if err != nil {
			bad, fits = bad.At(e.Pointer, "%s", problem.From(err).Message), false
			continue
		}
		value, err := canon.Value(raw)
		if err != nil {
			return nil, err
		}
		if _, forged := sealed.Forged(value); forged {
			bad, fits = bad.At(e.Pointer, "%q is kept for sealed values and cannot be given", sealed.Mark), false
			continue
		}
		if params, err = canon.Set(params, e.Pointer, value); err != nil {
			bad, fits = bad.At(e.Pointer, "%s", problem.From(err).Message), false
		}
	}
	if !fits {
		return nil, bad
	}
	return canon.Marshal(params)
}
