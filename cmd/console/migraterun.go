package main

import (
	"context"
	"fmt"
	"path"

	"countersign/internal/desk"
	"countersign/internal/workflow"
)

type runMigrateCmd struct {
	place
	ID     string `arg:"" help:"Run id, or key:K."`
	To     int    `help:"Version of the workflow to go on in; the one in force when it is left out."`
	Expect string `help:"The version of the run you looked at, or current." default:"current"`
	DryRun bool   `help:"Only say what would happen."`
	JSON   bool   `help:"As JSON."`
}

// Help says what it does and what it does not.
func (runMigrateCmd) Help() string {
	return "The new version must say how runs of the old one continue: migrate: [{from: N, rename_steps: {old: new}}]. What is done stays\n" +
		"done. What waits for a person is withdrawn and asked for anew. A run that does not fit is refused and stays as it is."
}

func (c runMigrateCmd) Run(ctx context.Context, e env) error {
	v, err := c.migrate(ctx, e)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(e.out, v)
	}
	return c.print(e, v)
}

// migrate asks a server, or does it in this process with the folder's
// definitions of now: a server that holds the folder has its own.
func (c runMigrateCmd) migrate(ctx context.Context, e env) (v desk.MigrationView, err error) {
	expected, err := expectedVersion(c.Expect)
	if err == nil {
		err = c.check()
	}
	if err != nil {
		return v, err
	}
	if c.Server != "" {
		h, base := c.client(), path.Join("/runs", escape(c.ID))
		if expected, err = seen(ctx, h, base, expected); err != nil {
			return v, err
		}
		err = h.call(ctx, "POST", base+"/migrate", map[string]any{"to": c.To, "expected_version": expected, "dry_run": c.DryRun}, &v)
		return v, err
	}
	i, err := c.folder(ctx, true, nil, quiet(e))
	if err != nil {
		return v, err
	}
	defer i.Close()
	return i.Desk.Migrate(ctx, operator(), c.ID, desk.Migrate{To: c.To, Expected: expected, DryRun: c.DryRun})
}

func (c runMigrateCmd) print(e env, v desk.MigrationView) error {
	for _, k := range v.Kept {
		fmt.Fprintf(e.out, "stays done    %s\n", renamed(k))
	}
	for _, k := range v.Again {
		fmt.Fprintf(e.out, "asked anew    %s\n", renamed(k))
	}
	for _, path := range v.Dropped {
		fmt.Fprintf(e.out, "not named any more  %s\n", path)
	}
	if v.DryRun {
		_, err := fmt.Fprintf(e.out, "%s would go on from version %d in version %d of %s; nothing was changed\n", v.Run.ID, v.From, v.To, v.Run.Workflow)
		return err
	}
	_, err := fmt.Fprintf(e.out, "%s goes on in version %d of %s; a running console drives it by itself, otherwise: console run resume %s\n", v.Run.ID, v.To, v.Run.Workflow, v.Run.ID)
	return err
}

func renamed(k workflow.Kept) string {
	if k.Old == k.New {
		return k.Old
	}
	return k.Old + ", now " + k.New
}
