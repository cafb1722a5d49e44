package workflow

import (
	"encoding/json"
	"time"
)

// TaskKind names what the driver has to do.
type TaskKind string

// The tasks.
const (
	TaskCall    TaskKind = "call"    // call the read tool, then record step_completed or step_failed
	TaskPropose TaskKind = "propose" // freeze and propose the action, then record action_proposed or action_denied
	TaskApprove TaskKind = "approve" // present the document, then record approve_opened
	TaskAsk     TaskKind = "ask"     // put the question, then record ask_opened
	TaskSleep   TaskKind = "sleep"   // record Events (sleep_set, the first time), look again at Until
	TaskRecord  TaskKind = "record"  // record Events as they are
	TaskWait    TaskKind = "wait"    // nothing to do: Wait says for what
	TaskFinish  TaskKind = "finish"  // record Finish.Event()
)

// What a wait task waits for.
const (
	WaitRequest = "request" // an action or approve step: its request, then its effect
	WaitAnswer  = "answer"  // an ask step: ask_answered, or ask_expired at Until
	WaitPerson  = "person"  // a failed step with `on_error: ask_person`: step_retried or cancelled
)

// Task is one thing to do now. Which fields are set depends on Kind.
type Task struct {
	Kind TaskKind
	Path string
	Pass int
	Step *Step

	Params      json.RawMessage   // call, propose: the evaluated `with`, canonical
	Reason      string            // propose
	BusinessKey string            // propose: the evaluated `key`; empty: none
	Revises     int               // propose, approve: the pass whose open request this one replaces; 0: none
	Document    json.RawMessage   // approve, canonical
	Title       string            // approve
	Question    string            // ask
	Until       time.Time         // sleep; ask and wait for an answer: the deadline, if there is one
	Wait        string            // wait
	Error       *Failure          // wait for a person: what went wrong
	Events      []Event           // record, sleep
	Finish      *Finish           // finish
	Open        []string          // finish: paths of the steps of other branches that are open; see Settled
	Outputs     map[string]string // path to digest of the outputs this task was built from
}

// RunInfo is what `run` and `input` show to expressions.
type RunInfo struct {
	ID, Tenant, Key, Thread string
	Input                   any // decoded JSON
	Initiator, OnBehalfOf   string
	StartedAt               time.Time
}

// Outputs gives the recorded output of a completed step, decoded. The planner
// asks only for those that an expression names.
type Outputs func(path string, pass int) (any, error)
