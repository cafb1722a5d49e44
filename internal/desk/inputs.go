package desk

import (
	"encoding/json"
	"time"

	"countersign/internal/id"
)

// StartRun is what a run is started with. Version zero takes the version in
// force. Once may be empty.
type StartRun struct {
	Workflow   string
	Version    int
	Input      json.RawMessage
	Key        string // run key: the same key, workflow and input give the run that exists
	Thread     string
	OnBehalfOf string
	Once       Once
}

// ProposeAction is one action that a program proposes on its own.
type ProposeAction struct {
	Tool          string
	Params        json.RawMessage
	Reason        string
	Target        string // if given it must be what the tool computes from the parameters
	Key           string
	Thread        string
	OnBehalfOf    string
	Model         string
	PromptVersion string
	AgentVersion  string
	Metadata      json.RawMessage
	Once          Once
}

// Decide is one verdict on one digest.
type Decide struct {
	Verdict string // approve or reject
	Digest  string // of the page it was made on
	Comment string // needed to reject
}

// FieldEdit sets one editable leaf of the parameters.
type FieldEdit struct {
	Pointer string
	Value   json.RawMessage
}

// Edit changes editable fields of the revision with the digest, which makes
// the next revision.
type Edit struct {
	Digest  string
	Edits   []FieldEdit
	Comment string
}

// Resolve is a person's word on an unknown effect.
type Resolve struct {
	Outcome  string // happened, did_not_send_again, did_not_stop, give_up
	Evidence string
	Receipt  json.RawMessage
}

// Answer answers what a run asks at a step. Pass zero is the last one.
type Answer struct {
	Step  string
	Pass  int
	Value json.RawMessage
}

// Explain asks who would have to approve a call.
type Explain struct {
	Tool       string
	Params     json.RawMessage
	Workflow   string
	OnBehalfOf string
}

// RunQuery filters runs; empty fields match all.
type RunQuery struct {
	Status, Workflow, Initiator, Text string
	Since                             time.Time
	Cursor                            string
	Limit                             int
}

// ApprovalQuery filters approval requests; empty fields match all.
type ApprovalQuery struct {
	Status, Tool, Risk, Text string
	ForMe                    bool
	Run                      id.Run
	Cursor                   string
	Limit                    int
}

// EffectQuery filters effects across runs; the one status there is to ask for
// is unknown, which is what an empty one asks for, too.
type EffectQuery struct {
	Status string
	Cursor string
	Limit  int
}

// EntryQuery filters audit entries; empty fields match all.
type EntryQuery struct {
	Person, Subject, Action, Run, Text string
	Since, Until                       time.Time
	Cursor                             string
	Limit                              int
}

// Limits of what people write and lists show.
const (
	reasonCharsMax  = 2000
	commentCharsMax = 4000
	keyCharsMax     = 200
	pageMax         = 200
	pageDefault     = 50
)
