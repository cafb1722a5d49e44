package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"countersign/internal/approvals"
	"countersign/internal/desk"
	"countersign/internal/engine"
	"countersign/internal/id"
	"countersign/internal/identity"
	"countersign/internal/problem"
)

// pendingMax is how many requests may wait before the agent stops asking for
// more.
const pendingMax = 12

// patience bounds the wait for one state of one run.
const patience = 30 * time.Second

// Agent seeds the console and then asks for something every now and then,
// until ctx ends. What goes wrong is logged; it never ends the console.
func (d *Demo) Agent(ctx context.Context) {
	if err := d.Seed(ctx); err != nil && ctx.Err() == nil {
		d.logger.Error("the demo could not prepare everything", "cause", err)
	}
	tick := time.NewTicker(d.every)
	defer tick.Stop()
	next := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		n, err := d.ask(ctx, next)
		if err != nil && ctx.Err() == nil {
			d.logger.Warn("the demo's agent could not ask", "errand", n, "cause", err)
			n++ // it would fail the same way again
		}
		next = n
	}
}

// ask gives the first errand at or after n that was not given by an earlier
// start, unless enough wait already. It returns the number to go on with.
func (d *Demo) ask(ctx context.Context, n int) (int, error) {
	for ctx.Err() == nil {
		waiting, err := d.pending(ctx)
		if err != nil || waiting >= pendingMax {
			return n, err
		}
		e, err := d.errand(n)
		if err != nil {
			return n, err
		}
		created, err := d.give(ctx, e)
		if err != nil {
			return n, err
		}
		n++
		if created {
			return n, nil
		}
	}
	return n, ctx.Err()
}

func (d *Demo) pending(ctx context.Context) (int, error) {
	page, err := d.Instance.Desk.Approvals(ctx, d.cast.agent, desk.ApprovalQuery{Status: string(approvals.Pending), Limit: pendingMax})
	return len(page.Items), err
}

// errand is one thing the agent asks for: a run of a workflow, or one action.
type errand struct {
	key      string // makes it happen once in the life of a data folder
	workflow string
	input    map[string]any
	tool     string
	params   map[string]any
	reason   string // of an action; a workflow's input has its own
	thread   string
	behalf   string
}

// give starts or proposes the errand as Dev's agent. It reports false when an
// earlier start did already.
func (d *Demo) give(ctx context.Context, e errand) (created bool, err error) {
	if e.workflow != "" {
		_, created, err = d.start(ctx, e)
		return created, err
	}
	_, created, err = d.propose(ctx, e)
	return created, err
}

func (d *Demo) start(ctx context.Context, e errand) (engine.Run, bool, error) {
	input, err := json.Marshal(e.input)
	if err != nil {
		return engine.Run{}, false, fmt.Errorf("encode input: %w", err)
	}
	return d.Instance.Desk.StartRun(ctx, d.cast.agent, desk.StartRun{Workflow: e.workflow, Input: input, Key: e.key, Thread: e.thread, OnBehalfOf: e.behalf})
}

func (d *Demo) propose(ctx context.Context, e errand) (desk.ActionView, bool, error) {
	params, err := json.Marshal(e.params)
	if err != nil {
		return desk.ActionView{}, false, fmt.Errorf("encode parameters: %w", err)
	}
	in := desk.ProposeAction{Tool: e.tool, Params: params, Reason: e.reason, Key: e.key, Thread: e.thread, OnBehalfOf: e.behalf,
		Model: "planner-stand-in-1", PromptVersion: "support-7", AgentVersion: "1.4.0",
		Once: desk.Once{Key: e.key, Route: "demo", Body: params}}
	return d.Instance.Desk.Propose(ctx, d.cast.agent, in)
}

// reach waits until the run has the status.
func (d *Demo) reach(ctx context.Context, run id.Run, status string) (engine.Run, error) {
	deadline := time.Now().Add(patience)
	r, err := d.Instance.Desk.Run(ctx, d.cast.agent, string(run))
	for err == nil && r.Status != status {
		left := time.Until(deadline)
		if left <= 0 || engine.Final(r.Status) || ctx.Err() != nil {
			return r, fmt.Errorf("the run %s is %s, not %s", run, r.Status, status)
		}
		r, err = d.Instance.Desk.WaitRun(ctx, d.cast.agent, string(run), r.Version, left)
	}
	return r, err
}

// decide gives the verdict of p on the pending request of the run.
func (d *Demo) decide(ctx context.Context, p identity.Principal, run id.Run, comment string) error {
	if _, err := d.reach(ctx, run, engine.WaitingApproval); err != nil {
		return err
	}
	page, err := d.Instance.Desk.Approvals(ctx, d.cast.agent, desk.ApprovalQuery{Status: string(approvals.Pending), Run: run, Limit: 1})
	if err != nil {
		return err
	}
	if len(page.Items) == 0 {
		return fmt.Errorf("no request of the run %s waits", run)
	}
	_, err = d.Instance.Desk.Decide(ctx, p, page.Items[0].ID, desk.Decide{Verdict: approvals.VerdictApprove, Digest: page.Items[0].Digest, Comment: comment})
	if problem.HasCode(err, "already_decided") {
		return nil // somebody at the console was quicker
	}
	return err
}
