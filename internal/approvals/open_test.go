package approvals_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"countersign/internal/approvals"
	"countersign/internal/canon"
	"countersign/internal/id"
	"countersign/internal/store"

	"github.com/google/go-cmp/cmp"
)

func TestOpen_TheSubjectHoldsAllThatIsApproved(t *testing.T) {
	d := newDesk(t)
	o := d.refund(asks(role("finance", 2)))
	o.OnBehalfOf, o.Preview = "customer 12", &approvals.Reading{OK: true, Met: true, Value: raw(`{"fee":0}`), At: start}
	r := d.open(o)
	if canon.Digest(r.Subject) != r.Digest {
		t.Fatal("the digest is not that of the subject")
	}
	v, err := canon.Value(r.Subject)
	if err != nil {
		t.Fatal(err)
	}
	for pointer, want := range map[string]any{
		"/type": "countersign.subject/1", "/kind": "action", "/tenant": tenant, "/id": string(r.ID), "/revision": 1.0, "/run": string(o.Run),
		"/path": "refund", "/pass": 1.0, "/action": string(o.Action), "/tool": "shop.refund", "/tool_version": 1.0, "/tool_digest": "sha256:tool",
		"/risk": "high", "/target": "order A-7", "/params/amount": 5000.0, "/params_hash": canon.Digest(o.Params),
		"/request/method": "POST", "/request_digest": canon.Digest(o.FrozenRequest), "/idempotency_key": o.Key,
		"/plan/workflow_digest": "sha256:workflow", "/plan/outputs/read": "sha256:output", "/plan/model": "m-1",
		"/initiator": "usr_ivo", "/initiator_name": "Ivo", "/on_behalf_of": "customer 12", "/reason": "The customer asked.",
		"/summary": "Refund 5000 EUR on order A-7", "/impact": "Money leaves at once.", "/preview/value/fee": 0.0,
		"/precondition/met": true, "/precondition/pin": 7.0, "/policy/name": "default", "/policy/version": 1.0, "/policy/digest": "sha256:policy",
		"/policy/effect": "approve", "/policy/rule": "big", "/policy/groups/0/need": 2.0, "/decide_by": "2026-12-01T09:10:00.000000Z",
		"/execute_within_us": 3e8, "/run_version": 3.0, "/requested_at": "2026-12-01T09:00:00.000000Z", "/sensitive/0": "/card", "/editable/0": "/amount",
	} {
		if got, ok := canon.Get(v, pointer); !ok || got != want {
			t.Errorf("%s = %v, want %v", pointer, got, want)
		}
	}
	if nonce, _ := canon.Get(v, "/nonce"); len(nonce.(string)) != 32 {
		t.Errorf("nonce = %v, want 128 bits", nonce)
	}
}

// What was stored reads back as it was given, pins of null included: desk
// compares them byte for byte.
func TestOpen_ReadingsComeBackAsTheyWere(t *testing.T) {
	d := newDesk(t)
	for _, pin := range []string{"", "null", `"v7"`, `{"a":[1]}`, "7"} {
		o := d.refund(asks(role("finance", 1)))
		o.Precondition = &approvals.Reading{OK: true, Met: true, Value: raw("null"), At: start.Add(123456789 * time.Nanosecond)}
		if pin != "" {
			o.Precondition.Pin = raw(pin)
		}
		r := d.open(o)
		if diff := cmp.Diff(o.Precondition, r.Precondition); diff != "" {
			t.Errorf("pin %q (-given +stored):\n%s", pin, diff)
		}
		if r.Preview != nil {
			t.Error("a preview appeared")
		}
	}
}

