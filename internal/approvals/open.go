package approvals

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"countersign/internal/canon"
	"countersign/internal/id"
	"countersign/internal/store"
)

// OpenRequest is a proposal with the policy's verdict on it. JSON is given in
// canonical form.
type OpenRequest struct {
	Kind   string // KindAction or KindDocument
	Tenant string
	Run    id.Run
	Path   string
	Pass   int
	Action id.Action // empty for a document
	Plan   Plan

	Tool          string
	ToolVersion   int
	ToolDigest    string
	Risk          string
	Params        json.RawMessage
	FrozenRequest json.RawMessage
	Key           string
	Editable      []string // JSON Pointers into params
	Sensitive     []string

	Title    string
	Document json.RawMessage

	Target, Summary, Impact string
	Reason                  string // the proposer's words
	Preview, Precondition   *Reading

	Initiator     id.Person
	InitiatorName string
	OnBehalfOf    string      // shown; counts as an initiator where it is a person's id
	Principals    []id.Person // others who count as initiators: owners of the token and whom it acts for

	RunVersion  int64
	RequestedAt time.Time
	Verdict     Verdict
	Policy      *Policy // the one Verdict is of; nil for none
}

// Open makes a request of the proposal: revision 1 with its subject. It is
// pending, allowed or denied by the verdict, and flagged where nobody could
// complete it. An allowance does not hold for something whose precondition
// does not: the policy's on_error groups are asked instead. The caller adds
// the audit entry and links it with SetRulingEntry.
func (b *Book) Open(ctx context.Context, tx *store.Tx, o OpenRequest) (Request, error) {
	v, err := settled(o.Verdict, o.Policy, o.Precondition)
	if err != nil {
		return Request{}, err
	}
	now := tx.Now()
	s := Subject{Type: SubjectType, Kind: o.Kind, Tenant: o.Tenant, ID: id.NewApproval(now), Revision: 1, Nonce: newNonce(),
		Run: o.Run, Path: o.Path, Pass: o.Pass, Action: o.Action, Tool: o.Tool, ToolVersion: o.ToolVersion, ToolDigest: o.ToolDigest,
		Risk: o.Risk, Target: o.Target, Params: o.Params, FrozenRequest: o.FrozenRequest, Key: o.Key, Editable: o.Editable, Sensitive: o.Sensitive,
		Title: o.Title, Document: o.Document, Plan: o.Plan, Initiator: o.Initiator, InitiatorName: o.InitiatorName, OnBehalfOf: o.OnBehalfOf,
		Principals: o.Principals, Reason: o.Reason, Summary: o.Summary, Impact: o.Impact, Preview: o.Preview, Precondition: o.Precondition,
		RunVersion: o.RunVersion, RequestedAt: stamp(o.RequestedAt)}
	if err := s.check(); err != nil {
		return Request{}, err
	}
	at := deadlines(v, now, time.Time{})
	d, err := b.draft(ctx, tx, s, v, at)
	if err != nil {
		return Request{}, err
	}
	args := append(d.args(o.Tenant, now), values(d.columns)...)
	if _, err := tx.Exec(ctx, sqlNewRequest, args...); err != nil {
		return Request{}, fmt.Errorf("store request: %w", err)
	}
	if err := d.keep(ctx, tx, now, cause{}); err != nil {
		return Request{}, err
	}
	return b.Get(ctx, tx, o.Tenant, s.ID)
}

// check refuses a subject that says too little to be decided on.
func (s Subject) check() error {
	switch {
	case s.Tenant == "" || s.Run == "" || s.Path == "" || s.RequestedAt == "" || s.Initiator == "":
		return errors.New("open request: tenant, run, path, time and initiator are needed")
	case s.Kind == KindAction && (s.Action == "" || s.Tool == "" || s.ToolDigest == "" || s.Key == "" || len(s.Params) == 0 || len(s.FrozenRequest) == 0):
		return errors.New("open request: an action needs its tool, parameters, frozen request and key")
	case s.Kind == KindDocument && len(s.Document) == 0:
		return errors.New("open request: there is no document")
	case s.Kind != KindAction && s.Kind != KindDocument:
		return fmt.Errorf("open request: unknown kind %q", s.Kind)
	}
	for _, raw := range []json.RawMessage{s.Params, s.FrozenRequest, s.Document} {
		if len(raw) == 0 {
			continue
		}
		if again, err := canon.Marshal(raw); err != nil || string(again) != string(raw) {
			return errors.New("open request: JSON is not in canonical form")
		}
	}
	return nil
}

