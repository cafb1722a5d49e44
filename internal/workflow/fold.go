package workflow

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// situation is where a step stands as the fold sees it.
type situation string

const (
	ready   situation = "ready"   // control is here, the step has not begun
	open    situation = "open"    // begun; something outside will say
	turning situation = "turning" // completed, and its `then` has not been followed yet
	stopped situation = "stopped" // failed, and its rule has not been followed yet
	left    situation = "left"    // control has moved on
	later   situation = "later"   // control has not come here yet
)

var every = []Kind{Call, Set, Action, Gate, Ask, Sleep, Fork}

// legal is the whole law of step events: in which situation, for which kinds.
var legal = map[EventKind]map[situation][]Kind{
	StepCompleted:   {ready: {Call, Set}, open: {Fork}},
	StepSkipped:     {ready: every},
	StepFailed:      {ready: every, open: {Action, Gate, Fork}},
	StepRetried:     {stopped: every},
	StepRefreshed:   {left: {Call}},
	ActionProposed:  {ready: {Action}},
	ActionDenied:    {ready: {Action, Gate}, open: {Action, Gate}},
	ActionRejected:  {open: {Action}},
	ActionExpired:   {open: {Action, Gate}},
	ActionRevised:   {open: {Action, Gate}},
	EffectConfirmed: {open: {Action}},
	EffectRefused:   {open: {Action}},
	EffectAbandoned: {open: {Action}},
	ApproveOpened:   {ready: {Gate}},
	ApproveDone:     {open: {Gate}},
	AskOpened:       {ready: {Ask}},
	AskAnswered:     {open: {Ask}},
	AskExpired:      {open: {Ask}},
	SleepSet:        {ready: {Sleep}},
	SleepDone:       {open: {Sleep}},
	BranchesOpened:  {ready: {Fork}},
	Goto:            {turning: every, stopped: every},
}

// Begin is the state before the first event.
func (w *Workflow) Begin() State {
	return State{Phase: Fresh, Steps: map[string]StepState{}, Jumps: map[string]int{}}
}

// Apply folds one event into the state and returns the new one; s is not
// changed. An event that the situation does not allow is an error.
func (w *Workflow) Apply(s State, e Event) (State, error) {
	next := s.clone()
	if err := w.fold(&next, e); err != nil {
		return s, fmt.Errorf("apply %s: %w", e, err)
	}
	return next, nil
}

// Fold is Begin and Apply over all events, at a cost that grows with their
// number alone.
func (w *Workflow) Fold(events []Event) (State, error) {
	s := w.Begin()
	for i, e := range events {
		if err := w.fold(&s, e); err != nil {
			return State{}, fmt.Errorf("event %d, %s: %w", i+1, e, err)
		}
	}
	return s, nil
}

// String names the event for errors and logs: kind, path and pass.
func (e Event) String() string {
	if e.Path == "" {
		return string(e.Kind)
	}
	return fmt.Sprintf("%s %s@%d", e.Kind, e.Path, e.Pass)
}

// fold checks the event and changes s in place; on error s may be thrown away.
func (w *Workflow) fold(s *State, e Event) error {
	switch {
	case s.Phase != Fresh && s.Phase != Active && s.Phase != Over:
		return fmt.Errorf("a state comes from Begin; this one has phase %q", s.Phase)
	case s.Phase == Over:
		return fmt.Errorf("the run has ended (%s)", s.Finish.Status)
	case (e.Kind == Started) != (s.Phase == Fresh) && e.Kind != Cancelled:
		return fmt.Errorf("the run is %s", s.Phase)
	}
	switch e.Kind {
	case Started:
		s.Phase = Active
		return nil
	case Cancelled:
		s.Phase, s.Finish = Over, &Finish{Status: RunCancelled, Error: e.Error}
		return nil
	case Finished:
		return w.foldFinished(s, e)
	case Migrated:
		return errors.New("it leads to another version: FoldMoves follows it")
	}
	return w.foldStep(s, e)
}

