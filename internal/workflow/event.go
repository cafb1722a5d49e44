package workflow

import (
	"encoding/json"
	"time"
)

// EventKind names what happened. The fold in fold.go says in which situation
// each is legal.
type EventKind string

// The events. All but the run's own (started, cancelled, finished) name a step.
const (
	Started         EventKind = "started"          // the run exists; first, once
	StepCompleted   EventKind = "step_completed"   // call, set: Output is recorded; parallel: its branches have joined
	StepSkipped     EventKind = "step_skipped"     // its `when` was false
	StepFailed      EventKind = "step_failed"      // for good: the attempts are used up; Error says why
	StepRetried     EventKind = "step_retried"     // a person asks for a failed `ask_person` step once more
	StepRefreshed   EventKind = "step_refreshed"   // a read went stale: it is read again as a new pass
	ActionProposed  EventKind = "action_proposed"  // the request exists and is frozen
	ActionDenied    EventKind = "action_denied"    // by policy; also of an approve step
	ActionRejected  EventKind = "action_rejected"  // by a person; Output is a [Verdict]
	ActionExpired   EventKind = "action_expired"   // either deadline passed; also of an approve step
	ActionRevised   EventKind = "action_revised"   // a new revision; the step stays open; also of an approve step
	EffectConfirmed EventKind = "effect_confirmed" // done once; Output is the tool's
	EffectRefused   EventKind = "effect_refused"   // did not happen and will not
	EffectAbandoned EventKind = "effect_abandoned" // a person gave up finding out, or stopped it
	ApproveOpened   EventKind = "approve_opened"   // the document is presented
	ApproveDone     EventKind = "approve_done"     // Output is a [Verdict]
	AskOpened       EventKind = "ask_opened"       // the question is put; Until is its deadline, if it has one
	AskAnswered     EventKind = "ask_answered"     // Output is the answer
	AskExpired      EventKind = "ask_expired"      // nobody answered in time
	SleepSet        EventKind = "sleep_set"        // Until is fixed, once
	SleepDone       EventKind = "sleep_done"       // Until has passed
	BranchesOpened  EventKind = "branches_opened"  // control stands in each branch of a parallel step
	Goto            EventKind = "goto"             // Data is a [Jump]
	Migrated        EventKind = "migrated"         // the run goes to another version of its workflow: Data is a [Move]
	Cancelled       EventKind = "cancelled"        // from anywhere
	Finished        EventKind = "finished"         // Data is a [Finish] without output and error
)

// Kinds lists every event kind, in the order above.
var Kinds = []EventKind{Started, StepCompleted, StepSkipped, StepFailed, StepRetried, StepRefreshed,
	ActionProposed, ActionDenied, ActionRejected, ActionExpired, ActionRevised,
	EffectConfirmed, EffectRefused, EffectAbandoned, ApproveOpened, ApproveDone,
	AskOpened, AskAnswered, AskExpired, SleepSet, SleepDone, BranchesOpened, Goto, Migrated, Cancelled, Finished}

// Event is one thing that happened to a run: exactly what a checkpoint stores.
// The events of a run, in order, are all that its State is made of.
type Event struct {
	Kind    EventKind       `json:"kind"`
	Path    string          `json:"path,omitzero"`    // of the step; empty for the run's own events
	Pass    int             `json:"pass,omitzero"`    // n-th time round, from 1
	Attempt int             `json:"attempt,omitzero"` // the try that gave it, from 1; 0 where there is none
	Output  json.RawMessage `json:"output,omitzero"`  // canonical
	Error   *Failure        `json:"error,omitzero"`
	Until   time.Time       `json:"until,omitzero"` // sleep_set, ask_opened
	At      time.Time       `json:"at,omitzero"`    // when it happened; needed where fresh_for looks at the age
	Data    json.RawMessage `json:"data,omitzero"`
}

// Failure is why a step or a run failed. Class decides what follows.
type Failure struct {
	Class   string `json:"class"`
	Message string `json:"message"`
	Code    string `json:"code,omitzero"`
}

// Error is the failure in one line.
func (f *Failure) Error() string { return f.Class + ": " + f.Message }

// The classes of failures (DESIGN section 8).
const (
	Transient    = "transient" // may go away by itself; the only one that is retried
	Permanent    = "permanent"
	Refused      = "refused" // the target said no
	Denied       = "denied"  // policy or permission said no
	Invalid      = "invalid" // a value does not fit: an expression, a schema
	Incompatible = "incompatible"
	Unknown      = "unknown" // nobody can say whether it happened
	Bug          = "bug"
)

// Classes lists the failure classes, the keys an `on_error` map may have.
var Classes = []string{Transient, Permanent, Refused, Denied, Invalid, Incompatible, Unknown, Bug}

// Verdict is the output of an approve step and the Output of approve_done and
// action_rejected: who decided what, on which digest.
type Verdict struct {
	Verdict string `json:"verdict"` // Approve or Reject
	By      string `json:"by"`
	Comment string `json:"comment"`
	Digest  string `json:"digest"`
}

// The verdicts.
const (
	Approve = "approve"
	Reject  = "reject"
)

// Jump is the Data of a goto event.
type Jump struct {
	To  string `json:"to"`  // path of the target
	Why string `json:"why"` // the cause that chose the rule: then, rejected, expired, error
}

// Finish is how a run ends. Status is one of completed, rejected, expired,
// failed; a cancelled run ends by the cancelled event instead.
type Finish struct {
	Status string          `json:"status"`
	Output json.RawMessage `json:"-"` // canonical; only of a completed run
	Error  *Failure        `json:"-"`
}

// The ways a run ends.
const (
	RunCompleted = "completed"
	RunRejected  = "rejected"
	RunExpired   = "expired"
	RunFailed    = "failed"
	RunCancelled = "cancelled"
)

// Event makes the finished event that records f.
func (f Finish) Event() Event {
	return Event{Kind: Finished, Output: f.Output, Error: f.Error, Data: mustJSON(f)}
}
