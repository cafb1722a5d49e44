package approvals_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"countersign/internal/approvals"
	"countersign/internal/canon"
	"countersign/internal/id"
	"countersign/internal/problem"
	"countersign/internal/store"
	"countersign/internal/testkit"
)

const tenant = "default"

// start is when every test begins.
var start = time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)

// folk is the people of a test; it may change while the test runs.
type folk struct {
	mu     sync.Mutex // protects people
	people map[id.Person]approvals.Person
	order  []id.Person
}

func (f *folk) Person(_ context.Context, _ store.Querier, _ string, p id.Person) (approvals.Person, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if who, ok := f.people[p]; ok {
		return who, nil
	}
	return approvals.Person{}, problem.New(problem.NotFound, "not_found", "There is no such person.")
}

func (f *folk) WithRole(_ context.Context, _ store.Querier, _, role string) ([]approvals.Person, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []approvals.Person
	for _, p := range f.order {
		for _, r := range f.people[p].Roles {
			if r == role {
				all = append(all, f.people[p])
			}
		}
	}
	return all, nil
}

func (f *folk) set(p approvals.Person) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.people[p.ID]; !ok {
		f.order = append(f.order, p.ID)
	}
	f.people[p.ID] = p
}

// person's id is made of the name, so that tests read.
func named(name string) id.Person { return id.Person("usr_" + name) }

// desk is one database with a book, a clock and people.
type desk struct {
	*approvals.Book
	t     *testing.T
	db    *store.DB
	path  string
	folk  *folk
	clock *clock
	runs  int
}

type clock struct {
	mu  sync.Mutex // protects now
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

// newDesk has the people ana and ben (finance), cleo (finance and legal),
// dora (legal), max (approver), olga (operator), ivo (no role; starts things).
func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{t: t, folk: &folk{people: map[id.Person]approvals.Person{}}, clock: &clock{now: start}, path: filepath.Join(t.TempDir(), "test.db")}
	for _, p := range []approvals.Person{
		{Name: "Ana", ID: named("ana"), Roles: []string{"finance"}, Active: true},
		{Name: "Ben", ID: named("ben"), Roles: []string{"finance"}, Active: true},
		{Name: "Cleo", ID: named("cleo"), Roles: []string{"finance", "legal"}, Active: true},
		{Name: "Dora", ID: named("dora"), Roles: []string{"legal"}, Active: true},
		{Name: "Max", ID: named("max"), Roles: []string{"approver"}, Active: true},
		{Name: "Olga", ID: named("olga"), Roles: []string{"operator"}, Active: true},
		{Name: "Ivo", ID: named("ivo"), Active: true},
	} {
		d.folk.set(p)
	}
	d.db = testkit.OpenWith(t, store.Options{Path: d.path, Lines: []store.Line{approvals.Migrations}, Now: d.clock.Now})
	d.Book = approvals.New(d.folk)
	return d
}

func (d *desk) at(after time.Duration) { d.clock.set(start.Add(after)) }

// change runs fn in an audited transaction and returns its error.
func (d *desk) change(fn func(ctx context.Context, tx *store.Tx) error) error {
	return d.db.Update(context.Background(), func(ctx context.Context, tx *store.Tx) error {
		tx.Audited()
		return fn(ctx, tx)
	})
}

func (d *desk) must(fn func(ctx context.Context, tx *store.Tx) error) {
	d.t.Helper()
	if err := d.change(fn); err != nil {
		d.t.Fatalf("transaction: %v", err)
	}
}

func (d *desk) view(fn func(ctx context.Context, q store.Querier) error) {
	d.t.Helper()
	if err := d.db.View(context.Background(), fn); err != nil {
		d.t.Fatalf("view: %v", err)
	}
}

// asks is a verdict that asks the groups.
func asks(groups ...approvals.Group) approvals.Verdict {
	return approvals.Verdict{Effect: approvals.Approve, Policy: "default", PolicyVersion: 1, PolicyDigest: "sha256:policy", Rule: "big",
		Groups: groups, DecideWithin: 10 * time.Minute, ExecuteWithin: 5 * time.Minute}
}

func role(name string, need int) approvals.Group {
	return approvals.Group{Name: name, Role: name, Need: need}
}

func says(e approvals.Effect) approvals.Verdict {
	return approvals.Verdict{Effect: e, Policy: "default", PolicyVersion: 1, PolicyDigest: "sha256:policy", Rule: "small", ExecuteWithin: 5 * time.Minute}
}

