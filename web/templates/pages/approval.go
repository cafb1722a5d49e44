package pages

import (
	"countersign/web/templates/layout"
	"countersign/web/templates/parts"
)

// ApprovalView is one approval request, before, while and after it is decided
// and carried out. All that is shown as fact must come from the stored
// subject.
type ApprovalView struct {
	Page  layout.Page
	Queue parts.Queue // the list it was opened from, Current set on its row; empty Title: none
	Back  parts.Link  // to that list

	ID  string
	URL string // of this page without query
	// Along goes with the form that arms: the list the page was opened from.
	Along []parts.Hidden

	// 1. The strip.
	Status    parts.Status
	Revision  int
	Revisions []Revision    // all of them, oldest first; more than one to be shown
	Clocks    []parts.Clock // decide by, then start by ("1 h after approval" as Absolute when not yet known)

	// Banner says what happened meanwhile: a second decision, a stale page, a
	// change since approval. With it Draft keeps what was typed and Diff what
	// changed between the revision that was seen and this one.
	Banner *parts.Notice
	Draft  string        // untrusted
	Diff   *parts.Values // of the new against the seen revision

	// 2. The action.
	Document bool       // a document to be approved, not an action
	Sentence string     // computed by the system: "Refund 48.00 EUR on order 8841"; untrusted
	Tool     parts.Link // "shop.refund 1", to its definition
	Target   string     // untrusted
	Who      string     // who asks: "billing-agent"; untrusted
	OnBehalf string     // may be empty; untrusted
	Unbound  bool       // OnBehalf is only what the caller said
	Run      parts.Link // "refund 71"
	Step     string     // "refund, pass 2"
	Asked    parts.Time
	Attempts string // "third request with nearly these parameters"; may be empty

	// 3. What follows.
	Risk         string // low, medium, high, critical
	RiskWhy      string // may be empty
	Impact       string // the tool author's words; untrusted
	Reversible   string // whether it can be undone, as the tool declares; empty: it is no action
	Irreversible bool
	Checks       []Check // precondition and pin

	// 4. Measured effect.
	Preview *Preview // nil: the tool has none

	// 5. Parameters (of a document: the document), and the frozen request.
	Params  parts.Values
	Request *parts.JSON // the request as it will be sent, secrets by name

	// 6. Why.
	Reason       string // untrusted, plain text
	ReasonAuthor string // "planner-bot"; untrusted

	// 7. Policy.
	Policy Policy

	// 8. Digest.
	Digest     string
	ParamsHash string
	Verify     string // the command that verifies it
	SubjectURL string // GET gives the subject's exact bytes

	// 9. Act. Execution is set once it was decided to carry it out.
	Reconsider *Reconsider
	Act        *Act // nil when nothing can be decided any more
	Execution  *Execution
	Ended      *Ended // rejected, expired, superseded, withdrawn, denied, blocked

	// 10. Aside.
	Flow     []parts.Step
	Timeline []parts.Moment
	Comment  *CommentForm // nil: comments are not taken
}

// Revision is one revision of the request.
type Revision struct {
	Number  int
	URL     string
	Note    string // "edited by Ana Ruiz: amount", "changed since you approved"
	Current bool   // the one that is shown
	Latest  bool
}

// Check is what was found when the object was looked at.
type Check struct {
	Text string // "order 8841 is paid, 120.00 EUR refundable"; untrusted
	Tone string // good, bad, warn
	At   parts.Time
}

// Preview is what the target said would happen.
type Preview struct {
	Failed string // why it failed: shown as "effect unknown: …"; untrusted
	Values parts.Values
	At     parts.Time
}

// Policy says why these people are asked.
type Policy struct {
	Name    parts.Link // "default 3", to its definition
	Rule    string     // "refunds"
	NoRule  bool       // no rule matched: what Groups say applies anyway
	Faulty  bool       // a rule could not be evaluated: the same
	Groups  []Group
	Others  []Rule   // the other rules, in order, and why they did not apply
	Can     []string // who may decide now; untrusted
	Out     []Excluded
	DeadEnd string // "needs 2 of finance; only Ana can": nobody can complete it as things are
}

