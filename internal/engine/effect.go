package engine

import (
	"context"
	"encoding/json"
	"time"

	"countersign/internal/id"
	"countersign/internal/store"
)

// The statuses of an effect (DESIGN section 6).
const (
	Prepared  = "prepared"
	Sent      = "sent"
	Confirmed = "confirmed"
	Refused   = "refused"
	NotDone   = "not_done"
	Unknown   = "unknown"
	Abandoned = "abandoned"
)

// Effect is one external change and its row in the ledger.
type Effect struct {
	ID             id.Effect       `json:"id"`
	Tenant         string          `json:"tenant"`
	Action         id.Action       `json:"action"`
	Run            id.Run          `json:"run"`
	Path           string          `json:"path"`
	Pass           int             `json:"pass"`
	Tool           string          `json:"tool"`
	ToolVersion    int             `json:"tool_version"`
	ToolDigest     string          `json:"tool_digest"`
	Key            string          `json:"idempotency_key"`
	Generation     int             `json:"generation"`
	KeyExpiresAt   time.Time       `json:"key_expires_at,omitzero"`
	Status         string          `json:"status"`
	Attempts       int             `json:"attempts"`
	Approval       id.Approval     `json:"approval"`
	Digest         string          `json:"digest"` // of the subject that was admitted
	RequestDigest  string          `json:"request_digest"`
	ExternalRef    string          `json:"external_ref"`
	Receipt        json.RawMessage `json:"receipt"`
	Message        string          `json:"message"`
	SentAt         time.Time       `json:"sent_at,omitzero"`
	ResolvedAt     time.Time       `json:"resolved_at,omitzero"`
	ResolvedBy     string          `json:"resolved_by"`
	Evidence       string          `json:"evidence"`
	ReconcileAt    time.Time       `json:"reconcile_at,omitzero"`
	ReconcileCount int             `json:"reconcile_count"`
	CreatedAt      time.Time       `json:"created_at"`
	UpdatedAt      time.Time       `json:"updated_at"`
	Late           []Evidence      `json:"late,omitempty"` // filled by [Engine.Effect] only

	fence     int64
	request   json.RawMessage
	params    json.RawMessage
	pin       json.RawMessage
	firstSent time.Time
	base      string // what the key is made of, but for the generation
	again     bool   // the try under way repeats one whose outcome is unknown
}

// Evidence is something learned about an effect beside its own outcome: an
// answer that came late, what a query said, what a person stated.
type Evidence struct {
	Kind string          `json:"kind"`
	By   string          `json:"by"`
	Body json.RawMessage `json:"body"`
	At   time.Time       `json:"at"`
}

// The kinds of evidence.
const (
	EvidenceLate   = "late_answer"
	EvidenceQuery  = "query"
	EvidencePerson = "person"
)

// The outcomes a person may state of an unknown effect.
const (
	Happened        = "happened"
	DidNotSendAgain = "did_not_send_again"
	DidNotStop      = "did_not_stop"
	GiveUp          = "give_up"
)

// Outcomes lists them.
var Outcomes = []string{Happened, DidNotSendAgain, DidNotStop, GiveUp}

// Resolution is what a person states of an unknown effect.
type Resolution struct {
	Outcome  string          // Happened, DidNotSendAgain, DidNotStop, GiveUp
	Evidence string          // how they know; needed
	Receipt  json.RawMessage // with Happened: becomes the step's output; may be empty

	// Agree, unless nil, is asked in the transaction, once nothing else stands
	// against it. It says whether the effect moves now; what it wrote is kept
	// where it does not, and nothing is on an error.
	Agree func(context.Context, *store.Tx, Effect) (moves bool, err error)
}
