package approvals_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"countersign/internal/approvals"
	"countersign/internal/id"
	"countersign/internal/problem"
	"countersign/internal/store"

	"github.com/google/go-cmp/cmp"
)

func TestDecide_RecordsWhoWhatAndByWhichAuthority(t *testing.T) {
	d := newDesk(t)
	r := d.ask(role("finance", 1))
	d.at(time.Minute)
	out, err := d.decide("ana", r, "approve")
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, out.Request, approvals.Approved)
	got := out.Request.Decisions[0]
	want := approvals.DecisionRecord{ID: got.ID, Request: r.ID, Revision: 1, Digest: r.Digest, Person: named("ana"), PersonName: "Ana", Verdict: "approve",
		Groups: []string{"finance"}, Authority: "finance", Rule: "big", Policy: "default", PolicyVersion: 1, Auth: "password", Channel: "browser",
		DecidedAt: start.Add(time.Minute)}
	if diff := cmp.Diff(want, got, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".turn" }, cmp.Ignore())); diff != "" {
		t.Errorf("decision (-want +got):\n%s", diff)
	}
	if !out.Complete || out.Replay {
		t.Errorf("complete %v, replay %v; want the first and only decision", out.Complete, out.Replay)
	}
	if want := start.Add(6 * time.Minute); !out.Request.ExecuteBy.Equal(want) {
		t.Errorf("execute by %s, want %s: it counts from the approval", out.Request.ExecuteBy, want)
	}
	if d.get(r.ID).Decisions[0].AuditEntry == "" {
		t.Error("the decision is not linked to its audit entry")
	}
}

// A01: the second click of a double click changes nothing and gets the same answer.
func TestDecide_TheSameVerdictAgainGivesTheSameAnswer(t *testing.T) {
	for _, verdict := range []string{"approve", "reject"} {
		d := newDesk(t)
		r := d.ask(role("finance", 1))
		first, err := d.decide("ana", r, verdict)
		if err != nil {
			t.Fatal(err)
		}
		d.at(time.Hour) // decide-by is long over
		again, err := d.decide("ana", r, verdict)
		if err != nil || !again.Replay || !again.Complete || again.Decision.ID != first.Decision.ID {
			t.Errorf("%s again: %+v, %v; want a replay of %s", verdict, again.Decision, err, first.Decision.ID)
		}
		other := map[string]string{"approve": "reject", "reject": "approve"}[verdict]
		_, err = d.decide("ana", r, other)
		wantCode(t, err, "already_decided")
	}
}

func TestDecide_TheSecondPersonLearnsWhoDecidedWhatAndWhen(t *testing.T) {
	d := newDesk(t)
	r := d.ask(role("finance", 1))
	if _, err := d.decide("ana", r, "reject"); err != nil {
		t.Fatal(err)
	}
	_, err := d.decide("ben", r, "approve")
	p := wantCode(t, err, "already_decided")
	won := p.Details["decision"].(map[string]any)
	if won["name"] != "Ana" || won["verdict"] != "reject" || !won["decided_at"].(time.Time).Equal(start) {
		t.Errorf("details = %v, want Ana's rejection at %s", won, start)
	}
	if want := "Ana rejected this at 2026-12-01 09:00:00 UTC."; p.Message != want {
		t.Errorf("message = %q, want %q", p.Message, want)
	}
}

// A04: one rule refuses the initiator, whoever asks for the decision.
func TestDecide_NobodyApprovesTheirOwn(t *testing.T) {
	d := newDesk(t)
	o := d.refund(asks(role("finance", 1)))
	o.Initiator, o.InitiatorName = named("ana"), "Ana"
	o.Principals = []id.Person{named("ben")}
	r := d.open(o)
	for _, name := range []string{"ana", "ben"} {
		_, err := d.decide(name, r, "approve")
		p := wantCode(t, err, "self_approval")
		if !strings.Contains(p.Message, "Cleo can") {
			t.Errorf("%s: %q does not say that Cleo can", name, p.Message)
		}
	}
	wantStatus(t, d.approve("cleo", r), approvals.Approved)
}