// foldStep checks an event of a step against the law, then records it.
func (w *Workflow) foldStep(s *State, e Event) error {
	where, ok := legal[e.Kind]
	if !ok {
		return fmt.Errorf("there is no event kind %q", e.Kind)
	}
	step, ok := w.Step(e.Path)
	if !ok {
		return fmt.Errorf("there is no step %q", e.Path)
	}
	st, sit := s.Step(e.Path), w.situation(*s, step)
	if !slices.Contains(where[sit], step.Kind) {
		return fmt.Errorf("the %s step is %s (%s)", step.Kind, sit, st.Status)
	}
	want := st.Pass
	if sit == ready {
		want++
	}
	if e.Pass != want {
		return fmt.Errorf("the event is of pass %d, the step at pass %d", e.Pass, want)
	}
	return w.record(s, step, st, e)
}

// situation tells where a step stands.
func (w *Workflow) situation(s State, step *Step) situation {
	st := s.Step(step.Path)
	switch {
	case st.Left:
		return left
	case !slices.Contains(w.front(s), step):
		return later
	case st.Status == Waiting:
		return open
	case st.Status == Completed:
		return turning
	case st.Status == Failed:
		return stopped
	}
	return ready
}

// record writes a legal event into the state.
func (w *Workflow) record(s *State, step *Step, st StepState, e Event) error {
	var err error
	switch e.Kind {
	case StepCompleted, EffectConfirmed, AskAnswered:
		st, err = completed(step, st, e)
	case ApproveDone:
		return decided(s, step, st, e)
	case SleepDone:
		st.Status, st.Left = Completed, step.then.Do == DoNext
	case StepSkipped:
		if !step.Optional() {
			return fmt.Errorf("the step has no `when`")
		}
		st = StepState{Status: Skipped, Pass: e.Pass, Left: true, Reads: st.Reads}
	case StepFailed, ActionDenied, ActionExpired, EffectRefused, EffectAbandoned:
		st, err = failed(st, e)
	case ActionRejected:
		return rejected(s, step, st, e)
	case ActionProposed, ApproveOpened, BranchesOpened:
		st = StepState{Status: Waiting, Pass: e.Pass}
	case AskOpened:
		if (step.AnswerWithin > 0) == e.Until.IsZero() {
			return fmt.Errorf("the event's until does not go with answer_within %s", step.AnswerWithin)
		}
		st = StepState{Status: Waiting, Pass: e.Pass, Until: e.Until}
	case AskExpired:
		if st.Until.IsZero() {
			return fmt.Errorf("the question has no deadline")
		}
		st, err = failed(st, e)
	case ActionRevised:
	case SleepSet:
		if e.Until.IsZero() {
			return fmt.Errorf("the event has no until")
		}
		st = StepState{Status: Waiting, Pass: e.Pass, Until: e.Until}
	case StepRetried:
		if do := w.turn(*s, step, st).do; do != DoAsk {
			return fmt.Errorf("the step does not wait for a person (%s)", do)
		}
		st = StepState{Status: Pending, Pass: st.Pass}
	case StepRefreshed:
		return w.refresh(s, step, st)
	case Goto:
		return w.jump(s, step, st, e)
	}
	if err != nil {
		return err
	}
	s.Steps[step.Path] = st
	return nil
}

func completed(step *Step, st StepState, e Event) (StepState, error) {
	switch {
	case !json.Valid(e.Output):
		return st, fmt.Errorf("the event has no output")
	case step.FreshFor > 0 && e.At.IsZero():
		return st, fmt.Errorf("the event has no time, which fresh_for needs")
	}
	return StepState{Status: Completed, Pass: e.Pass, Left: step.then.Do == DoNext,
		Output: true, Digest: digest(e.Output), At: e.At, Reads: st.Reads}, nil
}

// outcomes are those of the events that end a step badly.
var outcomes = map[EventKind]string{StepFailed: WhyError, ActionDenied: WhyDenied, ActionExpired: WhyExpired, AskExpired: WhyExpired,
	EffectRefused: WhyRefused, EffectAbandoned: WhyAbandoned}

// reasons stand in where the event brings no error of its own.
var reasons = map[EventKind]Failure{
	ActionDenied:    {Class: Denied, Code: "denied", Message: "The policy does not allow this."},
	ActionExpired:   {Class: Denied, Code: "expired", Message: "The time to decide or to execute passed."},
	AskExpired:      {Class: Denied, Code: "expired", Message: "The time to answer passed."},
	EffectRefused:   {Class: Refused, Code: "refused", Message: "The target refused. Nothing was done."},
	EffectAbandoned: {Class: Unknown, Code: "abandoned", Message: "A person gave the effect up."},
}

