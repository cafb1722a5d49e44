package workflow

import (
	"encoding/json"
	"fmt"

	"countersign/internal/canon"
)

// join is the task of a parallel step whose branches control has left: its
// output is the output of the last step of each branch, by the branch's name.
func (p *plan) join(step *Step, st StepState) (Task, error) {
	outputs := make(map[string]any, len(step.branches))
	for _, b := range step.branches {
		last := b.last()
		outputs[b.name] = nil
		if at := p.s.Step(last.Path); at.Output {
			var err error
			if outputs[b.name], err = p.out(last.Path, at.Pass); err != nil {
				return Task{}, fmt.Errorf("output of step %s, pass %d: %w", last.Path, at.Pass, err)
			}
		}
	}
	return p.recorded(step, st.Pass, joined(step, st.Pass, outputs)), nil
}

// joined is the event that records the outputs, or that they are too much.
func joined(step *Step, pass int, outputs any) Event {
	out, err := canon.Marshal(outputs)
	if err != nil {
		return Event{Kind: StepFailed, Path: step.Path, Pass: pass, Error: &Failure{Class: Invalid, Code: "output", Message: step.Path + ": " + err.Error()}}
	}
	return Event{Kind: StepCompleted, Path: step.Path, Pass: pass, Output: json.RawMessage(out)}
}

// open lists the open steps that a run which ends by rule leaves behind in
// other branches, in the order of the definition.
func (w *Workflow) open(s State) []string {
	var paths []string
	for _, step := range w.front(s) {
		if w.situation(s, step) == open && step.Kind != Fork {
			paths = append(paths, step.Path)
		}
	}
	return paths
}
