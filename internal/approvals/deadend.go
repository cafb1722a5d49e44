package approvals

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"countersign/internal/id"
	"countersign/internal/store"
)

// crowd is People that remembers what it was told, for one reading.
type crowd struct {
	people  People
	byID    map[id.Person]Person
	holders map[string][]Person
}

func newCrowd(people People) *crowd {
	return &crowd{people, map[id.Person]Person{}, map[string][]Person{}}
}

func (c *crowd) Person(ctx context.Context, q store.Querier, tenant string, p id.Person) (Person, error) {
	if who, ok := c.byID[p]; ok {
		return who, nil
	}
	who, err := c.people.Person(ctx, q, tenant, p)
	if err == nil {
		c.byID[p] = who
	}
	return who, err
}

func (c *crowd) WithRole(ctx context.Context, q store.Querier, tenant, role string) ([]Person, error) {
	if all, ok := c.holders[role]; ok {
		return all, nil
	}
	all, err := c.people.WithRole(ctx, q, tenant, role)
	if err == nil {
		c.holders[role] = all
	}
	return all, err
}

// Reading is the book for one reading: it asks about each person once.
func (b *Book) Reading() *Book { return New(newCrowd(b.people)) }

// Deciders are the people who may still vote on a pending request as they are
// now, or in a clause why nobody can complete it. Problem: not_found.
func (b *Book) Deciders(ctx context.Context, q store.Querier, tenant string, request id.Approval) (can []Person, deadEnd string, err error) {
	i, _, _, err := load(ctx, q, tenant, request)
	if err != nil || i.Status != Pending {
		return nil, "", err
	}
	people, err := b.candidates(ctx, q, tenant, i.law.Groups)
	if err != nil {
		return nil, "", err
	}
	votes, err := decisions(ctx, q, tenant, request, i.Revision)
	if err != nil {
		return nil, "", err
	}
	e := i.law.eligibility(people)
	for _, p := range e.Can {
		if !slices.ContainsFunc(standingOnly(votes), func(d DecisionRecord) bool { return d.Person == p.ID }) {
			can = append(can, p)
		}
	}
	return can, e.DeadEnd, nil
}

// Names joins the names of people for a sentence: five, and how many more.
func Names(people []Person) string { return someNames(people) }

// deadEnd says why nobody can complete what the law asks, with the people as
// they are now; empty if it can be completed.
func (b *Book) deadEnd(ctx context.Context, q store.Querier, tenant string, l law) (string, error) {
	people, err := b.candidates(ctx, q, tenant, l.Groups)
	if err != nil {
		return "", err
	}
	return l.eligibility(people).DeadEnd, nil
}

// dead fills in which of the pending items nobody can complete now: what was
// stored is how it was when the revision was made.
func (b *Book) dead(ctx context.Context, q store.Querier, items []Item) error {
	now := b.Reading()
	for n, i := range items {
		if i.Status != Pending {
			items[n].DeadEnd = ""
			continue
		}
		why, err := now.deadEnd(ctx, q, i.Tenant, i.law)
		if err != nil {
			return err
		}
		items[n].DeadEnd = why
	}
	return nil
}

const (
	sqlPendingLaws = `SELECT law, count(*) FROM request WHERE tenant = $1 AND status = 'pending' AND decide_by > 0 GROUP BY law`
	sqlUnderLaw    = `SELECT ` + itemColumns + ` FROM request r WHERE r.tenant = $1 AND r.status = 'pending' AND r.law = $2
		ORDER BY r.decide_by, r.created_at, r.id LIMIT $3`
)

// DeadEnds lists the pending requests that nobody could complete with the
// people as they are now, at most PageMax of each kind of asking.
func (b *Book) DeadEnds(ctx context.Context, q store.Querier, tenant string) ([]Item, error) {
	laws, err := pendingLaws(ctx, q, tenant)
	if err != nil {
		return nil, err
	}
	now := b.Reading()
	var all []Item
	for _, l := range laws {
		why, err := now.deadEnd(ctx, q, tenant, l.law)
		if err != nil {
			return nil, err
		}
		if why == "" {
			continue
		}
		items, err := readItems(ctx, q, sqlUnderLaw, tenant, l.text, PageMax)
		if err != nil {
			return nil, err
		}
		for n := range items {
			items[n].DeadEnd = why
		}
		all = append(all, items...)
	}
	return all, nil
}

// askedLaw is a law under which requests wait.
type askedLaw struct {
	law  law
	text string
	n    int
}

func pendingLaws(ctx context.Context, q store.Querier, tenant string) ([]askedLaw, error) {
	rows, err := q.Query(ctx, sqlPendingLaws, tenant)
	if err != nil {
		return nil, fmt.Errorf("list what is asked: %w", err)
	}
	defer rows.Close()
	var all []askedLaw
	for rows.Next() {
		var l askedLaw
		if err := rows.Scan(&l.text, &l.n); err != nil {
			return nil, fmt.Errorf("list what is asked: %w", err)
		}
		if json.Unmarshal([]byte(l.text), &l.law) != nil {
			l.law = law{} // nobody may decide; Check says what is wrong
		}
		all = append(all, l)
	}
	return all, rows.Err()
}

// deadEnds counts what DeadEnds lists, without a limit.
func (b *Book) deadEnds(ctx context.Context, q store.Querier, tenant string) (n int, err error) {
	laws, err := pendingLaws(ctx, q, tenant)
	if err != nil {
		return 0, err
	}
	now := b.Reading()
	for _, l := range laws {
		why, err := now.deadEnd(ctx, q, tenant, l.law)
		if err != nil {
			return 0, err
		}
		if why != "" {
			n += l.n
		}
	}
	return n, nil
}
