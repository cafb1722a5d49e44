package approvals

import (
	"context"
	"fmt"
	"slices"

	"countersign/internal/id"
	"countersign/internal/store"
)

// Inbox lists what waits for the person, in the order of the deadline, then
// age: pending requests that they may approve, have not voted on, and whose
// open places they can fill. One page of PageMax; List with ForMe has more.
func (b *Book) Inbox(ctx context.Context, q store.Querier, tenant string, person id.Person) ([]Item, error) {
	items, _, err := b.List(ctx, q, Filter{Tenant: tenant, ForMe: person, Limit: PageMax})
	return items, err
}

// listForMe reads pending requests page by page until enough wait for the
// person.
func (b *Book) listForMe(ctx context.Context, q store.Querier, f Filter) ([]Item, string, error) {
	who, err := b.person(ctx, q, f.Tenant, f.ForMe)
	if err != nil || !who.Active {
		return nil, "", err
	}
	var after key
	if err := after.parse(f.Cursor); err != nil {
		return nil, "", err
	}
	f.Status = Pending
	var mine []Item
	for len(mine) <= f.Limit {
		page, err := readItems(ctx, q, sqlByDeadline, append(f.args(), after.first, after.second, after.id, PageMax)...)
		if err != nil {
			return nil, "", err
		}
		for _, i := range page {
			ok, err := b.waitsFor(ctx, q, &i, who)
			if err != nil {
				return nil, "", err
			}
			if ok {
				mine = append(mine, i)
			}
		}
		if len(page) < PageMax {
			break
		}
		after = keyOf(page[len(page)-1])
	}
	if len(mine) > f.Limit {
		mine = mine[:f.Limit+1]
	}
	mine, nextCursor := cut(mine, f.Limit, keyOf)
	return mine, nextCursor, b.dead(ctx, q, mine)
}

// waitsFor reports whether the person's approval would fill a place, and
// counts the votes.
func (b *Book) waitsFor(ctx context.Context, q store.Querier, i *Item, who Person) (bool, error) {
	s := i.law.standing(who, VerdictApprove)
	if !s.May {
		return false, nil
	}
	if i.votes == 0 {
		return true, nil
	}
	all, err := decisions(ctx, q, i.Tenant, i.ID, i.Revision)
	if err != nil {
		return false, err
	}
	votes := standingOnly(all)
	i.Groups = progress(i.law.Groups, votes)
	if slices.ContainsFunc(votes, func(d DecisionRecord) bool { return d.Person == who.ID }) {
		return false, nil
	}
	can := recordedGroups(i.law.Groups, votes)
	return count(i.law.Groups, append(can, s.groups)).filled > count(i.law.Groups, can).filled, nil
}

const sqlWaitingOnOthers = `SELECT ` + itemColumns + ` FROM request r WHERE r.tenant = $1 AND r.status = 'pending'
	AND (r.initiator = $2 OR EXISTS (SELECT 1 FROM decision d LEFT JOIN retraction x ON x.tenant = d.tenant AND x.decision = d.id
		WHERE d.tenant = r.tenant AND d.request = r.id AND d.revision = r.revision AND d.person = $2 AND x.at IS NULL))
	ORDER BY r.decide_by, r.created_at, r.id LIMIT $3`

// WaitingOnOthers lists pending requests that the person started or has voted
// on, by deadline, then age; at most PageMax.
func (b *Book) WaitingOnOthers(ctx context.Context, q store.Querier, tenant string, person id.Person) ([]Item, error) {
	items, err := readItems(ctx, q, sqlWaitingOnOthers, tenant, string(person), PageMax)
	if err != nil {
		return nil, err
	}
	return items, b.present(ctx, q, items)
}

// MyDecision is something a person decided and what came of it.
type MyDecision struct {
	Decision DecisionRecord
	Item     Item // as it is now: Outcome tells how it ended
}

