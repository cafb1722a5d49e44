package engine

import (
	"context"
	"encoding/json"
	"fmt"

	"countersign/internal/canon"
	"countersign/internal/id"
	"countersign/internal/problem"
	"countersign/internal/sealed"
	"countersign/internal/store"
	"countersign/internal/workflow"
)

// stated is what each outcome a person may state means.
var stated = map[string]struct {
	status string             // of the ledger row
	event  workflow.EventKind // of the step; empty: it goes on trying
	says   string
}{
	Happened:        {Confirmed, workflow.EffectConfirmed, "A person found that it happened."},
	DidNotSendAgain: {NotDone, "", "A person found that it did not happen; it is to be sent again."},
	DidNotStop:      {NotDone, workflow.EffectAbandoned, "A person found that it did not happen; it is not to be sent again."},
	GiveUp:          {Abandoned, workflow.EffectAbandoned, "A person gave up finding out whether it happened."},
}

// Resolve records what a person found out about an unknown effect, with the
// evidence, and lets its run go on. Sending again passes through the same
// revalidation as any sending. Problems: not_unknown (with status), lease_held,
// already_finished for sending again in a run that has ended, still_running
// for saying that it did not happen while a try of it still runs.
func (e *Engine) Resolve(ctx context.Context, effect id.Effect, r Resolution, by Actor) (Effect, error) {
	if _, ok := stated[r.Outcome]; !ok {
		return Effect{}, problem.New(problem.Invalid, "outcome", "%q is no outcome. Say %s, %s, %s or %s.", r.Outcome, Happened, DidNotSendAgain, DidNotStop, GiveUp).
			At("/outcome", "unknown")
	}
	if err := checkWords("evidence", r.Evidence); err != nil {
		return Effect{}, err
	}
	output, err := receiptOutput(r)
	if err != nil {
		return Effect{}, err
	}
	if stated[r.Outcome].status == NotDone {
		if err := e.over(ctx, effect); err != nil {
			return Effect{}, err
		}
	}
	var eff Effect
	err = e.update(ctx, func(ctx context.Context, tx *store.Tx) error {
		eff, err = e.resolve(ctx, tx, effect, r, output, by)
		return err
	})
	return eff, err
}

// over refuses while a try of an unknown effect still runs: a program that
// outlived its console may do in a moment what a person did not find.
func (e *Engine) over(ctx context.Context, effect id.Effect) error {
	var eff Effect
	err := e.o.DB.View(ctx, func(ctx context.Context, q store.Querier) (err error) {
		eff, err = lastEffect(ctx, q, "id = $1", string(effect))
		return err
	})
	if err != nil || eff.Status != Unknown {
		return err
	}
	running, err := e.o.World.StillRunning(string(eff.ID))
	if err != nil {
		return fmt.Errorf("look for a try of %s that still runs: %w", eff.ID, err)
	}
	if running {
		return problem.New(problem.Conflict, "still_running",
			"A try of this effect still runs and may do it yet. Wait until it has ended, or end it; then look again and say what happened.")
	}
	return nil
}

// receiptOutput is the receipt a person gives, strictly read: it becomes the
// step's output.
func receiptOutput(r Resolution) (json.RawMessage, error) {
	if len(r.Receipt) == 0 {
		return json.RawMessage("null"), nil
	}
	if r.Outcome != Happened {
		return nil, problem.New(problem.Invalid, "receipt", "A receipt belongs to an effect that happened.").At("/receipt", "not with this outcome")
	}
	output, err := canon.Canonical(r.Receipt, canon.Limits{Bytes: OutputBytesMax})
	if err != nil {
		return nil, err
	}
	v, err := canon.Value(output)
	if err != nil {
		return nil, err
	}
	if at, forged := sealed.Forged(v); forged {
		return nil, problem.New(problem.Invalid, "receipt", "The receipt cannot be taken.").At("/receipt"+at, "%q is kept for sealed values and cannot be given", sealed.Mark)
	}
	return output, nil
}

