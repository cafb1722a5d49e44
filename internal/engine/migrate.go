package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"countersign/internal/id"
	"countersign/internal/problem"
	"countersign/internal/store"
	"countersign/internal/workflow"
)

// Migration asks that an open run continues in another version of its
// workflow.
type Migration struct {
	Run      id.Run
	Expected int64 // version of the run that the caller has seen; -1: whatever it is
	To       *workflow.Workflow
	Renames  map[string]string // step of the present version to its name in To
	Tools    map[string]string // name to digest of every tool that To names
}

// Migrated is what a migration makes of a run, or would make of it.
type Migrated struct {
	Run     Run             // as it is, or has become
	From    int             // the workflow's version before
	Kept    []workflow.Kept // steps that are done and stay done
	Again   []workflow.Kept // what is open is withdrawn and put anew
	Dropped []string        // steps that are done and that To does not have
}

// PlanMigration says what Migrate would do, and changes nothing. Its problems
// are the same.
func (e *Engine) PlanMigration(ctx context.Context, m Migration) (out Migrated, err error) {
	err = e.o.DB.View(ctx, func(ctx context.Context, q store.Querier) error {
		out, err = e.adoption(ctx, q, m)
		return err
	})
	return out, err
}

// Migrate has an open run continue in another version of its workflow: the
// checkpoint that says so, the withdrawal of what was open under the old
// version, the audit entry and the wake-up are one transaction. A refusal
// leaves the run as it was. Problems: cannot_migrate, effect_unsettled (with
// effect), already_finished, version_conflict, lease_held, cancel_asked,
// tampered, and what the input lacks for the new version.
func (e *Engine) Migrate(ctx context.Context, m Migration, by Actor) (out Migrated, err error) {
	err = e.update(ctx, func(ctx context.Context, tx *store.Tx) error {
		if out, err = e.adoption(ctx, tx, m); err != nil {
			return err
		}
		return e.migrate(ctx, tx, m, &out, by)
	})
	if err != nil {
		return Migrated{}, err
	}
	out.Run, err = e.find(ctx, m.Run)
	return out, err
}

func cannotMigrate(format string, args ...any) *problem.Error {
	return problem.New(problem.Conflict, "cannot_migrate", format, args...)
}

// adoption looks at everything a migration depends on.
func (e *Engine) adoption(ctx context.Context, q store.Querier, m Migration) (Migrated, error) {
	r, err := runByID(ctx, q, m.Run)
	if err != nil {
		return Migrated{}, err
	}
	if err := e.movable(ctx, q, r, m); err != nil {
		return Migrated{}, err
	}
	if err := e.sameInput(ctx, q, r, m.To); err != nil {
		return Migrated{}, err
	}
	old, state, err := e.stateOf(ctx, q, r)
	if err != nil {
		return Migrated{}, err
	}
	if !slices.Equal(old.Sensitive, m.To.Sensitive) {
		return Migrated{}, cannotMigrate("Version %d marks other parts of the input sensitive than version %d, with which it was stored. Start a new run.", m.To.Version, r.WorkflowVersion)
	}
	a, err := m.To.Adopt(state, old, m.Renames)
	if err != nil {
		return Migrated{}, err
	}
	return Migrated{Run: r, From: r.WorkflowVersion, Kept: a.Kept, Again: a.Again, Dropped: a.Dropped}, nil
}

// movable refuses a run that cannot be migrated, or not now.
func (e *Engine) movable(ctx context.Context, q store.Querier, r Run, m Migration) error {
	switch {
	case Final(r.Status):
		return errFinished.With("status", r.Status).With("version", r.Version)
	case m.Expected >= 0 && m.Expected != r.Version:
		return errVersion.With("version", r.Version).With("expected", m.Expected)
	case r.Lease.Owner != "" && r.Lease.Until.After(e.o.Now()) && r.epoch >= e.o.Epoch:
		return errHeld.With("holder", r.Lease.Owner).With("until", r.Lease.Until)
	case r.cancelled:
		return problem.New(problem.Conflict, "cancel_asked", "The run is being cancelled.")
	case r.Workflow != m.To.Name:
		return cannotMigrate("The run is one of %s, not of %s.", r.Workflow, m.To.Name)
	case r.WorkflowDigest == m.To.Digest:
		return cannotMigrate("The run has version %d already.", m.To.Version)
	}
	open, err := effectsWhere(ctx, q, "tenant = $1 AND run = $2 AND status IN ('sent', 'unknown')", r.Tenant, string(r.ID))
	if err != nil {
		return err
	}
	if len(open) > 0 {
		return problem.New(problem.Conflict, "effect_unsettled", "What step %s sent is not settled: nobody knows yet whether it happened. Settle it first, then migrate.", open[0].Path).With("effect", open[0].ID)
	}
	return nil
}

