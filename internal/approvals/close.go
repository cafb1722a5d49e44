package approvals

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"countersign/internal/id"
	"countersign/internal/problem"
	"countersign/internal/store"
)

const sqlClose = `UPDATE request SET status = $1, votes = votes + 1, closed_by = $2, closed_by_name = $3, closed_why = $4, closed_at = $5, updated_at = $5
	WHERE tenant = $6 AND id = $7 AND votes = $8 AND status = $9`

func (r Request) end(ctx context.Context, tx *store.Tx, e event, by Party, why string) error {
	after, ok := next(r.Status, e)
	if !ok {
		return fmt.Errorf("%s: a request that is %s can't", e, r.Status)
	}
	err := tx.ExecOne(ctx, sqlClose, string(after), string(by.ID), by.Name, why, store.Micros(tx.Now()), r.Tenant, string(r.ID), r.votes, string(r.Status))
	if err != nil {
		return fmt.Errorf("%s: %w", e, err)
	}
	return nil
}

// closable is Get for what only closes a request: one whose subject cannot be
// read is its row alone.
func (b *Book) closable(ctx context.Context, q store.Querier, tenant string, request id.Approval) (Request, error) {
	r, err := b.Get(ctx, q, tenant, request)
	if !errors.Is(err, ErrUnreadable) {
		return r, err
	}
	i, _, _, err := load(ctx, q, tenant, request)
	return Request{Item: i}, err
}

// Withdraw closes a request that nobody needs to decide any more; by may be
// empty. One that is closed already stays as it is, and changed is false.
// Problem: not_found.
func (b *Book) Withdraw(ctx context.Context, tx *store.Tx, tenant string, request id.Approval, by Party, why string) (r Request, changed bool, err error) {
	if r, err = b.closable(ctx, tx, tenant, request); err != nil || !r.Status.Open() {
		return r, false, err
	}
	if err := r.end(ctx, tx, evWithdraw, by, why); err != nil {
		return r, false, err
	}
	r, err = b.closable(ctx, tx, tenant, request)
	return r, true, err
}

// overdue is the deadline that has passed by now, if one has.
func (r Request) overdue(now time.Time) (e event, why string, ok bool) {
	switch {
	case r.Status == Pending && !now.Before(r.DecideBy):
		return evDecideByOver, "Nobody completed it by " + r.DecideBy.Format(timeForm) + ".", true
	case (r.Status == Approved || r.Status == Allowed) && !r.sent() && !now.Before(r.ExecuteBy):
		return evExecuteByOver, "It was not started by " + r.ExecuteBy.Format(timeForm) + ".", true
	}
	return "", "", false
}

// Expire closes a request one of whose deadlines has passed: decide-by while
// pending, execute-by while approved or allowed and not started. Otherwise it
// changes nothing. Problem: not_found.
func (b *Book) Expire(ctx context.Context, tx *store.Tx, tenant string, request id.Approval) (r Request, changed bool, err error) {
	if r, err = b.closable(ctx, tx, tenant, request); err != nil {
		return r, false, err
	}
	e, why, ok := r.overdue(tx.Now())
	if !ok {
		return r, false, nil
	}
	if err := r.end(ctx, tx, e, Party{}, why); err != nil {
		return r, false, err
	}
	r, err = b.closable(ctx, tx, tenant, request)
	return r, true, err
}

// dueMax bounds one answer of Due; the rest is due the next time.
const dueMax = 200

const sqlDue = `SELECT id FROM request WHERE tenant = $1 AND status = 'pending' AND decide_by <= $2
	UNION ALL
	SELECT id FROM request WHERE tenant = $1 AND status IN ('approved', 'allowed') AND outcome IN ('', 'not_done')
		AND execute_by <= $2 AND (started_at IS NULL OR outcome = 'not_done')
	ORDER BY id LIMIT $3`

