package approvals_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"countersign/internal/approvals"
	"countersign/internal/problem"
	"countersign/internal/store"

	"pgregory.net/rapid"
)

// model is what a request should be, told without SQL, digests or matching.
type model struct {
	status   approvals.Status
	votes    []string // who approves the current revision
	rejecter string
	editors  []string
	need     map[string]int
	decideBy time.Time
	execBy   time.Time
}

var roles = map[string][]string{"ana": {"finance"}, "ben": {"finance"}, "cleo": {"finance", "legal"}, "dora": {"legal"}, "ivo": nil}

func (m *model) total() int { return m.need["finance"] + m.need["legal"] }

// complete tries every way to give the voters places.
func (m *model) complete(voters []string) bool {
	var try func(i, finance, legal int) bool
	try = func(i, finance, legal int) bool {
		if finance <= 0 && legal <= 0 {
			return true
		}
		if i == len(voters) {
			return false
		}
		for _, r := range roles[voters[i]] {
			if r == "finance" && try(i+1, finance-1, legal) || r == "legal" && try(i+1, finance, legal-1) {
				return true
			}
		}
		return try(i+1, finance, legal)
	}
	return try(0, m.need["finance"], m.need["legal"])
}

// stands reports whether the person has a role that is asked for.
func (m *model) stands(name string) bool {
	return slices.ContainsFunc(roles[name], func(r string) bool { return m.need[r] > 0 })
}

func (m *model) decide(name, verdict string, now time.Time) (ok bool) {
	if slices.Contains(m.votes, name) {
		return verdict == "approve" // a replay
	}
	if m.rejecter == name {
		return verdict == "reject"
	}
	if m.status != approvals.Pending || !now.Before(m.decideBy) || !m.stands(name) {
		return false
	}
	if verdict == "reject" {
		m.status, m.rejecter = approvals.Rejected, name
		return true
	}
	if slices.Contains(m.editors, name) && m.total() > 1 {
		return false
	}
	m.votes = append(m.votes, name)
	if m.complete(m.votes) {
		m.status, m.execBy = approvals.Approved, now.Add(5*time.Minute)
	}
	return true
}

// Whatever people and time do in whatever order, the stored request is what
// the model says, agrees with itself, and is never approved by too few.
func TestBook_FollowsTheModel(t *testing.T) {
	d := newDesk(t)
	elapsed := time.Duration(0)
	rapid.Check(t, func(t *rapid.T) {
		m := &model{status: approvals.Pending, need: map[string]int{"finance": rapid.IntRange(1, 2).Draw(t, "finance"), "legal": rapid.IntRange(0, 1).Draw(t, "legal")}}
		groups := []approvals.Group{role("finance", m.need["finance"])}
		if m.need["legal"] > 0 {
			groups = append(groups, role("legal", 1))
		}
		v := asks(groups...)
		r := d.ask(groups...)
		m.decideBy = r.DecideBy
		for range rapid.IntRange(1, 10).Draw(t, "steps") {
			name := rapid.SampledFrom([]string{"ana", "ben", "cleo", "dora", "ivo"}).Draw(t, "who")
			now := start.Add(elapsed)
			var err error
			ok := false
			what := rapid.SampledFrom([]string{"approve", "approve", "approve", "reject", "retract", "edit", "revoke", "withdraw", "wait"}).Draw(t, "what")
			switch what {
			case "approve", "reject":
				ok = m.decide(name, what, now)
				_, err = d.decide(name, r, what)
			case "retract":
				at := slices.Index(m.votes, name)
				ok = m.status == approvals.Pending && now.Before(m.decideBy) && at >= 0
				if ok {
					m.votes = slices.Delete(m.votes, at, at+1)
				}
				err = d.change(func(ctx context.Context, tx *store.Tx) error {
					_, err := d.Retract(ctx, tx, tenant, r.ID, named(name), "")
					return err
				})
			case "edit":
				ok = m.status == approvals.Pending && now.Before(m.decideBy) && (name == "ivo" || m.stands(name))
				if ok {
					m.votes = nil
					m.editors = append(m.editors, name)
				}
				_, err = d.edit(name, r, amount(fmt.Sprint(r.Revision)), v)
			case "revoke":
				ok = m.status == approvals.Approved && slices.Contains(m.votes, name)
				if ok {
					m.status, m.votes, m.decideBy = approvals.Pending, nil, now.Add(10*time.Minute)
				}
				_, err = d.revoke(name, r, v)
			case "withdraw":
				ok = true
				if m.status.Open() {
					m.status = approvals.Withdrawn
				}
				err = d.change(func(ctx context.Context, tx *store.Tx) error {
					_, _, err := d.Withdraw(ctx, tx, tenant, r.ID, approvals.Party{}, "")
					return err
				})
			case "wait":
				ok = true
				elapsed += time.Duration(rapid.IntRange(1, 6).Draw(t, "minutes")) * time.Minute
				d.at(elapsed)
				if now = start.Add(elapsed); m.status == approvals.Pending && !now.Before(m.decideBy) || m.status == approvals.Approved && !now.Before(m.execBy) {
					m.status = approvals.Expired
				}
				err = d.change(func(ctx context.Context, tx *store.Tx) error {
					_, _, err := d.Expire(ctx, tx, tenant, r.ID)
					return err
				})
			}
			if ok != (err == nil) || err != nil && problem.From(err).Kind == problem.Internal {
				t.Fatalf("%s by %s: %v, want success %v (model %+v)", what, name, err, ok, m)
			}
			c := d.check(r.ID)
			if c.Status != m.status || c.Tampered != "" {
				t.Fatalf("after %s by %s: status %s, tampered %q; want %s", what, name, c.Status, c.Tampered, m.status)
			}
			if c.Status == approvals.Approved && !m.complete(m.votes) {
				t.Fatalf("approved by %v, which is too few for %v", m.votes, m.need)
			}
			r = c.Request
		}
	})
}
