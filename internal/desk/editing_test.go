package desk_test

import (
	"encoding/json"
	"strings"
	"testing"

	"countersign/internal/desk"
	"countersign/internal/engine"
)

// amount is the edit of the amount to a value, on the page a.
func amount(a desk.Approval, value string) desk.Edit {
	return desk.Edit{Digest: a.Digest, Edits: []desk.FieldEdit{{Pointer: "/amount", Value: json.RawMessage(value)}}}
}

func TestEdit_AllowedField_MakesARevisionWithoutVotes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.refund(75_000, engine.WaitingApproval)
	a := w.request("ana", run)
	w.approve("ana", a)
	next, err := w.desk.Edit(t.Context(), w.principal("ben"), a.ID, amount(a, "60000"))
	w.must(err)
	if next.Revision != 2 || next.Status != "pending" || next.Digest == a.Digest || next.Supersedes != a.Digest || next.Groups[0].Have != 0 {
		t.Errorf("after the edit: revision %d, %s, %d votes, supersedes %s; want 2, pending, none, %s", next.Revision, next.Status, next.Groups[0].Have, next.Supersedes, a.Digest)
	}
	for where, text := range map[string]string{"parameters": string(next.Params), "frozen request": string(next.Request)} {
		if !strings.Contains(text, `"amount":60000`) {
			t.Errorf("the %s are %s, want the number 60000", where, text)
		}
	}
	if !strings.Contains(string(next.Preview), "left_after_this") || string(next.Preview) == string(a.Preview) {
		t.Errorf("the preview was not read anew: %s", next.Preview)
	}
	if next.Key != a.Key {
		t.Errorf("the key changed from %s to %s although nothing was sent under it", a.Key, next.Key)
	}
	if len(next.Changes) == 0 || !strings.Contains(asJSON(t, next.Changes), "/amount") {
		t.Errorf("the page does not show the change: %s", asJSON(t, next.Changes))
	}
	w.wantRefunds(0)
}

func TestEdit_FewerNeeded_ThePolicyIsJudgedAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.refund(75_000, engine.WaitingApproval)
	a := w.request("ana", run)
	next, err := w.desk.Edit(t.Context(), w.principal("ana"), a.ID, amount(a, "9000"))
	w.must(err)
	if next.Rule != "refunds" || next.Groups[0].Need != 1 {
		t.Errorf("9000 is under rule %s and needs %d, want refunds and 1", next.Rule, next.Groups[0].Need)
	}
	w.approve("ben", next)
	w.waitFor(run, engine.Completed)
	w.wantRefunds(1)
	past, err := w.ledger.Effects()
	w.must(err)
	if !strings.Contains(string(past[0].Body), `"amount":9000`) {
		t.Errorf("the shop refunded %s, want 9000", past[0].Body)
	}
}

func TestEdit_ToWhatThePolicyAllows_NeedsNoVote(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.refund(12_500, engine.WaitingApproval)
	a := w.request("ana", run)
	outcome, err := w.desk.CheckEdit(t.Context(), w.principal("ana"), a.ID, amount(a, "1500"))
	w.must(err)
	if outcome.Effect != "allow" || outcome.Revision != 2 {
		t.Errorf("before saving, the page says %+v, want allow at revision 2", outcome)
	}
	w.wantRefunds(0)
	next, err := w.desk.Edit(t.Context(), w.principal("ana"), a.ID, amount(a, "1500"))
	w.must(err)
	if next.Revision != 2 || next.Rule != "small-refunds" {
		t.Errorf("after the edit: revision %d under rule %s, want 2 and small-refunds", next.Revision, next.Rule)
	}
	w.waitFor(run, engine.Completed)
	w.wantRefunds(1)
	if done := w.request("ana", run); done.Status != "allowed" || len(done.Decisions) != 0 || done.Outcome != engine.Confirmed {
		t.Errorf("the request is %s with %d decisions and outcome %s, want allowed, none, confirmed", done.Status, len(done.Decisions), done.Outcome)
	}
}

