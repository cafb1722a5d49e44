package desk

import (
	"context"
	"encoding/json"
	"time"

	"countersign/internal/approvals"
	"countersign/internal/audit"
	"countersign/internal/canon"
	"countersign/internal/engine"
	"countersign/internal/id"
	"countersign/internal/problem"
	"countersign/internal/sealed"
	"countersign/internal/store"
	"countersign/internal/tools"
)

// gate lets the engine ask for approval without knowing who gives it. Each
// method runs inside the engine's transaction.
type gate struct{ *Desk }

// Propose judges the proposal by the policy in force, opens the request and
// records the ruling.
func (g gate) Propose(ctx context.Context, tx *store.Tx, p engine.Proposal) (engine.Ruling, error) {
	policy, err := g.defs.PolicyInForce(ctx, tx, p.Tenant)
	if err != nil {
		return engine.Ruling{}, err
	}
	verdict, err := g.judge(ctx, tx, policy, proposalFacts(p), tx.Now())
	if err != nil {
		return engine.Ruling{}, err
	}
	open := openRequest(p, policy, verdict)
	if open.Principals, err = g.actedFor(ctx, tx, p); err != nil {
		return engine.Ruling{}, err
	}
	r, err := g.book.Open(ctx, tx, open)
	if err != nil {
		return engine.Ruling{}, err
	}
	if err := g.recordRevision(ctx, tx, policyActs(p.Tenant, r), r, "approval.requested", ""); err != nil {
		return engine.Ruling{}, err
	}
	return ruling(r), nil
}

// actedFor returns whom the proposal says it is for, where that is the address
// of somebody here: they count as initiators and do not decide on it. A
// token's owner is the initiator already.
func (g gate) actedFor(ctx context.Context, q store.Querier, p engine.Proposal) ([]id.Person, error) {
	if p.OnBehalfOf == "" {
		return nil, nil
	}
	who, err := g.people.ByEmail(ctx, q, p.Tenant, p.OnBehalfOf)
	if problem.HasCode(err, "not_found") || err == nil && who.ID == id.Person(p.Initiator) {
		return nil, nil
	}
	return []id.Person{who.ID}, err
}

// Ruling tells where a request stands. One whose subject cannot be read stands
// where its columns say, so that the engine goes on to Admit, which raises the
// alarm.
func (g gate) Ruling(ctx context.Context, q store.Querier, request id.Approval) (engine.Ruling, error) {
	r, err := g.book.Get(ctx, q, Tenant, request)
	if err != nil {
		if c, again := g.book.Check(ctx, q, Tenant, request); again == nil && c.Tampered != "" {
			return ruling(c.Request), nil
		}
	}
	return ruling(r), err
}

// Withdraw closes a request that nobody needs to decide any more.
func (g gate) Withdraw(ctx context.Context, tx *store.Tx, request id.Approval, why string, by engine.Actor) error {
	return g.withdraw(ctx, tx, request, why, audit.Entry{Tenant: Tenant, Channel: by.Channel, Actor: audit.Actor{Kind: by.Kind, ID: by.ID, Name: by.Name, How: by.How}})
}

func (d *Desk) withdraw(ctx context.Context, tx *store.Tx, request id.Approval, why string, by audit.Entry) error {
	r, changed, err := d.book.Withdraw(ctx, tx, Tenant, request, approvals.Party{ID: id.Person(by.Actor.ID), Name: by.Actor.Name}, why)
	if err != nil || !changed {
		return err
	}
	return d.closed(ctx, tx, r, by, "approval.withdrawn", why)
}

// Settled tells the request how its effect ended.
func (g gate) Settled(ctx context.Context, tx *store.Tx, request id.Approval, outcome string) error {
	g.announce(tx, TopicApprovals, string(request))
	return g.book.Settled(ctx, tx, Tenant, request, outcome)
}

// Expire closes a request that the engine meets past a deadline.
func (g gate) Expire(ctx context.Context, tx *store.Tx, request id.Approval) (engine.Ruling, error) {
	r, err := g.expire(ctx, tx, request)
	return ruling(r), err
}

// expire closes a request one of whose deadlines has passed, with its entry.
func (d *Desk) expire(ctx context.Context, tx *store.Tx, request id.Approval) (approvals.Request, error) {
	r, changed, err := d.book.Expire(ctx, tx, Tenant, request)
	if err != nil || !changed {
		return r, err
	}
	return r, d.closed(ctx, tx, r, audit.Entry{Tenant: Tenant, Actor: engineActor, Channel: "engine"}, "approval.expired", "")
}

// closed records the end of a request that no decision made.
func (d *Desk) closed(ctx context.Context, tx *store.Tx, r approvals.Request, by audit.Entry, action, why string) error {
	by.Action, by.Subject, by.Run, by.Digest, by.Outcome = action, string(r.ID), r.Run, r.Digest, string(r.Status)
	if why != "" {
		by.Payload = payload(map[string]string{"why": why})
	}
	if _, err := d.log.Append(ctx, tx, by); err != nil {
		return err
	}
	d.announce(tx, TopicApprovals, string(r.ID))
	if r.ExecuteBy.IsZero() { // else it was approved: nobody waited for a decision
		d.waited(ctx, tx, r)
	}
	return nil
}

// facts are what a policy judges.
type facts struct {
	tenant             string
	run                id.Run // whose sealed parameters they are; empty: none are
	tool, risk, target string
	summary            string // for people; no policy sees it
	toolVersion        int
	workflow           string
	params             json.RawMessage
	clear              json.RawMessage // params with the values in place; none: they are opened
	initiator          id.Person
	onBehalfOf         string
}

