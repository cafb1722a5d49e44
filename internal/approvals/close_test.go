package approvals_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"countersign/internal/approvals"
	"countersign/internal/id"
	"countersign/internal/store"

	"github.com/google/go-cmp/cmp"
)

func (d *desk) expire(request id.Approval) (r approvals.Request, changed bool) {
	d.t.Helper()
	d.must(func(ctx context.Context, tx *store.Tx) (err error) {
		r, changed, err = d.Expire(ctx, tx, tenant, request)
		return err
	})
	return r, changed
}

func (d *desk) due() (ids []id.Approval) {
	d.t.Helper()
	d.view(func(ctx context.Context, q store.Querier) (err error) {
		ids, err = d.Due(ctx, q, tenant, d.clock.Now())
		return err
	})
	return ids
}

// A14: nobody acting is neither a rejection nor an approval.
func TestExpire_SilenceIsExpiredAndNotRejected(t *testing.T) {
	d := newDesk(t)
	r := d.ask(role("finance", 2))
	d.approve("ana", r)
	d.at(10*time.Minute - time.Microsecond)
	if _, changed := d.expire(r.ID); changed || len(d.due()) != 0 {
		t.Fatal("expired before its time")
	}
	d.at(10 * time.Minute)
	if diff := cmp.Diff([]id.Approval{r.ID}, d.due()); diff != "" {
		t.Fatalf("due (-want +got):\n%s", diff)
	}
	got, changed := d.expire(r.ID)
	wantStatus(t, got, approvals.Expired)
	if !changed || got.ClosedBy != "" || got.ClosedWhy == "" || !got.ClosedAt.Equal(start.Add(10*time.Minute)) {
		t.Errorf("closed by %q at %s because %q; want nobody, now, with a reason", got.ClosedBy, got.ClosedAt, got.ClosedWhy)
	}
	if _, changed := d.expire(r.ID); changed || len(d.due()) != 0 {
		t.Error("expired twice")
	}
	_, err := d.decide("ben", r, "approve")
	wantCode(t, err, "expired")
}

// A13: the second clock starts at the approval.
func TestExpire_AnApprovalIsOverAtExecuteBy(t *testing.T) {
	d := newDesk(t)
	r := d.approve("ana", d.ask(role("finance", 1)))
	allowed := d.open(d.refund(says(approvals.Allow)))
	d.at(5*time.Minute - time.Microsecond)
	if len(d.due()) != 0 {
		t.Fatal("due before its time")
	}
	d.at(5 * time.Minute)
	if n := len(d.due()); n != 2 {
		t.Fatalf("%d are due, want both", n)
	}
	err := d.change(func(ctx context.Context, tx *store.Tx) error { return d.Begin(ctx, tx, tenant, r.ID, r.Digest) })
	if !errors.Is(err, store.ErrConflict) {
		t.Errorf("begin at execute-by: %v, want ErrConflict", err)
	}
	for _, one := range []id.Approval{r.ID, allowed.ID} {
		got, _ := d.expire(one)
		wantStatus(t, got, approvals.Expired)
	}
}

func TestExpire_WhatIsBeingExecutedDoesNotExpire(t *testing.T) {
	d := newDesk(t)
	r := d.approve("ana", d.ask(role("finance", 1)))
	d.must(func(ctx context.Context, tx *store.Tx) error { return d.Begin(ctx, tx, tenant, r.ID, r.Digest) })
	d.at(time.Hour)
	for _, outcome := range []string{"", "unknown", "confirmed"} {
		if outcome != "" {
			d.must(func(ctx context.Context, tx *store.Tx) error { return d.Settled(ctx, tx, tenant, r.ID, outcome) })
		}
		if _, changed := d.expire(r.ID); changed || len(d.due()) != 0 {
			t.Errorf("outcome %q: expired, want it left alone", outcome)
		}
	}
	d.must(func(ctx context.Context, tx *store.Tx) error { return d.Settled(ctx, tx, tenant, r.ID, "not_done") })
	if len(d.due()) != 1 {
		t.Error("after not_done it is unused again, and its time is over")
	}
	got, _ := d.expire(r.ID)
	wantStatus(t, got, approvals.Expired)
}

