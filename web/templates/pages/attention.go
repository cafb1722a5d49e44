package pages

import (
	"countersign/web/templates/layout"
	"countersign/web/templates/parts"
)

// AttentionView groups by cause what an operator must look at.
type AttentionView struct {
	Page   layout.Page
	Groups []Cause
	Empty  *parts.Empty
}

// Cause is one reason why things are stuck.
type Cause struct {
	Title string // "Outcome unknown"
	Tone  string // unknown, bad, warn, wait
	Text  string // what that means, one sentence
	Rows  []Stuck
}

// Stuck is one thing that is stuck.
type Stuck struct {
	Title  string // what: "Refund 48.00 EUR on order 8841"; untrusted
	URL    string
	Where  string // "refund 71, step refund"
	Since  parts.Time
	Blocks string     // what does not go on because of it
	Why    string     // untrusted
	Next   parts.Link // the one next action: "Find out what happened"
}

// EffectView resolves an unknown effect, or shows one that is settled. POST
// Action: outcome=happened|did_not_send_again|did_not_stop|give_up, evidence,
// receipt (JSON, with happened).
type EffectView struct {
	Page     layout.Page
	Back     parts.Link
	ID       string
	Sentence string // untrusted
	Status   parts.Status
	Notice   *parts.Notice // what is not known and why
	Facts    []parts.Fact  // tool, key and until when it protects, sent, attempts, run, approval
	Request  *parts.JSON   // the request that was sent
	// Answer is what the target says now; Ask (POST) asks it again.
	Answer     *TargetAnswer
	Ask        string
	CannotAsk  string // why the target cannot be asked: "ops.restart declares no way to ask"
	Evidence   []EvidenceRow
	Action     string // empty: settled, or not allowed
	WhyNot     string
	Choices    []Choice
	Unchosen   string      // none of them was chosen
	Text       parts.Field // evidence
	Receipt    parts.Field
	Settled    *parts.Notice // how it was settled, by whom
	TwoPersons string        // "critical: a second person must say the same"; may be empty
}

// TargetAnswer is what asking the target gave.
type TargetAnswer struct {
	Tone string // good: it happened; warn: it did not; unknown: no answer
	Text string // "The target lists one refund with this key."; untrusted
	At   parts.Time
	Body *parts.JSON
}

// EvidenceRow is something learned about an effect.
type EvidenceRow struct {
	Kind string // "late answer", "query", "statement"
	By   string // untrusted
	At   parts.Time
	Body *parts.JSON
}

// Choice is one answer to "what happened?", and exactly what follows from it.
type Choice struct {
	Value    string
	Title    string // "It happened"
	Then     string // "The step is completed with the receipt you give; nothing is sent."
	Selected bool
	Off      string // why it cannot be chosen; empty: it can
}
