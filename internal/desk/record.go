package desk

import (
	"context"
	"errors"

	"countersign/internal/approvals"
	"countersign/internal/id"
	"countersign/internal/problem"
	"countersign/internal/store"
)

// stored is a request as it is kept, and what does not hold about it.
type stored struct {
	approvals.Request
	tampered   string // a clause; empty: everything agrees
	unreadable bool   // the row alone could be read
}

// asStored reads a request for showing it. One whose record was changed is
// shown, with the alarm, rather than refused: whoever looks must see it.
// Problem: not_found.
func (d *Desk) asStored(ctx context.Context, q store.Querier, request id.Approval) (stored, error) {
	c, err := d.book.Check(ctx, q, Tenant, request)
	if err != nil {
		return stored{}, err
	}
	out := stored{tampered: c.Tampered}
	out.Request, err = d.book.Get(ctx, q, Tenant, request)
	if errors.Is(err, approvals.ErrUnreadable) {
		out.Request, out.unreadable, err = c.Request, true, nil
		out.Subject = c.Subject
	}
	if out.tampered != "" {
		d.logger.Error("a stored approval does not hold", "approval", request, "run", out.Run, "why", out.tampered)
	}
	return out, err
}

// holds refuses an approval of a request whose record was changed. It can be
// rejected.
func (d *Desk) holds(ctx context.Context, q store.Querier, ref, verdict string) error {
	if verdict != approvals.VerdictApprove {
		return nil
	}
	s, err := d.asStored(ctx, q, id.Approval(ref))
	if err != nil || s.tampered == "" || s.unreadable {
		return err // what cannot be read is refused by whoever reads it
	}
	return problem.New(problem.Conflict, "record_changed", "%s", s.alarm())
}

// alarm says what does not hold, and what follows; empty where all does.
func (s stored) alarm() string {
	if s.tampered == "" {
		return ""
	}
	return "The stored record of this request was changed: " + s.tampered + ". Nothing is sent on it. Keep the data folder as it is and compare it with a backup; an operator can cancel the run."
}
