package approvals

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"countersign/internal/canon"
	"countersign/internal/id"
	"countersign/internal/store"
)

// Decision is one person's verdict on the revision with the digest they saw.
type Decision struct {
	Tenant  string
	Request id.Approval
	Digest  string
	Verdict string // VerdictApprove or VerdictReject
	Comment string // needed to reject
	Person  Person // who decides, from the session or token
	Auth    string // how they proved who they are
	Channel string
}

// Result is what a decision came to.
type Result struct {
	Request  Request
	Decision DecisionRecord
	Complete bool // the request is no longer pending
	Replay   bool // the same decision was there already; nothing was written
}

// Decide records a decision by one conditional update that succeeds only while
// the request is pending at this digest and its time is not over. A rejection
// by anybody eligible is final; an approval completes the request when the
// largest assignment of its approvers to the places of the groups fills them
// all. The same verdict of the same person on the same digest again, at any
// time while that revision is current, gives the same answer.
//
// Problems: not_found, invalid, not_eligible, self_approval, already_decided,
// stale_digest, expired, run_not_waiting, clock_suspect. The caller adds the
// audit entry and links it with SetAudit.
func (b *Book) Decide(ctx context.Context, tx *store.Tx, d Decision) (Result, error) {
	r, err := b.Get(ctx, tx, d.Tenant, d.Request)
	if err != nil {
		return Result{}, err
	}
	who, err := b.person(ctx, tx, d.Tenant, d.Person.ID)
	if err != nil {
		return Result{}, err
	}
	v := vote{who, d.Digest, d.Verdict, strings.TrimSpace(d.Comment), tx.Now(), tx.ClockSuspect()}
	out, err := r.rule(v)
	if err != nil {
		return Result{}, b.explain(ctx, tx, r, v, err)
	}
	if out.replay != nil {
		return Result{Request: r, Decision: *out.replay, Complete: r.Status != Pending, Replay: true}, nil
	}
	rec, err := r.cast(ctx, tx, d, v, out)
	if err != nil {
		return Result{}, err
	}
	after, err := b.Get(ctx, tx, d.Tenant, d.Request)
	return Result{Request: after, Decision: rec, Complete: after.Status != Pending}, err
}

// explain adds to a refusal what takes reading: who can, or what changed.
func (b *Book) explain(ctx context.Context, q store.Querier, r Request, v vote, err error) error {
	if no, ok := errors.AsType[refusal](err); ok {
		people, err := b.candidates(ctx, q, r.Tenant, r.law.Groups)
		if err != nil {
			return err
		}
		return r.law.refuse(v.person, no.Standing, r.law.eligibility(people).Can)
	}
	if errors.Is(err, ErrStaleDigest) {
		return r.stale(ctx, q, v.digest)
	}
	return err
}

const sqlSubjectByDigest = `SELECT subject FROM revision WHERE tenant = $1 AND request = $2 AND digest = $3`

// stale says what changed since the revision with the digest.
func (r Request) stale(ctx context.Context, q store.Querier, digest string) error {
	p := ErrStaleDigest.With("digest", r.Digest).With("revision", r.Revision)
	var old json.RawMessage
	err := q.QueryRow(ctx, sqlSubjectByDigest, r.Tenant, string(r.ID), digest).Scan(&old)
	if errors.Is(err, sql.ErrNoRows) {
		return p // a digest of something else; there is nothing to compare
	}
	if err != nil {
		return fmt.Errorf("read stale revision: %w", err)
	}
	changes, err := DiffSubjects(old, r.Subject)
	if err != nil {
		return err
	}
	return p.With("changes", changes)
}

const sqlDecide = `UPDATE request SET status = $1, votes = votes + 1, execute_by = $2, closed_by = $3, closed_by_name = $4, closed_why = $5,
		closed_at = $6, updated_at = $7
	WHERE tenant = $8 AND id = $9 AND status = 'pending' AND revision = $10 AND digest = $11 AND votes = $12 AND decide_by > $7`

const sqlNewDecision = `INSERT INTO decision (tenant, id, request, revision, digest, person, person_name, turn, verdict, groups, authority,
		rule, policy, policy_version, auth, channel, comment, decided_at)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)`

