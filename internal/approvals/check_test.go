package approvals_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"countersign/internal/approvals"
	"countersign/internal/canon"
	"countersign/internal/id"
	"countersign/internal/store"
	"countersign/internal/testkit"
)

func (d *desk) check(request id.Approval) (c approvals.Checked) {
	d.t.Helper()
	d.view(func(ctx context.Context, q store.Querier) (err error) {
		c, err = d.Check(ctx, q, tenant, request)
		return err
	})
	return c
}

func TestCheck_WhatNobodyTouchedAgrees(t *testing.T) {
	d := newDesk(t)
	pending := d.ask(role("finance", 2))
	d.approve("ana", pending)
	approved := d.approve("cleo", d.ask(role("finance", 1)))
	edited, err := d.edit("ana", d.ask(role("finance", 1)), amount("1"), asks(role("finance", 1)))
	if err != nil {
		t.Fatal(err)
	}
	rejected := d.ask(role("finance", 1))
	if _, err := d.decide("ana", rejected, "reject"); err != nil {
		t.Fatal(err)
	}
	one := asks(approvals.Group{Name: "2 named people", People: []id.Person{named("olga"), named("max")}, Need: 1})
	people := d.approve("max", d.open(d.refund(one)))
	for _, r := range []approvals.Request{pending, approved, edited, d.approve("ben", edited), rejected, people,
		d.open(d.refund(says(approvals.Allow))), d.open(d.refund(says(approvals.Deny)))} {
		c := d.check(r.ID)
		if c.Tampered != "" || c.Digest != c.Request.Digest || string(c.Subject) != string(c.Request.Subject) {
			t.Errorf("%s revision %d: tampered %q", c.Status, c.Request.Revision, c.Tampered)
		}
	}
	if c := d.check(approved.ID); string(c.Proof()) != c.Decisions[0].AuditEntry || c.Proof() == "" {
		t.Errorf("proof of an approval = %q, want its entry %q", c.Proof(), c.Decisions[0].AuditEntry)
	}
}

// B18: every live column, the subject, the digests, the deadlines and the
// decisions are compared; changing any of them is found.
func TestCheck_FindsWhatAnOutsiderChanged(t *testing.T) {
	text := "'other'"
	columns := map[string]string{"kind": "'document'", "revision": "1", "digest": text, "run": text, "path": text, "pass": "9", "action": text,
		"workflow": text, "tool": text, "tool_version": "9", "tool_digest": text, "risk": text, "target": text, "title": text, "summary": text,
		"params": `'{"amount":5001,"currency":"EUR","items":[{"price":1}],"order_id":"A-7"}'`, "params_hash": text, "request_digest": text,
		"idempotency_key": text, "initiator": text, "initiator_name": text, "on_behalf_of": text, "law": `'{"initiators":[]}'`, "policy": text,
		"policy_version": "9", "policy_digest": text, "rule": text, "run_version": "9", "execute_within": "9", "decide_by": "decide_by + 1",
		"execute_by": "execute_by + 3600000000", "status": "'allowed'"}
	tampers := map[string][]string{
		"subject byte":                       {`UPDATE revision SET subject = replace(subject, '"amount":40', '"amount":41')`},
		"whole revision swapped for the old": {`UPDATE revision SET subject = (SELECT subject FROM revision o WHERE o.request = revision.request AND o.revision = 1) WHERE revision = 2`},
		"revision digest":                    {`UPDATE revision SET digest = 'sha256:x' WHERE revision = 2`},
		"previous revision's digest":         {`UPDATE revision SET digest = 'sha256:x' WHERE revision = 1`},
		"previous revision gone":             {`DELETE FROM ruling_entry`, `DELETE FROM revision WHERE revision = 1`},
		"revision gone":                      {`DELETE FROM decision_entry`, `DELETE FROM decision`, `DELETE FROM revision WHERE revision = 2`},
		"subject no JSON":                    {`UPDATE revision SET subject = 'x' WHERE revision = 2`},
		"a vote's digest":                    {`UPDATE decision SET digest = 'sha256:x'`},
		"a vote's person":                    {`UPDATE decision SET person = 'usr_ivo'`},
		"a vote's verdict":                   {`UPDATE decision SET verdict = 'reject', comment = 'no'`},
		"a vote's groups":                    {`UPDATE decision SET groups = '[]'`},
		"a vote gone":                        {`DELETE FROM decision_entry`, `DELETE FROM decision`},
		"a vote too late":                    {`UPDATE decision SET decided_at = decided_at + 600000000`, `UPDATE request SET execute_by = execute_by + 600000000`},
		"a vote retracted":                   {`INSERT INTO retraction (tenant, decision, why, at) SELECT tenant, id, '', 1 FROM decision`},
		"the same person's vote twice": {`INSERT INTO decision SELECT tenant, 'dec_x', request, revision, digest, person, person_name, 2, verdict, groups,
			authority, rule, policy, policy_version, auth, channel, comment, decided_at FROM decision`},
		"an initiator's vote added": {`INSERT INTO decision SELECT tenant, 'dec_x', request, revision, digest, 'usr_ivo', person_name, turn, verdict, groups,
			authority, rule, policy, policy_version, auth, channel, comment, decided_at FROM decision`},
		"an extension added": {`INSERT INTO extension SELECT tenant, id, revision, 1, decide_by + 1, 'x', 'x', 'x', 1 FROM request`},
	}
	for name, to := range columns {
		tampers["column "+name] = []string{`UPDATE request SET ` + name + ` = ` + to}
	}
	d := newDesk(t)
	r, err := d.edit("ana", d.ask(role("finance", 1)), amount("40"), asks(role("finance", 1)))
	if err != nil {
		t.Fatal(err)
	}
	d.approve("ben", r)
	var keep, restore []string
	for _, table := range approvals.Migrations.Guarded {
		keep = append(keep, `CREATE TABLE kept_`+table+` AS SELECT * FROM `+table)
		restore = append(restore, `DELETE FROM `+table, `INSERT INTO `+table+` SELECT * FROM kept_`+table)
	}
	testkit.Outsider(t, d.path, keep...)
	for name, statements := range tampers {
		if c := d.check(r.ID); c.Tampered != "" {
			t.Fatalf("before %s: %s", name, c.Tampered)
		}
		testkit.Outsider(t, d.path, statements...)
		if c := d.check(r.ID); c.Tampered == "" {
			t.Errorf("%s: nothing was found", name)
		}
		testkit.Outsider(t, d.path, restore...)
	}
}

