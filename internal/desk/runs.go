package desk

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"countersign/internal/audit"
	"countersign/internal/engine"
	"countersign/internal/id"
	"countersign/internal/identity"
	"countersign/internal/problem"
	"countersign/internal/sealed"
	"countersign/internal/store"
	"countersign/internal/workflow"
)

// StartRun creates a run and lets the engine begin it. The second result is
// false when the run existed already: the same idempotency key, or the same
// run key with the same workflow and input. Problems: unknown_workflow,
// invalid, run_key_taken, forbidden, idempotency_key_reused.
func (d *Desk) StartRun(ctx context.Context, p identity.Principal, in StartRun) (engine.Run, bool, error) {
	if err := require(p, capRunsWrite, "start runs"); err != nil {
		return engine.Run{}, false, err
	}
	if err := in.check(); err != nil {
		return engine.Run{}, false, err
	}
	var run engine.Run
	created := false
	err := d.db.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		old, err := d.made(ctx, tx, p, in.Once)
		if err != nil {
			return err
		}
		if old != "" {
			run, err = d.engine.Run(ctx, tx, Tenant, id.Run(old))
			return err
		}
		if err := d.keyTaken(ctx, tx, p, in.Key); err != nil {
			return err
		}
		w, err := d.chosen(ctx, tx, in.Workflow, in.Version)
		if err != nil {
			return err
		}
		run, created, err = d.create(ctx, tx, p, w, in, nil)
		return err
	})
	if err != nil || created {
		return run, created, err
	}
	d.repeated(RepeatRun)
	return d.named(ctx, run), false, nil
}

// keyTaken refuses a run key of somebody else's run to a caller who may not
// read runs, without a word about that run: also where the input is the same.
func (d *Desk) keyTaken(ctx context.Context, q store.Querier, p identity.Principal, key string) error {
	if key == "" || may(p, capRunsRead) {
		return nil
	}
	run, err := d.engine.RunByKey(ctx, q, Tenant, key)
	switch {
	case problem.HasCode(err, "not_found"):
		return nil
	case err == nil && run.Initiator != string(initiator(p)):
		return problem.New(problem.Conflict, "run_key_taken", "This run key is in use. Use another one.")
	}
	return err
}

func (in StartRun) check() error {
	bad := problem.New(problem.Invalid, "invalid", "The run was not started.")
	if in.Workflow == "" {
		return bad.At("/workflow", "name the workflow to run")
	}
	if len(in.Key) > keyCharsMax {
		return bad.At("/run_key", "has %d characters; at most %d", len(in.Key), keyCharsMax)
	}
	return nil
}

// chosen returns the version of the workflow asked for, or the one in force.
func (d *Desk) chosen(ctx context.Context, q store.Querier, name string, version int) (*workflow.Workflow, error) {
	if version == 0 {
		return d.defs.WorkflowInForce(ctx, q, Tenant, name)
	}
	versions, err := d.defs.List(ctx, q, Tenant, "workflow", name)
	if err != nil {
		return nil, err
	}
	for _, v := range versions {
		if v.Version == version {
			return d.defs.Workflow(ctx, q, Tenant, v.Digest)
		}
	}
	return nil, problem.New(problem.NotFound, "unknown_workflow", "There is no version %d of a workflow named %q here.", version, name)
}

// create makes the run of a workflow inside tx; the engine records it.
func (d *Desk) create(ctx context.Context, tx *store.Tx, p identity.Principal, w *workflow.Workflow, in StartRun, versions json.RawMessage) (engine.Run, bool, error) {
	input := in.Input
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	input, err := w.PrepareInput(input)
	if err != nil {
		return engine.Run{}, false, err
	}
	tools, err := d.pinTools(ctx, tx, w)
	if err != nil {
		return engine.Run{}, false, err
	}
	run, created, err := d.engine.Create(ctx, tx, engine.Creation{
		Tenant: Tenant, Workflow: w, Tools: tools, Input: input, Key: in.Key, Thread: in.Thread,
		Initiator: string(initiator(p)), InitiatorName: p.Name, OnBehalfOf: in.OnBehalfOf, Actor: actor(p), Versions: versions,
	})
	if err != nil || !created {
		return run, created, err
	}
	if err := d.keep(ctx, tx, p, in.Once, string(run.ID)); err != nil {
		return engine.Run{}, false, err
	}
	d.announce(tx, TopicRuns, string(run.ID))
	return run, true, nil
}

