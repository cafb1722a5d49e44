package desk

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"countersign/internal/canon"
	"countersign/internal/definitions"
	"countersign/internal/engine"
	"countersign/internal/id"
	"countersign/internal/identity"
	"countersign/internal/problem"
	"countersign/internal/store"
	"countersign/internal/tools"
	"countersign/internal/workflow"
)

// actionStep is the one step of the workflow behind a proposed action.
const actionStep = "act"

// actionPrefix begins the names of those workflows.
const actionPrefix = "action-"

// actionWorkflow compiles the workflow of one action with the tool. A
// proposed action is a run like any other, so that it has the same ledger,
// approvals, recovery and pages; its version is the tool's.
func actionWorkflow(t *tools.Tool, catalog workflow.Catalog) (*workflow.Workflow, error) {
	src := fmt.Sprintf(`format: 1
workflow: %s%s
version: %d
title: %q
input:
  type: object
  additionalProperties: false
  required: [params, reason, key]
  properties: {params: {type: object}, reason: {type: string}, key: {type: string}, metadata: {}}
sensitive: %s
steps:
  - id: %s
    action: %s
    with: "${input.params}"
    key: "${input.key}"
    reason: "${input.reason}"
    on_reject: end
    on_expire: end
output: "${steps.%s.output}"
`, actionPrefix, dashed(t.Name), t.Version, "Action "+t.Name, inside("/params", t.Sensitive), actionStep, t.Name, actionStep)
	return workflow.Compile("action", []byte(src), catalog)
}

// inside is the pointers below another one, as a JSON list.
func inside(above string, pointers []string) string {
	out := []string{}
	for _, p := range pointers {
		out = append(out, above+p)
	}
	return string(payload(out))
}

// dashed turns a tool's name into a workflow's.
func dashed(name string) string {
	out := []byte(name)
	for i, b := range out {
		if b == '.' || b == '_' {
			out[i] = '-'
		}
	}
	return string(out)
}

// Propose freezes an action, puts it through the policy and, once it is
// approved, executes it. The second result is false when the same idempotency
// key proposed it before. Problems: unknown_tool, invalid, forbidden,
// idempotency_key_reused.
func (d *Desk) Propose(ctx context.Context, p identity.Principal, in ProposeAction) (ActionView, bool, error) {
	if err := require(p, capPropose, "propose actions"); err != nil {
		return ActionView{}, false, err
	}
	reason, err := words("/reason", in.Reason, reasonCharsMax)
	if err != nil {
		return ActionView{}, false, err
	}
	in.Reason = reason
	var run engine.Run
	var created bool
	var repeat *ActionView
	err = d.db.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		old, err := d.made(ctx, tx, p, in.Once)
		if err != nil {
			return err
		}
		if old != "" {
			d.repeated(RepeatAction)
			run, err = d.engine.Run(ctx, tx, Tenant, id.Run(old))
			return err
		}
		t, params, err := d.proposable(ctx, tx, in)
		if err != nil {
			return err
		}
		if repeat, err = d.remembered(ctx, tx, p, t, params); err != nil || repeat != nil {
			return err
		}
		run, created, err = d.createAction(ctx, tx, p, t, params, in)
		return err
	})
	if err != nil {
		return ActionView{}, false, err
	}
	if repeat != nil {
		d.repeated(RepeatRejected)
		return *repeat, false, nil
	}
	view, err := d.settledSoon(ctx, p, run.ID)
	return view, created, err
}

// proposable returns the tool in force and the prepared parameters.
func (d *Desk) proposable(ctx context.Context, q store.Querier, in ProposeAction) (*tools.Tool, json.RawMessage, error) {
	t, err := d.defs.ToolInForce(ctx, q, Tenant, in.Tool)
	if err != nil {
		return nil, nil, err
	}
	bad := problem.New(problem.Invalid, "invalid", "The action was not proposed.")
	if !t.Write {
		return nil, nil, bad.At("/tool", "%s only reads; there is nothing to approve", t.Name)
	}
	if len(in.Params) == 0 {
		return nil, nil, bad.At("/params", "give the parameters of the tool")
	}
	params, err := t.PrepareParams(in.Params)
	if err != nil {
		return nil, nil, below("/params", err)
	}
	about, err := t.Describe(params, d.config)
	if err != nil {
		return nil, nil, err
	}
	if in.Target != "" && in.Target != about.Target {
		return nil, nil, bad.At("/target", "does not fit: these parameters act on %q", about.Target)
	}
	return t, params, nil
}

// below puts the pointers of a problem under prefix.
func below(prefix string, err error) error {
	p := problem.From(err)
	moved := *p
	moved.Fields = nil
	for _, f := range p.Fields {
		moved.Fields = append(moved.Fields, problem.Field{Pointer: prefix + f.Pointer, Message: f.Message})
	}
	return &moved
}

// isAction reports whether a run is one proposed action.
func isAction(run engine.Run) bool { return strings.HasPrefix(run.Workflow, actionPrefix) }

// memory is how long a rejected action is answered from memory.
const memory = 24 * time.Hour

// remembered returns the rejected action with the same tool and parameters
// that the same initiator proposed within the last day, if any: a refusal
// stands until somebody changes something.
func (d *Desk) remembered(ctx context.Context, q store.Querier, p identity.Principal, t *tools.Tool, params json.RawMessage) (*ActionView, error) {
	refused, err := d.book.PreviouslyRejected(ctx, q, Tenant, initiator(p), t.Name, canon.Digest(params))
	if err != nil || refused.Request == "" {
		return nil, err
	}
	run, err := d.engine.Run(ctx, q, Tenant, refused.Run)
	if err != nil || !isAction(run) || d.now().Sub(refused.At) > memory {
		return nil, err
	}
	view, err := d.actionView(ctx, q, run)
	return &view, err
}

