package desk

import (
	"encoding/json"
	"time"

	"countersign/internal/engine"
)

// Page is one page of a list; Next is the cursor of the following one, empty
// at the end.
type Page[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"`
}

// Party names who did or asked for something.
type Party struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Group is one group of a policy's verdict and how far it is.
type Group struct {
	Name string `json:"name"`
	Need int    `json:"need"`
	Have int    `json:"have"`
}

// Eligible says who may decide a request and why the caller may or may not.
type Eligible struct {
	You bool    `json:"you"`
	Why string  `json:"why,omitempty"` // why not, in a sentence; empty when You
	Can []Party `json:"can"`
	// Excluded says who has a role but may not decide, and why.
	Excluded []Excluded `json:"excluded"`
	DeadEnd  string     `json:"dead_end,omitempty"` // set when nobody can complete it as things are
}

// Excluded is one person who would be eligible but for a reason.
type Excluded struct {
	Party
	Why string `json:"why"`
}

// DecisionView is one vote as the API shows it.
type DecisionView struct {
	ID            string    `json:"id"`
	Person        Party     `json:"person"`
	Verdict       string    `json:"verdict"`
	Digest        string    `json:"digest"`
	Revision      int       `json:"revision"`
	Groups        []string  `json:"groups"`
	Authority     string    `json:"authority"` // the role it was given by
	Rule          string    `json:"rule"`
	PolicyVersion int       `json:"policy_version"`
	Auth          string    `json:"auth"`
	Channel       string    `json:"channel"`
	Comment       string    `json:"comment"`
	DecidedAt     time.Time `json:"decided_at"`
	AuditEntry    string    `json:"audit_entry"`
	RetractedAt   time.Time `json:"retracted_at,omitzero"`
}

// Change is one leaf that differs between two revisions. A nil side means the
// leaf was not there.
type Change struct {
	Pointer string          `json:"pointer"`
	Old     json.RawMessage `json:"old,omitempty"`
	New     json.RawMessage `json:"new,omitempty"`
}

// RuleTrace says of one policy rule whether it applied and why.
type RuleTrace struct {
	Rule    string `json:"rule"`
	Matched bool   `json:"matched"`
	Why     string `json:"why"`
}

// Moment is one line of a request's timeline.
type Moment struct {
	At   time.Time `json:"at"`
	What string    `json:"what"`
	Who  string    `json:"who,omitempty"`
	Note string    `json:"note,omitempty"`
}

// Approval is a request with its current revision, everything the decider is
// shown.
type Approval struct {
	ID              string          `json:"id"`
	Kind            string          `json:"kind"` // action or document
	Revision        int             `json:"revision"`
	Status          string          `json:"status"`
	Digest          string          `json:"digest"`
	ParamsHash      string          `json:"params_hash"`
	Tool            string          `json:"tool"`
	ToolDigest      string          `json:"tool_digest"`
	ToolVersion     int             `json:"tool_version"`
	Target          string          `json:"target"`
	Title           string          `json:"title,omitempty"`
	Summary         string          `json:"summary"`
	Params          json.RawMessage `json:"params,omitempty"` // the sensitive ones sealed
	Document        json.RawMessage `json:"document,omitempty"`
	Request         json.RawMessage `json:"request,omitempty"` // the frozen request: secrets by name, sensitive values sealed
	Editable        []string        `json:"editable"`
	Sensitive       []string        `json:"sensitive"`
	Reason          string          `json:"reason"`
	Impact          string          `json:"impact"`
	Undo            string          `json:"undo,omitempty"` // whether it can be undone, as the tool declares
	Reversible      bool            `json:"reversible"`     // the tool says so, or names what corrects it
	Preview         json.RawMessage `json:"preview,omitempty"`
	PreviewError    string          `json:"preview_error,omitempty"`
	Precondition    string          `json:"precondition,omitempty"` // what was found, in words
	PreconditionAt  time.Time       `json:"precondition_at,omitzero"`
	PreviewAt       time.Time       `json:"preview_at,omitzero"`
	PreconditionMet bool            `json:"precondition_met"`
	Risk            string          `json:"risk"`
	Initiator       Party           `json:"initiator"`
	OnBehalfOf      string          `json:"on_behalf_of,omitempty"`
	Run             string          `json:"run"`
	Step            string          `json:"step"`
	Workflow        string          `json:"workflow"`
	Key             string          `json:"idempotency_key,omitempty"`
	Policy          string          `json:"policy"`
	PolicyVersion   int             `json:"policy_version"`
	Rule            string          `json:"rule"`
	PolicyTrace     []RuleTrace     `json:"policy_trace"`
	Groups          []Group         `json:"groups"`
	Eligible        Eligible        `json:"eligible"`
	Decisions       []DecisionView  `json:"decisions"`
	DecideBy        time.Time       `json:"decide_by,omitzero"`
	ExecuteWithin   string          `json:"execute_within,omitempty"`
	ExecuteBy       time.Time       `json:"execute_by,omitzero"`
	Supersedes      string          `json:"supersedes,omitempty"` // digest of the revision before
	Changes         []Change        `json:"changes"`              // against that revision
	Alarm           string          `json:"alarm,omitempty"`      // the stored record was changed; what follows
	Why             string          `json:"why,omitempty"`        // why there is a new revision
	Meanwhile       []string        `json:"meanwhile"`            // what changed since it was asked, and what follows
	PreviousRefusal string          `json:"previously_rejected,omitempty"`
	RunVersion      int64           `json:"run_version"`
	CreatedAt       time.Time       `json:"created_at"`
	Timeline        []Moment        `json:"timeline"`
	Effect          *engine.Effect  `json:"effect,omitempty"`
	RunStatus       string          `json:"run_status,omitempty"`
	RunReason       string          `json:"run_reason,omitempty"` // why the run is blocked
	Outcome         string          `json:"outcome,omitempty"`    // of its effect: a ledger status
	ClosedBy        string          `json:"closed_by,omitempty"`
	ClosedWhy       string          `json:"closed_why,omitempty"`
	ClosedAt        time.Time       `json:"closed_at,omitzero"`
	StartedAt       time.Time       `json:"started_at,omitzero"`
	UpdatedAt       time.Time       `json:"updated_at"`
	Subject         json.RawMessage `json:"-"`
	ParamLabels     []Label         `json:"-"` // how the leaves of the parameters are read
	PreviewLabels   []Label         `json:"-"` // how those of the preview are
}

// ActionView is the whole story of a proposed action, for the program that
// proposed it.
type ActionView struct {
	ID         string          `json:"id"`
	Status     string          `json:"status"`
	Approval   string          `json:"approval,omitempty"`
	Run        string          `json:"run"`
	ParamsHash string          `json:"params_hash,omitempty"`
	Digest     string          `json:"digest,omitempty"`
	Decision   *DecisionView   `json:"decision,omitempty"`
	Params     json.RawMessage `json:"params,omitempty"` // final, the sensitive ones sealed
	Edited     bool            `json:"edited"`
	Receipt    json.RawMessage `json:"receipt,omitempty"`
	Output     json.RawMessage `json:"output,omitempty"`
	Advice     string          `json:"advice"` // what a model should make of it
}

// Decided is the answer to a decision.
type Decided struct {
	Decision DecisionView `json:"decision"`
	Status   string       `json:"status"` // of the request afterwards
	Complete bool         `json:"complete"`
	Replayed bool         `json:"replayed"`
}