func TestOpen_TheVerdictSaysWhereItBegins(t *testing.T) {
	d := newDesk(t)
	allowed := d.open(d.refund(says(approvals.Allow)))
	wantStatus(t, allowed, approvals.Allowed)
	if !allowed.ExecuteBy.Equal(start.Add(5*time.Minute)) || !allowed.DecideBy.IsZero() {
		t.Errorf("allowed: execute by %s, decide by %s", allowed.ExecuteBy, allowed.DecideBy)
	}
	denied := d.open(d.refund(says(approvals.Deny)))
	wantStatus(t, denied, approvals.Denied)
	if denied.ClosedWhy == "" || denied.ClosedAt.IsZero() {
		t.Error("denied without saying why and when")
	}
	for _, r := range []approvals.Request{allowed, denied} {
		_, err := d.decide("ana", r, "approve")
		wantCode(t, err, "already_decided")
	}
}

// A14, A24: a verdict that says nothing or asks nobody is an error.
func TestOpen_RefusesAVerdictThatAsksNobody(t *testing.T) {
	d := newDesk(t)
	bad := map[string]approvals.Verdict{
		"zero": {}, "unknown effect": {Effect: "maybe"}, "no groups": asks(), "need 0": asks(role("finance", 0)), "negative": asks(role("finance", -1)),
		"nobody in particular": asks(approvals.Group{Name: "x", Need: 1}),
	}
	noTime := asks(role("finance", 1))
	noTime.DecideWithin = 0
	bad["no time"] = noTime
	for name, v := range bad {
		err := d.change(func(ctx context.Context, tx *store.Tx) error { _, err := d.Open(ctx, tx, d.refund(v)); return err })
		if err == nil {
			t.Errorf("%s: opened, want an error", name)
		}
	}
	if items, _ := d.list(approvals.Filter{}); len(items) != 0 {
		t.Errorf("%d requests were stored", len(items))
	}
}

// An allowance does not cover what the target says must not be.
func TestOpen_AnAllowanceNeedsItsPrecondition(t *testing.T) {
	d := newDesk(t)
	for name, reading := range map[string]*approvals.Reading{
		"not met": {OK: true, At: start}, "not read": {Error: "timeout", At: start}} {
		o := d.refund(says(approvals.Allow))
		o.Precondition = reading
		r := d.open(o)
		wantStatus(t, r, approvals.Pending)
		if r.Groups[0].Name != approvals.RoleApprover || r.Ruling.Why == "" {
			t.Errorf("%s: asks %v, %q", name, r.Groups, r.Ruling.Why)
		}
	}
}

// A25: a request that nobody can complete says so at once, and by whom.
func TestOpen_FlagsADeadEnd(t *testing.T) {
	d := newDesk(t)
	d.folk.set(approvals.Person{ID: named("cleo"), Name: "Cleo", Roles: []string{"legal"}, Active: true})
	cases := []struct {
		name      string
		initiator string
		groups    []approvals.Group
		want      string
	}{
		{"enough", "ivo", []approvals.Group{role("finance", 2)}, ""},
		{"the initiator is one of two", "ben", []approvals.Group{role("finance", 2)}, "needs 2 of finance; only Ana can, Ben is the initiator"},
		{"a role nobody has", "ivo", []approvals.Group{role("board", 1)}, "needs 1 of board; nobody can"},
		{"three of two", "ivo", []approvals.Group{role("finance", 3)}, "needs 3 of finance; only Ana and Ben can"},
		{"only the initiator", "max", []approvals.Group{role("approver", 1)}, "needs 1 of approver; nobody can, Max is the initiator"},
	}
	for _, c := range cases {
		o := d.refund(asks(c.groups...))
		o.Initiator = named(c.initiator)
		if r := d.open(o); r.DeadEnd != c.want || r.Status != approvals.Pending {
			t.Errorf("%s: dead end %q, status %s; want %q", c.name, r.DeadEnd, r.Status, c.want)
		}
	}
}

// One person in both groups does not make two.
func TestOpen_ADeadEndIsFoundByMatching(t *testing.T) {
	d := newDesk(t)
	d.folk.set(approvals.Person{ID: named("dora"), Name: "Dora"})
	for _, name := range []string{"ana", "ben"} {
		d.folk.set(approvals.Person{ID: named(name), Name: name})
	}
	if r := d.ask(role("finance", 1), role("legal", 1)); r.DeadEnd != "needs 1 of finance and 1 of legal; only Cleo can" {
		t.Errorf("dead end = %q", r.DeadEnd)
	}
}

