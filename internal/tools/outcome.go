package tools

import (
	"encoding/json"
	"time"
)

// Status says what one call proved.
type Status string

// The statuses. A read ends Confirmed or Failed; a write never Failed: what
// cannot be proved is Unknown.
const (
	Confirmed Status = "confirmed" // it happened
	Refused   Status = "refused"   // it did not happen and will not
	NotDone   Status = "not_done"  // it did not happen; the same key may be sent again
	Unknown   Status = "unknown"   // nobody can say: ask, or a person decides
	Failed    Status = "failed"    // a read gave no usable answer
)

// The error classes an outcome may carry (DESIGN section 8).
const (
	ClassTransient    = "transient"
	ClassPermanent    = "permanent"
	ClassRefused      = "refused"
	ClassDenied       = "denied"
	ClassInvalid      = "invalid"
	ClassIncompatible = "incompatible"
	ClassUnknown      = "unknown"
	ClassBug          = "bug"
)

// The codes of outcomes that callers branch on.
const (
	CodePinChanged   = "pin_changed"   // what it replaces is not what was approved: revalidate
	CodeStillRunning = "still_running" // an earlier try of this effect has not ended
	CodeAddress      = "address_refused"
	CodeSecret       = "secret_missing"
	CodeSensitive    = "sensitive_unavailable" // a sealed value that is needed cannot be opened
	CodeOutput       = "output_mismatch"       // confirmed, but the output does not fit its schema
	CodeNoAnswer     = "no_answer"
)

// Outcome is what came of one call.
type Outcome struct {
	Status      Status
	Class       string          // empty when confirmed with a fitting output
	Code        string          // stable, may be empty
	Output      json.RawMessage // canonical; set when confirmed
	Receipt     Receipt
	Message     string        // one sentence for a person; secrets are masked
	RetryAfter  time.Duration // what the target asked for; 0: nothing
	ExternalRef string        // how the target calls what it did
}

// Receipt is what the outside answered, kept as evidence. Secrets that were
// echoed are masked; BodyDigest is over the bytes as they came.
type Receipt struct {
	Status      int               `json:"status"` // HTTP status or exit code; 0 for a file
	ExternalRef string            `json:"external_ref,omitzero"`
	BodyDigest  string            `json:"body_digest,omitzero"`
	Body        json.RawMessage   `json:"body,omitzero"` // at most ReceiptBytes; JSON, or text as a JSON string
	Headers     map[string]string `json:"headers,omitzero"`
	Incomplete  bool              `json:"incomplete,omitzero"` // the answer was cut, or is longer than Body shows
	At          time.Time         `json:"at"`
}

// Answer is what the target said when it was asked whether a call happened.
// Exactly one of Happened, DidNot and Unknown is true.
type Answer struct {
	Happened bool
	DidNot   bool
	Unknown  bool
	Outcome  Outcome         // Confirmed, NotDone or Unknown, with the receipt of the question
	Evidence json.RawMessage // what was asked and answered, for a person
	After    time.Time       // Unknown only: asking again before this is useless; zero: not known
}

// Reading is the result of a preview or a precondition.
type Reading struct {
	OK    bool            `json:"ok"`              // it could be read
	Met   bool            `json:"met"`             // the check holds; true where there is none
	Value json.RawMessage `json:"value,omitzero"`  // what was read, canonical
	Pin   json.RawMessage `json:"pin,omitzero"`    // must be the same right before sending
	Error string          `json:"error,omitempty"` // why not OK or not Met
	At    time.Time       `json:"at"`
}
