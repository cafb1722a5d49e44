package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"countersign/internal/canon"
	"countersign/internal/problem"
	"countersign/internal/store"
	"countersign/internal/tools"
	"countersign/internal/vault"
	"countersign/internal/workflow"
)

// session is one driver's hold on one run: what it has read and verified, and
// the right to write. It belongs to one goroutine.
type session struct {
	e     *Engine
	lease *lease
	by    Actor
	log   *slog.Logger

	run     Run // as of the last commit
	wf      *workflow.Workflow
	ages    bool // some step has fresh_for
	info    workflow.RunInfo
	state   workflow.State
	found   workflow.State // as it was when the run was opened
	steps   map[stepKey]*Step
	dirty   map[stepKey]*Step // rows the next commit writes
	outputs map[stepKey]recorded
	resting map[stepKey]*wait           // steps that wait while other branches go on
	kept    map[stepKey]json.RawMessage // outputs of this session, so that they are not read back
	tools   map[string]*tools.Tool      // by digest
	box     *vault.Box                  // nil until something sensitive comes
	now     time.Time                   // of the last commit: the instant that planning sees
	began   time.Time                   // when the run was opened
	fence   int64                       // of this driver

	planned []workflow.Task // what follows was found to come next; nil: ask the planner
	alone   bool            // the task at hand is the only one
	ending  bool            // the run ends by rule: nothing is sent any more
	left    bool            // the run is released: nothing more to do
	settled bool            // a cancel was asked for; only what is under way is recorded
	fenced  bool            // another driver has taken over
}

// keptBytesMax bounds an output that stays in memory until the session ends.
const keptBytesMax = 64 << 10

// open verifies the record of a claimed run and makes a session of it. A
// *workflow.Failure is why the run cannot continue: nothing of it was changed.
func (e *Engine) open(ctx context.Context, r Run, l *lease, by Actor) (*session, error) {
	s := &session{e: e, lease: l, by: by, run: r, now: r.UpdatedAt, began: e.o.Now(), fence: r.Lease.Fence,
		log:   e.log.With("run", r.ID, "workflow", r.Workflow, "trace_id", r.TraceID),
		steps: map[stepKey]*Step{}, dirty: map[stepKey]*Step{}, resting: map[stepKey]*wait{}, kept: map[stepKey]json.RawMessage{}, tools: map[string]*tools.Tool{}}
	var c chain
	err := e.o.DB.View(ctx, func(ctx context.Context, q store.Querier) (err error) {
		if s.run, err = runByID(ctx, q, r.ID); err != nil {
			return err
		}
		s.now = s.run.UpdatedAt
		if c, err = verify(ctx, q, s.run); err != nil {
			return err
		}
		rows, err := stepRows(ctx, q, r.Tenant, r.ID)
		for i := range rows {
			s.steps[stepKey{rows[i].Path, rows[i].Pass}] = &rows[i]
		}
		if err != nil {
			return err
		}
		s.rename(c.moves)
		if err := s.define(ctx, q, c); err != nil {
			return err
		}
		return s.add(ctx, q, c)
	})
	if err != nil {
		return s, s.why(err)
	}
	s.outputs, s.found = c.outputs, s.state
	input, err := canon.Value(s.run.Input)
	if err != nil {
		return s, &workflow.Failure{Class: workflow.Incompatible, Code: codeTampered, Message: "The input of the run cannot be read."}
	}
	s.info = workflow.RunInfo{ID: string(r.ID), Tenant: r.Tenant, Key: r.Key, Thread: r.Thread, Input: input,
		Initiator: r.Initiator, OnBehalfOf: r.OnBehalfOf, StartedAt: r.CreatedAt}
	return s, nil
}

// The codes of failures that block a run.
const (
	codeTampered = "tampered"        // a record differs from what was written
	codeVersion  = "cannot_continue" // a definition is gone, or newer than this program
	codePoison   = "keeps_failing"   // its drivers end without progress
	codeUnknown  = "outcome_unknown" // nobody but a person can find out
	codeAsk      = "asks_a_person"   // on_error: ask_person
	codeClock    = "clock_suspect"
	codeRestored = "restored" // it was open in a backup that was put back
)

// rename finds the rows of steps under the names that later versions gave them.
func (s *session) rename(moves []workflow.Move) {
	for _, m := range moves {
		renamed := map[stepKey]*Step{}
		for k, row := range s.steps {
			k.path = m.Name(k.path)
			renamed[k] = row
		}
		s.steps = renamed
	}
}

// add adds the record up.
func (s *session) add(ctx context.Context, q store.Querier, c chain) (err error) {
	s.state, err = s.e.fold(ctx, q, s.run.Tenant, c, s.wf)
	switch {
	case err == nil:
		return nil
	case missing(err):
		return gone("an older version of workflow "+s.run.Workflow+", which it has had,", err)
	}
	return &workflow.Failure{Class: workflow.Incompatible, Code: codeVersion, Message: "This program cannot follow the record of the run: " + err.Error() + "."}
}

// gone is why a run whose definition cannot be loaded does not continue.
func gone(what string, err error) error {
	if !missing(err) {
		return fmt.Errorf("load %s: %w", what, err)
	}
	return &workflow.Failure{Class: workflow.Incompatible, Code: codeVersion,
		Message: "This run cannot continue: " + what + " is not available any more."}
}

