package workflow

import "slices"

// scope is a list of steps with a control of its own: the top level of a
// workflow, or one branch of a parallel step.
type scope struct {
	name  string // of the branch; empty: the top level
	of    *Step  // the parallel step; nil: the top level
	steps []*Step
}

// find is the step of the scope with the id, which the checks have made sure of.
func (sc *scope) find(id string) *Step {
	i := slices.IndexFunc(sc.steps, func(step *Step) bool { return step.ID == id })
	if i < 0 {
		return nil
	}
	return sc.steps[i]
}

// last is the step whose output is that of the branch.
func (sc *scope) last() *Step { return sc.steps[len(sc.steps)-1] }

// front lists the steps where control stands: the first of each scope that it
// has not left. While a parallel step is open, control stands in its branches;
// when it has left all of them, at the parallel step itself.
func (w *Workflow) front(s State) []*Step { return w.top.front(s) }

func (sc *scope) front(s State) []*Step {
	for _, step := range sc.steps {
		st := s.Step(step.Path)
		if st.Left {
			continue
		}
		if step.Kind == Fork && st.Status == Waiting {
			if inside := step.inside(s); len(inside) > 0 {
				return inside
			}
		}
		return []*Step{step}
	}
	return nil
}

// inside lists where control stands in the branches of an open step.
func (st *Step) inside(s State) []*Step {
	var front []*Step
	for _, b := range st.branches {
		front = append(front, b.front(s)...)
	}
	return front
}

// within visits the step and all that lies in its branches, in the order of
// the definition.
func (st *Step) within(visit func(*Step)) {
	visit(st)
	for _, b := range st.branches {
		for _, step := range b.steps {
			step.within(visit)
		}
	}
}