func failed(st StepState, e Event) (StepState, error) {
	fault := e.Error
	if fault == nil {
		reason, ok := reasons[e.Kind]
		if !ok {
			return st, fmt.Errorf("the event has no error")
		}
		fault = &reason
	}
	if !slices.Contains(Classes, fault.Class) {
		return st, fmt.Errorf("there is no error class %q", fault.Class)
	}
	return StepState{Status: Failed, Pass: e.Pass, Outcome: outcomes[e.Kind], Error: fault, Reads: st.Reads}, nil
}

// decided records the verdict on a document. It is the step's output either way.
func decided(s *State, step *Step, st StepState, e Event) error {
	v, err := verdict(e.Output)
	if err != nil {
		return err
	}
	if v.Verdict == Reject {
		if err := rejected(s, step, st, e); err != nil {
			return err
		}
		st = s.Steps[step.Path]
	} else {
		st = StepState{Status: Completed, Pass: e.Pass, Left: step.then.Do == DoNext}
	}
	st.Output, st.Digest, st.At = true, digest(e.Output), e.At
	s.Steps[step.Path] = st
	return nil
}

// rejected records a person's no and keeps it as the run's feedback.
func rejected(s *State, step *Step, st StepState, e Event) error {
	v, err := verdict(e.Output)
	if err != nil {
		return err
	}
	if v.Verdict != Reject {
		return fmt.Errorf("the verdict is %q", v.Verdict)
	}
	message := "Rejected by " + v.By + "."
	if v.Comment != "" {
		message = "Rejected by " + v.By + ": " + v.Comment
	}
	s.Steps[step.Path] = StepState{Status: Failed, Pass: st.Pass, Outcome: WhyRejected,
		Error: &Failure{Class: Denied, Code: "rejected", Message: message}}
	s.Feedback = &Feedback{Path: step.Path, Pass: st.Pass, By: v.By, Comment: v.Comment}
	return nil
}

func verdict(output json.RawMessage) (Verdict, error) {
	var v Verdict
	if err := json.Unmarshal(output, &v); err != nil {
		return v, fmt.Errorf("the output is no verdict: %w", err)
	}
	if v.Verdict != Approve && v.Verdict != Reject {
		return v, fmt.Errorf("the verdict is %q; it must be %s or %s", v.Verdict, Approve, Reject)
	}
	return v, nil
}

// foldFinished checks that the run may end, and in this way.
func (w *Workflow) foldFinished(s *State, e Event) error {
	var f Finish
	if err := json.Unmarshal(e.Data, &f); err != nil {
		return fmt.Errorf("the data is no finish: %w", err)
	}
	t, ok := w.ending(*s)
	if !ok {
		return fmt.Errorf("the run has not come to an end")
	}
	// An output template that cannot be evaluated turns completed into failed.
	if f.Status != t.status && !(t.status == RunCompleted && f.Status == RunFailed) {
		return fmt.Errorf("the run ends %s, not %q", t.status, f.Status)
	}
	if f.Status != RunCompleted && e.Error == nil {
		return fmt.Errorf("the event has no error")
	}
	f.Output, f.Error = e.Output, e.Error
	s.Phase, s.Finish = Over, &f
	return nil
}

// ending tells how the run ends now, if it does. When several branches have
// come to an end by rule, the worst end is the run's; of equal ones the first
// in the definition.
func (w *Workflow) ending(s State) (turn, bool) {
	front := w.front(s)
	if len(front) == 0 {
		return turn{do: DoEnd, status: RunCompleted}, true
	}
	var end turn
	for _, step := range front {
		if sit := w.situation(s, step); sit == turning || sit == stopped {
			if t := w.turn(s, step, s.Step(step.Path)); t.do == DoEnd && badness[t.status] > badness[end.status] {
				end = t
			}
		}
	}
	return end, end.status != ""
}

// badness orders the ends.
var badness = map[string]int{RunCompleted: 1, RunRejected: 2, RunExpired: 3, RunFailed: 4}