func TestDecide_WhoeverItIsOnBehalfOfCountsAsInitiator(t *testing.T) {
	d := newDesk(t)
	who := id.NewPerson(start)
	d.folk.set(approvals.Person{ID: who, Name: "Pia", Roles: []string{"finance"}, Active: true})
	o := d.refund(asks(role("finance", 1)))
	o.OnBehalfOf = string(who)
	r := d.open(o)
	err := d.change(func(ctx context.Context, tx *store.Tx) error {
		_, err := d.Decide(ctx, tx, approvals.Decision{Tenant: tenant, Request: r.ID, Digest: r.Digest, Verdict: "approve", Person: approvals.Person{ID: who}})
		return err
	})
	wantCode(t, err, "self_approval")
}

// A06: a quorum counts distinct people.
func TestDecide_AQuorumCountsDistinctPeople(t *testing.T) {
	d := newDesk(t)
	r := d.ask(role("finance", 1), role("legal", 1))
	r = d.approve("cleo", r) // stands in both groups
	wantStatus(t, r, approvals.Pending)
	out, err := d.decide("cleo", r, "approve")
	if err != nil || !out.Replay {
		t.Fatalf("a second vote of the same person: replay %v, %v", out.Replay, err)
	}
	wantStatus(t, d.get(r.ID), approvals.Pending)
	if got := have(d.get(r.ID)); got != 1 {
		t.Fatalf("%d votes count, want 1", got)
	}
	// Dora can only fill legal: Cleo then counts for finance.
	wantStatus(t, d.approve("dora", r), approvals.Approved)
}

func have(r approvals.Request) (n int) {
	for _, g := range r.Groups {
		n += g.Have
	}
	return n
}

// A08: who may decide is looked up when they decide, not when they looked.
func TestDecide_ARoleLostMeanwhileDoesNotDecide(t *testing.T) {
	d := newDesk(t)
	r := d.ask(role("finance", 1))
	d.folk.set(approvals.Person{ID: named("ana"), Name: "Ana", Roles: []string{"legal"}, Active: true})
	_, err := d.decide("ana", r, "approve")
	p := wantCode(t, err, "not_eligible")
	if want := "You can't decide this: Ana is not in finance. Ben and Cleo can."; p.Message != want {
		t.Errorf("message = %q, want %q", p.Message, want)
	}
	d.folk.set(approvals.Person{ID: named("ben"), Name: "Ben", Roles: []string{"finance"}})
	_, err = d.decide("ben", r, "approve")
	wantCode(t, err, "not_eligible")
	_, err = d.decide("nobody", r, "reject")
	wantCode(t, err, "not_eligible")
}

// A30: where nothing is said the approver role decides, never everybody.
func TestDecide_WithoutAPolicyOnlyTheApproverRoleDecides(t *testing.T) {
	d := newDesk(t)
	var none *approvals.Policy
	r := d.open(d.refund(none.Judge(context.Background(), approvals.Facts{Now: start})))
	for _, name := range []string{"ana", "olga", "nobody"} {
		for _, verdict := range []string{"approve", "reject"} {
			_, err := d.decide(name, r, verdict)
			wantCode(t, err, "not_eligible")
		}
	}
	wantStatus(t, d.approve("max", r), approvals.Approved)
}

// A09: votes belong to one digest. B19: a decision must name the digest that was seen.
func TestDecide_VotesBelongToOneDigest(t *testing.T) {
	d := newDesk(t)
	old := d.ask(role("finance", 2))
	d.approve("ben", old)
	now, err := d.edit("cleo", old, amount("40"), asks(role("finance", 2)))
	if err != nil {
		t.Fatal(err)
	}
	if have(now) != 0 || now.Revision != 2 || now.Digest == old.Digest || len(now.Decisions) != 0 {
		t.Fatalf("after the edit: revision %d, %d votes; want 2 and none", now.Revision, have(now))
	}
	_, err = d.decide("ana", old, "approve")
	p := wantCode(t, err, "stale_digest")
	changes := p.Details["changes"].([]approvals.Change)
	if !hasChange(changes, "/params/amount", "5000", "40") || p.Details["revision"] != 2 || p.Details["digest"] != now.Digest {
		t.Errorf("details = %v; want the new digest and that /params/amount went from 5000 to 40", p.Details)
	}
	_, err = d.decide("ben", old, "approve") // not a replay: his vote is void
	wantCode(t, err, "stale_digest")
	d.approve("ana", now)
	wantStatus(t, d.get(now.ID), approvals.Pending)
	wantStatus(t, d.approve("ben", now), approvals.Approved)
}