// settled checks a verdict before it is acted on. One that says nothing, or
// asks nobody, is an error and never an approval.
func settled(v Verdict, policy *Policy, precondition *Reading) (Verdict, error) {
	if v.Effect == Allow && precondition != nil && !(precondition.OK && precondition.Met) {
		v = v.ask(policy.fallback())
		v.Why = "The policy allows it, but what must hold for it does not, or could not be read."
	}
	if v.ExecuteWithin <= 0 && v.Effect != Approve {
		v.ExecuteWithin = executeWithinDefault
	}
	switch v.Effect {
	case Allow, Deny:
		v.Groups = nil
		return v, nil
	case Approve:
		a := askSpec{Groups: v.Groups, DecideWithinUs: v.DecideWithin.Microseconds(), ExecuteWithinUs: v.ExecuteWithin.Microseconds()}
		if err := a.sound(); err != nil {
			return v, fmt.Errorf("use verdict of rule %s: %w", v.Rule, err)
		}
		return v, nil
	}
	return v, fmt.Errorf("use verdict of rule %s: %q is no effect", v.Rule, v.Effect)
}

// times are the deadlines of a revision; zero is none.
type times struct{ decideBy, executeBy time.Time }

// deadlines of a revision made now. Where until is set the new decide-by is
// not later: an edit gives nobody more time.
func deadlines(v Verdict, now, until time.Time) times {
	switch v.Effect {
	case Allow:
		return times{executeBy: now.Add(v.ExecuteWithin)}
	case Deny:
		return times{}
	}
	by := now.Add(v.DecideWithin)
	if !until.IsZero() && until.Before(by) {
		by = until
	}
	return times{decideBy: by}
}

// draft is a revision about to be stored.
type draft struct {
	subject Subject
	raw     json.RawMessage
	digest  string
	columns []column
	status  Status
	times   times
	deadEnd string
	verdict Verdict
}

// draft completes the subject with the verdict and deadlines and seals it.
func (b *Book) draft(ctx context.Context, q store.Querier, s Subject, v Verdict, at times) (draft, error) {
	s.Policy, s.ExecuteWithinUs = rulingOf(v), v.ExecuteWithin.Microseconds()
	s.DecideBy, s.ExecuteBy = stamp(at.decideBy), stamp(at.executeBy)
	d := draft{status: opening(v.Effect), times: at, verdict: v}
	var err error
	if d.raw, d.digest, err = s.seal(); err != nil {
		return d, err
	}
	if d.subject, err = parseSubject(d.raw); err != nil {
		return d, err
	}
	if d.columns, err = d.subject.columns(d.digest); err != nil {
		return d, err
	}
	if d.status == Pending {
		people, err := b.candidates(ctx, q, s.Tenant, v.Groups)
		if err != nil {
			return d, err
		}
		d.deadEnd = d.subject.law().eligibility(people).DeadEnd
	}
	return d, nil
}

// args are the arguments $1 to $11 of the statements in columns.go.
func (d draft) args(tenant string, now time.Time) []any {
	by, name, why, at := "", "", "", any(nil)
	if d.status == Denied {
		name, why, at = "policy", "Denied by the rule "+d.verdict.Rule+" of the policy.", store.Micros(now)
	}
	return []any{tenant, string(d.subject.ID), string(d.status), d.deadEnd, stored(d.times.decideBy), stored(d.times.executeBy),
		by, name, why, at, store.Micros(now)}
}

// cause is why a revision came about and through whom.
type cause struct {
	editor  Party // changed content
	by      Party // brought it about otherwise
	comment string
}

const sqlKeepRevision = `INSERT INTO revision (tenant, request, revision, subject, digest, params_hash, effect, supersedes, why, comment,
	editor, editor_name, caused_by, caused_by_name, created_at)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`

// keep appends the revision.
func (d draft) keep(ctx context.Context, tx *store.Tx, now time.Time, c cause) error {
	s := d.subject
	_, err := tx.Exec(ctx, sqlKeepRevision, s.Tenant, string(s.ID), s.Revision, d.raw, d.digest, s.ParamsHash, string(s.Policy.Effect),
		s.Supersedes, s.Why, c.comment, string(c.editor.ID), c.editor.Name, string(c.by.ID), c.by.Name, store.Micros(now))
	if err != nil {
		return fmt.Errorf("store revision: %w", err)
	}
	return nil
}
