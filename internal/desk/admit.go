package desk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"countersign/internal/approvals"
	"countersign/internal/audit"
	"countersign/internal/engine"
	"countersign/internal/id"
	"countersign/internal/store"
)

// Admit says whether what was approved may be sent now. It runs in the
// transaction that writes `sent`, and answers go only if all of this holds:
//
//   - the stored subject gives the digest, and every live column equals it;
//   - each approving decision has an audit entry that names this request,
//     person and digest and is included under a head signed by a key that is
//     not in the database; an allowed action's ruling likewise;
//   - the execution deadline has not passed and the clock is trusted;
//   - the initiator is still there;
//   - the policy in force, judged on present facts, is met by these votes;
//   - the precondition holds and its pin is the approved one.
//
// (DESIGN section 2, promise 1, and section 6, revalidate.)
func (g gate) Admit(ctx context.Context, tx *store.Tx, request id.Approval, seen engine.Facts) (engine.Admission, error) {
	checked, err := g.book.Check(ctx, tx, Tenant, request)
	if err != nil {
		return engine.Admission{}, err
	}
	if checked.Tampered != "" {
		return g.alarm(ctx, tx, checked, checked.Tampered)
	}
	if why, err := g.unproven(ctx, tx, checked); err != nil {
		return engine.Admission{}, err
	} else if why != "" {
		return g.alarm(ctx, tx, checked, why)
	}
	r := checked.Request
	if a, closed := standing(r); closed {
		return a, nil
	}
	if tx.ClockSuspect() {
		return verdict(engine.VerdictBlocked, r, "The clock went back by more than five minutes. Nothing is sent until it is put right, or an operator accepts its time (console clock accept)."), nil
	}
	if !r.ExecuteBy.IsZero() && !tx.Now().Before(r.ExecuteBy) {
		_, err := g.expire(ctx, tx, r.ID)
		return verdict(engine.VerdictExpired, r, "It was not started by "+r.ExecuteBy.Format(instantForm)+", as the approval asked."), err
	}
	if gone, err := g.initiatorGone(ctx, tx, r); err != nil || gone != "" {
		return verdict(engine.VerdictBlocked, r, gone+" An administrator can enable the person and resume the run, or cancel it."), err
	}
	if a, err := g.policyNow(ctx, tx, r); err != nil || a.Verdict != "" {
		return a, err
	}
	if why := drifted(r, seen); why != "" {
		return g.renewed(ctx, tx, r, seen, why)
	}
	return g.goes(ctx, tx, checked)
}

// instantForm is how instants stand in sentences.
const instantForm = "2006-01-02 15:04:05 MST"

func verdict(v string, r approvals.Request, why string) engine.Admission {
	return engine.Admission{Verdict: v, Why: why, Digest: r.Digest}
}

// standing answers for a request that is not, or no longer, agreed to.
func standing(r approvals.Request) (engine.Admission, bool) {
	switch r.Status {
	case approvals.Approved, approvals.Allowed:
		return engine.Admission{}, false
	case approvals.Pending:
		return verdict(engine.VerdictRevoked, r, "It waits for approval again."), true
	case approvals.Expired:
		return verdict(engine.VerdictExpired, r, "The time for it is over."), true
	}
	return verdict(engine.VerdictDenied, r, "The request is "+string(r.Status)+"."), true
}

// goes admits the request: it can no longer be revoked, and what is sent is
// taken from the stored subject alone.
func (g gate) goes(ctx context.Context, tx *store.Tx, c approvals.Checked) (engine.Admission, error) {
	if err := g.book.Begin(ctx, tx, Tenant, c.Request.ID, c.Digest); err != nil {
		return engine.Admission{}, fmt.Errorf("begin request %s: %w", c.Request.ID, err)
	}
	if c.Request.Kind == approvals.KindDocument { // of an action the ledger says it
		if err := g.taken(ctx, tx, c); err != nil {
			return engine.Admission{}, err
		}
	}
	s, err := frozenIn(c.Subject)
	if err != nil {
		return engine.Admission{}, err
	}
	a := engine.Admission{Verdict: engine.VerdictGo, Subject: c.Subject, Digest: c.Digest, Params: s.Params, Request: s.Request, Key: s.Key,
		AuditEntry: string(c.Proof())}
	if s.Precondition != nil {
		a.Pin = s.Precondition.Pin
	}
	said := ruling(c.Request)
	a.By, a.Comment = said.By, said.Comment
	return a, nil
}

