package desk

import (
	"context"
	"time"

	"countersign/internal/approvals"
	"countersign/internal/id"
	"countersign/internal/identity"
	"countersign/internal/problem"
	"countersign/internal/store"
)

// freshFor is how long after signing in a person may approve what the policy
// says needs their password.
const freshFor = 10 * time.Minute

// freshly refuses an approval where the policy wants the password and it was
// not typed a moment ago. Tokens never do.
func (d *Desk) freshly(ctx context.Context, tx *store.Tx, p identity.Principal, ref, verdict string) error {
	r, err := d.book.Get(ctx, tx, Tenant, id.Approval(ref))
	if err != nil || verdict != approvals.VerdictApprove || !r.Ruling.Reauthenticate || p.Token == "" && p.Session == "" {
		return err
	}
	sessions, err := d.people.Sessions(ctx, tx, p.Person)
	for _, s := range sessions {
		if s.ID == p.Session && p.Token == "" && tx.Now().Sub(s.Created) < freshFor {
			return err
		}
	}
	if err != nil {
		return err
	}
	return problem.New(problem.Forbidden, "reauthenticate",
		"The policy asks for your password for this. Sign out and in again at the console, and approve within %d minutes.", int(freshFor/time.Minute))
}

// bySession refuses an approval by token of what is of high or critical risk:
// a token can be taken, and a person's presence is what such a decision needs
// (DESIGN section 7). Rejecting is always possible.
func bySession(p identity.Principal, risk, verdict string) error {
	if p.Token == "" || verdict != approvals.VerdictApprove || risk != "high" && risk != "critical" {
		return nil
	}
	return problem.New(problem.Forbidden, "not_eligible", "A token does not approve what is of %s risk. Sign in at the console and decide there.", risk)
}