// Whoever rewrites subject and digests together leaves votes on another
// digest; where there are none, the entry of the ruling names it.
func TestCheck_ARewrittenSubjectLosesItsVotes(t *testing.T) {
	d := newDesk(t)
	r := d.approve("ana", d.ask(role("finance", 1)))
	subject := strings.Replace(string(r.Subject), `"currency":"EUR"`, `"currency":"USD"`, -1)
	params := strings.Replace(string(r.Params), "EUR", "USD", 1)
	subject = strings.NewReplacer(r.ParamsHash, canon.Digest([]byte(params)),
		canon.Digest(r.FrozenRequest), canon.Digest([]byte(strings.Replace(string(r.FrozenRequest), "EUR", "USD", 1)))).Replace(subject)
	digest := canon.Digest([]byte(subject))
	quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
	testkit.Outsider(t, d.path, `UPDATE revision SET subject = `+quote(subject)+`, digest = `+quote(digest),
		`UPDATE request SET digest = `+quote(digest)+`, params = `+quote(params)+`, params_hash = `+quote(canon.Digest([]byte(params)))+
			`, request_digest = `+quote(canon.Digest([]byte(strings.Replace(string(r.FrozenRequest), "EUR", "USD", 1)))))
	if c := d.check(r.ID); c.Tampered != "a decision was made on another digest" {
		t.Errorf("tampered = %q", c.Tampered)
	}
	testkit.Outsider(t, d.path, `UPDATE decision SET digest = `+quote(digest))
	if c := d.check(r.ID); c.Tampered != "" || c.Digest == r.Digest {
		t.Errorf("tampered = %q: the rows agree now; the audit entry of the decision names %s, not %s", c.Tampered, r.Digest, c.Digest)
	}
}

func TestCheck_AStatusWithoutDecisionsIsFound(t *testing.T) {
	d := newDesk(t)
	for _, status := range []string{"approved", "allowed", "rejected", "denied"} {
		r := d.ask(role("finance", 1))
		testkit.Outsider(t, d.path, `UPDATE request SET status = '`+status+`', execute_by = decide_by WHERE id = '`+string(r.ID)+`'`)
		if c := d.check(r.ID); c.Tampered == "" {
			t.Errorf("%s by an outsider: nothing was found", status)
		}
	}
}

func TestCheck_ALongerAllowanceIsFound(t *testing.T) {
	d := newDesk(t)
	r := d.open(d.refund(says(approvals.Allow)))
	testkit.Outsider(t, d.path, `UPDATE request SET execute_by = execute_by + 1`, `UPDATE revision SET created_at = created_at + 1`)
	if c := d.check(r.ID); c.Tampered != "execute-by was changed" {
		t.Errorf("tampered = %q", c.Tampered)
	}
}

