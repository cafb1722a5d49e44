package workflow

import (
	"fmt"
	"slices"
	"time"
)

// refreshesMax bounds how often one read is repeated because it went stale,
// between two gotos: a fresh_for shorter than the work that needs the read
// would go round for ever.
const refreshesMax = 20

// Stale gives the events to record when an open action or approve step is
// about to be carried out but was built on reads older than their fresh_for at
// now. Recording them takes the open request back: the reads and what was made
// of them run again, and the step is proposed anew with Task.Revises naming
// the pass it replaces. A read that was repeated too often gives the step's
// failure instead. Empty: nothing is stale.
func (w *Workflow) Stale(s State, path string, now time.Time) []Event {
	step, ok := w.Step(path)
	if !ok || w.asking(s, step) || !slices.Contains([]situation{ready, open}, w.situation(s, step)) {
		return nil
	}
	var events []Event
	for _, read := range w.basis(s, step) {
		st := s.Step(read.Path)
		if read.FreshFor == 0 || st.Status != Completed || now.Before(st.At.Add(read.FreshFor)) {
			continue
		}
		if st.Reads >= refreshesMax {
			pass := s.Step(path).Pass
			if w.situation(s, step) == ready {
				pass++
			}
			return []Event{{Kind: StepFailed, Path: path, Pass: pass, Error: &Failure{Class: Permanent, Code: "never_fresh",
				Message: fmt.Sprintf("Step %s was read %d times and was older than its fresh_for of %s each time %s needed it. Use a longer fresh_for.",
					read.Path, st.Reads+1, read.FreshFor, path)}}}
		}
		events = append(events, Event{Kind: StepRefreshed, Path: read.Path, Pass: st.Pass})
	}
	return w.independent(s, events)
}

// independent keeps the events that the earlier ones have not made pointless:
// a read that depends on a refreshed read is cleared with it.
func (w *Workflow) independent(s State, events []Event) []Event {
	var kept []Event
	s = s.clone()
	for _, e := range events {
		if w.fold(&s, e) == nil {
			kept = append(kept, e)
		}
	}
	return kept
}

// basis lists, in order, the steps whose outputs the step is built on: those
// its expressions name and those they were made of in turn, but not beyond
// what a person decided or the world was changed by, nor through what was
// jumped over.
func (w *Workflow) basis(s State, step *Step) []*Step {
	in := map[*Step]bool{step: true}
	for _, earlier := range slices.Backward(step.scope.steps[:step.Index]) {
		for user := range in {
			if (user == step || !done(s, user) && s.Step(user.Path).Jumped == "") && slices.Contains(user.refs, earlier.Path) {
				in[earlier] = true
				break
			}
		}
	}
	var basis []*Step
	for _, earlier := range step.scope.steps[:step.Index] {
		if in[earlier] {
			basis = append(basis, earlier)
		}
	}
	return basis
}

// done reports whether repeating the step would repeat a decision, an effect
// or a wait; a refresh never does that. Reads and what is made of them are all
// of one scope: the checks see to it that no age counts across branches.
func done(s State, step *Step) bool {
	st := s.Step(step.Path)
	return st.Left && st.Status != Skipped && (step.Kind == Action || step.Kind == Gate || step.Kind == Ask || step.Kind == Sleep || step.Kind == Fork)
}

// asking reports whether the step is an open question: a person may be writing
// the answer, so it is never taken back.
func (w *Workflow) asking(s State, step *Step) bool {
	return step.Kind == Ask && w.situation(s, step) == open
}

// refresh clears a read and what was made of it. An open request among that is
// taken back; what is done stays done.
func (w *Workflow) refresh(s *State, read *Step, st StepState) error {
	if read.FreshFor == 0 || st.Status != Completed {
		return fmt.Errorf("the step's output does not age")
	}
	for _, step := range read.scope.front(*s) {
		if sit := w.situation(*s, step); sit != ready && sit != open || w.asking(*s, step) {
			return fmt.Errorf("step %s is %s", step.Path, sit)
		}
	}
	cleared := map[string]bool{read.Path: true}
	for _, step := range read.scope.steps[read.Index+1:] {
		if done(*s, step) || !w.dependent(*s, step, cleared) {
			continue
		}
		cleared[step.Path] = true
		was := s.Step(step.Path)
		s.clear(step.Path)
		if was.Status == Waiting {
			s.Steps[step.Path] = StepState{Status: Pending, Pass: was.Pass, Revises: was.Pass}
		}
	}
	s.Steps[read.Path] = StepState{Status: Pending, Pass: st.Pass, Reads: st.Reads + 1}
	return nil
}

// dependent reports whether the step has to run again when the cleared ones do.
func (w *Workflow) dependent(s State, step *Step, cleared map[string]bool) bool {
	st := s.Step(step.Path)
	if st.Jumped != "" {
		return cleared[st.Jumped]
	}
	return st.Status != Pending && slices.ContainsFunc(step.refs, func(path string) bool { return cleared[path] })
}