// taken records that the run went on with the approval of a document.
func (g gate) taken(ctx context.Context, tx *store.Tx, c approvals.Checked) error {
	_, err := g.log.Append(ctx, tx, audit.Entry{
		Tenant: Tenant, Actor: engineActor, Channel: "engine", Action: "approval.taken", Subject: string(c.Request.ID), Run: c.Request.Run,
		Digest: c.Digest, Outcome: string(c.Request.Status), Payload: payload(map[string]string{"step": c.Request.Path}),
	})
	g.announce(tx, TopicApprovals, string(c.Request.ID))
	return err
}

// frozen is what of a subject the executor uses.
type frozen struct {
	Params       json.RawMessage    `json:"params"`
	Request      json.RawMessage    `json:"request"`
	Key          string             `json:"idempotency_key"`
	Precondition *approvals.Reading `json:"precondition"`
}

func frozenIn(subject json.RawMessage) (f frozen, err error) {
	if err := json.Unmarshal(subject, &f); err != nil {
		return f, fmt.Errorf("read the subject: %w", err)
	}
	return f, nil
}

// alarm blocks the run, says why in the log and on the pages.
func (g gate) alarm(ctx context.Context, tx *store.Tx, c approvals.Checked, why string) (engine.Admission, error) {
	g.logger.Error("a stored approval does not hold", "approval", c.Request.ID, "run", c.Request.Run, "why", why)
	_, err := g.log.Append(ctx, tx, audit.Entry{
		Tenant: Tenant, Actor: engineActor, Channel: "engine", Action: "approval.tampered", Subject: string(c.Request.ID), Run: c.Request.Run,
		Digest: c.Digest, Outcome: "blocked", Payload: payload(map[string]string{"why": why}),
	})
	g.announce(tx, TopicApprovals, string(c.Request.ID))
	return verdict(engine.VerdictBlocked, c.Request, "The record of this approval was changed: "+why+". Nothing was sent."), err
}

var engineActor = audit.Actor{Kind: "engine", ID: "engine", Name: "engine", How: "internal"}

// unproven returns why a decision of the checked request is not proven by the
// audit log, or "".
func (g gate) unproven(ctx context.Context, tx *store.Tx, c approvals.Checked) (string, error) {
	if c.Request.Status == approvals.Allowed {
		return g.unprovenRuling(ctx, tx, c)
	}
	complete := false // one of them is on record as the one that completed it
	for _, dec := range c.Decisions {
		if dec.Verdict != approvals.VerdictApprove {
			continue
		}
		if dec.AuditEntry == "" {
			return fmt.Sprintf("the decision of %s has no audit entry", dec.PersonName), nil
		}
		e, err := g.log.Proven(ctx, tx, Tenant, id.Entry(dec.AuditEntry))
		switch {
		case err != nil:
			return fmt.Sprintf("the audit entry of the decision of %s is not proven: %v", dec.PersonName, err), nil
		case e.Outcome != string(approvals.Approved) && e.Outcome != string(approvals.Pending):
			return fmt.Sprintf("the audit entry of the decision of %s is of an attempt that was refused", dec.PersonName), nil
		case e.Action != "approval.approve" || e.Subject != string(c.Request.ID) || e.Actor.ID != string(dec.Person):
			return fmt.Sprintf("the audit entry of the decision of %s is about something else", dec.PersonName), nil
		case e.Digest != c.Digest || dec.Digest != c.Digest:
			return fmt.Sprintf("%s decided on another digest", dec.PersonName), nil
		case !e.Time.Equal(dec.DecidedAt):
			return fmt.Sprintf("%s decided at another time", dec.PersonName), nil
		}
		complete = complete || e.Outcome == string(approvals.Approved)
	}
	if !complete && c.Request.Status == approvals.Approved {
		return "no decision on record completed it", nil
	}
	return "", nil
}

// unprovenRuling checks the entry of the policy's ruling that allowed the
// action. An entry of this very transaction has no head yet and needs none.
func (g gate) unprovenRuling(ctx context.Context, tx *store.Tx, c approvals.Checked) (string, error) {
	e, err := g.log.Proven(ctx, tx, Tenant, c.RulingEntry)
	if errors.Is(err, audit.ErrNotYetSealed) && c.Request.CreatedAt.Equal(tx.Now()) {
		return "", nil
	}
	switch {
	case err != nil:
		return fmt.Sprintf("the audit entry of the policy's ruling is not proven: %v", err), nil
	case e.Subject != string(c.Request.ID) || e.Digest != c.Digest || e.Outcome != string(approvals.Allowed):
		return "the audit entry of the policy's ruling is about something else", nil
	}
	return "", nil
}

