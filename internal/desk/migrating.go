package desk

import (
	"context"

	"countersign/internal/engine"
	"countersign/internal/identity"
	"countersign/internal/problem"
	"countersign/internal/store"
	"countersign/internal/workflow"
)

// Migrate asks that an open run continues in another version of its workflow.
type Migrate struct {
	To       int   // 0: the one in force
	Expected int64 // version of the run that the caller has seen; -1: whatever it is
	DryRun   bool  // say what would happen, and change nothing
}

// MigrationView is what a migration made of a run, or would make of it.
type MigrationView struct {
	Run     engine.Run      `json:"run"`
	From    int             `json:"from"`
	To      int             `json:"to"`
	Kept    []workflow.Kept `json:"kept"`    // done, and stays done
	Again   []workflow.Kept `json:"again"`   // open: withdrawn and put anew
	Dropped []string        `json:"dropped"` // done, and not in the new version
	DryRun  bool            `json:"dry_run"`
}

// Migrate has an open run continue in the version, as that version declares
// under `migrate`. With DryRun it only says what would happen. Problems:
// forbidden, not_found, unknown_workflow, no_migration, cannot_migrate,
// effect_unsettled, already_finished, version_conflict, lease_held.
func (d *Desk) Migrate(ctx context.Context, p identity.Principal, ref string, in Migrate) (MigrationView, error) {
	if err := require(p, capOperate, "migrate runs"); err != nil {
		return MigrationView{}, err
	}
	m, err := d.migration(ctx, ref, in)
	if err != nil {
		return MigrationView{}, err
	}
	var out engine.Migrated
	if in.DryRun {
		out, err = d.engine.PlanMigration(ctx, m)
	} else {
		out, err = d.engine.Migrate(ctx, m, actor(p))
	}
	if err != nil {
		return MigrationView{}, err
	}
	return MigrationView{Run: d.named(ctx, out.Run), From: out.From, To: m.To.Version, Kept: orEmpty(out.Kept), Again: orEmpty(out.Again), Dropped: orEmpty(out.Dropped), DryRun: in.DryRun}, nil
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// migration finds the version to go to and what it says about the present one.
func (d *Desk) migration(ctx context.Context, ref string, in Migrate) (m engine.Migration, err error) {
	err = d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		run, err := d.runID(ctx, q, ref)
		if err != nil {
			return err
		}
		r, err := d.engine.Run(ctx, q, Tenant, run)
		if err != nil {
			return err
		}
		if m.To, err = d.chosen(ctx, q, r.Workflow, in.To); err != nil {
			return err
		}
		said, ok := m.To.Migration(r.WorkflowVersion)
		if !ok && m.To.Digest != r.WorkflowDigest {
			return problem.New(problem.Conflict, "no_migration", "Version %d of %s does not say how a run of version %d continues in it. Give a version that has `migrate: [{from: %d}]`.",
				m.To.Version, r.Workflow, r.WorkflowVersion, r.WorkflowVersion)
		}
		m.Run, m.Expected, m.Renames = run, in.Expected, said.RenameSteps
		m.Tools, err = d.pinTools(ctx, q, m.To)
		return err
	})
	return m, err
}

// NewerVersion is the version in force to which the run can be migrated, as
// that version declares; 0: none.
func (d *Desk) NewerVersion(ctx context.Context, p identity.Principal, r engine.Run) (version int, err error) {
	if !may(p, capOperate) || engine.Final(r.Status) {
		return 0, nil
	}
	err = d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		w, err := d.defs.WorkflowInForce(ctx, q, Tenant, r.Workflow)
		if err != nil {
			return nil // a workflow that nobody defines any more has no newer version
		}
		if _, ok := w.Migration(r.WorkflowVersion); ok && w.Digest != r.WorkflowDigest {
			version = w.Version
		}
		return nil
	})
	return version, err
}