func (e *Engine) resolve(ctx context.Context, tx *store.Tx, effect id.Effect, r Resolution, output json.RawMessage, by Actor) (Effect, error) {
	eff, err := lastEffect(ctx, tx, "id = $1", string(effect))
	if err != nil {
		return Effect{}, err
	}
	run, err := oneRun(ctx, tx, "tenant = $1 AND id = $2", eff.Tenant, string(eff.Run))
	if err != nil {
		return Effect{}, err
	}
	if err := e.resolvable(run, eff, r, tx); err != nil {
		return Effect{}, err
	}
	if r.Agree != nil {
		if moves, err := r.Agree(ctx, tx, eff); err != nil || !moves {
			return eff, err
		}
	}
	if len(r.Receipt) > 0 {
		if output, err = e.sealReceipt(ctx, tx, eff, output); err != nil {
			return Effect{}, err
		}
		r.Receipt = output
	}
	say := stated[r.Outcome]
	res := resolution{status: say.status, message: say.says, by: by, evidence: r.Evidence, count: eff.ReconcileCount, receipt: r.Receipt}
	if err := e.addEvidence(ctx, tx, eff, EvidencePerson, by, map[string]any{"outcome": r.Outcome, "evidence": r.Evidence, "receipt": output}); err != nil {
		return Effect{}, err
	}
	if err := e.settle(ctx, tx, run, &eff, res); err != nil {
		return Effect{}, err
	}
	eff.Evidence, eff.ResolvedBy, eff.ResolvedAt = r.Evidence, actorName(by), tx.Now()
	if Final(run.Status) {
		return eff, nil
	}
	return eff, e.goOn(ctx, tx, run, eff, say.event, output, by)
}

// resolvable refuses what cannot be resolved, or not now.
func (e *Engine) resolvable(run Run, eff Effect, r Resolution, tx *store.Tx) error {
	switch {
	case eff.Status != Unknown:
		return problem.New(problem.Conflict, "not_unknown", "The outcome of this effect is not unknown: it is %s.", eff.Status).With("status", eff.Status)
	case run.Lease.Owner != "" && run.Lease.Until.After(tx.Now()) && run.epoch >= e.o.Epoch:
		return errHeld.With("holder", run.Lease.Owner).With("until", run.Lease.Until)
	case Final(run.Status) && r.Outcome == DidNotSendAgain:
		return errFinished.With("status", run.Status)
	}
	return nil
}

const sqlGoOn = `UPDATE run SET status = 'queued', version = $1, head = $2, waiting_for = '[]', error = NULL, lease_owner = NULL, lease_until = NULL,
	fence = fence + 1, crashes = 0, signals = signals + 1, wake_at = $3, updated_at = $3 WHERE tenant = $4 AND id = $5 AND fence = $6 AND version = $7`

// goOn records what the resolution means for the step and queues the run.
func (e *Engine) goOn(ctx context.Context, tx *store.Tx, run Run, eff Effect, kind workflow.EventKind, output json.RawMessage, by Actor) error {
	version, head := run.Version, run.head
	row, err := scanStep(tx.QueryRow(ctx, "SELECT "+stepColumns+" FROM step WHERE tenant = $1 AND run = $2 AND path = $3 AND pass = $4",
		run.Tenant, string(run.ID), eff.Path, eff.Pass))
	if err != nil {
		return fmt.Errorf("read step %s: %w", eff.Path, err)
	}
	row.retryAt = fromMicros(0)
	if kind != "" {
		ev := workflow.Event{Kind: kind, Path: eff.Path, Pass: eff.Pass, Attempt: row.Attempts, At: tx.Now()}
		version++
		row.Status, row.Error = string(workflow.Failed), nil
		if kind == workflow.EffectConfirmed {
			ev.Output, row.Status, row.outputAt = output, string(workflow.Completed), version
		} else {
			ev.Error = &workflow.Failure{Class: workflow.Unknown, Code: "abandoned", Message: eff.Message}
			if eff.Status == NotDone {
				ev.Error.Class, ev.Error.Code = workflow.Refused, "stopped"
			}
			row.Error, row.ErrorClass = ev.Error, ev.Error.Class
		}
		if head, err = appendEvent(ctx, tx, run.Tenant, run.ID, version, head, Creator{Person: &by}, ev); err != nil {
			return err
		}
	}
	if err := putStep(ctx, tx, run.Tenant, run.ID, &row); err != nil {
		return err
	}
	if f, ok := stepEnded(run.Workflow, &row, workflow.Event{Kind: kind, Path: eff.Path, Error: row.Error}, tx.Now()); ok {
		e.noteAfter(tx, f)
	}
	return e.queue(ctx, tx, run, version, head)
}

// queue has the run looked at now from a new version on, and fences out
// whoever drives it.
func (e *Engine) queue(ctx context.Context, tx *store.Tx, run Run, version int64, head string) error {
	err := tx.ExecOne(ctx, sqlGoOn, version, head, store.Micros(tx.Now()), run.Tenant, string(run.ID), run.Lease.Fence, run.Version)
	if err != nil {
		return fmt.Errorf("queue run %s: %w", run.ID, err)
	}
	tx.AfterCommit(e.hint)
	tx.AfterCommit(func() { e.notify("runs", string(run.ID)) })
	return nil
}
