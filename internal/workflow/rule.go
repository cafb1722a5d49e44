package workflow

import "fmt"

// Rule says where control goes when a step has ended in some way. It is part
// of the compiled form, defaults resolved.
type Rule struct {
	Do        string `json:"do"`
	To        string `json:"to,omitzero"`         // goto: id of the target, in the same scope
	MaxPasses int    `json:"max_passes,omitzero"` // goto backward: passes of the loop in all, the first included
}

// What a rule may do.
const (
	DoNext = "next"       // on with the following step
	DoEnd  = "end"        // the run ends as its cause says
	DoFail = "fail"       // the run fails
	DoAsk  = "ask_person" // the run waits for a person
	DoGoto = "goto"
)

// The causes by which a rule is chosen; also the Outcome of failed steps and
// the Why of jumps.
const (
	WhyThen      = "then"
	WhyRejected  = "rejected"
	WhyExpired   = "expired"
	WhyDenied    = "denied"
	WhyRefused   = "refused"
	WhyAbandoned = "abandoned"
	WhyError     = "error"
)

// turn is a rule resolved against the state: what happens at a step which has
// ended and which control has not left.
type turn struct {
	do     string // DoGoto, DoAsk or DoEnd
	to     *Step
	why    string
	status string   // DoEnd: the run's end
	fault  *Failure // DoEnd: why, unless completed
}

// turn resolves the rule of an ended step. A goto that has used its passes
// acts as the end of its cause; a failure never becomes a success that way.
func (w *Workflow) turn(s State, step *Step, st StepState) turn {
	rule, why := step.rule(st)
	switch {
	case rule.Do == DoGoto && !w.exhausted(s, step, rule, why):
		return turn{do: DoGoto, to: step.scope.find(rule.To), why: why}
	case rule.Do == DoAsk:
		return turn{do: DoAsk, why: why}
	}
	t := turn{do: DoEnd, why: why, status: endings[why], fault: st.Error}
	switch {
	case t.status != "":
	case rule.Do == DoEnd:
		t.status, t.fault = RunCompleted, nil
	default:
		t.status = RunFailed
	}
	if t.status == RunFailed && t.fault == nil {
		t.fault = &Failure{Class: Permanent, Code: "passes_exhausted",
			Message: fmt.Sprintf("Step %s was to go back to %s once more, but its %d passes are used up.", step.Path, rule.To, rule.MaxPasses)}
	}
	return t
}

// endings are the ends that a cause has whatever its rule says.
var endings = map[string]string{WhyRejected: RunRejected, WhyExpired: RunExpired}

// rule picks the rule for how the step ended, and the cause.
func (st *Step) rule(s StepState) (Rule, string) {
	if s.Status == Completed {
		return st.then, WhyThen
	}
	switch s.Outcome {
	case WhyRejected:
		return st.onReject, WhyRejected
	case WhyExpired:
		return st.onExpire, WhyExpired
	}
	if s.Error != nil {
		if r, ok := st.onError[s.Error.Class]; ok {
			return r, WhyError
		}
	}
	return st.onError[defaultClass], WhyError
}

// defaultClass is the key of an on_error map for every class it does not name.
const defaultClass = "default"

// exhausted reports whether a goto has used its passes. A goto forward cannot
// loop and has no bound.
func (w *Workflow) exhausted(s State, from *Step, r Rule, why string) bool {
	to := from.scope.find(r.To)
	return to.Index <= from.Index && s.Jumps[edge(from.Path, why, to.Path)]+1 >= r.MaxPasses
}

// edge names a goto edge in State.Jumps.
func edge(from, why, to string) string { return from + " " + why + " " + to }