// pinTools returns the digest that each tool of the workflow has now; the run
// keeps them.
func (d *Desk) pinTools(ctx context.Context, q store.Querier, w *workflow.Workflow) (map[string]string, error) {
	pinned := make(map[string]string, len(w.Tools))
	for _, name := range w.Tools {
		t, err := d.defs.ToolInForce(ctx, q, Tenant, name)
		if err != nil {
			return nil, err
		}
		pinned[name] = t.Digest
	}
	return pinned, nil
}

// entry completes an audit entry with who p is.
func (d *Desk) entry(p identity.Principal, e audit.Entry) audit.Entry {
	a := actor(p)
	e.Tenant = Tenant
	e.Actor = audit.Actor{Kind: a.Kind, ID: a.ID, Name: a.Name, How: a.How}
	e.Channel = a.Channel
	return e
}

// runID resolves an id, or `key:K`, to a run that exists.
func (d *Desk) runID(ctx context.Context, q store.Querier, ref string) (id.Run, error) {
	if key, ok := strings.CutPrefix(ref, "key:"); ok {
		run, err := d.engine.RunByKey(ctx, q, Tenant, key)
		return run.ID, err
	}
	run, err := d.engine.Run(ctx, q, Tenant, id.Run(ref))
	return run.ID, err
}

// viewRun runs fn over one reading, for a caller who may read runs, with the
// run that ref names.
func (d *Desk) viewRun(ctx context.Context, p identity.Principal, ref string, fn func(ctx context.Context, q store.Querier, run id.Run) error) error {
	if err := require(p, capRunsRead, "read runs"); err != nil {
		return err
	}
	return d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		run, err := d.runID(ctx, q, ref)
		if err != nil {
			return err
		}
		return fn(ctx, q, run)
	})
}

// Run returns one run by id or `key:K`. Problems: not_found, forbidden.
func (d *Desk) Run(ctx context.Context, p identity.Principal, ref string) (run engine.Run, err error) {
	err = d.viewRun(ctx, p, ref, func(ctx context.Context, q store.Querier, r id.Run) error {
		if run, err = d.engine.Run(ctx, q, Tenant, r); err != nil {
			return err
		}
		return d.nameWho(ctx, q, &run)
	})
	return run, err
}

// WaitRun returns the run as soon as its version passes after, or when wait
// (60 s at most) is over. A negative after never waits.
func (d *Desk) WaitRun(ctx context.Context, p identity.Principal, ref string, after int64, wait time.Duration) (engine.Run, error) {
	changed := func(r engine.Run) bool { return after < 0 || r.Version > after }
	return waitFor(ctx, d, TopicRuns, wait, func() (engine.Run, bool, error) {
		run, err := d.Run(ctx, p, ref)
		return run, err == nil && changed(run), err
	})
}

// waitFor reads until the reading is what is waited for, again at each hint
// of the topic and at least every two seconds, because hints may be lost.
func waitFor[T any](ctx context.Context, d *Desk, topic string, wait time.Duration, read func() (T, bool, error)) (T, error) {
	hints := d.hub.Subscribe("")
	defer hints.Close()
	deadline := time.NewTimer(min(wait, longestWait))
	defer deadline.Stop()
	for {
		v, done, err := read()
		if err != nil || done || wait <= 0 {
			return v, err
		}
		again := time.NewTimer(2 * time.Second)
		select {
		case <-ctx.Done():
			again.Stop()
			return v, nil
		case <-deadline.C:
			again.Stop()
			return v, nil
		case _, open := <-hints.C:
			again.Stop()
			if !open {
				return v, nil
			}
		case <-again.C:
		}
	}
}

// Runs lists runs, newest first.
func (d *Desk) Runs(ctx context.Context, p identity.Principal, f RunQuery) (page Page[engine.Run], err error) {
	if err := require(p, capRunsRead, "read runs"); err != nil {
		return page, err
	}
	err = d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		page.Items, page.Next, err = d.engine.Runs(ctx, q, engine.Filter{Tenant: Tenant, Status: f.Status, Workflow: f.Workflow, Initiator: f.Initiator,
			Q: f.Text, Since: f.Since, Cursor: f.Cursor, Limit: limit(f.Limit)})
		if err != nil {
			return err
		}
		return d.nameWho(ctx, q, each(page.Items)...)
	})
	return page, err
}

func limit(n int) int {
	if n <= 0 {
		return pageDefault
	}
	return min(n, pageMax)
}

