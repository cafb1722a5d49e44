package approvals

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"countersign/internal/id"
	"countersign/internal/problem"
	"countersign/internal/store"
)

// Revision is new content for a request: an edit by a person, or what was
// measured anew. Of an action it replaces everything computed from the
// parameters; of a document, nothing but Preview and Precondition.
type Revision struct {
	Tenant        string
	Request       id.Approval
	OldDigest     string // of the revision it replaces
	Params        json.RawMessage
	FrozenRequest json.RawMessage
	Key           string // empty: the key stays
	Summary       string
	Target        string
	Impact        string
	Preview       *Reading
	Precondition  *Reading
	RunVersion    int64 // zero: stays
	Verdict       Verdict
	Policy        *Policy
	Editor        *Person // nil: the facts changed, not what is asked for
	Why           string
	Comment       string
}

// Revise makes the next revision: a new subject and digest, ruled on by
// Verdict, without votes. The old one stays readable as superseded.
//
// An Editor must be allowed to decide, or be the initiator, may change only
// what is under the editable pointers of a pending request, and gains no time
// to decide. Without Editor an approved or allowed request may be revised too,
// as long as nothing was sent.
//
// Problems: not_found, stale_digest, already_decided, expired,
// run_not_waiting, already_sent, clock_suspect, not_eligible, invalid (with
// pointers), nothing_changed. The caller adds the audit entry and links it
// with SetRulingEntry.
func (b *Book) Revise(ctx context.Context, tx *store.Tx, c Revision) (Request, error) {
	r, err := b.Get(ctx, tx, c.Tenant, c.Request)
	if err != nil {
		return Request{}, err
	}
	if err := b.revisable(ctx, tx, r, c); err != nil {
		return Request{}, err
	}
	s, err := parseSubject(r.Subject)
	if err != nil {
		return Request{}, err
	}
	by, until := cause{comment: c.Comment}, time.Time{}
	if r.Status == Pending {
		until = r.DecideBy
	}
	if c.Editor != nil {
		by.editor = Party{c.Editor.ID, c.Editor.Name}
		if !slices.ContainsFunc(s.Editors, func(p Party) bool { return p.ID == c.Editor.ID }) {
			s.Editors = append(s.Editors, by.editor)
		}
	}
	if r.Kind == KindAction {
		s.Params, s.FrozenRequest, s.Summary, s.Target, s.Impact = c.Params, c.FrozenRequest, c.Summary, c.Target, c.Impact
	}
	if c.Key != "" {
		s.Key = c.Key
	}
	if c.RunVersion != 0 {
		s.RunVersion = c.RunVersion
	}
	s.Preview, s.Precondition, s.Why = c.Preview, c.Precondition, c.Why
	v, err := settled(c.Verdict, c.Policy, c.Precondition)
	if err != nil {
		return Request{}, err
	}
	return b.supersede(ctx, tx, r, s, v, until, by)
}

// revisable says why c may not replace the current revision, or nil.
func (b *Book) revisable(ctx context.Context, tx *store.Tx, r Request, c Revision) error {
	if c.Editor == nil {
		switch {
		case !r.Status.Open():
			return r.closed(tx.Now())
		case r.sent():
			return r.alreadySent()
		case c.OldDigest != r.Digest:
			return r.stale(ctx, tx, c.OldDigest)
		}
		return nil
	}
	if err := r.closed(tx.Now()); err != nil {
		return err
	}
	if err := b.mayEdit(ctx, tx, r, c.Editor.ID); err != nil {
		return err
	}
	switch {
	case tx.ClockSuspect():
		return ErrClockSuspect
	case c.OldDigest != r.Digest:
		return r.stale(ctx, tx, c.OldDigest)
	case len(c.Comment) > CommentBytesMax:
		return invalid("Nothing was saved.").At("/comment", "is %d bytes long; at most %d are kept", len(c.Comment), CommentBytesMax)
	}
	return r.fits(c)
}

// MayEdit says why the person may not revise the request, or nil: for callers
// that have more to do before Revise, which asks again. Problems: not_found,
// already_decided, expired, run_not_waiting, not_eligible.
func (b *Book) MayEdit(ctx context.Context, q store.Querier, tenant string, request id.Approval, editor id.Person, now time.Time) error {
	r, err := b.Get(ctx, q, tenant, request)
	if err != nil {
		return err
	}
	if err := r.closed(now); err != nil {
		return err
	}
	return b.mayEdit(ctx, q, r, editor)
}

// mayEdit allows whoever may decide, and the initiator.
func (b *Book) mayEdit(ctx context.Context, q store.Querier, r Request, editor id.Person) error {
	who, err := b.person(ctx, q, r.Tenant, editor)
	if err != nil {
		return err
	}
	if who.Active && slices.Contains(r.law.Initiators, who.ID) {
		return nil
	}
	// An editor may edit again, whether or not they may approve then.
	if s := r.law.standing(who, VerdictReject); !s.May {
		return b.explain(ctx, q, r, vote{person: who}, refusal{s})
	}
	return nil
}

