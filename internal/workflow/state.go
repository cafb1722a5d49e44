package workflow

import (
	"maps"
	"time"
)

// State is what the events of a run add up to. It is made by Begin and Apply
// only and is never stored; its JSON is for looking at. Nothing in it assumes
// one current step: each scope (the top level, a branch) has
// its own first step that control has not left.
type State struct {
	Phase    string               `json:"phase"` // Fresh, Active or Over
	Steps    map[string]StepState `json:"steps"` // by path; a path that is absent was never begun
	Jumps    map[string]int       `json:"jumps"` // times each edge was taken, by "from why to"
	Feedback *Feedback            `json:"feedback,omitzero"`
	Finish   *Finish              `json:"finish,omitzero"` // when Over
}

// The phases of a run.
const (
	Fresh  = "fresh"  // before started
	Active = "active" // between
	Over   = "over"   // finished or cancelled: final
)

// StepState is where one step stands.
type StepState struct {
	Status  StepStatus `json:"status"`
	Pass    int        `json:"pass"`             // number of the present or last pass; a pending step's next pass is Pass+1
	Left    bool       `json:"left"`             // control has moved on
	Outcome string     `json:"outcome,omitzero"` // of a failed step: rejected, expired, denied, refused, abandoned, error
	Error   *Failure   `json:"error,omitzero"`   // of a failed step
	Output  bool       `json:"output"`           // an output is recorded at (path, Pass)
	Digest  string     `json:"digest,omitzero"`  // of the output
	At      time.Time  `json:"at,omitzero"`      // when the output was recorded
	Until   time.Time  `json:"until,omitzero"`   // of an open sleep or question
	Jumped  string     `json:"jumped,omitzero"`  // skipped because the step of this path jumped over it
	Revises int        `json:"revises,omitzero"` // pass of a proposal that a stale read took back; the next one replaces it
	Reads   int        `json:"reads,omitzero"`   // times it was read again because it was stale
}

// StepStatus is the condition of a step, as pages and `steps.X.status` say it.
type StepStatus string

// The conditions.
const (
	Pending   StepStatus = "pending"   // not begun in this pass
	Waiting   StepStatus = "waiting"   // open: a person, an effect or a timer will say
	Completed StepStatus = "completed" // has an output
	Skipped   StepStatus = "skipped"   // `when` was false, or jumped over; its output is null
	Failed    StepStatus = "failed"    // also rejected and expired: see Outcome
)

// Feedback is the last rejection of the run, shown to expressions as
// `run.feedback` so that a step which is gone back to can do better.
type Feedback struct {
	Path    string `json:"path"`
	Pass    int    `json:"pass"`
	By      string `json:"by"`
	Comment string `json:"comment"`
}

// Step tells where the step of a path stands; a path never begun is pending.
func (s State) Step(path string) StepState {
	if st, ok := s.Steps[path]; ok {
		return st
	}
	return StepState{Status: Pending}
}

// Over reports whether the run has ended: nothing changes it any more.
func (s State) Over() bool { return s.Phase == Over }

func (s State) clone() State {
	s.Steps, s.Jumps = maps.Clone(s.Steps), maps.Clone(s.Jumps)
	return s
}