func TestRows_ThatAreHistoryCannotBeChanged(t *testing.T) {
	d := newDesk(t)
	r := d.ask(role("finance", 2))
	d.approve("ana", r)
	d.must(func(ctx context.Context, tx *store.Tx) error {
		if _, err := d.Retract(ctx, tx, tenant, r.ID, named("ana"), "no"); err != nil {
			return err
		}
		if _, err := d.Seen(ctx, tx, tenant, r.ID, 1, approvals.Party{ID: named("ana")}); err != nil {
			return err
		}
		if err := d.Comment(ctx, tx, tenant, r.ID, named("ana"), "Ana", "hm"); err != nil {
			return err
		}
		_, err := d.Extend(ctx, tx, approvals.Extension{Tenant: tenant, Request: r.ID, DecideBy: start.Add(time.Hour), Why: "x"})
		return err
	})
	for _, table := range approvals.Migrations.Guarded {
		statements := []string{`DELETE FROM ` + table, `UPDATE ` + table + ` SET tenant = 'other'`}
		if table == "request" {
			statements = statements[:1]
		}
		for _, s := range statements {
			if err := d.change(func(ctx context.Context, tx *store.Tx) error { _, err := tx.Exec(ctx, s); return err }); err == nil {
				t.Errorf("%s went through", s)
			}
		}
	}
}

func TestSatisfied_TheVotesMustMeetThePresent(t *testing.T) {
	d := newDesk(t)
	r := d.ask(role("finance", 2))
	d.approve("ana", r)
	d.approve("ben", r)
	two := asks(role("finance", 2))
	people := map[string]approvals.Person{}
	for _, name := range []string{"ana", "ben"} {
		people[name], _ = d.folk.Person(context.Background(), nil, tenant, named(name))
	}
	initiator := asks(role("finance", 2))
	cases := []struct {
		name    string
		present approvals.Verdict
		set     []approvals.Person
		want    string // of why; empty: satisfied
	}{
		{"unchanged", two, nil, ""},
		{"looser", asks(role("finance", 1)), nil, ""},
		{"allowed now", says(approvals.Allow), nil, ""},
		{"denied now", says(approvals.Deny), nil, "denies"},
		{"no verdict", approvals.Verdict{}, nil, "no verdict"},
		{"stricter", asks(role("finance", 3)), nil, "needs 3 of finance"},
		{"another group besides", asks(role("finance", 2), role("legal", 1)), nil, "1 of legal"},
		{"no groups", asks(), nil, "does not"},
		{"Ana is disabled", initiator, []approvals.Person{{ID: named("ana"), Name: "Ana", Roles: []string{"finance"}}}, "Ana, who approved it, is no longer active here"},
		{"Ben lost the role", two, []approvals.Person{{ID: named("ben"), Name: "Ben", Roles: []string{"legal"}, Active: true}}, "Ben, who approved it, is no longer in finance"},
		{"Ana is disabled, one is enough now", asks(role("finance", 1)), []approvals.Person{{ID: named("ana"), Name: "Ana"}}, ""},
	}
	for _, c := range cases {
		for _, p := range people {
			d.folk.set(p)
		}
		for _, p := range c.set {
			d.folk.set(p)
		}
		d.view(func(ctx context.Context, q store.Querier) error {
			ok, why, err := d.Satisfied(ctx, q, tenant, r.ID, c.present)
			if ok != (c.want == "") || c.want != "" && c.name != "no groups" && !strings.Contains(why, c.want) || !ok && why == "" {
				t.Errorf("%s: %v, %q; want %q", c.name, ok, why, c.want)
			}
			return err
		})
	}
}

// What was allowed without a vote is not enough where the policy asks now.
func TestSatisfied_AnAllowanceDoesNotMeetAPolicyThatAsks(t *testing.T) {
	d := newDesk(t)
	r := d.open(d.refund(says(approvals.Allow)))
	d.view(func(ctx context.Context, q store.Querier) error {
		ok, why, err := d.Satisfied(ctx, q, tenant, r.ID, asks(role("finance", 1)))
		if want := "The policy in force asks for 1 of finance, and nobody has approved it."; ok || why != want {
			t.Errorf("%v, %q; want %q", ok, why, want)
		}
		return err
	})
}

// The subject's JSON is read strictly, so that nothing can hide in it.
func FuzzDiffSubjects(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b":null}]}`), []byte(`{"a":[2]}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		x, err := canon.Canonical(a, canon.DefaultLimits)
		if err != nil {
			return
		}
		y, err := canon.Canonical(b, canon.DefaultLimits)
		if err != nil {
			return
		}
		changes, err := approvals.DiffSubjects(x, y)
		if err != nil {
			t.Fatal(err)
		}
		if string(x) == string(y) && len(changes) > 0 {
			t.Fatalf("equal documents differ by %v", changes)
		}
		for _, c := range changes {
			if string(c.Old) == string(c.New) || c.Old != nil && !json.Valid(c.Old) {
				t.Fatalf("change %+v", c)
			}
		}
	})
}
