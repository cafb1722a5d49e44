package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"countersign/internal/canon"
	"countersign/internal/id"
	"countersign/internal/problem"
	"countersign/internal/store"
	"countersign/internal/workflow"
)

// Replay is what walking a run's record again found.
type Replay struct {
	Run         id.Run       `json:"run"`
	Version     int64        `json:"version"` // number of its checkpoints
	Walked      int          `json:"walked"`  // checkpoints that were planned anew
	Differences []Difference `json:"differences"`
}

// Difference is a checkpoint at which this program would have done something
// else than is recorded.
type Difference struct {
	Version  int64  `json:"version"` // of the checkpoint
	Path     string `json:"path"`
	Pass     int    `json:"pass,omitempty"`
	Recorded string `json:"recorded"`
	Now      string `json:"now"`
}

// Replay walks a run's record again, with the definitions it had: at each
// checkpoint the planner is asked anew what comes next, over the recorded
// outputs, and that is compared with what was done. It reads only: nothing is
// called, sent or written. Problems: not_found, tampered, and that a definition
// is gone.
func (e *Engine) Replay(ctx context.Context, run id.Run) (out Replay, err error) {
	err = e.o.DB.View(ctx, func(ctx context.Context, q store.Querier) error {
		r, err := runByID(ctx, q, run)
		if err != nil {
			return err
		}
		c, err := verify(ctx, q, r)
		if t, ok := errors.AsType[*tampered](err); ok {
			return problem.New(problem.Conflict, codeTampered, "%s", t.Error())
		}
		if err != nil {
			return err
		}
		w := &walk{e: e, ctx: ctx, q: q, run: r, outputs: map[stepKey]json.RawMessage{}, out: Replay{Run: r.ID, Version: r.Version, Differences: []Difference{}}}
		err = w.all(c)
		out = w.out
		return err
	})
	return out, err
}

// walk is one call of Replay.
type walk struct {
	e       *Engine
	ctx     context.Context
	q       store.Querier
	run     Run
	wf      *workflow.Workflow
	info    workflow.RunInfo
	state   workflow.State
	at      time.Time // of the last event: the instant that planning saw
	outputs map[stepKey]json.RawMessage
	out     Replay
}

func (w *walk) all(c chain) error {
	input, err := canon.Value(w.run.Input)
	if err != nil {
		return err
	}
	r := w.run
	w.info = workflow.RunInfo{ID: string(r.ID), Tenant: r.Tenant, Key: r.Key, Thread: r.Thread, Input: input, Initiator: r.Initiator, OnBehalfOf: r.OnBehalfOf, StartedAt: r.CreatedAt}
	if err := w.use(c.started.Workflow); err != nil {
		return err
	}
	w.state = w.wf.Begin()
	for i, ev := range c.events {
		if ev.Kind == workflow.Migrated {
			err = w.migrated(ev)
		} else {
			err = w.step(int64(i+1), ev)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// use goes on with a version of the workflow.
func (w *walk) use(digest string) (err error) {
	w.wf, err = w.e.o.Library.Workflow(w.ctx, w.q, w.run.Tenant, digest)
	if err != nil {
		return fmt.Errorf("workflow of run %s: %w", w.run.ID, err)
	}
	return nil
}

func (w *walk) migrated(ev workflow.Event) error {
	m, err := workflow.ReadMove(ev.Data)
	if err != nil {
		return err
	}
	old := w.wf
	if err := w.use(m.To); err != nil {
		return err
	}
	a, err := w.wf.Adopt(w.state, old, m.RenameSteps)
	if err != nil {
		return err
	}
	renamed := map[stepKey]json.RawMessage{}
	for k, o := range w.outputs {
		k.path = m.Name(k.path)
		renamed[k] = o
	}
	w.state, w.outputs = a.State, renamed
	return nil
}

// step plans at the state before the event, compares, and goes on with what is
// recorded.
func (w *walk) step(version int64, ev workflow.Event) error {
	if planned[ev.Kind] {
		tasks, err := w.wf.Next(w.ctx, w.state, w.info, w.output, w.at)
		if err != nil {
			return fmt.Errorf("plan checkpoint %d again: %w", version, err)
		}
		w.out.Walked++
		if now := otherwise(ev, tasks); now != "" {
			w.out.Differences = append(w.out.Differences, Difference{Version: version, Path: ev.Path, Pass: ev.Pass, Recorded: told(ev), Now: now})
		}
	}
	state, err := w.wf.Apply(w.state, ev)
	if err != nil {
		return fmt.Errorf("follow checkpoint %d: %w", version, err)
	}
	w.state, w.at = state, ev.At
	if len(ev.Output) > 0 {
		w.outputs[stepKey{ev.Path, ev.Pass}] = ev.Output
	}
	return nil
}

func (w *walk) output(path string, pass int) (any, error) {
	o, ok := w.outputs[stepKey{path, pass}]
	if !ok {
		return nil, fmt.Errorf("engine: step %s has no output in pass %d", path, pass)
	}
	return canon.Value(o)
}

// planned are the events that follow from the planner's word. What people and
// targets said is taken as it is.
var planned = map[workflow.EventKind]bool{workflow.StepCompleted: true, workflow.StepSkipped: true, workflow.ActionProposed: true,
	workflow.ApproveOpened: true, workflow.AskOpened: true, workflow.SleepSet: true, workflow.Goto: true, workflow.Finished: true}

// begins are the tasks that lead to an event of a step.
var begins = map[workflow.EventKind]workflow.TaskKind{workflow.ActionProposed: workflow.TaskPropose, workflow.ApproveOpened: workflow.TaskApprove,
	workflow.AskOpened: workflow.TaskAsk, workflow.SleepSet: workflow.TaskSleep}

// otherwise says what the planner wants in place of the event; empty: the same.
func otherwise(ev workflow.Event, tasks []workflow.Task) string {
	for _, t := range tasks {
		if t.Path != ev.Path {
			continue
		}
		if leads(t, ev) {
			return ""
		}
		return wanted(t)
	}
	if len(tasks) == 0 {
		return "nothing more"
	}
	return wanted(tasks[0])
}

// leads reports whether the task leads to the event.
func leads(t workflow.Task, ev workflow.Event) bool {
	switch {
	case t.Kind == workflow.TaskFinish:
		f := t.Finish.Event()
		return ev.Kind == workflow.Finished && bytes.Equal(f.Output, ev.Output) && bytes.Equal(f.Data, ev.Data)
	case t.Pass != ev.Pass:
		return false
	case t.Kind == workflow.TaskRecord:
		for _, e := range t.Events {
			if e.Kind == ev.Kind && e.Path == ev.Path && bytes.Equal(e.Output, ev.Output) && bytes.Equal(e.Data, ev.Data) {
				return true
			}
		}
		return false
	case t.Kind == workflow.TaskCall:
		return ev.Kind == workflow.StepCompleted
	}
	return begins[ev.Kind] == t.Kind
}

func told(ev workflow.Event) string {
	if len(ev.Output) > 0 && ev.Kind == workflow.StepCompleted {
		return fmt.Sprintf("%s with %s", ev.Kind, digestOf(ev.Output))
	}
	return string(ev.Kind)
}

func wanted(t workflow.Task) string {
	switch {
	case t.Kind == workflow.TaskFinish:
		return "the run ends " + t.Finish.Status
	case t.Kind == workflow.TaskRecord && len(t.Events) > 0:
		return fmt.Sprintf("%s of %s", told(t.Events[0]), t.Path)
	}
	return fmt.Sprintf("%s of %s", t.Kind, t.Path)
}