// define loads the definitions the run was started with, or went on to.
func (s *session) define(ctx context.Context, q store.Querier, c chain) error {
	if c.schema > stateSchema {
		return &workflow.Failure{Class: workflow.Incompatible, Code: codeVersion,
			Message: fmt.Sprintf("This run was continued by a newer program (state schema %d; this one knows %d).", c.schema, stateSchema)}
	}
	wf, err := s.e.o.Library.Workflow(ctx, q, s.run.Tenant, s.run.WorkflowDigest)
	if err == nil && wf.Digest != s.run.WorkflowDigest {
		err = store.ErrNotFound
	}
	if err != nil {
		return gone(fmt.Sprintf("version %d of workflow %s (%s)", s.run.WorkflowVersion, s.run.Workflow, s.run.WorkflowDigest), err)
	}
	s.wf = wf
	s.ages = slices.ContainsFunc(wf.Steps(), func(st workflow.StepInfo) bool { return st.FreshFor > 0 })
	for name, digest := range s.run.tools {
		t, err := s.e.o.Library.Tool(ctx, q, s.run.Tenant, digest)
		if err == nil && t.Digest != digest {
			err = store.ErrNotFound
		}
		if err != nil {
			return gone(fmt.Sprintf("tool %s (%s)", name, digest), err)
		}
		s.tools[digest] = t
	}
	return nil
}

// missing reports whether an error of the library says that there is no such
// definition, rather than that it could not be read now.
func missing(err error) bool {
	return err != nil && (errors.Is(err, store.ErrNotFound) || problem.From(err).Kind == problem.NotFound)
}

// why turns what verification found into the failure the run is blocked with.
func (s *session) why(err error) error {
	if t, ok := errors.AsType[*tampered](err); ok {
		return &workflow.Failure{Class: workflow.Incompatible, Code: codeTampered, Message: t.Error()}
	}
	return err
}

// tool finds a tool of the run by name.
func (s *session) tool(name string) (*tools.Tool, error) {
	if t := s.tools[s.run.tools[name]]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("engine: run %s has no tool %s", s.run.ID, name)
}

// row is the index row of one pass of a step, made when it is first needed.
func (s *session) row(path string, pass int) *Step {
	k := stepKey{path, pass}
	if r := s.steps[k]; r != nil {
		return r
	}
	r := &Step{Path: path, Pass: pass, Status: string(workflow.Pending), StartedAt: s.now}
	if step, ok := s.wf.Step(path); ok {
		r.Kind, r.Tool = string(step.Kind), step.Tool
	}
	s.steps[k] = r
	return r
}

// touch has the next commit write the row.
func (s *session) touch(r *Step) { s.dirty[stepKey{r.Path, r.Pass}] = r }

// output gives the planner a recorded output that an expression names.
func (s *session) output(ctx context.Context) workflow.Outputs {
	return func(path string, pass int) (any, error) {
		k := stepKey{path, pass}
		if o, ok := s.kept[k]; ok {
			return canon.Value(o)
		}
		at, ok := s.outputs[k]
		if !ok {
			return nil, fmt.Errorf("engine: step %s has no output in pass %d", path, pass)
		}
		var o json.RawMessage
		err := s.e.o.DB.View(ctx, func(ctx context.Context, q store.Querier) (err error) {
			o, err = readOutput(ctx, q, s.run, at)
			return err
		})
		if err != nil {
			return nil, s.why(err)
		}
		s.keep(k, o)
		return canon.Value(o)
	}
}

func (s *session) keep(k stepKey, o json.RawMessage) {
	if len(o) <= keptBytesMax {
		s.kept[k] = o
	}
}

// next asks the planner what to do.
func (s *session) next(ctx context.Context, state workflow.State) (tasks []workflow.Task, err error) {
	defer func() {
		if v := recover(); v != nil {
			if c, ok := v.(Crashed); ok {
				panic(c)
			}
			s.log.Error("planner panicked", "panic", v)
			err = &workflow.Failure{Class: workflow.Bug, Code: "planner", Message: fmt.Sprintf("Planning the next step failed: %v.", v)}
		}
	}()
	return s.wf.Next(ctx, state, s.info, s.output(ctx), s.now)
}

// crash is called in every window.
func (s *session) crash(window, path string, pass int) {
	s.e.crash(window, path, pass)
}

// Crashed is what Options.Crash panics with to simulate the end of the
// process: the drive ends there and writes nothing more.
type Crashed struct{ Window, Path string }

// looking is what a reading of the facts carries along: it belongs to the drive.
func (s *session) looking(params json.RawMessage) tools.Sending {
	return tools.Sending{Params: params, Config: s.e.o.Config, Open: s.e.opener(s.boxed),
		Trace: traceparent(s.run.TraceID, driveSpan(s.run.TraceID, s.fence))}
}

// sending is what one try carries along.
func (s *session) sending(key, effect string, attempt int, params json.RawMessage, trace string, log *slog.Logger) tools.Sending {
	return tools.Sending{Key: key, Effect: effect, Attempt: attempt, Config: s.e.o.Config, Params: params, Open: s.e.opener(s.boxed), Trace: trace, Logger: log}
}