// policyNow judges the request by the policy in force. An empty admission
// means the votes still satisfy it.
func (g gate) policyNow(ctx context.Context, tx *store.Tx, r approvals.Request) (engine.Admission, error) {
	v, policy, err := g.present(ctx, tx, r, r.Params, r.Target, tx.Now())
	if err != nil {
		return engine.Admission{}, err
	}
	if v.Effect == approvals.Deny {
		by := audit.Entry{Tenant: r.Tenant, Actor: engineActor, Channel: "engine"}
		return verdict(engine.VerdictDenied, r, "The policy in force now denies it (rule "+v.Rule+")."), g.withdraw(ctx, tx, r.ID, "the policy now denies it", by)
	}
	ok, why, err := g.book.Satisfied(ctx, tx, r.Tenant, r.ID, v)
	if err != nil || ok {
		return engine.Admission{}, err
	}
	return g.revised(ctx, tx, r, v, policy, r.Preview, r.Precondition, why)
}

// drifted returns what changed at the target since the approval, or "". A key
// that is sent again to find out what happened is not compared: its own first
// try may be what changed the target.
func drifted(r approvals.Request, seen engine.Facts) string {
	now, then := seen.Precondition, r.Precondition
	if now == nil || seen.Resend {
		return ""
	}
	switch {
	case !now.OK:
		return "the precondition cannot be read" + because(now.Error)
	case !now.Met:
		return "the precondition no longer holds" + because(now.Error)
	case then != nil && !bytes.Equal(now.Pin, then.Pin):
		return fmt.Sprintf("the target changed: its version was %s when this was asked and is %s now", pinText(then.Pin), pinText(now.Pin))
	}
	return ""
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + strings.TrimSuffix(why, ".")
}

func pinText(pin []byte) string {
	if len(pin) == 0 {
		return "none"
	}
	return string(pin)
}

// Renew makes the next revision because something changed since the approval.
func (g gate) Renew(ctx context.Context, tx *store.Tx, request id.Approval, seen engine.Facts, why string) (engine.Ruling, error) {
	r, err := g.book.Get(ctx, tx, Tenant, request)
	if err != nil {
		return engine.Ruling{}, err
	}
	if found := drifted(r, seen); found != "" {
		why = found // in the words that Admit has for it
	}
	if _, err := g.renewed(ctx, tx, r, seen, why); err != nil {
		return engine.Ruling{}, err
	}
	return g.Ruling(ctx, tx, request)
}

func (g gate) renewed(ctx context.Context, tx *store.Tx, r approvals.Request, seen engine.Facts, why string) (engine.Admission, error) {
	v, policy, err := g.present(ctx, tx, r, r.Params, r.Target, tx.Now())
	if err != nil {
		return engine.Admission{}, err
	}
	preview, precondition := r.Preview, r.Precondition
	if seen.Preview != nil {
		preview = reading(seen.Preview)
	}
	if seen.Precondition != nil {
		precondition = reading(seen.Precondition)
	}
	return g.revised(ctx, tx, r, v, policy, preview, precondition, why)
}

// revised opens revision n+1 of r with what is known now. Where the policy
// would allow or deny it by itself, people are asked all the same: what they
// agreed to is not what is there now.
func (g gate) revised(ctx context.Context, tx *store.Tx, r approvals.Request, v approvals.Verdict, policy *approvals.Policy, preview, precondition *approvals.Reading, why string) (engine.Admission, error) {
	next, err := g.book.Revise(ctx, tx, approvals.Revision{
		Tenant: r.Tenant, Request: r.ID, OldDigest: r.Digest, Params: r.Params, FrozenRequest: r.FrozenRequest, Summary: r.Summary, Target: r.Target,
		Impact: r.Impact, Preview: preview, Precondition: precondition, Verdict: v, Policy: policy, Why: "Changed since it was approved: " + strings.TrimSuffix(why, ".") + ".",
	})
	if err != nil {
		return engine.Admission{}, err
	}
	by := audit.Entry{Tenant: r.Tenant, Actor: engineActor, Channel: "engine"}
	if err := g.recordRevision(ctx, tx, by, next, "approval.renewed", why); err != nil {
		return engine.Admission{}, err
	}
	return verdict(engine.VerdictRenewed, next, why), nil
}
