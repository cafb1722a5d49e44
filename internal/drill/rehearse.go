package drill

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"countersign/internal/canon"
	"countersign/internal/desk"
	"countersign/internal/engine"
	"countersign/internal/identity"
	"countersign/internal/instance"
	"countersign/internal/problem"
	"countersign/internal/workflow"
)

// roundsMax bounds how often a rehearsal is driven on: a run that has not ended
// by then never does.
const roundsMax = 500

// people are those who act in the drill.
type people struct {
	starter   identity.Principal
	approvers []identity.Principal
}

// approversCount is how many people hold every role: as many as a group may
// need for one place each, within reason.
const approversCount = 5

// prepare makes the folder that every rehearsal begins with a copy of: the
// definitions as they are, and people who may decide.
func (d *drill) prepare(ctx context.Context) error {
	i, err := d.open(ctx, d.folder("template"), newTarget(nil), nil, 0)
	if err != nil {
		return err
	}
	if err := d.define(ctx, i); err != nil {
		return errors.Join(err, i.Close())
	}
	return i.Close()
}

func (d *drill) define(ctx context.Context, i *instance.Instance) error {
	if _, err := i.LoadDefinitions(ctx); err != nil {
		return err
	}
	w, err := i.Desk.WorkflowOf(ctx, desk.Terminal(), d.o.Workflow, d.o.Version)
	if err != nil {
		return err
	}
	d.report.Workflow, d.report.Version, d.report.Digest = w.Name, w.Version, w.Digest
	for _, s := range w.Steps() {
		d.steps = append(d.steps, s.Path)
	}
	if d.input, err = d.inputOf(w); err != nil {
		return err
	}
	roles, err := i.Desk.Roles(ctx, desk.Terminal())
	if err != nil {
		return err
	}
	return d.addPeople(ctx, i, roles)
}

// inputOf is the input that was given, or one that fits.
func (d *drill) inputOf(w *workflow.Workflow) (json.RawMessage, error) {
	if len(d.o.Input) > 0 {
		return d.o.Input, nil
	}
	v, err := w.InputSchema().Example()
	if err != nil {
		return nil, fmt.Errorf("the drill cannot make up an input (%w); give one with --input", err)
	}
	return canon.Marshal(v)
}

func (d *drill) addPeople(ctx context.Context, i *instance.Instance, roles []string) error {
	add := func(name string, roles []string) (identity.Principal, error) {
		p, err := i.Desk.AddPerson(ctx, desk.Terminal(), identity.NewPerson{Email: name + "@drill.invalid", Name: "Drill " + name, Password: "for the drill alone", Roles: roles})
		return identity.Principal{Tenant: desk.Tenant, Kind: identity.KindPerson, Person: p.ID, Name: p.Name, Email: p.Email, Roles: p.Roles, How: "drill", Channel: "drill"}, err
	}
	var err error
	if d.people.starter, err = add("starter", []string{"builder"}); err != nil {
		return err
	}
	for n := range approversCount {
		p, err := add(fmt.Sprint("approver-", n+1), roles)
		if err != nil {
			return err
		}
		d.people.approvers = append(d.people.approvers, p)
	}
	return nil
}

func (d *drill) open(ctx context.Context, dir string, t *target, crash func(string, string, int), ahead time.Duration) (*instance.Instance, error) {
	return instance.Open(ctx, instance.Options{Dir: dir, Config: d.o.Config, Drive: true, Holder: "a drill", World: t, Crash: crash, Logger: d.o.Logger,
		Now: func() time.Time { return time.Now().Add(ahead) }})
}

// outcome is what one rehearsal came to.
type outcome struct {
	run            engine.Run
	crashed        bool
	passed         []point
	reads, effects map[string]int
	people         int
	traces         int
	redone         []string // steps that had finished at the crash and were done again
	audit          string   // why the log does not verify
}

// output is the run's output with its own id made neutral.
func (o outcome) output() []byte {
	return bytes.ReplaceAll(o.run.Output, []byte(o.run.ID), []byte("RUN"))
}

// rehearsal is one run of the workflow in a folder of its own.
type rehearsal struct {
	d      *drill
	dir    string
	target *target
	at     point // where it dies, once; the zero point: nowhere
	out    outcome
	ahead  time.Duration // the clock is moved on instead of waiting
	inst   *instance.Instance
	ref    string // the run
	traces map[string]bool
	done   []finished
}

// finished is a read whose answer was recorded when the run died.
type finished struct {
	path, key string
	asked     int // how often until then
}