func proposalFacts(p engine.Proposal) facts {
	f := facts{tenant: p.Tenant, run: p.Run, target: p.Target, workflow: p.Workflow, params: p.Params, initiator: id.Person(p.Initiator), onBehalfOf: p.OnBehalfOf}
	if p.Tool != nil {
		f.tool, f.toolVersion, f.risk = p.Tool.Name, p.Tool.Version, p.Tool.Risk
	}
	return f
}

func requestFacts(r approvals.Request, params json.RawMessage, target string) facts {
	return facts{tenant: r.Tenant, run: r.Run, tool: r.Tool, toolVersion: r.ToolVersion, risk: r.Risk, target: target, workflow: r.Workflow, params: params,
		initiator: r.Initiator, onBehalfOf: r.OnBehalfOf}
}

// judge evaluates the policy on facts. No policy at all asks one person with
// the approver role. Whoever started something at a terminal is nobody's
// person and has no roles.
func (d *Desk) judge(ctx context.Context, q store.Querier, policy *approvals.Policy, f facts, now time.Time) (approvals.Verdict, error) {
	var params any
	opened := false
	if len(f.params) > 0 {
		open, err := f.clear, error(nil)
		if open == nil {
			open, err = d.opened(ctx, q, f.tenant, f.run, f.params)
		}
		if err != nil {
			return approvals.Verdict{}, err
		}
		if params, err = canon.Value(open); err != nil {
			return approvals.Verdict{}, err
		}
		opened = sealed.In(f.params)
	}
	who, err := folk{d.people}.Person(ctx, q, f.tenant, f.initiator)
	if err != nil && !problem.HasCode(err, "not_found") {
		return approvals.Verdict{}, err
	}
	return policy.Judge(ctx, approvals.Facts{
		Tool: f.tool, ToolVersion: f.toolVersion, Risk: f.risk, Target: f.target, Workflow: f.workflow, Params: params,
		Initiator: string(f.initiator), InitiatorRoles: who.Roles, OnBehalfOf: f.onBehalfOf, Now: now, Opened: opened,
	}), nil
}

// present judges a stored request, with params and target, by the policy in
// force now.
func (d *Desk) present(ctx context.Context, q store.Querier, r approvals.Request, params json.RawMessage, target string, now time.Time) (approvals.Verdict, *approvals.Policy, error) {
	policy, err := d.defs.PolicyInForce(ctx, q, r.Tenant)
	if err != nil {
		return approvals.Verdict{}, nil, err
	}
	v, err := d.judge(ctx, q, policy, requestFacts(r, params, target), now)
	return v, policy, err
}

// openRequest is a proposal in the words of approvals.
func openRequest(p engine.Proposal, policy *approvals.Policy, v approvals.Verdict) approvals.OpenRequest {
	o := approvals.OpenRequest{
		Kind: p.Kind, Tenant: p.Tenant, Run: p.Run, Path: p.Path, Pass: p.Pass, Action: p.Action,
		Plan: approvals.Plan{Workflow: p.Workflow, WorkflowVersion: p.WorkflowVersion, WorkflowDigest: p.WorkflowDigest, Outputs: p.Outputs,
			Model: p.Model, PromptVersion: p.PromptVersion, AgentVersion: p.AgentVersion},
		Params: p.Params, FrozenRequest: p.Request, Key: p.Key, Title: p.Title, Document: p.Document,
		Target: p.Target, Summary: p.Summary, Impact: p.Impact, Reason: p.Reason, Preview: reading(p.Preview), Precondition: reading(p.Precondition),
		Initiator: id.Person(p.Initiator), InitiatorName: p.InitiatorName, OnBehalfOf: p.OnBehalfOf,
		RunVersion: p.RunVersion, RequestedAt: p.RequestedAt, Verdict: v, Policy: policy,
	}
	if p.Tool != nil {
		o.Tool, o.ToolVersion, o.ToolDigest, o.Risk = p.Tool.Name, p.Tool.Version, p.Tool.Digest, p.Tool.Risk
		o.Editable, o.Sensitive = p.Tool.Editable, p.Tool.Sensitive
	}
	return o
}

// reading is what a tool read, in the words of approvals.
func reading(r *tools.Reading) *approvals.Reading {
	if r == nil {
		return nil
	}
	return &approvals.Reading{OK: r.OK, Met: r.Met, Value: r.Value, Pin: r.Pin, Error: r.Error, At: r.At}
}

// ruling is where a request stands, in the words of the engine.
func ruling(r approvals.Request) engine.Ruling {
	out := engine.Ruling{Request: r.ID, Revision: r.Revision, Status: string(r.Status), Digest: r.Digest, Comment: r.ClosedWhy, By: r.ClosedByName,
		DecideBy: r.DecideBy, ExecuteBy: r.ExecuteBy, Params: r.Params, Edited: r.Edited()}
	for _, d := range r.Decisions {
		if out.By == "" && d.Verdict == approvals.VerdictApprove {
			out.By, out.Comment = d.PersonName, d.Comment
		}
	}
	return out
}

// policyActs is the beginning of an entry that the policy's ruling causes.
func policyActs(tenant string, r approvals.Request) audit.Entry {
	return audit.Entry{Tenant: tenant, Actor: audit.Actor{Kind: "policy", ID: r.Policy, Name: r.Policy, How: "rule " + r.Rule}, Channel: "engine"}
}

// announce tells open pages, after the commit, that subject changed.
func (d *Desk) announce(tx *store.Tx, topic, subject string) {
	tx.AfterCommit(func() { d.hub.Publish(topic, subject) })
}