// B16: the reason is in the digest, not in the hash of the parameters.
func TestOpen_ParamsHashCoversWhatIsExecutedAndNotTheReason(t *testing.T) {
	d := newDesk(t)
	o := d.refund(asks(role("finance", 1)))
	a := d.open(o)
	o.Path, o.Reason = "again", "Other words."
	b := d.open(o)
	o.Path, o.Params = "more", amount("5001")
	c := d.open(o)
	if a.ParamsHash != b.ParamsHash || a.ParamsHash == c.ParamsHash {
		t.Errorf("hashes %s %s %s: want the first two equal, the third not", a.ParamsHash, b.ParamsHash, c.ParamsHash)
	}
}

// B07: JSON that is not canonical would hash by its spelling.
func TestOpen_RefusesJSONThatIsNotCanonical(t *testing.T) {
	d := newDesk(t)
	for _, params := range []string{`{"b":1,"a":2}`, `{ "a":1}`, `{"a":1.0}`, `{`, `{"a":1,"a":2}`} {
		o := d.refund(asks(role("finance", 1)))
		o.Params = []byte(params)
		if err := d.change(func(ctx context.Context, tx *store.Tx) error { _, err := d.Open(ctx, tx, o); return err }); err == nil {
			t.Errorf("params %s: opened, want an error", params)
		}
	}
}

func TestOpen_RefusesASubjectTooLarge(t *testing.T) {
	d := newDesk(t)
	o := d.refund(asks(role("finance", 1)))
	o.Params = raw(`{"body":"` + strings.Repeat("x", 1<<20-100) + `"}`)
	o.FrozenRequest = []byte(`"` + strings.Repeat("y", approvals.SubjectBytesMax-1<<20) + `"`)
	err := d.change(func(ctx context.Context, tx *store.Tx) error { _, err := d.Open(ctx, tx, o); return err })
	wantCode(t, err, "subject_too_large")
}

func TestOpen_ADocumentIsApprovedLikeAnAction(t *testing.T) {
	d := newDesk(t)
	r := d.open(approvals.OpenRequest{Kind: approvals.KindDocument, Tenant: tenant, Run: id.NewRun(start), Path: "gate", Pass: 1,
		Title: "The plan", Document: raw(`{"steps":["a","b"]}`), Initiator: named("ivo"), InitiatorName: "Ivo", RequestedAt: start, Verdict: asks(role("legal", 1))})
	if r.ParamsHash != canon.Digest(r.Document) {
		t.Error("the hash of a document is not its digest")
	}
	wantStatus(t, d.approve("dora", r), approvals.Approved)
	_, err := d.edit("dora", d.open(approvals.OpenRequest{Kind: approvals.KindDocument, Tenant: tenant, Run: id.NewRun(start), Path: "gate", Pass: 2,
		Title: "The plan", Document: raw(`1`), Initiator: named("ivo"), RequestedAt: start, Verdict: asks(role("legal", 1))}), raw(`2`), asks(role("legal", 1)))
	wantCode(t, err, "invalid")
}

// A31: asking again is a new request; what was decided before is history.
func TestOpen_ANewPassIsANewRequest(t *testing.T) {
	d := newDesk(t)
	o := d.refund(asks(role("finance", 1)))
	first := d.open(o)
	d.at(time.Hour)
	d.must(func(ctx context.Context, tx *store.Tx) error {
		_, _, err := d.Expire(ctx, tx, tenant, first.ID)
		return err
	})
	if err := d.change(func(ctx context.Context, tx *store.Tx) error { _, err := d.Open(ctx, tx, o); return err }); !store.IsUnique(err) {
		t.Errorf("the same pass again: %v, want refused: a pass asks once", err)
	}
	o.Pass, o.RequestedAt = 2, d.clock.Now()
	second := d.open(o)
	d.approve("ana", second)
	wantStatus(t, d.get(first.ID), approvals.Expired)
	wantStatus(t, d.get(second.ID), approvals.Approved)
}