// A16: who decides after a cancellation learns who cancelled, when and why.
func TestWithdraw_ADecisionAfterwardsLearnsWho(t *testing.T) {
	d := newDesk(t)
	r := d.ask(role("finance", 1))
	d.at(time.Minute)
	withdraw := func() (changed bool) {
		d.must(func(ctx context.Context, tx *store.Tx) (err error) {
			_, changed, err = d.Withdraw(ctx, tx, tenant, r.ID, approvals.Party{ID: named("olga"), Name: "Olga"}, "run cancelled: wrong week")
			return err
		})
		return changed
	}
	if !withdraw() {
		t.Fatal("not withdrawn")
	}
	_, err := d.decide("ana", r, "approve")
	p := wantCode(t, err, "run_not_waiting")
	if want := "This was withdrawn at 2026-12-01 09:01:00 UTC by Olga: run cancelled: wrong week. Nothing waits for a decision any more."; p.Message != want {
		t.Errorf("message = %q, want %q", p.Message, want)
	}
	if withdraw() {
		t.Error("withdrawn twice")
	}
	wantStatus(t, d.get(r.ID), approvals.Withdrawn)
}

func TestRetract_TakesOnesOwnVoteBackBeforeCompletion(t *testing.T) {
	d := newDesk(t)
	r := d.ask(role("finance", 2))
	d.approve("ana", r)
	retract := func(name string) error {
		return d.change(func(ctx context.Context, tx *store.Tx) error {
			_, err := d.Retract(ctx, tx, tenant, r.ID, named(name), "on second thought")
			return err
		})
	}
	wantCode(t, retract("ben"), "nothing_to_retract")
	if err := retract("ana"); err != nil {
		t.Fatal(err)
	}
	wantCode(t, retract("ana"), "nothing_to_retract")
	wantStatus(t, d.approve("ben", r), approvals.Pending)
	out, err := d.decide("ana", r, "approve") // a new decision, no replay of the retracted one
	if err != nil || out.Replay {
		t.Fatalf("voting again: replay %v, %v", out.Replay, err)
	}
	wantStatus(t, out.Request, approvals.Approved)
	wantCode(t, retract("ana"), "already_decided")
	d.view(func(ctx context.Context, q store.Querier) error {
		all, err := d.Decisions(ctx, q, tenant, r.ID)
		if len(all) != 3 || all[0].RetractedAt.IsZero() == all[2].RetractedAt.IsZero() && all[1].RetractedAt.IsZero() == all[0].RetractedAt.IsZero() {
			t.Errorf("history = %+v, want three decisions, one retracted", all)
		}
		c, err2 := d.Check(ctx, q, tenant, r.ID)
		if c.Tampered != "" {
			t.Errorf("tampered: %s", c.Tampered)
		}
		return errors.Join(err, err2)
	})
}

func TestExtend_MovesTheDeadlineAndNothingElse(t *testing.T) {
	d := newDesk(t)
	r := d.ask(role("finance", 2))
	d.approve("ana", r)
	extend := func(by time.Time, why string) (out approvals.Request, err error) {
		err = d.change(func(ctx context.Context, tx *store.Tx) (err error) {
			out, err = d.Extend(ctx, tx, approvals.Extension{Tenant: tenant, Request: r.ID, DecideBy: by, Person: approvals.Person{ID: named("olga"), Name: "Olga"}, Why: why})
			return err
		})
		return out, err
	}
	for name, c := range map[string]struct {
		by  time.Time
		why string
	}{"earlier": {r.DecideBy, "x"}, "no reason": {start.Add(time.Hour), " "}, "too far": {start.Add(91 * 24 * time.Hour), "x"}} {
		if _, err := extend(c.by, c.why); err == nil {
			t.Errorf("%s: extended", name)
		}
	}
	got, err := extend(start.Add(time.Hour), "holiday")
	if err != nil || got.Digest != r.Digest || have(got) != 1 || !got.DecideBy.Equal(start.Add(time.Hour)) {
		t.Fatalf("digest %s, %d votes, decide by %s, %v", got.Digest, have(got), got.DecideBy, err)
	}
	d.at(30 * time.Minute)
	wantStatus(t, d.approve("ben", r), approvals.Approved)
	d.view(func(ctx context.Context, q store.Querier) error {
		c, err := d.Check(ctx, q, tenant, r.ID)
		if c.Tampered != "" {
			t.Errorf("tampered: %s", c.Tampered)
		}
		notes, err2 := d.Notes(ctx, q, tenant, r.ID)
		if len(notes) != 1 || notes[0].Kind != approvals.NoteExtension || notes[0].Text != "holiday" || !notes[0].DecideBy.Equal(start.Add(time.Hour)) {
			t.Errorf("notes = %+v", notes)
		}
		return errors.Join(err, err2)
	})
	_, err = extend(start.Add(2*time.Hour), "more")
	wantCode(t, err, "already_decided")
}

