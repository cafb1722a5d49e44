package desk

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"countersign/internal/approvals"
	"countersign/internal/audit"
	"countersign/internal/canon"
	"countersign/internal/id"
	"countersign/internal/identity"
	"countersign/internal/problem"
	"countersign/internal/store"
)

// Decide records the verdict of p on the revision with the digest: one
// conditional update, its audit entry and the run's wake-up in one
// transaction. Repeating the same verdict gives the same answer. A refused
// attempt changes nothing but leaves an audit entry of its own.
//
// Problems: not_eligible, self_approval, stale_digest, already_decided,
// expired, run_not_waiting, clock_suspect, reauthenticate, record_changed,
// unreadable_record, invalid, not_found.
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
	if err := noSeal("/comment", in.Comment); err != nil {
		return out, err
	}
	err = d.db.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := d.freshly(ctx, tx, p, ref, in.Verdict); err != nil {
			return err
		}
		if err := d.holds(ctx, tx, ref, in.Verdict); err != nil {
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
			d.repeated(RepeatDecision)
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
	d.waited(ctx, tx, r.Request)
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
	"reauthenticate": true, "record_changed": true, "unreadable_record": true, "already_answered": true, "question_closed": true, "run_blocked": true}

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
