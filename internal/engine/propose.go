package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"countersign/internal/canon"
	"countersign/internal/id"
	"countersign/internal/sealed"
	"countersign/internal/store"
	"countersign/internal/tools"
	"countersign/internal/vault"
	"countersign/internal/workflow"
)

// propose freezes an action and puts it before the gate. What reaches the
// network (preview and precondition) comes first; then one transaction makes
// the request, the action, the prepared effect with its key, and the
// checkpoint that names all three. An action that is allowed and has no
// precondition is marked `sent` in the same transaction.
func (s *session) propose(ctx context.Context, t workflow.Task) (*wait, error) {
	if w := s.notBefore(t); w != nil {
		return w, nil
	}
	s.crash("before", t.Path, t.Pass)
	s.crash("before-propose", t.Path, t.Pass)
	tool, err := s.tool(t.Step.Tool)
	if err != nil {
		return nil, err
	}
	re, err := s.e.refreeze(ctx, s.boxed, s.looking(nil), tool, t.Params)
	if f := unsealed(err); f != nil {
		return nil, f
	}
	if err != nil {
		return nil, s.fail(ctx, t, 0, workflow.Failure{Class: workflow.Invalid, Code: "params", Message: err.Error()})
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if pre := re.Precondition; pre != nil && !pre.OK {
		f := workflow.Failure{Class: workflow.Transient, Code: "precondition_unread", Message: because("The precondition could not be read", pre.Error)}
		if w := s.retry(t, f, 0); w != nil {
			return w, nil
		}
		return nil, s.fail(ctx, t, 0, f)
	} else if pre != nil && !pre.Met {
		return nil, s.fail(ctx, t, 0, unmet(pre))
	}
	return s.ask(ctx, t, tool, re)
}

// unmet is the failure of an action whose precondition does not hold.
func unmet(pre *tools.Reading) workflow.Failure {
	return workflow.Failure{Class: workflow.Refused, Code: "precondition", Message: because("The precondition does not hold", pre.Error)}
}

// because is a sentence with its reason, if there is one.
func because(what, why string) string {
	if why == "" {
		return what + "."
	}
	return what + ": " + strings.TrimSuffix(why, ".") + "."
}

// ask is the transaction of a proposal.
func (s *session) ask(ctx context.Context, t workflow.Task, tool *tools.Tool, re Refrozen) (*wait, error) {
	s.crash("before-propose-commit", t.Path, t.Pass)
	var eff *Effect
	var act action
	c := &commit{also: func(ctx context.Context, tx *store.Tx, c *commit) (err error) {
		eff, act, err = s.requested(ctx, tx, c, t, tool, re)
		return err
	}}
	if err := s.write(ctx, c); err != nil {
		return nil, err
	}
	s.crash("after-propose-commit", t.Path, t.Pass)
	if eff == nil || eff.Status != Sent {
		return nil, nil
	}
	s.crash("after-sent-commit", t.Path, t.Pass)
	return s.dispatch(ctx, t, tool, act, eff)
}

// requested makes the request and its rows, and adds the events of the ruling.
func (s *session) requested(ctx context.Context, tx *store.Tx, c *commit, t workflow.Task, tool *tools.Tool, re Refrozen) (*Effect, action, error) {
	base := baseOf(s.run.Tenant, s.run.ID, t.Path, t.Pass, tool, t.BusinessKey)
	generation, held, err := s.generation(ctx, tx, base)
	if err != nil {
		return nil, action{}, err
	}
	if held != nil {
		c.events = append(c.events, failure(t, 0, *held))
		return nil, action{}, nil
	}
	act := action{ID: id.NewAction(tx.Now()), Tool: tool.Name, ToolDigest: tool.Digest, Params: re.Params, Base: base}
	p := s.proposal(ctx, tx, t)
	p.Kind, p.Action, p.Tool, p.Params, p.Request, p.Key = ProposeAction, act.ID, tool, re.Params, re.Request, keyOf(base, generation)
	p.Summary, p.Target, p.Impact, p.Reason = re.Summary, re.Target, re.Impact, sealed.HideText(t.Reason)
	p.Preview, p.Precondition = re.Preview, re.Precondition
	r, err := s.e.o.Gate.Propose(ctx, tx, p)
	if err != nil {
		return nil, action{}, fmt.Errorf("propose %s: %w", t.Path, err)
	}
	row := s.row(t.Path, t.Pass)
	row.InputDigest, row.Approval, row.Action, row.IdempotencyKey = digestOf(re.Params), r.Request, act.ID, p.Key
	if r.Status == Denied {
		c.events = append(c.events, workflow.Event{Kind: workflow.ActionDenied, Path: t.Path, Pass: t.Pass, Error: deniedBy(r)})
		return nil, act, nil
	}
	act.Approval = r.Request
	if err := putAction(ctx, tx, s.run, t.Path, t.Pass, act); err != nil {
		return nil, act, err
	}
	eff := &Effect{Action: act.ID, Path: t.Path, Pass: t.Pass, Key: p.Key, base: base, Generation: generation, Approval: r.Request}
	if err := s.e.prepare(ctx, tx, s.run, eff, tool); err != nil {
		return nil, act, err
	}
	c.events = append(c.events, workflow.Event{Kind: workflow.ActionProposed, Path: t.Path, Pass: t.Pass,
		Data: data(map[string]any{"action": act.ID, "approval": r.Request, "effect": eff.ID, "key": p.Key, "digest": r.Digest})})
	return eff, act, s.ruled(ctx, tx, c, t, tool, re, r, eff)
}

// ruled follows the ruling as far as the proposing transaction can.
func (s *session) ruled(ctx context.Context, tx *store.Tx, c *commit, t workflow.Task, tool *tools.Tool, re Refrozen, r Ruling, eff *Effect) error {
	switch {
	case r.Status == Rejected: // the same was rejected before
		return s.close(ctx, tx, c, t, r, eff)
	case r.Status == Pending && s.alone:
		c.wait = waitApproval(t, r)
		return nil
	case r.Status == Allowed && re.Precondition == nil && !tx.ClockSuspect():
		adm, err := s.e.o.Gate.Admit(ctx, tx, r.Request, Facts{Preview: re.Preview})
		if err != nil {
			return fmt.Errorf("admit %s: %w", r.Request, err)
		}
		return s.admitted(ctx, tx, c, t, tool, r, adm, Facts{}, eff)
	}
	return nil
}

// generation finds the generation of the key that a new effect has: the first,
// or, when all before it are known not to have happened and closed, the next.
// An effect that holds the key is the reason to refuse.
func (s *session) generation(ctx context.Context, q store.Querier, base string) (int, *workflow.Failure, error) {
	last, err := lastEffect(ctx, q, "tenant = $1 AND base = $2", s.run.Tenant, base)
	if errors.Is(err, errNoEffect) {
		return 1, nil, nil
	}
	if err != nil {
		return 0, nil, fmt.Errorf("look for effects of the same key: %w", err)
	}
	free, err := s.free(ctx, q, last)
	if err != nil || free {
		return last.Generation + 1, nil, err
	}
	state := map[string]string{Prepared: "is waiting to be done", NotDone: "is being tried", Sent: "is being done", Unknown: "may have been done; nobody knows yet",
		Abandoned: "may have been done; it was given up without finding out", Confirmed: "was done"}[last.Status]
	return 0, &workflow.Failure{Class: workflow.Refused, Code: "duplicate_key", Message: fmt.Sprintf(
		"The same business action %s by run %s (%s). It is not sent again; if it really is another one, use another key.", state, last.Run, last.ID)}, nil
}

// free reports whether an effect no longer stands for its business key: it is
// known not to have happened, and nothing will send it.
func (s *session) free(ctx context.Context, q store.Querier, eff Effect) (bool, error) {
	switch eff.Status {
	case Refused:
		return true, nil
	case Abandoned:
		if eff.Attempts > 0 {
			return false, nil
		}
		held, err := heldByBackup(ctx, q, eff)
		return !held, err
	case NotDone: // closed once its step is not open any more
		var status string
		err := q.QueryRow(ctx, "SELECT status FROM step WHERE tenant = $1 AND run = $2 AND path = $3 AND pass = $4",
			eff.Tenant, string(eff.Run), eff.Path, eff.Pass).Scan(&status)
		return err == nil && status != string(workflow.Waiting), err
	}
	return false, nil
}

// proposal fills in what the run says.
func (s *session) proposal(ctx context.Context, tx *store.Tx, t workflow.Task) Proposal {
	r := s.run
	p := Proposal{Tenant: r.Tenant, Run: r.ID, Path: t.Path, Pass: t.Pass, Workflow: r.Workflow, WorkflowVersion: r.WorkflowVersion,
		WorkflowDigest: r.WorkflowDigest, Outputs: t.Outputs, Initiator: r.Initiator, InitiatorName: r.InitiatorName, OnBehalfOf: r.OnBehalfOf,
		Title: sealed.HideText(t.Title), RunVersion: r.Version, RequestedAt: tx.Now()}
	var v struct {
		Model         string `json:"model"`
		PromptVersion string `json:"prompt_version"`
		AgentVersion  string `json:"agent_version"`
	}
	if json.Unmarshal(r.Versions, &v) == nil {
		p.Model, p.PromptVersion, p.AgentVersion = v.Model, v.PromptVersion, v.AgentVersion
	}
	if t.Revises > 0 {
		p.Replaces = s.row(t.Path, t.Revises).Approval
	}
	return p
}

// data is the canonical JSON of an event's data.
func data(v any) json.RawMessage {
	b, err := canon.Marshal(v)
	if err != nil {
		panic("engine: encode event data: " + err.Error())
	}
	return b
}

// Refreeze makes of changed parameters what a revision needs: validated and
// canonical, described, frozen, with preview and precondition read anew. It
// reaches the network: call it outside a transaction. Parameters that do not
// fit are a problem with JSON Pointers.
//
// Sensitive values among them are sealed in the result; Keep makes them
// durable.
func (e *Engine) Refreeze(ctx context.Context, tenant string, run id.Run, t *tools.Tool, params json.RawMessage) (Refrozen, error) {
	var b *vault.Box
	box := e.boxInto(&b, tenant, run)
	re, err := e.refreeze(ctx, box, tools.Sending{Config: e.o.Config, Open: e.opener(box)}, t, params)
	re.box = b
	return re, err
}

// Keep makes durable what Refreeze sealed, in the transaction that stores the
// parameters.
func (re Refrozen) Keep(ctx context.Context, tx *store.Tx) error { return re.box.Save(ctx, tx) }

// Opened is a document of the run with its sensitive values in place, those
// too that are not durable yet: for what judges it.
func (re Refrozen) Opened(ctx context.Context, q store.Querier, doc json.RawMessage) (json.RawMessage, error) {
	if re.box == nil {
		return doc, nil
	}
	return re.box.Open(ctx, q, doc)
}

// Refrozen is what a set of parameters becomes.
type Refrozen struct {
	Params                  json.RawMessage
	Request                 tools.Frozen
	Summary, Target, Impact string
	Preview, Precondition   *tools.Reading // nil where the tool has none

	box *vault.Box
}

// refreeze prepares and describes parameters and reads the facts; asking is
// what a reading of them carries along.
func (e *Engine) refreeze(ctx context.Context, box boxOf, asking tools.Sending, t *tools.Tool, params json.RawMessage) (re Refrozen, err error) {
	if re.Params, err = e.prepared(ctx, box, t, params); err != nil {
		return Refrozen{}, err
	}
	d, err := t.Describe(re.Params, e.o.Config)
	if err != nil {
		return Refrozen{}, err
	}
	re.Summary, re.Target, re.Impact = d.Summary, d.Target, d.Impact
	if re.Request, err = t.Freeze(re.Params, e.o.Config); err != nil {
		return Refrozen{}, err
	}
	asking.Params = re.Params
	f := e.facts(ctx, asking, t, true)
	re.Preview, re.Precondition = f.Preview, f.Precondition
	return re, nil
}

// facts reads what the target says now.
func (e *Engine) facts(ctx context.Context, asking tools.Sending, t *tools.Tool, preview bool) (f Facts) {
	if preview && t.HasPreview() {
		f.Preview = reading(func() tools.Reading { return e.o.World.Preview(ctx, t, asking) })
	}
	if t.HasPrecondition() {
		f.Precondition = reading(func() tools.Reading { return e.o.World.Precondition(ctx, t, asking) })
	}
	return f
}

func reading(read func() tools.Reading) (r *tools.Reading) {
	defer func() {
		if v := recover(); v != nil {
			if c, ok := v.(Crashed); ok {
				panic(c)
			}
			r = &tools.Reading{Error: fmt.Sprintf("The transport broke: %v.", v)}
		}
	}()
	got := read()
	return &got
}