// sameInput refuses an input that the new version would not have stored as it
// is: the record is bound to it.
func (e *Engine) sameInput(ctx context.Context, q store.Querier, r Run, to *workflow.Workflow) error {
	input, err := e.clearInput(ctx, q, r)
	if err != nil {
		return err
	}
	if input == nil {
		return cannotMigrate("The sensitive values of its input were erased.")
	}
	fit, err := to.PrepareInput(input)
	if err != nil {
		p := *problem.From(err)
		p.Kind, p.Code, p.Message = problem.Conflict, "cannot_migrate", fmt.Sprintf("The input of the run does not fit version %d.", to.Version)
		return &p
	}
	if !bytes.Equal(fit, input) {
		return cannotMigrate("Version %d adds defaults to the input, to which the record of this run is bound. Start a new run.", to.Version)
	}
	return nil
}

// stateOf verifies a run's record and adds it up, with the version it has now.
func (e *Engine) stateOf(ctx context.Context, q store.Querier, r Run) (*workflow.Workflow, workflow.State, error) {
	c, err := verify(ctx, q, r)
	if t, ok := errors.AsType[*tampered](err); ok {
		return nil, workflow.State{}, problem.New(problem.Conflict, codeTampered, "%s", t.Error())
	}
	if err != nil {
		return nil, workflow.State{}, err
	}
	wf, err := e.o.Library.Workflow(ctx, q, r.Tenant, r.WorkflowDigest)
	if err != nil {
		return nil, workflow.State{}, fmt.Errorf("workflow of run %s: %w", r.ID, err)
	}
	state, err := e.fold(ctx, q, r.Tenant, c, wf)
	return wf, state, err
}

// fold adds a verified record up, through the versions the run has had.
func (e *Engine) fold(ctx context.Context, q store.Querier, tenant string, c chain, wf *workflow.Workflow) (workflow.State, error) {
	if len(c.moves) == 0 {
		return wf.Fold(c.events)
	}
	return wf.FoldMoves(c.started.Workflow, c.events, func(digest string) (*workflow.Workflow, error) {
		if digest == wf.Digest {
			return wf, nil
		}
		return e.o.Library.Workflow(ctx, q, tenant, digest)
	})
}

const sqlMigrate = `UPDATE run SET workflow_version = $1, workflow_digest = $2, tools = $3, status = 'queued', version = $4, head = $5,
	waiting_for = '[]', error = NULL, lease_owner = NULL, lease_until = NULL, fence = fence + 1, crashes = 0, signals = signals + 1,
	wake_at = $6, updated_at = $6 WHERE tenant = $7 AND id = $8 AND fence = $9 AND version = $10`

func (e *Engine) migrate(ctx context.Context, tx *store.Tx, m Migration, out *Migrated, by Actor) error {
	r := out.Run
	open := func(row *Step) bool {
		return slices.ContainsFunc(out.Again, func(k workflow.Kept) bool { return k.Old == row.Path })
	}
	why := fmt.Sprintf("The run went on to version %d of its workflow.", m.To.Version)
	if err := e.closeOpen(ctx, tx, r, why, by, open); err != nil {
		return err
	}
	used := map[string]string{}
	for _, name := range m.To.Tools {
		used[name] = m.Tools[name]
	}
	move := workflow.Move{From: r.WorkflowDigest, To: m.To.Digest, RenameSteps: m.Renames, Tools: used}
	head, err := appendEvent(ctx, tx, r.Tenant, r.ID, r.Version+1, r.head, Creator{Person: &by}, workflow.Event{Kind: workflow.Migrated, At: tx.Now(), Data: data(move)})
	if err != nil {
		return err
	}
	err = tx.ExecOne(ctx, sqlMigrate, m.To.Version, m.To.Digest, encode(used), r.Version+1, head, store.Micros(tx.Now()), r.Tenant, string(r.ID), r.Lease.Fence, r.Version)
	if err != nil {
		return fmt.Errorf("migrate run %s: %w", r.ID, err)
	}
	tx.AfterCommit(e.hint)
	tx.AfterCommit(func() { e.notify("runs", string(r.ID)) })
	return e.record(ctx, tx, Record{Tenant: r.Tenant, Actor: by, Action: "run.migrate", Subject: string(r.ID), Run: r.ID, Digest: head, Outcome: Queued,
		Payload: map[string]any{"version": r.Version, "from": out.From, "to": m.To.Version, "move": move, "again": out.Again, "dropped": out.Dropped}})
}