func hasChange(all []approvals.Change, pointer, from, to string) bool {
	for _, c := range all {
		if c.Pointer == pointer && string(c.Old) == from && string(c.New) == to {
			return true
		}
	}
	return false
}

// A10: a decision is bound to its request; another's digest is none of its own.
func TestDecide_ADigestOfAnotherRequestIsStale(t *testing.T) {
	d := newDesk(t)
	a, b := d.ask(role("finance", 1)), d.ask(role("finance", 1))
	b.Digest = a.Digest
	_, err := d.decide("ana", b, "approve")
	p := wantCode(t, err, "stale_digest")
	if _, has := p.Details["changes"]; has {
		t.Error("a foreign digest must not be compared")
	}
	wantStatus(t, d.get(b.ID), approvals.Pending)
}

// A17: equal proposals of two branches are two requests with two digests.
func TestOpen_EqualProposalsAreDifferentRequests(t *testing.T) {
	d := newDesk(t)
	o := d.refund(asks(role("finance", 1)))
	left := d.open(o)
	o.Path = "par/right/refund"
	right := d.open(o)
	if left.ID == right.ID || left.Digest == right.Digest {
		t.Fatal("two requests share an id or a digest")
	}
	if left.ParamsHash != right.ParamsHash {
		t.Error("equal parameters must have one hash")
	}
	wantStatus(t, d.approve("ana", left), approvals.Approved)
	wantStatus(t, d.get(right.ID), approvals.Pending)
	wantStatus(t, d.approve("ana", right), approvals.Approved)
}

// A19: a decision names a request of this tenant.
func TestDecide_NamesARequestOfTheTenant(t *testing.T) {
	d := newDesk(t)
	r := d.ask(role("finance", 1))
	for _, in := range []approvals.Decision{
		{Tenant: tenant, Digest: r.Digest, Verdict: "approve"},
		{Tenant: "other", Request: r.ID, Digest: r.Digest, Verdict: "approve"},
	} {
		in.Person.ID = named("ana")
		err := d.change(func(ctx context.Context, tx *store.Tx) error { _, err := d.Decide(ctx, tx, in); return err })
		wantCode(t, err, "not_found")
	}
}

// A20: of three requests one is approved, one rejected, one edited; none
// changes another.
func TestDecide_RequestsOfOneRunAreIndependent(t *testing.T) {
	d := newDesk(t)
	a, b, c := d.ask(role("finance", 1)), d.ask(role("finance", 1)), d.ask(role("finance", 1))
	if _, err := d.decide("ana", b, "reject"); err != nil {
		t.Fatal(err)
	}
	d.approve("ana", a)
	edited, err := d.edit("ana", c, amount("1"), asks(role("finance", 1)))
	if err != nil {
		t.Fatal(err)
	}
	d.approve("ben", edited)
	wantStatus(t, d.get(a.ID), approvals.Approved)
	wantStatus(t, d.get(b.ID), approvals.Rejected)
	wantStatus(t, d.get(c.ID), approvals.Approved)
}

// A13: two clocks, and the instant itself is over.
func TestDecide_DecideByIsOverAtItsInstant(t *testing.T) {
	d := newDesk(t)
	early, late := d.ask(role("finance", 1)), d.ask(role("finance", 1))
	d.at(10*time.Minute - time.Microsecond)
	early = d.approve("ana", early)
	wantStatus(t, early, approvals.Approved)
	if want := start.Add(15*time.Minute - time.Microsecond); !early.ExecuteBy.Equal(want) {
		t.Errorf("execute by %s, want %s", early.ExecuteBy, want)
	}
	d.at(10 * time.Minute)
	_, err := d.decide("ana", late, "approve")
	wantCode(t, err, "expired")
	d.at(10*time.Minute + time.Second)
	_, err = d.decide("ana", late, "reject")
	wantCode(t, err, "expired")
}

func TestDecide_NothingIsDecidedWhileTheClockIsSuspect(t *testing.T) {
	d := newDesk(t)
	r := d.ask(role("finance", 1))
	d.at(-6 * time.Minute)
	_, err := d.decide("ana", r, "approve")
	wantCode(t, err, "clock_suspect")
	wantStatus(t, d.get(r.ID), approvals.Pending)
}

