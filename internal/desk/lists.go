package desk

import (
	"context"

	"countersign/internal/approvals"
	"countersign/internal/id"
	"countersign/internal/identity"
	"countersign/internal/store"
)

// items turns stored rows into views.
func items(all []approvals.Item) []Approval {
	out := make([]Approval, 0, len(all))
	for _, i := range all {
		out = append(out, itemView(i))
	}
	return out
}

// Inbox lists what waits for p, in the order of the deadline, then age.
func (d *Desk) Inbox(ctx context.Context, p identity.Principal) (page Page[Approval], err error) {
	return d.listFor(ctx, p, d.book.Inbox)
}

// WaitingOnOthers lists what p started or voted on and others must decide.
func (d *Desk) WaitingOnOthers(ctx context.Context, p identity.Principal) (page Page[Approval], err error) {
	return d.listFor(ctx, p, d.book.WaitingOnOthers)
}

func (d *Desk) listFor(ctx context.Context, p identity.Principal, list func(context.Context, store.Querier, string, id.Person) ([]approvals.Item, error)) (page Page[Approval], err error) {
	if err := require(p, capApprovalsRead, "read approval requests"); err != nil {
		return page, err
	}
	err = d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		all, err := list(ctx, q, Tenant, p.Person)
		page.Items = items(all)
		return err
	})
	return page, err
}

// Approvals lists requests: pending ones by deadline, others newest first.
// Problem: invalid_cursor.
func (d *Desk) Approvals(ctx context.Context, p identity.Principal, f ApprovalQuery) (page Page[Approval], err error) {
	if err := require(p, capApprovalsRead, "read approval requests"); err != nil {
		return page, err
	}
	filter := approvals.Filter{Tenant: Tenant, Status: approvals.Status(f.Status), Tool: f.Tool, Risk: f.Risk, Text: f.Text, Run: f.Run, Cursor: f.Cursor, Limit: limit(f.Limit)}
	if f.ForMe {
		filter.ForMe = p.Person
	}
	err = d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		all, next, err := d.book.List(ctx, q, filter)
		page.Items, page.Next = items(all), next
		return err
	})
	return page, err
}

// MyDecision is something p decided and what came of it.
type MyDecision struct {
	Decision DecisionView `json:"decision"`
	Approval Approval     `json:"approval"`
}

// MyDecisions lists what p decided, unknown outcomes first, then the newest.
func (d *Desk) MyDecisions(ctx context.Context, p identity.Principal, cursor string) (page Page[MyDecision], err error) {
	if err := require(p, capApprovalsRead, "read approval requests"); err != nil {
		return page, err
	}
	err = d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		all, next, err := d.book.DecidedBy(ctx, q, Tenant, p.Person, cursor, pageDefault)
		page.Next = next
		for _, m := range all {
			page.Items = append(page.Items, MyDecision{decisionView(m.Decision), itemView(m.Item)})
		}
		return err
	})
	return page, err
}

// Counts are the numbers in the rail.
type Counts struct {
	ForMe, WaitingOnOthers, Pending, Unknown, Attention int
}

// Counts counts for p: ForMe is what p may decide or answer, Attention what
// operators must look at.
func (d *Desk) Counts(ctx context.Context, p identity.Principal) (out Counts, err error) {
	err = d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		c, err := d.book.Counts(ctx, q, Tenant, p.Person)
		if err != nil {
			return err
		}
		questions, err := d.questionsFor(ctx, q, p)
		if err != nil {
			return err
		}
		dead, err := d.unanswerable(ctx, q)
		if err != nil {
			return err
		}
		attention, err := d.engine.Attention(ctx, q, Tenant)
		out = Counts{c.ForMe + len(questions), c.WaitingOnOthers, c.Pending, c.Unknown, len(attention) + c.DeadEnds + len(dead)}
		return err
	})
	return out, err
}