const sqlDecidedBy = `SELECT ` + decisionColumns + `, CASE WHEN r.outcome = 'unknown' THEN 0 ELSE 1 END AS rank` + decisionJoins + `
	JOIN request r ON r.tenant = d.tenant AND r.id = d.request
	WHERE d.tenant = $1 AND d.person = $2
		AND ((CASE WHEN r.outcome = 'unknown' THEN 0 ELSE 1 END) > $3
			OR ((CASE WHEN r.outcome = 'unknown' THEN 0 ELSE 1 END) = $3 AND (d.decided_at, d.id) < ($4, $5)))
	ORDER BY rank, d.decided_at DESC, d.id DESC LIMIT $6`

// DecidedBy lists what the person decided: those with an unknown outcome
// first, then the newest. Problem: invalid_cursor.
func (b *Book) DecidedBy(ctx context.Context, q store.Querier, tenant string, person id.Person, cursor string, limit int) ([]MyDecision, string, error) {
	after := key{first: 0, second: maxMicros}
	if cursor != "" {
		if err := after.parse(cursor); err != nil {
			return nil, "", err
		}
	}
	limit = pageSize(limit)
	mine, ranks, err := readDecided(ctx, q, tenant, string(person), after.first, after.second, after.id, limit+1)
	if err != nil {
		return nil, "", err
	}
	n := 0
	mine, nextCursor := cut(mine, limit, func(m MyDecision) key {
		n = limit - 1
		return key{ranks[n], store.Micros(m.Decision.DecidedAt), string(m.Decision.ID)}
	})
	for i := range mine {
		if mine[i].Item, _, _, err = load(ctx, q, tenant, mine[i].Decision.Request); err != nil {
			return nil, "", err
		}
	}
	return mine, nextCursor, nil
}

func readDecided(ctx context.Context, q store.Querier, args ...any) (all []MyDecision, ranks []int64, err error) {
	rows, err := q.Query(ctx, sqlDecidedBy, args...)
	if err != nil {
		return nil, nil, fmt.Errorf("list decisions: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var rank int64
		d, err := scanDecision(rows, &rank)
		if err != nil {
			return nil, nil, fmt.Errorf("list decisions: %w", err)
		}
		all, ranks = append(all, MyDecision{Decision: d}), append(ranks, rank)
	}
	return all, ranks, rows.Err()
}

// Counts are the numbers beside the lists.
type Counts struct {
	ForMe           int // at most PageMax
	WaitingOnOthers int
	Pending         int
	DeadEnds        int // pending requests that nobody can complete as people are now
	Unknown         int // decided by the person, with an unknown outcome
}

// decide_by and id are there for the indexes of what is pending and unknown,
// which are short where the table is long.
const sqlCounts = `SELECT
	(SELECT count(*) FROM request WHERE tenant = $1 AND status = 'pending' AND decide_by > 0),
	(SELECT count(*) FROM request r WHERE r.tenant = $1 AND r.id > '' AND r.outcome = 'unknown'
		AND EXISTS (SELECT 1 FROM decision d WHERE d.tenant = $1 AND d.request = r.id AND d.person = $2))`

// Counts counts for the person.
func (b *Book) Counts(ctx context.Context, q store.Querier, tenant string, person id.Person) (Counts, error) {
	var c Counts
	if err := q.QueryRow(ctx, sqlCounts, tenant, string(person)).Scan(&c.Pending, &c.Unknown); err != nil {
		return c, fmt.Errorf("count requests: %w", err)
	}
	var err error
	if c.DeadEnds, err = b.deadEnds(ctx, q, tenant); err != nil {
		return c, err
	}
	mine, err := b.Inbox(ctx, q, tenant, person)
	if err != nil {
		return c, err
	}
	others, err := b.WaitingOnOthers(ctx, q, tenant, person)
	c.ForMe, c.WaitingOnOthers = len(mine), len(others)
	return c, err
}