// 100 people click at once: one wins, everybody else learns who.
func TestDecide_OneOfAHundredParallelDecisionsWins(t *testing.T) {
	d := newDesk(t)
	for i := range 100 {
		d.folk.set(approvals.Person{ID: named(fmt.Sprintf("p%02d", i)), Name: fmt.Sprintf("Person %02d", i), Roles: []string{"finance"}, Active: true})
	}
	r := d.ask(role("finance", 1))
	var wins atomic.Int32
	var winner atomic.Value
	errs := make([]error, 100)
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			out, err := d.decide(fmt.Sprintf("p%02d", i), r, []string{"approve", "reject"}[i%2])
			if err == nil && !out.Replay {
				wins.Add(1)
				winner.Store(out.Decision)
			}
			errs[i] = err
		})
	}
	wg.Wait()
	if wins.Load() != 1 {
		t.Fatalf("%d won, want 1", wins.Load())
	}
	won := winner.Load().(approvals.DecisionRecord)
	for i, err := range errs {
		if named(fmt.Sprintf("p%02d", i)) == won.Person {
			continue
		}
		p := wantCode(t, err, "already_decided")
		if p.Details["decision"].(map[string]any)["person"] != string(won.Person) {
			t.Fatalf("person %d was told of %v, but %s won", i, p.Details, won.Person)
		}
	}
	after := d.get(r.ID)
	if len(after.Decisions) != 1 || !map[approvals.Status]bool{approvals.Approved: true, approvals.Rejected: true}[after.Status] {
		t.Errorf("%d decisions, status %s; want one", len(after.Decisions), after.Status)
	}
}

// Of a quorum raced by approvals and rejections, no more votes count than it
// takes, and what is stored agrees with itself.
func TestDecide_ARacedQuorumEndsConsistently(t *testing.T) {
	d := newDesk(t)
	for i := range 30 {
		d.folk.set(approvals.Person{ID: named(fmt.Sprintf("p%02d", i)), Name: "P", Roles: []string{"finance"}, Active: true})
	}
	r := d.ask(role("finance", 3))
	var wg sync.WaitGroup
	for i := range 30 {
		wg.Go(func() {
			verdict := "approve"
			if i%10 == 9 {
				verdict = "reject"
			}
			if _, err := d.decide(fmt.Sprintf("p%02d", i), r, verdict); err != nil && !problem.HasCode(err, "already_decided") {
				t.Errorf("person %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	d.view(func(ctx context.Context, q store.Querier) error {
		c, err := d.Check(ctx, q, tenant, r.ID)
		if err != nil || c.Tampered != "" || c.Status == approvals.Pending || len(c.Decisions) > 3 {
			t.Errorf("status %s, %d decisions, tampered %q, %v", c.Status, len(c.Decisions), c.Tampered, err)
		}
		return nil
	})
}

func TestDecide_IsRefusedByTheStoreWithoutAnAuditEntry(t *testing.T) {
	d := newDesk(t)
	r := d.ask(role("finance", 1))
	err := d.db.Update(context.Background(), func(ctx context.Context, tx *store.Tx) error {
		_, err := d.Decide(ctx, tx, approvals.Decision{Tenant: tenant, Request: r.ID, Digest: r.Digest, Verdict: "approve", Person: approvals.Person{ID: named("ana")}})
		return err
	})
	if !errors.Is(err, store.ErrUnaudited) {
		t.Fatalf("Update = %v, want ErrUnaudited", err)
	}
	wantStatus(t, d.get(r.ID), approvals.Pending)
}

func TestSetAudit_LinksOnce(t *testing.T) {
	d := newDesk(t)
	r := d.ask(role("finance", 1))
	out, err := d.decide("ana", r, "approve")
	if err != nil {
		t.Fatal(err)
	}
	err = d.change(func(ctx context.Context, tx *store.Tx) error {
		return d.SetAudit(ctx, tx, out.Decision.ID, "ent_other")
	})
	if !store.IsUnique(err) {
		t.Errorf("a second link: %v, want a violated constraint", err)
	}
	err = d.change(func(ctx context.Context, tx *store.Tx) error { return d.SetAudit(ctx, tx, "dec_none", "ent_other") })
	if !errors.Is(err, store.ErrConflict) {
		t.Errorf("a link of no decision: %v, want ErrConflict", err)
	}
}