func (d *Desk) createAction(ctx context.Context, tx *store.Tx, p identity.Principal, t *tools.Tool, params json.RawMessage, in ProposeAction) (engine.Run, bool, error) {
	catalog, err := d.defs.ToolsInForce(ctx, tx, Tenant)
	if err != nil {
		return engine.Run{}, false, err
	}
	w, err := actionWorkflow(t, catalog)
	if err != nil {
		return engine.Run{}, false, err
	}
	if err := definitions.Keep(ctx, tx, Tenant, w); err != nil {
		return engine.Run{}, false, err
	}
	if in.Key == "" {
		in.Key = "only-" + rand.Text() // this proposal has a key of its own
	}
	input := map[string]any{"params": params, "reason": in.Reason, "key": in.Key}
	if len(in.Metadata) > 0 {
		input["metadata"] = in.Metadata
	}
	raw, err := canon.Marshal(input)
	if err != nil {
		return engine.Run{}, false, err
	}
	versions, err := canon.Marshal(map[string]string{"model": in.Model, "prompt_version": in.PromptVersion, "agent_version": in.AgentVersion})
	if err != nil {
		return engine.Run{}, false, err
	}
	return d.create(ctx, tx, p, w, StartRun{Input: raw, Thread: in.Thread, OnBehalfOf: in.OnBehalfOf, Once: in.Once}, versions)
}

// proposalPatience is how long Propose waits for the policy's ruling, which
// may need a precondition and a preview from the target first.
const proposalPatience = 10 * time.Second

// settledSoon waits until the action is with a person, denied or done.
func (d *Desk) settledSoon(ctx context.Context, p identity.Principal, run id.Run) (ActionView, error) {
	return waitFor(ctx, d, TopicRuns, proposalPatience, func() (view ActionView, done bool, err error) {
		view, err = d.action(ctx, run)
		return view, view.Status != "proposed", err
	})
}

// mayReadAction lets whoever may only propose read their own: another's looks
// like none.
func (d *Desk) mayReadAction(ctx context.Context, p identity.Principal, run id.Run) error {
	if may(p, capRunsRead) {
		return nil
	}
	return d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		r, err := d.engine.Run(ctx, q, Tenant, run)
		if problem.HasCode(err, "not_found") || err == nil && r.Initiator != string(initiator(p)) {
			return errNoAction
		}
		return err
	})
}

// Action returns the story of an action. Who may only propose reads their own.
// Problems: not_found, forbidden.
func (d *Desk) Action(ctx context.Context, p identity.Principal, ref string) (ActionView, error) {
	return d.WaitAction(ctx, p, ref, 0)
}

// WaitAction returns the story of an action as soon as its status changes, or
// when wait is over.
func (d *Desk) WaitAction(ctx context.Context, p identity.Principal, ref string, wait time.Duration) (ActionView, error) {
	if err := requireAny(p, "read actions", capPropose, capRunsRead); err != nil {
		return ActionView{}, err
	}
	run := runOfAction(ref)
	if err := d.mayReadAction(ctx, p, run); err != nil {
		return ActionView{}, err
	}
	first, err := d.action(ctx, run)
	if err != nil || wait <= 0 {
		return first, err
	}
	return waitFor(ctx, d, TopicRuns, wait, func() (ActionView, bool, error) {
		view, err := d.action(ctx, run)
		return view, view.Status != first.Status, err
	})
}

func (d *Desk) action(ctx context.Context, run id.Run) (view ActionView, err error) {
	err = d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		r, err := d.engine.Run(ctx, q, Tenant, run)
		if err == nil && !isAction(r) {
			err = errNoAction
		}
		if err != nil {
			return err
		}
		view, err = d.actionView(ctx, q, r)
		return err
	})
	return view, err
}

// errNoAction is what another kind of run looks like as an action.
var errNoAction = problem.New(problem.NotFound, "not_found", "There is no such action here.")

// Withdraw takes back an action that was not sent, by whoever proposed it.
// Problems: forbidden, already_finished, not_found, invalid.
func (d *Desk) Withdraw(ctx context.Context, p identity.Principal, ref, reason string) (ActionView, error) {
	if err := require(p, capPropose, "withdraw actions"); err != nil {
		return ActionView{}, err
	}
	reason, err := words("/reason", reason, reasonCharsMax)
	if err != nil {
		return ActionView{}, err
	}
	run := runOfAction(ref)
	if err := d.mayReadAction(ctx, p, run); err != nil {
		return ActionView{}, err
	}
	var of engine.Run
	err = d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		of, err = d.engine.Run(ctx, q, Tenant, run)
		return err
	})
	if err != nil {
		return ActionView{}, err
	}
	if !isAction(of) {
		return ActionView{}, errNoAction
	}
	if of.Initiator != string(initiator(p)) {
		return ActionView{}, problem.New(problem.Forbidden, "not_initiator", "Only %s, who proposed this action, can withdraw it; an operator can cancel its run.", of.InitiatorName)
	}
	if _, err := d.engine.Cancel(ctx, run, reason, actor(p)); err != nil {
		return ActionView{}, err
	}
	return d.action(ctx, run)
}