// refund is a proposal started by ivo; each call is another step.
func (d *desk) refund(v approvals.Verdict) approvals.OpenRequest {
	d.runs++
	now := d.clock.Now()
	params := raw(`{"amount":5000,"currency":"EUR","items":[{"price":1}],"order_id":"A-7"}`)
	return approvals.OpenRequest{Kind: approvals.KindAction, Tenant: tenant, Run: id.NewRun(now), Path: "refund", Pass: 1, Action: id.NewAction(now),
		Plan: approvals.Plan{Workflow: "refund", WorkflowVersion: 1, WorkflowDigest: "sha256:workflow", Outputs: map[string]string{"read": "sha256:output"}, Model: "m-1"},
		Tool: "shop.refund", ToolVersion: 1, ToolDigest: "sha256:tool", Risk: "high", Params: params,
		FrozenRequest: frozen(params), Key: "key-" + string(id.NewAction(now)), Editable: []string{"/amount", "/note"}, Sensitive: []string{"/card"},
		Target: "order A-7", Summary: "Refund 5000 EUR on order A-7", Impact: "Money leaves at once.", Reason: "The customer asked.",
		Precondition: &approvals.Reading{OK: true, Met: true, Value: raw(`{"state":"paid"}`), Pin: raw(`7`), At: now},
		Initiator:    named("ivo"), InitiatorName: "Ivo", RunVersion: 3, RequestedAt: now, Verdict: v}
}

func frozen(params json.RawMessage) json.RawMessage {
	return raw(`{"body":` + string(params) + `,"method":"POST","type":"countersign.request/1","url":"http://shop/refunds"}`)
}

func raw(s string) json.RawMessage {
	c, err := canon.Canonical([]byte(s), canon.DefaultLimits)
	if err != nil {
		panic(err)
	}
	return c
}

func (d *desk) open(o approvals.OpenRequest) (r approvals.Request) {
	d.t.Helper()
	d.must(func(ctx context.Context, tx *store.Tx) (err error) {
		if r, err = d.Open(ctx, tx, o); err != nil {
			return err
		}
		return d.SetRulingEntry(ctx, tx, r.ID, r.Revision, id.NewEntry(tx.Now()))
	})
	return r
}

// ask opens a refund that asks the groups.
func (d *desk) ask(groups ...approvals.Group) approvals.Request {
	d.t.Helper()
	return d.open(d.refund(asks(groups...)))
}

// decide casts a vote on the digest and links an entry.
func (d *desk) decide(name string, r approvals.Request, verdict string) (out approvals.Result, err error) {
	comment := ""
	if verdict == "reject" {
		comment = "not like this"
	}
	err = d.change(func(ctx context.Context, tx *store.Tx) (err error) {
		out, err = d.Decide(ctx, tx, approvals.Decision{Tenant: tenant, Request: r.ID, Digest: r.Digest, Verdict: verdict, Comment: comment,
			Person: approvals.Person{ID: named(name)}, Auth: "password", Channel: "browser"})
		if err != nil || out.Replay {
			return err
		}
		return d.SetAudit(ctx, tx, out.Decision.ID, id.NewEntry(tx.Now()))
	})
	return out, err
}

func (d *desk) approve(name string, r approvals.Request) approvals.Request {
	d.t.Helper()
	out, err := d.decide(name, r, "approve")
	if err != nil {
		d.t.Fatalf("%s approves: %v", name, err)
	}
	return out.Request
}

func (d *desk) get(request id.Approval) (r approvals.Request) {
	d.t.Helper()
	d.view(func(ctx context.Context, q store.Querier) (err error) {
		r, err = d.Get(ctx, q, tenant, request)
		return err
	})
	return r
}

// edit changes the amount as the person.
func (d *desk) edit(name string, r approvals.Request, params json.RawMessage, v approvals.Verdict) (next approvals.Request, err error) {
	who, _ := d.folk.Person(context.Background(), nil, tenant, named(name))
	err = d.change(func(ctx context.Context, tx *store.Tx) (err error) {
		next, err = d.Revise(ctx, tx, approvals.Revision{Tenant: tenant, Request: r.ID, OldDigest: r.Digest, Params: params, FrozenRequest: frozen(params),
			Summary: "Refund", Target: r.Target, Impact: r.Impact, Precondition: r.Precondition, Verdict: v, Editor: &who, Why: "edited", Comment: "less"})
		return err
	})
	return next, err
}

func amount(n string) json.RawMessage {
	return raw(`{"amount":` + n + `,"currency":"EUR","items":[{"price":1}],"order_id":"A-7"}`)
}

func wantCode(t *testing.T, err error, code string) *problem.Error {
	t.Helper()
	if !problem.HasCode(err, code) {
		t.Fatalf("error = %v, want a problem %s", err, code)
	}
	return problem.From(err)
}

func wantStatus(t *testing.T, r approvals.Request, want approvals.Status) {
	t.Helper()
	if r.Status != want {
		t.Fatalf("status = %s, want %s", r.Status, want)
	}
}
