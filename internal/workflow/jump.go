package workflow

import (
	"encoding/json"
	"fmt"
)

// jump follows a goto. Backward, the target and everything after it is cleared
// and runs again as a new pass; forward, what lies between is skipped.
func (w *Workflow) jump(s *State, from *Step, st StepState, e Event) error {
	var j Jump
	if err := json.Unmarshal(e.Data, &j); err != nil {
		return fmt.Errorf("the data is no jump: %w", err)
	}
	t := w.turn(*s, from, st)
	if t.do != DoGoto {
		return fmt.Errorf("control does not go anywhere from here (%s)", t.do)
	}
	if j.To != t.to.Path || j.Why != t.why {
		return fmt.Errorf("control goes to %s because of %s, not to %q because of %q", t.to.Path, t.why, j.To, j.Why)
	}
	s.Jumps[edge(from.Path, t.why, t.to.Path)]++
	if t.to.Index <= from.Index {
		for _, step := range from.scope.steps[t.to.Index:] {
			step.within(func(inner *Step) { s.clear(inner.Path) })
		}
		return nil
	}
	st.Left = true
	s.Steps[from.Path] = st
	for _, step := range from.scope.steps[from.Index+1 : t.to.Index] {
		between := s.Step(step.Path)
		s.Steps[step.Path] = StepState{Status: Skipped, Pass: between.Pass + 1, Left: true, Jumped: from.Path}
	}
	return nil
}

// clear forgets all of a step but the number of its passes.
func (s *State) clear(path string) {
	if st, ok := s.Steps[path]; ok {
		s.Steps[path] = StepState{Status: Pending, Pass: st.Pass}
	}
}