// Group is one group that must reach its count.
type Group struct {
	Name string
	Need int
	Have int
	By   []string // who filled the places; untrusted
}

// Rule is one rule of the trace.
type Rule struct {
	Name string
	Why  string // "params.amount <= 2000 was false"
}

// Excluded is somebody with the role who may not decide.
type Excluded struct {
	Name string // untrusted
	Why  string // "asked for it"
}

// Reconsider is what this person may change about a request that waits: their
// own vote, and, as an operator, the time to decide. An empty URL is not offered.
//
//	POST Retract: reason
//	POST Extend: hours, reason
type Reconsider struct {
	Retract string
	Extend  string
	Open    string // "retract" or "extend": the form that came back
	Reason  string // as typed; untrusted
	Error   string // beside the reason
}

// Act is what this person may do now. Every form carries Digest, so that a
// decision is about the page it was made on.
//
//	POST Decide: verdict=approve|reject, digest, comment, preset, password (Reauthenticate)
//	POST Revoke: digest, reason
type Act struct {
	May    bool
	WhyNot string   // a sentence, when not May: "You asked for this, and the policy wants somebody else."
	WhoCan []string // untrusted

	Digest string
	// Scope says exactly what approving decides: "Approves revision 2 of this
	// request, and nothing else."
	Scope   string
	Approve string // "Approve refund"
	Reject  string // "Reject refund"

	// Armed is set by ?arm=<digest> when that is still the digest: the page
	// then shows everything unfolded and the confirm step.
	Armed          bool
	Disarm         string
	Decide         string // POST URL
	Edit           string // GET URL of the edit page
	Reauthenticate bool
	Presets        []string // reasons for rejecting
	Reason         string   // as typed before an error; untrusted
	ReasonError    string
	PasswordError  string
}

// Execution is what became of an approved action.
type Execution struct {
	Status  parts.Status
	Title   string // "Approved, waiting to start", "Confirmed", "Nobody knows yet whether it happened"
	Text    string
	Stages  []parts.Step // decided, waiting to start, sent, outcome
	Facts   []parts.Fact // effect id, idempotency key, attempts, sent at
	Receipt *Receipt
	Next    *parts.Link // for unknown: to the page that resolves it

	Revoke      string // POST URL; empty: too late or not allowed
	RevokeNote  string // "Not started yet: you can still take it back.", or why it is too late
	RevokeError string
	Digest      string
	ReceiptURL  string // GET: the receipt file
}

// Receipt is what the outside answered.
type Receipt struct {
	Facts      []parts.Fact // external id, status, when
	Body       *parts.JSON
	Incomplete bool
}

// Ended says how a request ended without being carried out, or what stops it.
type Ended struct {
	Status parts.Status
	Title  string // "Rejected by Ana Ruiz"
	Text   string // what that means for the run; what to do next
	Reason string // the person's words; untrusted
	Facts  []parts.Fact
	Next   *parts.Link
}

// CommentForm takes a remark. POST Action: comment.
type CommentForm struct {
	Action string
	Value  string // as typed before an error; untrusted
	Error  string
}

// EditView changes the editable fields of a revision. POST Action: digest,
// one field per Pointer, comment, do=check|save. After a check that found no
// fault Outcome is set and the page offers to save.
type EditView struct {
	Page     layout.Page
	Back     parts.Link
	Action   string
	Sentence string // of the revision as it is; untrusted
	Risk     string
	Digest   string
	Revision int
	Fields   []parts.Field
	Fixed    parts.Values // what cannot be changed
	Comment  parts.Field
	Errors   *parts.Notice
	Outcome  *EditOutcome
}

// EditOutcome is what saving would make.
type EditOutcome struct {
	Sentence string       // of the new revision; untrusted
	Diff     parts.Values // new against old
	Digest   string       // of the new parameters
	Policy   Policy       // what the policy says of it
	Notes    []string     // "The approval of Ben Okafor no longer counts."
	Save     string       // "Save as revision 3"
}
