package desk

import (
	"context"
	"strings"

	"countersign/internal/approvals"
	"countersign/internal/engine"
	"countersign/internal/id"
	"countersign/internal/problem"
	"countersign/internal/store"
)

// actionView is the story of a proposed action for the program that proposed
// it.
func (d *Desk) actionView(ctx context.Context, q store.Querier, run engine.Run) (ActionView, error) {
	view := ActionView{ID: actionID(run.ID), Status: "proposed", Run: string(run.ID)}
	request, err := d.requestOf(ctx, q, run.ID)
	if err != nil {
		return view, err
	}
	if request.ID != "" {
		view.fill(request)
		if err := d.fillLedger(ctx, q, request, &view); err != nil {
			return view, err
		}
	}
	if run.Status == engine.Failed && view.Status == "proposed" {
		view.Status = "failed"
	}
	if run.Status == engine.Cancelled {
		view.Status = "withdrawn"
	}
	view.Output, view.Advice = run.Output, advice(view, run)
	return view, nil
}

// requestOf returns the request of a run of one action, or none.
func (d *Desk) requestOf(ctx context.Context, q store.Querier, run id.Run) (approvals.Request, error) {
	items, _, err := d.book.List(ctx, q, approvals.Filter{Tenant: Tenant, Run: run, Limit: 1})
	if err != nil || len(items) == 0 {
		return approvals.Request{}, err
	}
	s, err := d.asStored(ctx, q, items[0].ID)
	return s.Request, err
}

func (v *ActionView) fill(r approvals.Request) {
	v.Status, v.Approval, v.ParamsHash, v.Digest, v.Params, v.Edited = string(r.Status), string(r.ID), r.ParamsHash, r.Digest, r.Params, r.Edited()
	if n := len(r.Decisions); n > 0 {
		last := decisionView(r.Decisions[n-1])
		v.Decision = &last
	}
}

func (d *Desk) fillLedger(ctx context.Context, q store.Querier, r approvals.Request, view *ActionView) error {
	e, err := d.engine.EffectOf(ctx, q, Tenant, r.Action)
	if problem.HasCode(err, "not_found") {
		return nil
	}
	if err != nil {
		return err
	}
	view.Receipt = e.Receipt
	if e.Status != engine.Prepared {
		view.Status = e.Status
	}
	return nil
}

// advice tells a model, in words it cannot mistake, what to make of the state
// of its action.
func advice(v ActionView, run engine.Run) string {
	switch v.Status {
	case engine.Confirmed:
		if v.Edited {
			return "Executed once, with parameters that a person changed: those in params are what happened. It is done; do not repeat it or the original."
		}
		return "Executed once, as proposed. It is done; do not repeat it."
	case "rejected":
		return "Not run, and final: a person rejected it" + because(v.comment()) + ". Do not propose the same again."
	case "denied":
		return "Not run: the policy does not allow it. Do not propose the same again."
	case "expired":
		return "Not run: nobody decided, or it was not started, in time. That is not a rejection; ask the person you work for before you propose it again."
	case engine.Refused:
		return "Not run: the target refused it. Change what is wrong before you propose it again."
	case engine.Sent:
		return "Under way: it was sent, and the answer is not there yet. Wait for the outcome; do not propose it again meanwhile."
	case engine.Unknown:
		return "Nobody knows yet whether it happened. Do not repeat it; wait until a person or the target has said."
	case engine.Abandoned, "withdrawn":
		return "Given up. Do not repeat it without being asked to."
	case "failed":
		why := ""
		if run.Error != nil {
			why = run.Error.Message
		}
		return "Not run: it could not be proposed" + because(why) + "."
	}
	return "Not run yet. Wait for the outcome; do not propose it again meanwhile."
}

func (v ActionView) comment() string {
	if v.Decision == nil {
		return ""
	}
	return v.Decision.Comment
}

// actionID names the action of a run that one proposed action is; runOfAction
// is its inverse.
func actionID(run id.Run) string { return "act_" + strings.TrimPrefix(string(run), "run_") }

func runOfAction(action string) id.Run { return id.Run("run_" + strings.TrimPrefix(action, "act_")) }
