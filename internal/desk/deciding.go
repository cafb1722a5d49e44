package desk

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

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

// Decide records the verdict of p on the revision with the digest: one
// conditional update, its audit entry and the run's wake-up in one
// transaction. Repeating the same verdict gives the same answer. A refused
// attempt changes nothing but leaves an audit entry of its own.
//
// Problems: not_eligible, self_approval, stale_digest, already_decided,
// expired, run_not_waiting, clock_suspect, reauthenticate, invalid, not_found.
func (d *Desk) Decide(ctx context.Context, p identity.Principal, ref string, in Decide) (Decided, error) {
	out, err := d.decide(ctx, p, ref, in)
	if err != nil {
		d.recordRefusal(ctx, p, ref, "approval."+in.Verdict, in.Digest, err)
	}
	return out, err
}

func (d *Desk) decide(ctx context.Context, p identity.Principal, ref string, in Decide) (out Decided, err error) {
	if err := d.mayDecide(p); err != nil {
		return out, err
	}
	err = d.db.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := d.freshly(ctx, tx, p, ref, in.Verdict); err != nil {
			return err
		}
		who, err := folk{d.people}.Person(ctx, tx, Tenant, p.Person)
		if err != nil {
			return err
		}
		result, err := d.book.Decide(ctx, tx, approvals.Decision{
			Tenant: Tenant, Request: id.Approval(ref), Digest: in.Digest, Verdict: in.Verdict, Comment: in.Comment,
			Person: who, Auth: p.How, Channel: p.Channel,
		})
		if err != nil {
			return err
		}
		if err := bySession(p, result.Request.Risk, in.Verdict); err != nil {
			return err
		}
		out = Decided{Decision: decisionView(result.Decision), Status: string(result.Request.Status), Complete: result.Complete, Replayed: result.Replay}
		if result.Replay {
			return nil
		}
		return d.recordDecision(ctx, tx, p, result, &out)
	})
	return out, err
}

// mayDecide refuses machines by construction, and weak proof of who decides.
func (d *Desk) mayDecide(p identity.Principal) error {
	if p.Kind != "person" {
		return problem.New(problem.Forbidden, "not_a_person", "A machine's token never decides. Sign in, or use a personal token.")
	}
	return require(p, capDecide, "decide")
}

func (d *Desk) recordDecision(ctx context.Context, tx *store.Tx, p identity.Principal, r approvals.Result, out *Decided) error {
	e := d.entry(p, audit.Entry{
		Action: "approval." + r.Decision.Verdict, Subject: string(r.Request.ID), Run: r.Request.Run, Digest: r.Decision.Digest,
		Outcome:   string(r.Request.Status),
		Authority: map[string]string{"role": r.Decision.Authority, "rule": r.Decision.Rule, "policy_version": fmt.Sprint(r.Decision.PolicyVersion)},
		Payload:   payload(map[string]string{"comment": r.Decision.Comment}),
	})
	entry, err := d.log.Append(ctx, tx, e)
	if err != nil {
		return err
	}
	if err := d.book.SetAudit(ctx, tx, r.Decision.ID, entry); err != nil {
		return err
	}
	out.Decision.AuditEntry = string(entry)
	d.announce(tx, TopicApprovals, string(r.Request.ID))
	if !r.Complete {
		return nil
	}
	return d.engine.Wake(ctx, tx, r.Request.Run)
}

// payload is what an entry logs a salted digest of.
func payload(v any) json.RawMessage {
	raw, err := canon.Marshal(v)
	if err != nil {
		panic("desk: encode an audit payload: " + err.Error())
	}
	return raw
}

// refusals are the codes that are results about authority or time and leave
// an entry; a mistyped form does not.
var refusals = map[string]bool{"not_eligible": true, "self_approval": true, "stale_digest": true, "already_decided": true, "expired": true,
	"run_not_waiting": true, "clock_suspect": true, "forbidden": true, "missing_scope": true, "not_a_person": true,
	"reauthenticate": true}

// attemptBytesMax bounds what of a refused attempt's own words is recorded.
const attemptBytesMax = 100

func short(s string) string {
	if len(s) > attemptBytesMax {
		return strings.ToValidUTF8(s[:attemptBytesMax], "")
	}
	return s
}

// recordRefusal writes the entry of a refused attempt in a transaction of its
// own. That it fails is logged and does not hide the refusal.
func (d *Desk) recordRefusal(ctx context.Context, p identity.Principal, ref, action, digest string, why error) {
	code := problem.From(why).Code
	if !refusals[code] {
		return
	}
	err := d.db.Update(context.WithoutCancel(ctx), func(ctx context.Context, tx *store.Tx) error {
		_, err := d.log.Append(ctx, tx, d.entry(p, audit.Entry{Action: short(action), Subject: short(ref), Digest: short(digest), Outcome: "refused: " + code}))
		return err
	})
	if err != nil {
		d.logger.Error("record a refused decision", "approval", ref, "cause", err)
	}
}

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
		v, policy, err := d.present(ctx, tx, e.request, e.Params, e.Target, tx.Now())
		if err != nil {
			return err
		}
		key, err := d.engine.KeyFor(ctx, tx, Tenant, e.request.Action, e.Request)
		if err != nil {
			return err
		}
		if err := e.Keep(ctx, tx); err != nil {
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
		v, _, err := d.present(ctx, q, e.request, e.Params, e.Target, d.now())
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

// recordRevision writes the entry of a new revision under the actor of by and
// ties the policy's ruling to it.
func (d *Desk) recordRevision(ctx context.Context, tx *store.Tx, by audit.Entry, r approvals.Request, action, comment string) error {
	by.Action, by.Subject, by.Run, by.Digest, by.Outcome = action, string(r.ID), r.Run, r.Digest, string(r.Status)
	by.Authority = map[string]string{"rule": r.Rule, "policy": r.Policy, "revision": fmt.Sprint(r.Revision)}
	if comment != "" {
		by.Payload = payload(map[string]string{"comment": comment})
	}
	entry, err := d.log.Append(ctx, tx, by)
	if err != nil {
		return err
	}
	d.announce(tx, TopicApprovals, string(r.ID))
	return d.book.SetRulingEntry(ctx, tx, r.ID, r.Revision, entry)
}

// Comment adds a remark to a request. Problems: invalid, not_found.
func (d *Desk) Comment(ctx context.Context, p identity.Principal, ref, text string) error {
	if err := require(p, capApprovalsRead, "comment"); err != nil {
		return err
	}
	text, err := words("/text", text, commentCharsMax)
	if err != nil {
		return err
	}
	return d.db.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		request, err := d.book.Get(ctx, tx, Tenant, id.Approval(ref))
		if err != nil {
			return err
		}
		if err := d.book.Comment(ctx, tx, Tenant, request.ID, p.Person, p.Name, text); err != nil {
			return err
		}
		_, err = d.log.Append(ctx, tx, d.entry(p, audit.Entry{Action: "approval.commented", Subject: ref, Run: request.Run, Digest: request.Digest, Payload: payload(map[string]string{"text": text})}))
		d.announce(tx, TopicApprovals, ref)
		return err
	})
}
