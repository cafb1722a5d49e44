package pages

import (
	"countersign/web/templates/layout"
	"countersign/web/templates/parts"
)

// RunsView is the list of runs.
type RunsView struct {
	Page   layout.Page
	Search parts.Search
	Rows   []RunRow
	Empty  *parts.Empty
	More   string
	Start  string // URL of the page that starts a run; empty: not allowed
}

// RunRow is one run.
type RunRow struct {
	ID       string
	URL      string
	Name     string // its key, or the id; untrusted
	Workflow string // "weekly-report 2"
	Status   parts.Status
	Step     string
	Waits    string // "for finance until 12:40"; untrusted
	By       string // untrusted
	Started  parts.Time
	Progress parts.Time // last checkpoint
}

// RunView is one run.
type RunView struct {
	Page     layout.Page
	ID       string
	Name     string // untrusted
	Title    string // of its workflow; untrusted; empty: it is gone
	URL      string
	Status   parts.Status
	Workflow parts.Link
	Version  int64
	Waiting  []Waiting
	Asking   []Asking
	Error    *parts.Notice // why it failed or is blocked, and what to do
	Actions  RunActions
	Map      parts.Map
	Steps    []RunStep
	Effects  []EffectRow
	Requests []RequestRow
	Points   []PointRow
	Audit    []EntryRow
	Facts    []parts.Fact // initiator, started, versions, model, trace id, lease
	Input    *parts.JSON
	Output   *parts.JSON
}

// Waiting is one thing the run waits for.
type Waiting struct {
	Title   string // "Approval of publish"
	Who     string // untrusted
	Until   parts.Time
	Resumes string // "finance has approved", which follows "Goes on when"
	Next    *parts.Link
}

// RunActions are the buttons that apply now. POST Resume: expected_version.
// POST Cancel and Correct: reason.
type RunActions struct {
	Expected   int64
	Resume     string
	ResumeNote string // "Continues at publish; the approval, 1 effect and 2 versions are checked first."
	Cancel     string
	CancelNote string
	Reason     string // as typed before an error; untrusted
	Error      string
	Correct    string
	Fixes      []Fix  // what Correct would propose, in this order, and what it cannot
	Move       *Move  // to the version in force; nil: there is none to go to
	WhyNone    string // why nothing applies: "Finished. A finished run is not started again."
}

// Move is the way of an open run to another version of its workflow.
type Move struct {
	URL     string // POST with to and expected_version
	To      int
	Kept    []string // "write, now publish": done, and stays done
	Again   []string // open: withdrawn and asked anew
	Dropped []string
	WhyNot  string // why it cannot go there as things are
}

// Fix is one effect and what would correct it.
type Fix struct {
	Did  string // "publish with kb.publish"
	With string // "kb.publish: Publish the page notes/one"; empty: nothing can
	Why  string // why nothing can; untrusted
}

// RunStep is one pass of one step.
type RunStep struct {
	Path     string
	Pass     int
	Anchor   string // id on the page: "step-publish-1"
	Title    string // untrusted
	Kind     string
	Tool     string
	Status   parts.Status
	Attempts int
	Started  parts.Time
	Took     string // "1.2 s"
	Error    string // untrusted
	Output   *parts.JSON
	Note     string // "waits until 09:00", "again in 20 s"
}

// EffectRow is one row of the ledger.
type EffectRow struct {
	ID       string
	URL      string
	Path     string
	Tool     string
	Status   parts.Status
	Key      string
	Attempts int
	Sent     parts.Time
	Receipt  string // external id; untrusted
	By       string // who resolved it; untrusted
}

// RequestRow is one approval request of the run.
type RequestRow struct {
	URL      string
	Title    string // untrusted
	Revision int
	Status   parts.Status
	Digest   string
	By       string // who decided; untrusted
	At       parts.Time
}

// PointRow is one checkpoint.
type PointRow struct {
	Version int64
	URL     string
	Event   string
	Path    string
	By      string // driver and fence, or the person
	At      parts.Time
	Digest  string
}

// CheckpointView is a run as it stood at one checkpoint.
type CheckpointView struct {
	Page     layout.Page
	Back     parts.Link
	Version  int64
	Of       int64
	Previous string // URL; empty at the first
	Next     string // URL; empty at the last
	Facts    []parts.Fact
	Event    *parts.JSON
	State    []RunStep // steps as they stood, outputs included
}

// StartView starts a run. Without Workflow it offers the choice. POST Action:
// workflow, one field per Pointer of the input, run_key, on_behalf_of.
type StartView struct {
	Page    layout.Page
	Choices []StartChoice
	Title   string // of the chosen workflow
	Action  string
	Hidden  []parts.Hidden
	Fields  []parts.Field
	Error   *parts.Notice
}

// StartChoice is one workflow that can be started.
type StartChoice struct {
	Name  string // "weekly-report 2"
	Title string
	URL   string
}
