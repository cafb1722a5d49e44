package engine

import (
	"context"
	"encoding/json"
	"time"

	"countersign/internal/id"
	"countersign/internal/store"
	"countersign/internal/tools"
	"countersign/internal/workflow"
)

// Gate says whether an action may be carried out. Its methods run inside the
// engine's transactions: they write with the given one and never open one,
// and they never reach the network.
type Gate interface {
	// Propose makes the request and rules on it. An action whose Proposal
	// names what was rejected before in the run may be answered "rejected"
	// at once.
	Propose(ctx context.Context, tx *store.Tx, p Proposal) (Ruling, error)
	// Ruling tells where the request stands.
	Ruling(ctx context.Context, q store.Querier, request id.Approval) (Ruling, error)
	// Admit decides, in the transaction that writes `sent` (or, for a
	// document, that records approve_done), whether it may start now: the
	// subject byte for byte, the decisions and their audit entries, the
	// present policy and people, both deadlines, and seen against what was
	// approved, the pin included. With verdict "renewed" it has already
	// opened the new revision in this transaction.
	Admit(ctx context.Context, tx *store.Tx, request id.Approval, seen Facts) (Admission, error)
	// Renew opens a new revision because the facts changed after approval.
	Renew(ctx context.Context, tx *store.Tx, request id.Approval, seen Facts, why string) (Ruling, error)
	// Withdraw closes a request that nobody needs to decide any more. One
	// that is closed already stays as it is.
	Withdraw(ctx context.Context, tx *store.Tx, request id.Approval, why string, by Actor) error
	// Settled tells the request how its effect ended: one of the final
	// effect statuses, or not_done and unknown on the way there.
	Settled(ctx context.Context, tx *store.Tx, request id.Approval, outcome string) error
}

// Expirer is what a Gate may also be: the engine then closes a request whose
// decide-by has passed when it meets one, instead of waiting for somebody to.
type Expirer interface {
	Expire(ctx context.Context, tx *store.Tx, request id.Approval) (Ruling, error)
}

// Recorder keeps the audit record. It runs inside the engine's transactions
// and marks them as audited.
type Recorder interface {
	Record(ctx context.Context, tx *store.Tx, r Record) error
}

// Library finds the definitions a run was started with, by digest. One that
// is gone is an error that wraps store.ErrNotFound or a not_found problem.
type Library interface {
	Workflow(ctx context.Context, q store.Querier, tenant, digest string) (*workflow.Workflow, error)
	Tool(ctx context.Context, q store.Querier, tenant, digest string) (*tools.Tool, error)
}

// World is the outside; *tools.World is the real one.
type World interface {
	Call(ctx context.Context, t *tools.Tool, f tools.Frozen, s tools.Sending) tools.Outcome
	Send(ctx context.Context, t *tools.Tool, f tools.Frozen, s tools.Sending) tools.Outcome
	Query(ctx context.Context, t *tools.Tool, f tools.Frozen, s tools.Sending) tools.Answer
	StillRunning(effect string) (bool, error)
	Preview(ctx context.Context, t *tools.Tool, s tools.Sending) tools.Reading
	Precondition(ctx context.Context, t *tools.Tool, s tools.Sending) tools.Reading
}

var _ World = (*tools.World)(nil)

// Actor is who does something.
type Actor struct {
	Kind    string `json:"kind"` // person, machine, engine
	ID      string `json:"id"`
	Name    string `json:"name"`
	How     string `json:"how,omitempty"`     // how they proved who they are
	Channel string `json:"channel,omitempty"` // browser, api, command line, engine
}

// The kinds of actors that the engine tells apart.
const (
	ActorPerson = "person"
	ActorEngine = "engine"
)

// The kinds of proposals.
const (
	ProposeAction   = "action"
	ProposeDocument = "document"
)

// Proposal is everything a subject is made of.
type Proposal struct {
	Kind   string // ProposeAction or ProposeDocument
	Tenant string
	Run    id.Run
	Path   string
	Pass   int
	Action id.Action // empty for a document

	Workflow        string
	WorkflowVersion int
	WorkflowDigest  string
	Outputs         map[string]string // path to digest of the outputs it was built from

	Model, PromptVersion, AgentVersion string

	Tool    *tools.Tool
	Params  json.RawMessage
	Request tools.Frozen
	Key     string

	Summary, Target, Impact string // facts, computed from the tool
	Reason                  string // the agent's words
	Title                   string // of a document
	Document                json.RawMessage
	Preview, Precondition   *tools.Reading // nil where the tool has none

	Initiator, InitiatorName, OnBehalfOf string

	RunVersion  int64
	RequestedAt time.Time
	Replaces    id.Approval // the withdrawn request of an earlier pass that went stale; may be empty
}

// The statuses of a ruling.
const (
	Allowed   = "allowed"
	Pending   = "pending"
	Denied    = "denied"
	Approved  = "approved"
	Rejected  = "rejected"
	Expired   = "expired"
	Withdrawn = "withdrawn"
)

// Ruling is where a request stands.
type Ruling struct {
	Request   id.Approval
	Revision  int
	Status    string
	Digest    string // of the revision's subject
	Comment   string
	By        string
	DecideBy  time.Time
	ExecuteBy time.Time
	Params    json.RawMessage // final, after edits; empty: those proposed
	Edited    bool
}

// Facts are what was read from the target right before sending.
type Facts struct {
	Preview, Precondition *tools.Reading
	// Resend means that the same key is sent again to find out what became of
	// it. The precondition is not read then, because the effect itself may
	// have changed it; everything else is checked.
	Resend bool
}

// The verdicts of an admission.
const (
	VerdictGo      = "go"
	VerdictExpired = "expired"
	VerdictDenied  = "denied"
	VerdictRenewed = "renewed" // a new revision waits for a decision
	VerdictRevoked = "revoked" // the same, because somebody took the approval back
	VerdictBlocked = "blocked" // something does not add up: nothing is sent, a person looks
)

// Admission is the answer right before sending. With verdict "go" the request
// is built from Request alone: the frozen bytes inside the stored subject.
type Admission struct {
	Verdict    string
	Why        string
	Subject    json.RawMessage
	Digest     string
	Params     json.RawMessage
	Request    tools.Frozen
	Key        string
	Pin        json.RawMessage // of the approved precondition; empty: the one just seen, which Admit compared
	AuditEntry string
	By         string // who decided, for a document's verdict
	Comment    string
}

// Record is one thing to be kept for ever.
type Record struct {
	Tenant  string
	Actor   Actor
	Action  string // run.start, run.resume, effect.sent, …
	Subject string // id of what it is about
	Run     id.Run
	Digest  string
	Outcome string
	Payload any
}