// cast writes the vote.
func (r Request) cast(ctx context.Context, tx *store.Tx, d Decision, v vote, out ruled) (DecisionRecord, error) {
	after, _ := next(r.Status, out.event)
	by, name, why, closedAt, executeBy := "", "", "", time.Time{}, time.Time{}
	switch out.event {
	case evReject:
		by, name, why, closedAt = string(v.person.ID), v.person.Name, v.comment, v.now
	case evComplete:
		executeBy = v.now.Add(r.ExecuteWithin)
	}
	err := tx.ExecOne(ctx, sqlDecide, string(after), stored(executeBy), by, name, why, stored(closedAt), store.Micros(v.now),
		r.Tenant, string(r.ID), r.Revision, r.Digest, r.votes)
	if err != nil {
		return DecisionRecord{}, fmt.Errorf("decide: %w", err)
	}
	turn, err := r.turnOf(ctx, tx, v.person.ID)
	if err != nil {
		return DecisionRecord{}, err
	}
	rec := DecisionRecord{ID: id.NewDecision(v.now), Request: r.ID, Revision: r.Revision, Digest: r.Digest, Person: v.person.ID,
		PersonName: v.person.Name, Verdict: v.verdict, Groups: groupNames(r.law.Groups, out.groups), Authority: authority(r.law.Groups, out),
		Rule: r.Rule, Policy: r.Policy, PolicyVersion: r.PolicyVersion, Auth: d.Auth, Channel: d.Channel, Comment: v.comment, DecidedAt: v.now, turn: turn}
	return rec, rec.insert(ctx, tx, r.Tenant)
}

func (d DecisionRecord) insert(ctx context.Context, tx *store.Tx, tenant string) error {
	groups, err := canon.Marshal(d.Groups)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, sqlNewDecision, tenant, string(d.ID), string(d.Request), d.Revision, d.Digest, string(d.Person), d.PersonName, d.turn,
		d.Verdict, groups, d.Authority, d.Rule, d.Policy, d.PolicyVersion, d.Auth, d.Channel, d.Comment, store.Micros(d.DecidedAt))
	if err != nil {
		return fmt.Errorf("store decision: %w", err)
	}
	return nil
}

const sqlTurn = `SELECT count(*) FROM decision WHERE tenant = $1 AND request = $2 AND revision = $3 AND person = $4`

// turnOf numbers the person's decisions on the revision; all before it were
// retracted.
func (r Request) turnOf(ctx context.Context, q store.Querier, p id.Person) (int, error) {
	var n int
	err := q.QueryRow(ctx, sqlTurn, r.Tenant, string(r.ID), r.Revision, string(p)).Scan(&n)
	return n + 1, err
}

func groupNames(groups []Group, at []int) []string {
	names := make([]string, len(at))
	for i, g := range at {
		names[i] = groups[g].Name
	}
	return names
}

// authority is the role or group by which the person decided: the place they
// fill, else the first group they stand in.
func authority(groups []Group, out ruled) string {
	g := out.groups[0]
	if out.place >= 0 {
		g = out.place
	}
	if groups[g].Role != "" {
		return groups[g].Role
	}
	return groups[g].Name
}

const (
	sqlLinkDecision = `INSERT INTO decision_entry (tenant, decision, entry) SELECT tenant, id, $2 FROM decision WHERE id = $1`
	sqlLinkRuling   = `INSERT INTO ruling_entry (tenant, request, revision, entry) SELECT tenant, request, revision, $3 FROM revision
		WHERE request = $1 AND revision = $2`
)

// SetAudit ties a decision to its audit entry, once.
func (b *Book) SetAudit(ctx context.Context, tx *store.Tx, decision id.Decision, entry id.Entry) error {
	if err := tx.ExecOne(ctx, sqlLinkDecision, string(decision), string(entry)); err != nil {
		return fmt.Errorf("link decision to audit entry: %w", err)
	}
	return nil
}

// SetRulingEntry ties a revision, and with it the policy's ruling, to its
// audit entry, once.
func (b *Book) SetRulingEntry(ctx context.Context, tx *store.Tx, request id.Approval, revision int, entry id.Entry) error {
	if err := tx.ExecOne(ctx, sqlLinkRuling, string(request), revision, string(entry)); err != nil {
		return fmt.Errorf("link revision to audit entry: %w", err)
	}
	return nil
}