// rehearse runs the workflow to its end, through a crash at the point.
func (d *drill) rehearse(ctx context.Context, at point) (out outcome, err error) {
	dir, err := os.MkdirTemp(d.dir, "case-")
	if err != nil {
		return out, err
	}
	defer os.RemoveAll(dir)
	if err := os.CopyFS(dir, os.DirFS(d.folder("template"))); err != nil {
		return out, fmt.Errorf("copy the drill's folder: %w", err)
	}
	r := &rehearsal{d: d, dir: dir, target: newTarget(d.o.Answers), at: at, traces: map[string]bool{}}
	if err := r.open(ctx); err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, r.inst.Close()) }()
	if err := r.through(ctx); err != nil {
		return out, err
	}
	return r.out, nil
}

func (r *rehearsal) open(ctx context.Context) (err error) {
	r.inst, err = r.d.open(ctx, r.dir, r.target, r.window, r.ahead)
	return err
}

// reopen is the next process: a new epoch on the same folder.
func (r *rehearsal) reopen(ctx context.Context) error {
	return errors.Join(r.inst.Close(), r.open(ctx))
}

// revive is the next process after a crash; what had finished by then is noted.
func (r *rehearsal) revive(ctx context.Context) error {
	if err := r.reopen(ctx); err != nil {
		return err
	}
	steps, err := r.inst.Desk.Steps(ctx, desk.Terminal(), r.ref)
	if err != nil {
		return err
	}
	asked, _ := r.target.counts()
	for _, s := range steps.Items {
		if s.Kind == string(workflow.Call) && s.Status == string(workflow.Completed) {
			r.done = append(r.done, finished{s.Path, s.IdempotencyKey, asked[s.IdempotencyKey]})
		}
	}
	return nil
}

// window is passed at every instant at which the process may die.
func (r *rehearsal) window(window, path string, pass int) {
	p := point{window, path, pass}
	if r.at == (point{}) {
		r.out.passed = append(r.out.passed, p)
		return
	}
	if p == r.at && !r.out.crashed {
		r.out.crashed = true
		panic(engine.Crashed{Window: window, Path: path})
	}
}

// through starts the run and drives it until it has ended or nobody can help.
func (r *rehearsal) through(ctx context.Context) error {
	run, _, err := r.inst.Desk.StartRun(ctx, r.d.people.starter, desk.StartRun{Workflow: r.d.report.Workflow, Version: r.d.report.Version, Input: r.d.input})
	if err != nil {
		return err
	}
	r.ref = string(run.ID)
	for range roundsMax {
		died, err := r.round(ctx)
		if err != nil {
			return err
		}
		if died {
			if err := r.revive(ctx); err != nil {
				return err
			}
			continue
		}
		if done, err := r.help(ctx); err != nil || done {
			return errors.Join(err, r.judge(ctx))
		}
	}
	return fmt.Errorf("the run had not ended after %d rounds; it is %s", roundsMax, r.out.run.Status)
}

// round drives the run once. A simulated crash ends it as the end of the
// process would.
func (r *rehearsal) round(ctx context.Context) (died bool, err error) {
	return dying(func() error {
		r.out.run, err = r.inst.Desk.Drive(ctx, desk.Terminal(), r.ref, -1)
		if problem.HasCode(err, "already_finished") {
			r.out.run, err = r.inst.Desk.Run(ctx, desk.Terminal(), r.ref)
		}
		return err
	})
}

func dying(do func() error) (died bool, err error) {
	defer func() {
		v := recover()
		if _, died = v.(engine.Crashed); v != nil && !died {
			panic(v)
		}
	}()
	return false, do()
}

// help does what the run waits for. It reports that the run has ended, or that
// nothing helps.
func (r *rehearsal) help(ctx context.Context) (done bool, err error) {
	run := r.out.run
	r.traces[run.TraceID] = true
	switch run.Status {
	case engine.WaitingApproval:
		return r.approve(ctx)
	case engine.WaitingInput:
		return false, r.answer(ctx)
	case engine.Sleeping, engine.Retrying:
		r.ahead += max(0, run.WaitingFor[0].Until.Sub(time.Now().Add(r.ahead))) + time.Second
		return false, r.reopen(ctx)
	case engine.Blocked:
		return r.settle(ctx)
	}
	return engine.Final(run.Status), nil
}

// judge completes the outcome.
func (r *rehearsal) judge(ctx context.Context) error {
	r.out.reads, r.out.effects = r.target.counts()
	r.out.traces = len(r.traces)
	for _, f := range r.done {
		if r.out.reads[f.key] > f.asked {
			r.out.redone = append(r.out.redone, f.path)
		}
	}
	report, err := r.inst.Desk.Verify(ctx, desk.Terminal())
	if err == nil && !report.OK {
		r.out.audit = report.Findings[0].What
	}
	return err
}
