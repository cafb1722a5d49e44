package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// Workflow is one compiled workflow version. It is immutable and may be
// shared.
type Workflow struct {
	Name     string
	Version  int
	Title    string
	Digest   string          // of Compiled: "sha256:…"
	Compiled json.RawMessage // canonical; what is stored
	Tools    []string        // names used, sorted
}

var errComing = errors.New("workflow: not built yet")

// StepInfo is what pages show of a step.
type StepInfo struct {
	Path     string
	Kind     Kind
	Title    string
	Tool     string
	Optional bool          // has a `when`
	FreshFor time.Duration // 0: for ever
}

// Load builds a workflow from its stored compiled form; the digest is that of the bytes.
func Load(compiled json.RawMessage) (*Workflow, error) { return nil, errComing }

// PrepareInput applies defaults, validates and returns the canonical input.
func (w *Workflow) PrepareInput(v json.RawMessage) (json.RawMessage, error) { return nil, errComing }

// Steps lists the steps in order, for pages.
func (w *Workflow) Steps() []StepInfo { return nil }

// Step finds the step of a path.
func (w *Workflow) Step(path string) (*Step, bool) { return nil, false }

// Begin is the state before the first event.
func (w *Workflow) Begin() State { return State{} }

// Apply folds one event into the state. An event that the situation does not allow is an error and changes nothing.
func (w *Workflow) Apply(s State, e Event) (State, error) { return s, errComing }

// Fold is Begin and Apply over all events.
func (w *Workflow) Fold(events []Event) (State, error) { return State{}, errComing }

// Next says what the run has to do at the instant now, in order. The same arguments give the same tasks.
func (w *Workflow) Next(ctx context.Context, s State, run RunInfo, out Outputs, now time.Time) ([]Task, error) {
	return nil, errComing
}

// Advance is Apply, then Next.
func (w *Workflow) Advance(ctx context.Context, s State, e Event, run RunInfo, out Outputs, now time.Time) (State, []Task, error) {
	return s, nil, errComing
}

// Stale gives the step_refreshed events to record when an open action is about to be sent but was built on reads
// that are older than their fresh_for at now. Recording them takes the open request back: the step is proposed
// again with Task.Revises naming the pass it replaces. Empty: nothing is stale.
func (w *Workflow) Stale(s State, path string, now time.Time) []Event { return nil }