// Steps lists the steps of a run that have begun, in order.
func (d *Desk) Steps(ctx context.Context, p identity.Principal, ref string) (page Page[engine.Step], err error) {
	err = d.viewRun(ctx, p, ref, func(ctx context.Context, q store.Querier, run id.Run) error {
		page.Items, err = d.engine.Steps(ctx, q, Tenant, run)
		return err
	})
	return page, err
}

// Checkpoints lists the checkpoints of a run, oldest first.
func (d *Desk) Checkpoints(ctx context.Context, p identity.Principal, ref string) (page Page[engine.Checkpoint], err error) {
	err = d.viewRun(ctx, p, ref, func(ctx context.Context, q store.Querier, run id.Run) error {
		page.Items, err = d.engine.Checkpoints(ctx, q, Tenant, run)
		return err
	})
	return page, err
}

// RunEffects lists the ledger rows of a run, oldest first.
func (d *Desk) RunEffects(ctx context.Context, p identity.Principal, ref string) (page Page[engine.Effect], err error) {
	err = d.viewRun(ctx, p, ref, func(ctx context.Context, q store.Querier, run id.Run) error {
		page.Items, err = d.engine.Effects(ctx, q, Tenant, run)
		return err
	})
	return page, err
}

// Resume continues a run that is expected to be at the version; -1 stands for
// the current one. Problems: version_conflict, lease_held, already_finished,
// not_found, forbidden.
func (d *Desk) Resume(ctx context.Context, p identity.Principal, ref string, expected int64) (engine.Resumed, error) {
	run, err := d.operable(ctx, p, ref, "resume runs")
	if err != nil {
		return engine.Resumed{}, err
	}
	resumed, err := d.engine.Resume(ctx, run, expected, actor(p))
	if err != nil {
		return resumed, err
	}
	resumed.Run = d.named(ctx, resumed.Run)
	return resumed, nil
}

// operable resolves ref for a caller who may operate runs. The initiator of a
// run may too.
func (d *Desk) operable(ctx context.Context, p identity.Principal, ref, doing string) (run id.Run, err error) {
	err = d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		if run, err = d.runID(ctx, q, ref); err != nil {
			return err
		}
		r, err := d.engine.Run(ctx, q, Tenant, run)
		if err != nil {
			return err
		}
		own := r.Initiator == string(initiator(p)) && may(p, capRunsWrite)
		if own {
			return nil
		}
		return require(p, capOperate, doing)
	})
	return run, err
}

// Cancel ends a run for a reason: what was not sent will not be, what was is
// awaited or stays unknown. Problems: invalid, already_finished, not_found,
// forbidden.
func (d *Desk) Cancel(ctx context.Context, p identity.Principal, ref, reason string) (engine.Run, error) {
	reason, err := words("/reason", reason, reasonCharsMax)
	if err != nil {
		return engine.Run{}, err
	}
	run, err := d.operable(ctx, p, ref, "cancel runs")
	if err != nil {
		return engine.Run{}, err
	}
	return d.engine.Cancel(ctx, run, reason, actor(p))
}

// Drive continues a run in this process until it waits or ends: what the
// command line does with a data folder. Problems as of Resume.
func (d *Desk) Drive(ctx context.Context, p identity.Principal, ref string, expected int64) (engine.Run, error) {
	run, err := d.operable(ctx, p, ref, "resume runs")
	if err != nil {
		return engine.Run{}, err
	}
	driven, err := d.engine.DriveFrom(ctx, run, expected, actor(p))
	if err != nil {
		return driven, err
	}
	return d.named(ctx, driven), nil
}

// words checks a text that a person must write.
func words(pointer, text string, charsMax int) (string, error) {
	text = strings.TrimSpace(text)
	bad := problem.New(problem.Invalid, "invalid", "Nothing was changed.")
	if text == "" {
		return "", bad.At(pointer, "say why, in a few words")
	}
	if n := len([]rune(text)); n > charsMax {
		return "", bad.At(pointer, "has %d characters; at most %d", n, charsMax)
	}
	return text, noSeal(pointer, text)
}

// noSeal refuses words that name a sealed value: they become feedback and
// outputs, which a request may be made of.
func noSeal(pointer string, words any) error {
	at, forged := sealed.Forged(words)
	if !forged {
		return nil
	}
	return problem.New(problem.Invalid, "invalid", "Nothing was changed.").At(pointer+at, "%q is kept for sealed values and cannot be given", sealed.Mark)
}
