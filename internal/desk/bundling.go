package desk

import (
	"context"
	"encoding/json"
	"io"

	"countersign/internal/audit"
	"countersign/internal/audit/receipt"
	"countersign/internal/engine"
	"countersign/internal/id"
	"countersign/internal/identity"
	"countersign/internal/problem"
	"countersign/internal/store"
)

// Bundle writes everything about a run that has ended: the run, its steps,
// checkpoints, effects with what was sent, questions, requests with subjects
// and decisions, audit entries, and a receipt of each request. Sensitive values
// stand in it as commitments. That it was done is recorded. Problems:
// forbidden, not_found, still_running.
func (d *Desk) Bundle(ctx context.Context, p identity.Principal, ref string, w io.Writer) error {
	if err := require(p, capAuditRead, "bundle runs"); err != nil {
		return err
	}
	run, err := d.Run(ctx, p, ref)
	if err != nil {
		return err
	}
	if !engine.Final(run.Status) {
		return problem.New(problem.Conflict, "still_running", "The run has not ended; it is %s. Nothing was written.", run.Status)
	}
	err = d.db.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		_, err := d.log.Append(ctx, tx, d.entry(p, audit.Entry{Action: "run.bundled", Subject: string(run.ID), Run: run.ID, Outcome: "ok"}))
		return err
	})
	if err != nil {
		return err
	}
	b, err := receipt.NewBundle(w, string(run.ID))
	if err != nil {
		return err
	}
	if err := b.Add("run", run); err != nil {
		return err
	}
	for _, part := range []func(context.Context, identity.Principal, string, *receipt.BundleWriter) error{
		d.bundleRecord, d.bundleEffects, d.bundleRequests, d.bundleEntries} {
		if err := part(ctx, p, string(run.ID), b); err != nil {
			return err
		}
	}
	return b.End()
}

// bundleRecord writes what the run did, step by step.
func (d *Desk) bundleRecord(ctx context.Context, p identity.Principal, run string, b *receipt.BundleWriter) error {
	steps, err := d.Steps(ctx, p, run)
	if err := addAll(b, "step", steps.Items, err); err != nil {
		return err
	}
	checkpoints, err := d.Checkpoints(ctx, p, run)
	if err := addAll(b, "checkpoint", checkpoints.Items, err); err != nil {
		return err
	}
	questions, err := d.RunQuestions(ctx, p, run)
	return addAll(b, "question", questions.Items, err)
}

// bundledEffect is a ledger row with the request as it was sent: secrets by
// name, sensitive values sealed.
type bundledEffect struct {
	Effect  EffectView      `json:"effect"`
	Request json.RawMessage `json:"request,omitempty"`
}

// bundleEffects writes the ledger with what was sent.
func (d *Desk) bundleEffects(ctx context.Context, p identity.Principal, run string, b *receipt.BundleWriter) error {
	effects, err := d.RunEffects(ctx, p, run)
	if err != nil {
		return err
	}
	for _, e := range effects.Items {
		story, err := d.EffectStory(ctx, p, string(e.ID))
		if err != nil {
			return err
		}
		if err := b.Add("effect", bundledEffect{story.Effect, story.Request}); err != nil {
			return err
		}
	}
	return nil
}

// bundleRequests writes each request of the run, and its receipt.
func (d *Desk) bundleRequests(ctx context.Context, p identity.Principal, run string, b *receipt.BundleWriter) error {
	query := ApprovalQuery{Run: id.Run(run), Limit: pageMax}
	for {
		page, err := d.Approvals(ctx, p, query)
		if err != nil {
			return err
		}
		for _, item := range page.Items {
			whole, err := d.Approval(ctx, p, item.ID)
			if err != nil {
				return err
			}
			if err := b.Add("approval", whole); err != nil {
				return err
			}
			file, err := d.Receipt(ctx, p, item.ID)
			if err != nil {
				return err
			}
			if err := b.AddReceipt(file); err != nil {
				return err
			}
		}
		if query.Cursor = page.Next; page.Next == "" {
			return nil
		}
	}
}

func (d *Desk) bundleEntries(ctx context.Context, p identity.Principal, run string, b *receipt.BundleWriter) error {
	query := EntryQuery{Run: run, Limit: pageMax}
	for {
		page, err := d.Entries(ctx, p, query)
		if err := addAll(b, "entry", page.Items, err); err != nil {
			return err
		}
		if query.Cursor = page.Next; page.Next == "" {
			return nil
		}
	}
}

// addAll writes a line each, unless reading them failed.
func addAll[T any](b *receipt.BundleWriter, kind string, items []T, err error) error {
	if err != nil {
		return err
	}
	for _, item := range items {
		if err := b.Add(kind, item); err != nil {
			return err
		}
	}
	return nil
}
