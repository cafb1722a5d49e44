package approvals_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"countersign/internal/approvals"
	"countersign/internal/problem"
	"countersign/internal/store"

	"github.com/google/go-cmp/cmp"
)

// B02, B03: an edit changes what is under the editable pointers and nothing else.
func TestRevise_AnEditChangesOnlyEditableFields(t *testing.T) {
	d := newDesk(t)
	r := d.ask(role("finance", 1))
	for name, c := range map[string]struct {
		params string
		faults []string
	}{
		"another field":     {`{"amount":5000,"currency":"USD","items":[{"price":1}],"order_id":"A-7"}`, []string{"/currency"}},
		"inside a list":     {`{"amount":5000,"currency":"EUR","items":[{"price":2}],"order_id":"A-7"}`, []string{"/items/0/price"}},
		"one more element":  {`{"amount":5000,"currency":"EUR","items":[{"price":1},{}],"order_id":"A-7"}`, []string{"/items/1"}},
		"a removed field":   {`{"amount":5000,"currency":"EUR","items":[{"price":1}]}`, []string{"/order_id"}},
		"an added field":    {`{"amount":5000,"currency":"EUR","items":[{"price":1}],"order_id":"A-7","tool":"drop"}`, []string{"/tool"}},
		"a prefix of one":   {`{"amount":5000,"amounts":1,"currency":"EUR","items":[{"price":1}],"order_id":"A-7"}`, []string{"/amounts"}},
		"the whole":         {`{}`, []string{"/currency", "/items", "/order_id"}},
		"not an object":     {`[]`, []string{""}},
		"beside an allowed": {`{"amount":40,"currency":"USD","items":[{"price":1}],"order_id":"A-8"}`, []string{"/currency", "/order_id"}},
	} {
		_, err := d.edit("ana", r, raw(c.params), asks(role("finance", 1)))
		p := wantCode(t, err, "invalid")
		var got []string
		for _, f := range p.Fields {
			if f.Pointer != "/amount" {
				got = append(got, f.Pointer)
			}
		}
		if diff := cmp.Diff(c.faults, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if after := d.get(r.ID); after.Revision != 1 || after.Digest != r.Digest {
		t.Error("a refused edit changed the request")
	}
	for _, good := range []string{`40`, `"40"`, `{"minor":4000}`, `null`} { // what fits the schema is the tool's to say
		if r2, err := d.edit("ana", d.get(r.ID), amount(good), asks(role("finance", 1))); err != nil || string(r2.Params) != string(amount(good)) {
			t.Errorf("amount %s: %v", good, err)
		}
	}
	if _, err := d.edit("ana", d.get(r.ID), raw(`{"amount":1,"currency":"EUR","items":[{"price":1}],"note":"n","order_id":"A-7"}`), asks(role("finance", 1))); err != nil {
		t.Errorf("an editable field that was not there: %v", err)
	}
}

// B06: an edit that changes nothing leaves revision, digest and votes.
func TestRevise_SavingWithoutAChangeChangesNothing(t *testing.T) {
	d := newDesk(t)
	r := d.approve("ana", d.ask(role("finance", 2)))
	_, err := d.edit("ben", r, r.Params, asks(role("finance", 2)))
	wantCode(t, err, "nothing_changed")
	if after := d.get(r.ID); after.Digest != r.Digest || have(after) != 1 {
		t.Errorf("digest %s, %d votes; want %s and 1", after.Digest, have(after), r.Digest)
	}
}

func TestRevise_ANewRevisionSupersedesTheOld(t *testing.T) {
	d := newDesk(t)
	r := d.ask(role("finance", 2))
	d.approve("ana", r)
	d.at(time.Minute)
	next, err := d.edit("ben", r, amount("40"), asks(role("finance", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if next.Supersedes != r.Digest || next.Revision != 2 || !next.Edited() || next.Editors[0].Name != "Ben" || have(next) != 0 || next.Groups[0].Need != 1 {
		t.Errorf("next = %+v", next)
	}
	if next.Key != r.Key || next.Run != r.Run || next.Reason != r.Reason || next.ParamsHash == r.ParamsHash {
		t.Error("the revision lost the key, the run or the reason, or kept the hash")
	}
	d.view(func(ctx context.Context, q store.Querier) error {
		all, err := d.Revisions(ctx, q, tenant, r.ID)
		if len(all) != 2 || all[0].Status != approvals.Pending || all[1].Status != approvals.Superseded || all[0].Editor.Name != "Ben" || all[0].Comment != "less" {
			t.Errorf("revisions = %+v", all)
		}
		one, err2 := d.Revision(ctx, q, tenant, r.ID, 1)
		if string(one.Subject) != string(r.Subject) || one.RulingEntry == "" {
			t.Error("the old revision is not what it was")
		}
		old, err3 := d.Decisions(ctx, q, tenant, r.ID)
		if len(old) != 1 || old[0].Revision != 1 {
			t.Errorf("history = %+v, want Ana's void vote", old)
		}
		return errors.Join(err, err2, err3)
	})
}

func TestRevise_TheVerdictOnTheNewContentRules(t *testing.T) {
	d := newDesk(t)
	for effect, want := range map[approvals.Effect]approvals.Status{approvals.Allow: approvals.Allowed, approvals.Deny: approvals.Denied} {
		next, err := d.edit("ana", d.ask(role("finance", 1)), amount("1"), says(effect))
		if err != nil {
			t.Fatal(err)
		}
		wantStatus(t, next, want)
	}
	r := d.ask(role("finance", 1))
	if _, err := d.edit("ana", r, amount("1"), approvals.Verdict{}); err == nil {
		t.Error("a verdict that says nothing was taken")
	}
	wantStatus(t, d.get(r.ID), approvals.Pending)
}

// Four eyes hold for whoever rewrote the amount, also after the system made
// yet another revision of it.
func TestRevise_AnEditorDoesNotApproveTheirOwnWhereTwoAreNeeded(t *testing.T) {
	d := newDesk(t)
	next, err := d.edit("ana", d.ask(role("finance", 2)), amount("40"), asks(role("finance", 2)))
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.decide("ana", next, "approve")
	if p := wantCode(t, err, "self_approval"); !strings.HasPrefix(p.Message, "You edited this") {
		t.Errorf("message = %q", p.Message)
	}
	d.approve("ben", next)
	next = d.approve("cleo", next)
	wantStatus(t, next, approvals.Approved)
	again, err := d.remeasure(next, asks(role("finance", 2)))
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.decide("ana", again, "approve")
	wantCode(t, err, "self_approval")
	single, err := d.edit("ana", d.ask(role("finance", 1)), amount("40"), asks(role("finance", 1)))
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, d.approve("ana", single), approvals.Approved)
}

// remeasure revises without an editor, with another pin.
func (d *desk) remeasure(r approvals.Request, v approvals.Verdict) (next approvals.Request, err error) {
	err = d.change(func(ctx context.Context, tx *store.Tx) (err error) {
		next, err = d.Revise(ctx, tx, approvals.Revision{Tenant: tenant, Request: r.ID, OldDigest: r.Digest, Params: r.Params, FrozenRequest: r.FrozenRequest,
			Summary: r.Summary, Target: r.Target, Impact: r.Impact, Precondition: &approvals.Reading{OK: true, Met: true, Pin: raw("8"), At: tx.Now()},
			Verdict: v, Why: "changed since you approved"})
		return err
	})
	return next, err
}

func TestRevise_WhoMayEdit(t *testing.T) {
	d := newDesk(t)
	for name, code := range map[string]string{"ana": "", "ivo": "", "dora": "not_eligible", "nobody": "not_eligible"} {
		_, err := d.edit(name, d.ask(role("finance", 1)), amount("1"), asks(role("finance", 1)))
		if got := code; got == "" && err != nil || got != "" && !problem.HasCode(err, got) {
			t.Errorf("%s: %v, want %q", name, err, code)
		}
	}
}

func TestRevise_WhatIsDecidedIsNotEdited(t *testing.T) {
	d := newDesk(t)
	one := asks(role("finance", 1))
	approved := d.approve("ana", d.ask(role("finance", 1)))
	_, err := d.edit("ben", approved, amount("1"), one)
	wantCode(t, err, "already_decided")
	late := d.ask(role("finance", 1))
	d.at(10 * time.Minute)
	_, err = d.edit("ben", late, amount("1"), one)
	wantCode(t, err, "expired")
}

// An edit gives nobody more time; a revision after the approval does.
func TestRevise_AnEditDoesNotMoveDecideBy(t *testing.T) {
	d := newDesk(t)
	r := d.ask(role("finance", 1))
	d.at(9 * time.Minute)
	edited, err := d.edit("ana", r, amount("1"), asks(role("finance", 1)))
	if err != nil || !edited.DecideBy.Equal(r.DecideBy) {
		t.Fatalf("decide by %s, %v; want %s as before", edited.DecideBy, err, r.DecideBy)
	}
	renewed, err := d.remeasure(d.approve("ana", edited), asks(role("finance", 1)))
	if want := start.Add(19 * time.Minute); err != nil || !renewed.DecideBy.Equal(want) || !renewed.ExecuteBy.IsZero() {
		t.Errorf("decide by %s, execute by %s, %v; want %s and none", renewed.DecideBy, renewed.ExecuteBy, err, want)
	}
}

// B24: of two edits of one revision the second is told what changed.
func TestRevise_OfTwoEditsTheSecondIsStale(t *testing.T) {
	d := newDesk(t)
	r := d.ask(role("finance", 1))
	var won, stale atomic.Int32
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			_, err := d.edit([]string{"ana", "ben"}[i%2], r, amount(string(rune('1'+i%9))), asks(role("finance", 1)))
			switch {
			case err == nil:
				won.Add(1)
			case problem.HasCode(err, "stale_digest"):
				stale.Add(1)
			default:
				t.Errorf("edit: %v", err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 || stale.Load() != 19 {
		t.Errorf("%d edits won and %d were stale, want 1 and 19", won.Load(), stale.Load())
	}
}

func TestRevise_NothingIsRevisedOnceSent(t *testing.T) {
	d := newDesk(t)
	r := d.approve("ana", d.ask(role("finance", 1)))
	d.must(func(ctx context.Context, tx *store.Tx) error { return d.Begin(ctx, tx, tenant, r.ID, r.Digest) })
	_, err := d.remeasure(r, asks(role("finance", 1)))
	wantCode(t, err, "already_sent")
	_, err = d.revoke("ana", r, asks(role("finance", 1)))
	wantCode(t, err, "already_sent")
	d.must(func(ctx context.Context, tx *store.Tx) error { return d.Settled(ctx, tx, tenant, r.ID, "not_done") })
	next, err := d.remeasure(r, asks(role("finance", 1)))
	if err != nil || !next.StartedAt.IsZero() || next.Outcome != "" {
		t.Errorf("after not_done: started %s, outcome %q, %v; want a fresh revision", next.StartedAt, next.Outcome, err)
	}
}

func (d *desk) revoke(name string, r approvals.Request, v approvals.Verdict) (next approvals.Request, err error) {
	who, _ := d.folk.Person(context.Background(), nil, tenant, named(name))
	err = d.change(func(ctx context.Context, tx *store.Tx) (err error) {
		next, err = d.Revoke(ctx, tx, approvals.Revocation{Tenant: tenant, Request: r.ID, Person: who, MayOperate: name == "olga", Reason: "wrong order", Verdict: v})
		return err
	})
	return next, err
}

func TestRevoke_MakesItPendingAgainWithoutVotes(t *testing.T) {
	d := newDesk(t)
	for _, v := range []approvals.Verdict{asks(role("finance", 1)), says(approvals.Allow), says(approvals.Deny)} {
		for _, name := range []string{"ana", "olga"} {
			r := d.approve("ana", d.ask(role("finance", 1)))
			next, err := d.revoke(name, r, v)
			if err != nil {
				t.Fatalf("%s revokes: %v", name, err)
			}
			wantStatus(t, next, approvals.Pending)
			if next.Revision != 2 || have(next) != 0 || !strings.Contains(next.Why, "wrong order") || next.Groups[0].Name != "finance" {
				t.Errorf("next: revision %d, %d votes, why %q, groups %v", next.Revision, have(next), next.Why, next.Groups)
			}
			wantStatus(t, d.approve("ben", next), approvals.Approved)
		}
	}
}

func TestRevoke_WhoMayAndWhen(t *testing.T) {
	d := newDesk(t)
	one := asks(role("finance", 1))
	_, err := d.revoke("ben", d.approve("ana", d.ask(role("finance", 1))), one)
	wantCode(t, err, "not_eligible")
	_, err = d.revoke("olga", d.ask(role("finance", 1)), one)
	wantCode(t, err, "not_approved")
	rejected := d.ask(role("finance", 1))
	if _, err := d.decide("ana", rejected, "reject"); err != nil {
		t.Fatal(err)
	}
	_, err = d.revoke("ana", rejected, one)
	wantCode(t, err, "already_decided")
	allowed, err := d.revoke("olga", d.open(d.refund(says(approvals.Allow))), says(approvals.Allow))
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, allowed, approvals.Pending)
}

func TestDiffSubjects_ListsChangedLeaves(t *testing.T) {
	from := raw(`{"a":1,"b":{"c":[1,2,{"d":"x"}]},"e/f":true,"gone":null,"nonce":"1","revision":1,"type":"t"}`)
	to := raw(`{"a":"1","b":{"c":[1,3,{"d":"y"},{}]},"e/f":false,"new":{"deep":1},"nonce":"2","revision":2,"supersedes":"sha256:x","type":"t"}`)
	got, err := approvals.DiffSubjects(from, to)
	want := []approvals.Change{
		{Pointer: "/a", Old: raw(`1`), New: raw(`"1"`)}, {Pointer: "/b/c/1", Old: raw(`2`), New: raw(`3`)},
		{Pointer: "/b/c/2/d", Old: raw(`"x"`), New: raw(`"y"`)}, {Pointer: "/b/c/3", New: raw(`{}`)},
		{Pointer: "/e~1f", Old: raw(`true`), New: raw(`false`)}, {Pointer: "/gone", Old: raw(`null`)}, {Pointer: "/new", New: raw(`{"deep":1}`)},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	same, err := approvals.DiffSubjects(from, from)
	if len(same) != 0 || err != nil {
		t.Errorf("a subject differs from itself by %v, %v", same, err)
	}
}

func TestDiffSubjects_IsBounded(t *testing.T) {
	var many []int
	for i := range approvals.ChangesMax + 50 {
		many = append(many, i)
	}
	to, _ := json.Marshal(many)
	got, err := approvals.DiffSubjects(raw(`[]`), to)
	if len(got) != approvals.ChangesMax || err != nil {
		t.Errorf("%d changes, %v; want %d", len(got), err, approvals.ChangesMax)
	}
}
