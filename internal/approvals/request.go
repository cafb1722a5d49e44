package approvals

import (
	"encoding/json"
	"time"

	"countersign/internal/id"
)

// Item is a request as lists show it.
type Item struct {
	Tenant     string
	ID         id.Approval
	Kind       string
	Status     Status
	Revision   int
	Digest     string
	ParamsHash string // of a document: its digest

	Run      id.Run
	Path     string
	Pass     int
	Action   id.Action
	Workflow string

	Tool        string
	ToolVersion int
	ToolDigest  string
	Risk        string
	Target      string
	Title       string
	Summary     string
	Key         string

	Initiator     id.Person
	InitiatorName string
	OnBehalfOf    string

	Policy        string
	PolicyVersion int
	PolicyDigest  string
	Rule          string
	Groups        []Progress
	DeadEnd       string // "needs 2 of finance; only Ana can, Ben is the initiator"; empty: it can be completed

	RunVersion    int64
	DecideBy      time.Time // zero where nobody is asked
	ExecuteWithin time.Duration
	ExecuteBy     time.Time // zero until approved or allowed
	StartedAt     time.Time // zero until admitted for sending
	Outcome       string    // how its effect ended; empty: nothing known yet
	OutcomeAt     time.Time

	ClosedBy     string // who rejected or withdrew it; empty: time or the policy
	ClosedByName string
	ClosedWhy    string
	ClosedAt     time.Time
	CreatedAt    time.Time
	UpdatedAt    time.Time

	law           law
	votes         int
	params        json.RawMessage // the live column, which Check compares
	requestDigest string
}

// Progress is how far one group is.
type Progress struct {
	Name string
	Role string
	Need int
	Have int
}

// Request is a request with its current revision. All but where it stands
// comes from the subject.
type Request struct {
	Item
	Supersedes    string // digest of the revision before
	Why           string // why there is a new revision
	Editors       []Party
	Params        json.RawMessage
	FrozenRequest json.RawMessage
	Editable      []string
	Sensitive     []string
	Document      json.RawMessage
	Plan          Plan
	Principals    []id.Person
	Reason        string
	Impact        string
	Preview       *Reading
	Precondition  *Reading
	Ruling        Ruling // the policy's verdict, with the trace of its rules
	RequestedAt   time.Time
	Subject       json.RawMessage
	Decisions     []DecisionRecord // on the current revision, oldest first, retracted ones left out
}

// Edited reports whether a person changed what was proposed.
func (r Request) Edited() bool { return len(r.Editors) > 0 }

// DecisionRecord is one stored decision.
type DecisionRecord struct {
	ID            id.Decision
	Request       id.Approval
	Revision      int
	Digest        string
	Person        id.Person
	PersonName    string
	Verdict       string
	Groups        []string // names of the groups the person stood in
	Authority     string   // the role or group it was given by
	Rule          string
	Policy        string
	PolicyVersion int
	Auth          string // how the person proved who they are
	Channel       string
	Comment       string
	DecidedAt     time.Time
	AuditEntry    string    // empty: not linked
	RetractedAt   time.Time // zero: it stands
	RetractedWhy  string

	turn int
}

// fill takes what the subject says.
func (r *Request) fill(s Subject, raw json.RawMessage) error {
	at, err := unstamp(s.RequestedAt)
	if err != nil {
		return err
	}
	r.Supersedes, r.Why, r.Editors = s.Supersedes, s.Why, s.Editors
	r.Params, r.FrozenRequest, r.Editable, r.Sensitive, r.Document = s.Params, s.FrozenRequest, s.Editable, s.Sensitive, s.Document
	r.Plan, r.Principals, r.Reason, r.Impact = s.Plan, s.Principals, s.Reason, s.Impact
	r.Preview, r.Precondition, r.Ruling, r.RequestedAt, r.Subject = s.Preview, s.Precondition, s.Policy, at, raw
	r.Tool, r.ToolVersion, r.ToolDigest, r.Risk, r.Target = s.Tool, s.ToolVersion, s.ToolDigest, s.Risk, s.Target
	r.Title, r.Summary, r.Key = s.Title, s.Summary, s.Key
	r.Initiator, r.InitiatorName, r.OnBehalfOf = s.Initiator, s.InitiatorName, s.OnBehalfOf
	return nil
}

// progress counts the votes by the groups they were given for.
func progress(groups []Group, votes []DecisionRecord) []Progress {
	t := count(groups, recordedGroups(groups, votes))
	all := make([]Progress, len(groups))
	for i, g := range groups {
		all[i] = Progress{Name: g.Name, Role: g.Role, Need: g.Need, Have: t.have[i]}
	}
	return all
}

// recordedGroups are the groups of the approvals among votes, as they were
// recorded.
func recordedGroups(groups []Group, votes []DecisionRecord) [][]int {
	var can [][]int
	for _, v := range votes {
		if v.Verdict == VerdictApprove {
			can = append(can, named(groups, v.Groups))
		}
	}
	return can
}