func TestEdit_WhatDoesNotFit_IsRefusedWhereItIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.refund(12_500, engine.WaitingApproval)
	a := w.request("ana", run)
	cases := map[string]struct{ pointer, value, code string }{
		"a field that may not change": {"/order_id", `"9990"`, "invalid"},
		"the currency":                {"/currency", `"USD"`, "invalid"},
		"the target":                  {"/target", `"order 9990"`, "invalid"},
		"the tool":                    {"/tool", `"kb.publish"`, "invalid"},
		"the whole document":          {"", `{"amount":1}`, "invalid"},
		"a new field":                 {"/extra", `1`, "invalid"},
		"too much":                    {"/amount", `1000001`, "invalid"},
		"text for a number":           {"/amount", `"9000"`, "invalid"},
		"half a cent":                 {"/amount", `9000.5`, "invalid"},
		"an unsafe integer":           {"/amount", `9007199254740993`, "invalid"},
		"a number with two keys":      {"/amount", `{"a":1,"a":2}`, "invalid"},
		"no JSON":                     {"/amount", `nine`, "invalid"},
		"the same value":              {"/amount", `12500`, "nothing_changed"},
		"the same value, otherwise":   {"/amount", `1.25e4`, "nothing_changed"},
	}
	for what, c := range cases {
		t.Run(what, func(t *testing.T) {
			w.t = t
			_, err := w.desk.Edit(t.Context(), w.principal("ana"), a.ID, desk.Edit{Digest: a.Digest, Edits: []desk.FieldEdit{{Pointer: c.pointer, Value: json.RawMessage(c.value)}}})
			p := w.wantProblem(err, c.code)
			if c.code == "invalid" && (len(p.Fields) == 0 || p.Fields[0].Pointer != c.pointer) {
				t.Errorf("the refusal names the places %+v, want %s", p.Fields, c.pointer)
			}
		})
	}
	w.t = t
	_, err := w.desk.Edit(t.Context(), w.principal("ana"), a.ID, desk.Edit{Digest: a.Digest, Edits: []desk.FieldEdit{
		{Pointer: "/amount", Value: json.RawMessage(`9000`)}, {Pointer: "/order_id", Value: json.RawMessage(`"9990"`)}}})
	w.wantProblem(err, "invalid")
	if now := w.request("ana", run); now.Revision != 1 || now.Digest != a.Digest {
		t.Errorf("after only refused edits the request is at revision %d", now.Revision)
	}
	w.wantRefunds(0)
}

// Who may edit is settled before the target is asked for a preview: somebody
// without the right must not make the console call out.
func TestEdit_WithoutTheRight_TheTargetIsNotAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.request("chloe", w.refund(12_500, engine.WaitingApproval))
	before := w.calls.Load()
	_, err := w.desk.CheckEdit(t.Context(), w.principal("chloe"), a.ID, amount(a, "1500"))
	w.wantProblem(err, "not_eligible")
	_, err = w.desk.Edit(t.Context(), w.principal("chloe"), a.ID, amount(a, "1500"))
	w.wantProblem(err, "not_eligible")
	if now := w.calls.Load(); now != before {
		t.Errorf("the shop was asked %d times for somebody who may not edit", now-before)
	}
	_, err = w.desk.CheckEdit(t.Context(), w.principal("dev"), a.ID, amount(a, "1500")) // the initiator may
	w.must(err)
	_, err = w.decide("ana", "reject", a)
	w.must(err)
	before = w.calls.Load()
	_, err = w.desk.CheckEdit(t.Context(), w.principal("ben"), a.ID, amount(a, "1500"))
	w.wantProblem(err, "already_decided")
	if now := w.calls.Load(); now != before {
		t.Errorf("the shop was asked %d times about what is decided", now-before)
	}
}

func TestEdit_WithoutTheRole_IsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.request("chloe", w.refund(12_500, engine.WaitingApproval))
	_, err := w.desk.Edit(t.Context(), w.principal("chloe"), a.ID, amount(a, "1500"))
	w.wantProblem(err, "not_eligible")
	w.wantRefunds(0)
}
