package workflow

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"countersign/internal/problem"
)

// Move is the Data of a migrated event: an open run goes from one version of
// its workflow to another.
type Move struct {
	From        string            `json:"from"` // digest
	To          string            `json:"to"`   // digest
	RenameSteps map[string]string `json:"rename_steps,omitzero"`
	Tools       map[string]string `json:"tools"` // name to digest, for the version gone to
}

// Name is what the version gone to calls the step of a path of the older one.
// Renames are of ids; every other part of a path is the name of a branch.
func (m Move) Name(path string) string {
	parts := strings.Split(path, "/")
	for i := 0; i < len(parts); i += 2 {
		if to, ok := m.RenameSteps[parts[i]]; ok {
			parts[i] = to
		}
	}
	return strings.Join(parts, "/")
}

// ReadMove reads the Data of a migrated event.
func ReadMove(data json.RawMessage) (m Move, err error) {
	if err := json.Unmarshal(data, &m); err != nil {
		return m, fmt.Errorf("the data is no move: %w", err)
	}
	return m, nil
}

// Migration finds how an open run of an older version continues in this one.
func (w *Workflow) Migration(from int) (Migration, bool) {
	i := slices.IndexFunc(w.Migrate, func(m Migration) bool { return m.From == from })
	if i < 0 {
		return Migration{}, false
	}
	return w.Migrate[i], true
}

// Adoption is what this version makes of the state of a run of an older one.
type Adoption struct {
	State   State
	Kept    []Kept   // steps that are done, in the old order
	Dropped []string // old paths of steps that are done and that this version does not have: their outputs cannot be named any more
	Again   []Kept   // open requests and questions: each is withdrawn and put anew
}

// Kept is a step as the two versions call it.
type Kept struct {
	Old string `json:"old"`
	New string `json:"new"`
}

// Adopt makes the state of a run of the older version one of this version. It
// is pure and changes neither state. What is done stays done under its new
// name; an open action, approval or question is to be put anew as a new pass; a
// timer keeps its end. A *problem.Error says what does not fit: a place the
// run stands at that this version does not have or that is in a branch, a step that became one of
// another kind, or a step that would come to run before one that is done.
func (w *Workflow) Adopt(s State, old *Workflow, renames map[string]string) (Adoption, error) {
	a := &adopting{w: w, old: old, renames: renames, out: Adoption{State: State{Phase: s.Phase, Steps: map[string]StepState{}, Jumps: map[string]int{}, Finish: s.Finish}}}
	for _, step := range old.steps {
		if st, begun := s.Steps[step.Path]; begun {
			a.step(step, st)
		}
	}
	a.order()
	for name, n := range s.Jumps {
		a.jump(name, n)
	}
	if f := s.Feedback; f != nil {
		moved := *f
		moved.Path = a.name(f.Path)
		a.out.State.Feedback = &moved
	}
	if len(a.faults) > 0 {
		return Adoption{}, problem.New(problem.Conflict, "cannot_migrate", "The run cannot continue in version %d of %s: %s.", w.Version, w.Name, strings.Join(a.faults, "; "))
	}
	return a.out, nil
}

// adopting is one call of Adopt.
type adopting struct {
	w, old  *Workflow
	renames map[string]string
	out     Adoption
	faults  []string
}

func (a *adopting) fault(format string, args ...any) {
	a.faults = append(a.faults, fmt.Sprintf(format, args...))
}

// name is what this version calls a step of the older one.
func (a *adopting) name(path string) string { return Move{RenameSteps: a.renames}.Name(path) }

func (a *adopting) step(step *Step, st StepState) {
	to := a.name(step.Path)
	switch {
	case step.scope.of != nil:
		a.inner(step, to, st)
		return
	case step.Kind == Fork && st.Status == Waiting:
		a.fault("it stands in the branches of step %s; it can be moved before them, or when they have joined", step.Path)
		return
	}
	next, ok := a.w.Step(to)
	if _, taken := a.out.State.Steps[to]; ok && taken {
		a.fault("more than one step would become %s", to)
		return
	}
	stands := st.Status != Pending && !st.Left
	switch {
	case !ok && stands:
		a.fault("it stands at step %s, which is not there any more; say under rename_steps what it became", step.Path)
		return
	case !ok:
		if st.Left && st.Status != Skipped {
			a.out.Dropped = append(a.out.Dropped, step.Path)
		}
		return
	case next.Kind != step.Kind && st.Status != Pending && st.Status != Skipped:
		a.fault("step %s was begun as %s and is %s now", step.Path, step.Kind, next.Kind)
		return
	}
	if st.Jumped != "" {
		st.Jumped = a.name(st.Jumped)
	}
	if st.Status == Waiting && step.Kind != Sleep {
		a.out.Again = append(a.out.Again, Kept{step.Path, to})
		again := StepState{Status: Pending, Pass: st.Pass}
		if step.Kind != Ask {
			again.Revises = st.Pass
		}
		st = again
	} else if st.Left && st.Status != Skipped {
		a.out.Kept = append(a.out.Kept, Kept{step.Path, to})
	}
	a.out.State.Steps[to] = st
}

// inner carries over what is left of a step of a branch that the run does not
// stand in: the number of its passes, so that none is counted twice.
func (a *adopting) inner(step *Step, to string, st StepState) {
	if next, ok := a.w.Step(to); ok && next.Kind == step.Kind {
		a.out.State.Steps[to] = st
	} else if st.Left && st.Status != Skipped {
		a.out.Dropped = append(a.out.Dropped, step.Path)
	}
}

// order refuses a step that has not been left and stands before one that has:
// it would run after what was meant to follow it.
func (a *adopting) order() {
	var before *Step
	for _, step := range a.w.top.steps {
		st := a.out.State.Step(step.Path)
		switch {
		case before == nil && !st.Left:
			before = step
		case before != nil && (st.Left || st.Status != Pending):
			a.fault("step %s stands before %s, which the run has come to already", before.Path, step.Path)
			return
		}
	}
}

// jump carries the count of an edge over, unless one of its ends is gone.
func (a *adopting) jump(name string, n int) {
	parts := strings.Split(name, " ")
	if len(parts) != 3 {
		return
	}
	from, to := a.name(parts[0]), a.name(parts[2])
	_, hasFrom := a.w.Step(from)
	_, hasTo := a.w.Step(to)
	if hasFrom && hasTo {
		a.out.State.Jumps[edge(from, parts[1], to)] += n
	}
}

// FoldMoves is Fold over a record in which the run went from version to
// version: versions finds each by its digest, the first is the one it was
// started with, and w is the last.
func (w *Workflow) FoldMoves(first string, events []Event, versions func(digest string) (*Workflow, error)) (State, error) {
	at, err := versions(first)
	if err != nil {
		return State{}, err
	}
	s := at.Begin()
	for i, e := range events {
		if e.Kind != Migrated {
			if err := at.fold(&s, e); err != nil {
				return State{}, fmt.Errorf("event %d, %s: %w", i+1, e, err)
			}
			continue
		}
		m, err := ReadMove(e.Data)
		if err != nil {
			return State{}, fmt.Errorf("event %d: %w", i+1, err)
		}
		next, err := versions(m.To)
		if err != nil {
			return State{}, err
		}
		a, err := next.Adopt(s, at, m.RenameSteps)
		if err != nil {
			return State{}, fmt.Errorf("event %d: %w", i+1, err)
		}
		s, at = a.State, next
	}
	if at.Digest != w.Digest {
		return State{}, fmt.Errorf("the record ends with version %s of the workflow, not %s", at.Digest, w.Digest)
	}
	return s, nil
}