// Due lists requests that Expire would close at now, at most 200.
func (b *Book) Due(ctx context.Context, q store.Querier, tenant string, now time.Time) ([]id.Approval, error) {
	rows, err := q.Query(ctx, sqlDue, tenant, store.Micros(now), dueMax)
	if err != nil {
		return nil, fmt.Errorf("list what is due: %w", err)
	}
	defer rows.Close()
	var all []id.Approval
	for rows.Next() {
		var one id.Approval
		if err := rows.Scan(&one); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}

const sqlBegin = `UPDATE request SET started_at = $1, outcome = '', outcome_at = NULL, updated_at = $1
	WHERE tenant = $2 AND id = $3 AND digest = $4 AND status IN ('approved', 'allowed') AND execute_by > $1`

// Begin notes, in the transaction that admits the request for sending, that
// it starts now: from here on it neither expires nor can be revoked or
// revised, unless its outcome turns out to be not_done. store.ErrConflict: it
// is not approved with this digest, or its time is over.
func (b *Book) Begin(ctx context.Context, tx *store.Tx, tenant string, request id.Approval, digest string) error {
	err := tx.ExecOne(ctx, sqlBegin, store.Micros(tx.Now()), tenant, string(request), digest)
	if err != nil {
		return fmt.Errorf("begin an approved request: %w", err)
	}
	return nil
}

const sqlSettle = `UPDATE request SET outcome = $1, outcome_at = $2, updated_at = $2 WHERE tenant = $3 AND id = $4`

// Settled notes how the request's effect ended, for lists: a status of the
// ledger.
func (b *Book) Settled(ctx context.Context, tx *store.Tx, tenant string, request id.Approval, outcome string) error {
	if err := tx.ExecOne(ctx, sqlSettle, outcome, store.Micros(tx.Now()), tenant, string(request)); err != nil {
		return fmt.Errorf("note the outcome: %w", err)
	}
	return nil
}

// Extension gives more time to decide.
type Extension struct {
	Tenant   string
	Request  id.Approval
	DecideBy time.Time
	Person   Person
	Why      string
}

const (
	sqlExtension = `INSERT INTO extension (tenant, request, revision, nr, decide_by, person, name, why, at)
		SELECT $1, $2, $3, count(*) + 1, $4, $5, $6, $7, $8 FROM extension WHERE tenant = $1 AND request = $2 AND revision = $3`
	sqlExtend = `UPDATE request SET decide_by = $1, votes = votes + 1, updated_at = $2
		WHERE tenant = $3 AND id = $4 AND status = 'pending' AND votes = $5 AND decide_by > $2`
)

// Extend moves decide-by of a pending request to a later instant, at most 90
// days from now. Digest and votes stay. Whether the person may is the
// caller's to say. Problems: not_found, invalid, and those of a request that
// is closed. The caller adds the audit entry.
func (b *Book) Extend(ctx context.Context, tx *store.Tx, x Extension) (Request, error) {
	r, err := b.Get(ctx, tx, x.Tenant, x.Request)
	if err != nil {
		return Request{}, err
	}
	now, why := tx.Now(), strings.TrimSpace(x.Why)
	bad := invalid("The time to decide was not changed.")
	if err := r.closed(now); err != nil {
		return Request{}, err
	}
	switch {
	case tx.ClockSuspect():
		return Request{}, ErrClockSuspect
	case why == "" || len(why) > CommentBytesMax:
		return Request{}, bad.At("/why", "say why, in at most %d bytes", CommentBytesMax)
	case !x.DecideBy.After(r.DecideBy):
		return Request{}, bad.At("/decide_by", "must be later than %s", r.DecideBy.Format(timeForm))
	case x.DecideBy.After(now.Add(decideWithinMax)):
		return Request{}, bad.At("/decide_by", "must be within %d days", int(decideWithinMax.Hours()/24))
	}
	by := store.Micros(x.DecideBy)
	if err := tx.ExecOne(ctx, sqlExtend, by, store.Micros(now), r.Tenant, string(r.ID), r.votes); err != nil {
		return Request{}, fmt.Errorf("extend: %w", err)
	}
	if _, err := tx.Exec(ctx, sqlExtension, r.Tenant, string(r.ID), r.Revision, by, string(x.Person.ID), x.Person.Name, why, store.Micros(now)); err != nil {
		return Request{}, fmt.Errorf("store extension: %w", err)
	}
	return b.Get(ctx, tx, r.Tenant, r.ID)
}

const (
	sqlRetraction = `INSERT INTO retraction (tenant, decision, why, at) VALUES ($1, $2, $3, $4)`
	sqlRetract    = `UPDATE request SET votes = votes + 1, updated_at = $1
		WHERE tenant = $2 AND id = $3 AND status = 'pending' AND digest = $4 AND votes = $5`
)

// Retract takes the person's own approval back while the request is pending.
// The decision stays on record with its retraction; the person may decide
// again. Problems: not_found, nothing_to_retract, and those of a request that
// is closed. The caller adds the audit entry.
func (b *Book) Retract(ctx context.Context, tx *store.Tx, tenant string, request id.Approval, person id.Person, why string) (Request, error) {
	r, err := b.Get(ctx, tx, tenant, request)
	if err != nil {
		return Request{}, err
	}
	if err := r.closed(tx.Now()); err != nil {
		return Request{}, err
	}
	at := slices.IndexFunc(r.Decisions, func(d DecisionRecord) bool { return d.Person == person })
	if at < 0 {
		return Request{}, problem.New(problem.Conflict, "nothing_to_retract", "You have no vote on the current revision to take back.")
	}
	if len(why) > CommentBytesMax {
		return Request{}, invalid("Nothing was taken back.").At("/why", "is %d bytes long; at most %d are kept", len(why), CommentBytesMax)
	}
	now := store.Micros(tx.Now())
	if err := tx.ExecOne(ctx, sqlRetract, now, tenant, string(r.ID), r.Digest, r.votes); err != nil {
		return Request{}, fmt.Errorf("retract: %w", err)
	}
	if _, err := tx.Exec(ctx, sqlRetraction, tenant, string(r.Decisions[at].ID), why, now); err != nil {
		return Request{}, fmt.Errorf("store retraction: %w", err)
	}
	return b.Get(ctx, tx, tenant, request)
}