// fits refuses an edit of anything but editable leaves of the parameters.
func (r Request) fits(c Revision) error {
	if r.Kind != KindAction {
		return invalid("A document can't be changed here; reject it and say what should be different.")
	}
	faults, changed, err := compareParams(r.Params, c.Params, r.Editable)
	switch {
	case err != nil:
		return err
	case len(faults) > 0:
		p := invalid("The change does not fit; nothing was saved.")
		p.Fields = faults
		return p
	case !changed:
		return problem.New(problem.Invalid, "nothing_changed", "Nothing was changed, so there is nothing to save.")
	}
	return nil
}

// sent reports whether something may be on its way.
func (r Request) sent() bool { return !r.StartedAt.IsZero() && r.Outcome != outcomeNotDone }

// outcomeNotDone is the one outcome after which an approval is still unused.
const outcomeNotDone = "not_done"

func (r Request) alreadySent() error {
	p := ErrAlreadySent.With("started_at", r.StartedAt).With("outcome", r.Outcome)
	p.Message = "Too late: it was started at " + r.StartedAt.Format(timeForm) + "."
	return p
}

// supersede stores s as the revision after r.
func (b *Book) supersede(ctx context.Context, tx *store.Tx, r Request, s Subject, v Verdict, until time.Time, by cause) (Request, error) {
	now := tx.Now()
	s.Revision, s.Supersedes, s.Nonce = r.Revision+1, r.Digest, newNonce()
	d, err := b.draft(ctx, tx, s, v, deadlines(v, now, until))
	if err != nil {
		return Request{}, err
	}
	if after, ok := next(r.Status, revising(v.Effect)); !ok || after != d.status {
		return Request{}, fmt.Errorf("revise: a request that is %s can't become %s", r.Status, d.status)
	}
	args := append(d.args(r.Tenant, now), r.Digest, r.votes)
	if err := tx.ExecOne(ctx, sqlNextRevision, append(args, values(d.columns)...)...); err != nil {
		return Request{}, fmt.Errorf("revise: %w", err)
	}
	if err := d.keep(ctx, tx, now, by); err != nil {
		return Request{}, err
	}
	return b.Get(ctx, tx, r.Tenant, r.ID)
}

// Revocation takes an approval back.
type Revocation struct {
	Tenant     string
	Request    id.Approval
	Person     Person
	MayOperate bool // the person may revoke what others approved
	Reason     string
	Verdict    Verdict // of the present policy
	Policy     *Policy
}

// Revoke makes an approved or allowed request that was not started pending
// again, as a new revision without votes. Voters and operators may. Where the
// policy would allow or deny the action now, people are asked all the same:
// whoever was asked before, else its on_error groups.
//
// Problems: not_found, invalid, not_eligible, already_sent, run_not_waiting,
// expired, already_decided (rejected), not_approved (still pending). The
// caller adds the audit entry and links it with SetRulingEntry.
func (b *Book) Revoke(ctx context.Context, tx *store.Tx, c Revocation) (Request, error) {
	r, err := b.Get(ctx, tx, c.Tenant, c.Request)
	if err != nil {
		return Request{}, err
	}
	reason := strings.TrimSpace(c.Reason)
	if err := b.revocable(ctx, tx, r, c, reason); err != nil {
		return Request{}, err
	}
	s, err := parseSubject(r.Subject)
	if err != nil {
		return Request{}, err
	}
	s.Why = "revoked by " + c.Person.Name + ": " + reason
	v, err := settled(r.reasking(c), c.Policy, nil)
	if err != nil {
		return Request{}, err
	}
	return b.supersede(ctx, tx, r, s, v, time.Time{}, cause{by: Party{c.Person.ID, c.Person.Name}, comment: reason})
}

// reasking is the verdict after a revocation: it always asks.
func (r Request) reasking(c Revocation) Verdict {
	v := c.Verdict
	if v.Effect == Approve {
		return v
	}
	v = v.ask(c.Policy.fallback())
	if r.Ruling.Effect == Approve {
		v.Groups, v.InitiatorMayDecide, v.EditorMayApprove = r.Ruling.Groups, r.Ruling.InitiatorMayDecide, r.Ruling.EditorMayApprove
		v.Reauthenticate = r.Ruling.Reauthenticate
	}
	v.Why = "It was revoked, so a person has to approve it again."
	return v
}

func (b *Book) revocable(ctx context.Context, q store.Querier, r Request, c Revocation, reason string) error {
	if _, ok := next(r.Status, evRevoke); !ok {
		if r.Status == Pending {
			return problem.New(problem.Conflict, "not_approved", "This is not approved yet, so there is nothing to revoke. Reject it, or take your own vote back.")
		}
		return r.closed(time.Time{})
	}
	if reason == "" || len(reason) > CommentBytesMax {
		return invalid("Nothing was revoked.").At("/reason", "say why, in at most %d bytes", CommentBytesMax)
	}
	who, err := b.person(ctx, q, r.Tenant, c.Person.ID)
	if err != nil {
		return err
	}
	voted := slices.ContainsFunc(r.Decisions, func(d DecisionRecord) bool { return d.Person == who.ID })
	switch {
	case !who.Active || !voted && !c.MayOperate:
		return problem.New(problem.Forbidden, "not_eligible", "Only somebody who approved this, or an operator, can revoke it.")
	case r.sent():
		return r.alreadySent()
	}
	return nil
}