func TestSeen_NotesTheFirstFullViewOnce(t *testing.T) {
	d := newDesk(t)
	r := d.ask(role("finance", 1))
	seen := func() (first bool) {
		d.must(func(ctx context.Context, tx *store.Tx) (err error) {
			first, err = d.Seen(ctx, tx, tenant, r.ID, 1, approvals.Party{ID: named("ana"), Name: "Ana"})
			return err
		})
		return first
	}
	if !seen() || seen() {
		t.Error("want the first view noted, the second not")
	}
	d.view(func(ctx context.Context, q store.Querier) error {
		has, err := d.HasSeen(ctx, q, tenant, r.ID, 1, named("ana"))
		not, err2 := d.HasSeen(ctx, q, tenant, r.ID, 1, named("ben"))
		if !has || not {
			t.Errorf("seen by ana %v, by ben %v", has, not)
		}
		return errors.Join(err, err2)
	})
}

func TestComment_IsKeptInAnyState(t *testing.T) {
	d := newDesk(t)
	r := d.approve("ana", d.ask(role("finance", 1)))
	comment := func(text string) error {
		return d.change(func(ctx context.Context, tx *store.Tx) error {
			return d.Comment(ctx, tx, tenant, r.ID, named("ben"), "Ben", text)
		})
	}
	wantCode(t, comment("  "), "invalid")
	wantCode(t, comment(string(make([]byte, approvals.CommentBytesMax+1))), "invalid")
	for _, text := range []string{"one", "two"} {
		if err := comment(text); err != nil {
			t.Fatal(err)
		}
	}
	d.view(func(ctx context.Context, q store.Querier) error {
		notes, err := d.Notes(ctx, q, tenant, r.ID)
		if len(notes) != 2 || notes[0].Text != "one" || notes[1].By.Name != "Ben" {
			t.Errorf("notes = %+v", notes)
		}
		return err
	})
}

// A26: a rejection is remembered, with its reason, for exactly this call.
func TestPreviouslyRejected_RemembersExactlyThisCall(t *testing.T) {
	d := newDesk(t)
	r := d.ask(role("finance", 1))
	if _, err := d.decide("ana", r, "reject"); err != nil {
		t.Fatal(err)
	}
	d.view(func(ctx context.Context, q store.Querier) error {
		got, err := d.PreviouslyRejected(ctx, q, tenant, named("ivo"), "shop.refund", r.ParamsHash)
		want := approvals.Refusal{Request: r.ID, Run: r.Run, Digest: r.Digest, By: named("ana"), ByName: "Ana", Comment: "not like this", At: start, Times: 1}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		inRun, err := d.RejectedInRun(ctx, q, tenant, r.Run, "shop.refund", r.ParamsHash)
		if diff := cmp.Diff(want, inRun); diff != "" || err != nil {
			t.Errorf("in the run: %v (-want +got):\n%s", err, diff)
		}
		for name, ask := range map[string]func() (approvals.Refusal, error){
			"other tool": func() (approvals.Refusal, error) {
				return d.PreviouslyRejected(ctx, q, tenant, named("ivo"), "x", r.ParamsHash)
			},
			"other params": func() (approvals.Refusal, error) {
				return d.PreviouslyRejected(ctx, q, tenant, named("ivo"), "shop.refund", "sha256:x")
			},
			"other person": func() (approvals.Refusal, error) {
				return d.PreviouslyRejected(ctx, q, tenant, named("olga"), "shop.refund", r.ParamsHash)
			},
			"other tenant": func() (approvals.Refusal, error) {
				return d.PreviouslyRejected(ctx, q, "x", named("ivo"), "shop.refund", r.ParamsHash)
			},
			"nobody": func() (approvals.Refusal, error) {
				return d.PreviouslyRejected(ctx, q, tenant, "", "shop.refund", r.ParamsHash)
			},
			"other run": func() (approvals.Refusal, error) {
				return d.RejectedInRun(ctx, q, tenant, "run_x", "shop.refund", r.ParamsHash)
			},
		} {
			if got, err := ask(); err != nil || got.Request != "" {
				t.Errorf("%s: %+v, %v; want none", name, got, err)
			}
		}
		return nil
	})
}

func TestEligibility_SaysWhoCanAndWhyNot(t *testing.T) {
	d := newDesk(t)
	o := d.refund(asks(role("finance", 2)))
	o.Initiator, o.InitiatorName = named("ben"), "Ben"
	r := d.open(o)
	d.view(func(ctx context.Context, q store.Querier) error {
		for name, why := range map[string]string{"ana": "", "ben": "Ben is the initiator.", "dora": "Dora is not in finance.", "nobody": "usr_nobody is not active here."} {
			e, err := d.Eligibility(ctx, q, tenant, r.ID, named(name))
			if err != nil || e.May != (why == "") || e.Why != why || len(e.Can) != 2 || len(e.Excluded) != 1 || e.Excluded[0].Why != "is the initiator" || e.DeadEnd != "" {
				t.Errorf("%s: %+v, %v; want why %q, Ana and Cleo can, Ben excluded", name, e, err, why)
			}
		}
		return nil
	})
}
