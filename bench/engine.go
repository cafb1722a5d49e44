package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"

	"countersign/internal/audit"
	"countersign/internal/engine"
	"countersign/internal/store"
)

const tenant = "default"

// console is the engine with its real store and audit log, and a world that
// costs nothing.
type console struct {
	db     *store.DB
	log    *audit.Log
	engine *engine.Engine
	lib    *library
}

func openConsole(ctx context.Context, dir string, lib *library) (*console, error) {
	db, err := store.Open(ctx, store.Options{Path: filepath.Join(dir, "bench.db"), Lines: []store.Line{audit.Migrations, engine.Migrations},
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	log, err := audit.Open(ctx, db, dir)
	if err != nil {
		return nil, err
	}
	c := &console{db: db, log: log, lib: lib}
	c.engine = c.newEngine(engine.Options{})
	return c, nil
}

// newEngine makes an engine over the console's database; what the options
// leave open is that of the workload.
func (c *console) newEngine(o engine.Options) *engine.Engine {
	o.DB, o.Gate, o.Recorder, o.Library, o.Logger = c.db, shut{}, recorder{c.log}, c.lib, slog.New(slog.DiscardHandler)
	if o.World == nil {
		o.World = nowhere{}
	}
	o.Owner, o.Epoch = cmp.Or(o.Owner, "bench"), cmp.Or(o.Epoch, 1)
	return engine.New(o)
}

func (c *console) close(ctx context.Context) error {
	err := c.engine.Stop(ctx)
	c.log.Close()
	if err != nil {
		return err
	}
	return c.db.Close()
}

// create makes a queued run.
func (c *console) create(ctx context.Context) (run engine.Run, err error) {
	err = c.db.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		run, _, err = c.engine.Create(ctx, tx, engine.Creation{Tenant: tenant, Workflow: c.lib.workflow, Tools: map[string]string{c.lib.tool.Name: c.lib.tool.Digest},
			Input: []byte("{}"), Initiator: "usr_bench", InitiatorName: "Bench", Actor: engine.Actor{Kind: engine.ActorPerson, ID: "usr_bench", Name: "Bench"}})
		return err
	})
	return run, err
}

// run makes a run and drives it to its end.
func (c *console) run(ctx context.Context) error {
	r, err := c.create(ctx)
	if err != nil {
		return err
	}
	return c.drive(ctx, r)
}

func (c *console) drive(ctx context.Context, r engine.Run) error {
	done, err := c.engine.Drive(ctx, r.ID)
	if err == nil && done.Status != engine.Completed {
		err = fmt.Errorf("%w: it is %s (%v)", errUnexpected, done.Status, done.Error)
	}
	return err
}

// checkConsole opens the database again and looks for every run and output.
func checkConsole(ctx context.Context, dir string, lib *library, runs, steps int) error {
	c, err := openConsole(ctx, dir, lib)
	if err != nil {
		return err
	}
	defer c.close(ctx)
	var done, outputs int
	err = c.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		if err := q.QueryRow(ctx, "SELECT count(*) FROM run WHERE status = 'completed'").Scan(&done); err != nil {
			return err
		}
		return q.QueryRow(ctx, "SELECT count(*) FROM checkpoint c JOIN step s ON s.tenant = c.tenant AND s.run = c.run AND s.path = c.path AND s.pass = c.pass WHERE c.kind = 'step_completed' AND s.status = 'completed' AND length(c.output) > 500").Scan(&outputs)
	})
	if err == nil && (done != runs || outputs != runs*steps) {
		err = fmt.Errorf("after opening again there are %d runs and %d outputs, want %d and %d", done, outputs, runs, runs*steps)
	}
	return err
}
