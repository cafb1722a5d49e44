package approvals

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"countersign/internal/canon"
	"countersign/internal/id"
	"countersign/internal/problem"
	"countersign/internal/store"
)

// SubjectType is the format of subject documents.
const SubjectType = "countersign.subject/1"

// The kinds of subjects.
const (
	KindAction   = "action"
	KindDocument = "document"
)

// SubjectBytesMax bounds a subject: it is stored once per revision and read
// again at every decision.
const SubjectBytesMax = 4 << 20

// Subject is the one document a revision stores: all the executor will use
// and all the approver is shown. Its canonical bytes give the digest that
// decisions carry. It is never changed; other content is another revision.
//
// A sensitive value stands in it, as everywhere, as its commitment
// (sealed.Commitment): the bytes can be kept, shown and handed out, and the
// digest outlives the value. Sensitive says which parameters the tool declares
// to be so.
type Subject struct {
	Type       string      `json:"type"`
	Kind       string      `json:"kind"`
	Tenant     string      `json:"tenant"`
	ID         id.Approval `json:"id"`
	Revision   int         `json:"revision"`
	Nonce      string      `json:"nonce"`
	Supersedes string      `json:"supersedes,omitzero"` // digest of the revision before
	Why        string      `json:"why,omitzero"`        // why there is a new revision
	Editors    []Party     `json:"editors,omitzero"`    // people who changed what was proposed

	Run    id.Run    `json:"run"`
	Path   string    `json:"path"`
	Pass   int       `json:"pass"`
	Action id.Action `json:"action,omitzero"`

	Tool          string          `json:"tool,omitzero"`
	ToolVersion   int             `json:"tool_version,omitzero"`
	ToolDigest    string          `json:"tool_digest,omitzero"`
	Risk          string          `json:"risk,omitzero"`
	Target        string          `json:"target,omitzero"`
	Params        json.RawMessage `json:"params,omitzero"`
	ParamsHash    string          `json:"params_hash,omitzero"`
	FrozenRequest json.RawMessage `json:"request,omitzero"`
	RequestDigest string          `json:"request_digest,omitzero"`
	Key           string          `json:"idempotency_key,omitzero"`
	Editable      []string        `json:"editable,omitzero"`
	Sensitive     []string        `json:"sensitive,omitzero"`

	Title    string          `json:"title,omitzero"`
	Document json.RawMessage `json:"document,omitzero"`

	Plan Plan `json:"plan"`

	Initiator     id.Person   `json:"initiator"`
	InitiatorName string      `json:"initiator_name"`
	OnBehalfOf    string      `json:"on_behalf_of,omitzero"`
	Principals    []id.Person `json:"principals,omitzero"` // who count as initiators beside the initiator

	Reason       string   `json:"reason,omitzero"` // the proposer's words
	Summary      string   `json:"summary,omitzero"`
	Impact       string   `json:"impact,omitzero"`
	Preview      *Reading `json:"preview,omitzero"`
	Precondition *Reading `json:"precondition,omitzero"`

	Policy Ruling `json:"policy"`

	DecideBy        string `json:"decide_by,omitzero"`  // RFC 3339; extensions are stored apart
	ExecuteBy       string `json:"execute_by,omitzero"` // of what the policy allowed; otherwise it counts from the approval
	ExecuteWithinUs int64  `json:"execute_within_us"`
	RunVersion      int64  `json:"run_version"`
	RequestedAt     string `json:"requested_at"`
}

// Plan is what the proposal was built from.
type Plan struct {
	Workflow        string            `json:"workflow"`
	WorkflowVersion int               `json:"workflow_version"`
	WorkflowDigest  string            `json:"workflow_digest"`
	Outputs         map[string]string `json:"outputs,omitzero"` // step path to digest of its output
	Model           string            `json:"model,omitzero"`
	PromptVersion   string            `json:"prompt_version,omitzero"`
	AgentVersion    string            `json:"agent_version,omitzero"`
}

