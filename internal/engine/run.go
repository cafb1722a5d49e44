package engine

import (
	"encoding/json"
	"slices"
	"time"

	"countersign/internal/id"
	"countersign/internal/workflow"
)

// The statuses of a run (DESIGN section 8).
const (
	Queued          = "queued"
	Running         = "running"
	WaitingApproval = "waiting_approval"
	WaitingInput    = "waiting_input"
	Sleeping        = "sleeping"
	Retrying        = "retrying"
	Blocked         = "blocked" // a person must act
	Completed       = "completed"
	RunRejected     = "rejected"
	RunExpired      = "expired"
	Failed          = "failed"
	Cancelled       = "cancelled"
)

// Final reports whether a run of the status has ended.
func Final(status string) bool {
	switch status {
	case Completed, RunRejected, RunExpired, Failed, Cancelled:
		return true
	}
	return false
}

// Run is one execution of one workflow version, as it stands.
type Run struct {
	ID              id.Run            `json:"id"`
	Tenant          string            `json:"tenant"`
	Key             string            `json:"key"`
	Thread          string            `json:"thread"`
	Workflow        string            `json:"workflow"`
	WorkflowVersion int               `json:"workflow_version"`
	WorkflowDigest  string            `json:"workflow_digest"`
	Status          string            `json:"status"`
	Version         int64             `json:"version"` // number of its checkpoints
	Step            string            `json:"step"`    // path where it stands
	WaitingFor      []Waiting         `json:"waiting_for"`
	Initiator       string            `json:"initiator"`
	InitiatorName   string            `json:"initiator_name"`
	OnBehalfOf      string            `json:"on_behalf_of"`
	Input           json.RawMessage   `json:"input"`
	Output          json.RawMessage   `json:"output"`
	Error           *workflow.Failure `json:"error"` // why it failed, or why it is blocked
	Versions        json.RawMessage   `json:"versions"`
	TraceID         string            `json:"trace_id"`
	Lease           Lease             `json:"lease"`
	CreatedAt       time.Time         `json:"created_at"`
	UpdatedAt       time.Time         `json:"updated_at"`
	FinishedAt      time.Time         `json:"finished_at,omitzero"`
	WakeAt          time.Time         `json:"-"` // when the engine looks at it next; zero: not by itself
	CancelReason    string            `json:"cancel_reason,omitempty"`
	RestoredAt      time.Time         `json:"restored_at,omitzero"` // it was open in a backup that was put back then

	head      string            // digest of the last checkpoint
	tools     map[string]string // tool name to digest
	epoch     int64
	crashes   int
	signals   int64
	cancelBy  Actor
	cancelled bool // a cancel was asked for
}

// Blocks reports whether the run is blocked and its question at the path with
// it: a run of which only another branch is blocked still waits for the answer.
func (r Run) Blocks(path string) bool {
	return r.Status == Blocked && !slices.ContainsFunc(r.WaitingFor, func(w Waiting) bool { return w.Kind == WaitInput && w.Path == path })
}

// Lease is the right to drive a run until an instant.
type Lease struct {
	Owner string    `json:"owner"`
	Until time.Time `json:"until,omitzero"`
	Fence int64     `json:"fence"`
}

// The kinds of waits.
const (
	WaitApproval = "approval"
	WaitInput    = "input"
	WaitTimer    = "timer"
	WaitRetry    = "retry"
	WaitPerson   = "person"
)

// Waiting says what a run waits for and what ends it.
type Waiting struct {
	Kind        string    `json:"kind"`
	Path        string    `json:"path"`
	Subject     string    `json:"subject"` // id of the request or the effect; may be empty
	Who         string    `json:"who"`     // who can act, by name: for the desk to fill in; empty: nobody needs to
	Until       time.Time `json:"until,omitzero"`
	ResumesWhen string    `json:"resumes_when"`
	NextAction  string    `json:"next_action"`
	ErrorClass  string    `json:"error_class,omitempty"`
}

// Step is one pass of one step.
type Step struct {
	Path           string            `json:"path"`
	Pass           int               `json:"pass"`
	Kind           string            `json:"kind"`
	Tool           string            `json:"tool,omitempty"`
	Status         string            `json:"status"` // pending, waiting, completed, failed, skipped, cancelled
	Attempts       int               `json:"attempts"`
	IdempotencyKey string            `json:"idempotency_key"`
	InputDigest    string            `json:"input_digest"`
	Output         json.RawMessage   `json:"output"`
	Error          *workflow.Failure `json:"error"`
	ErrorClass     string            `json:"error_class"`
	Approval       id.Approval       `json:"approval,omitempty"`
	Action         id.Action         `json:"action,omitempty"`
	StartedAt      time.Time         `json:"started_at"`
	UpdatedAt      time.Time         `json:"updated_at"`

	tries    int       // failed tries since the last progress: what the retry rule counts
	triedAt  time.Time // the first of them
	retryAt  time.Time // not before this, unless a person asks
	outputAt int64     // version of the checkpoint that holds the output; 0: none
}

// Checkpoint is one committed record of progress.
type Checkpoint struct {
	Version   int64           `json:"version"`
	Path      string          `json:"path"`
	Event     json.RawMessage `json:"event"` // without output and time
	Output    json.RawMessage `json:"output,omitempty"`
	Creator   Creator         `json:"creator"`
	Engine    string          `json:"engine"`
	Schema    int             `json:"state_schema"`
	Digest    string          `json:"digest"`
	Previous  string          `json:"previous"`
	CreatedAt time.Time       `json:"created_at"`

	eventDigest  string
	outputDigest string
}

// Creator is who made a checkpoint: a driver with its fence, or a person.
type Creator struct {
	Driver string `json:"driver,omitempty"`
	Fence  int64  `json:"fence,omitempty"`
	Person *Actor `json:"person,omitempty"`
}

// Resumed is the answer to a resume.
type Resumed struct {
	Outcome string `json:"outcome"` // resumed or blocked
	Run     Run    `json:"run"`
}

// The outcomes of a resume.
const (
	OutcomeResumed = "resumed"
	OutcomeBlocked = "blocked"
)

// Creation is a run to be made.
type Creation struct {
	Tenant        string
	Workflow      *workflow.Workflow
	Tools         map[string]string // name to digest of every tool the workflow names
	Input         json.RawMessage   // as PrepareInput returned it
	Key           string            // run key; may be empty
	Thread        string
	Initiator     string
	InitiatorName string
	OnBehalfOf    string
	Actor         Actor
	Versions      json.RawMessage // model, prompt and agent versions; may be empty
}

// Attention is something an operator must look at.
type Attention struct {
	Cause    string      `json:"cause"`
	Run      id.Run      `json:"run"`
	Path     string      `json:"path"`
	Effect   id.Effect   `json:"effect,omitempty"`
	Approval id.Approval `json:"approval,omitempty"` // the request it is about; the engine gives none
	Since    time.Time   `json:"since"`
	Blocks   string      `json:"blocks"` // what does not go on because of it
	Next     string      `json:"next"`   // the one next action
	Why      string      `json:"why"`
}

// The causes, in the order of the list.
const (
	CauseUnknown    = "outcome_unknown"
	CauseTampered   = "tampered"
	CauseRestored   = "restored"
	CauseClock      = "clock_suspect"
	CauseVersion    = "cannot_continue"
	CausePoison     = "keeps_failing"
	CausePerson     = "asks_a_person"
	CauseNotStarted = "approved_not_started"
	CauseOverdue    = "overdue"
)