// Ruling is the policy's verdict as a subject keeps it.
type Ruling struct {
	Name               string      `json:"name,omitzero"`
	Version            int         `json:"version,omitzero"`
	Digest             string      `json:"digest,omitzero"`
	Effect             Effect      `json:"effect"`
	Rule               string      `json:"rule"`
	Why                string      `json:"why,omitzero"`
	Groups             []Group     `json:"groups,omitzero"`
	InitiatorMayDecide bool        `json:"initiator_may_decide,omitzero"`
	EditorMayApprove   *bool       `json:"editor_may_approve,omitzero"`
	Reauthenticate     bool        `json:"reauthenticate,omitzero"`
	Trace              []RuleTrace `json:"trace,omitzero"`
}

func rulingOf(v Verdict) Ruling {
	return Ruling{Name: v.Policy, Version: v.PolicyVersion, Digest: v.PolicyDigest, Effect: v.Effect, Rule: v.Rule, Why: v.Why,
		Groups: v.Groups, InitiatorMayDecide: v.InitiatorMayDecide, EditorMayApprove: v.EditorMayApprove,
		Reauthenticate: v.Reauthenticate, Trace: v.Trace}
}

// Reading is what was read from the target: a preview, or a precondition with
// its pin.
type Reading struct {
	OK    bool            `json:"ok"`
	Met   bool            `json:"met"`
	Value json.RawMessage `json:"value,omitzero"`
	Pin   json.RawMessage `json:"pin,omitzero"`
	Error string          `json:"error,omitzero"`
	At    time.Time       `json:"at"`
}

// stampForm is how times are written in a subject.
const stampForm = "2006-01-02T15:04:05.000000Z07:00"

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(stampForm)
}

func unstamp(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	return time.Parse(stampForm, s)
}

// seal fills in what follows from the rest and returns the canonical bytes
// with their digest.
func (s *Subject) seal() (json.RawMessage, string, error) {
	if s.Kind == KindDocument {
		s.ParamsHash = canon.Digest(s.Document)
	} else {
		s.ParamsHash = canon.Digest(s.Params)
		s.RequestDigest = canon.Digest(s.FrozenRequest)
	}
	raw, err := canon.Marshal(s)
	if err != nil {
		return nil, "", fmt.Errorf("make subject: %w", err)
	}
	if len(raw) > SubjectBytesMax {
		return nil, "", problem.New(problem.TooLarge, "subject_too_large",
			"What is to be approved is %d bytes long; at most %d can be put before a person. Pass large content as a file.", len(raw), SubjectBytesMax)
	}
	return raw, canon.Digest(raw), nil
}

// parseSubject reads stored bytes as strictly as anything from outside.
func parseSubject(raw []byte) (Subject, error) {
	var s Subject
	err := canon.Decode(raw, canon.Limits{Bytes: SubjectBytesMax, Depth: 1000, Keys: 1_000_000}, &s)
	if err == nil && s.Type != SubjectType {
		err = fmt.Errorf("this program reads %s, not %q", SubjectType, s.Type)
	}
	if err != nil {
		return Subject{}, fmt.Errorf("read subject: %w", err)
	}
	return s, nil
}

// law is the part of a subject that says who may decide it.
func (s Subject) law() law {
	l := law{Initiators: append([]id.Person{s.Initiator}, s.Principals...), Groups: s.Policy.Groups,
		InitiatorMayDecide: s.Policy.InitiatorMayDecide, EditorMayApprove: s.Policy.EditorMayApprove}
	if id.Valid("usr_", s.OnBehalfOf) {
		l.Initiators = append(l.Initiators, id.Person(s.OnBehalfOf))
	}
	for _, e := range s.Editors {
		l.Editors = append(l.Editors, e.ID)
	}
	return l
}

// newNonce makes two subjects of equal content differ.
func newNonce() string {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		panic("approvals: the system has no randomness: " + err.Error())
	}
	return hex.EncodeToString(b[:])
}

// stored is a time as a nullable column.
func stored(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return store.Micros(t)
}
