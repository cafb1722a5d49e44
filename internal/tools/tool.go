package tools

import (
	"encoding/json"
	"time"
)

// Tool is one version of one tool, compiled and ready to be called. It is
// immutable and safe for concurrent use.
type Tool struct {
	Name            string
	Version         int
	SemanticVersion int // grows only when the same business action should count as a new one
	Title           string
	Write           bool            // changes the world; otherwise safe to repeat
	Risk            string          // low, medium, high, critical
	Transport       string          // http, exec, file, smtp
	Digest          string          // of Compiled
	Compiled        json.RawMessage // canonical countersign.tool/1; Load gives the same tool back
	Editable        []string        // JSON Pointers into params that an approver may change
	Sensitive       []string        // JSON Pointers into params: sealed wherever they are stored
	SensitiveOutput []string        // the same into the output
	Reversible      *bool           // nil: the definition does not say
	ConfigNames     []string        // every config value the definition names, sorted
	SecretNames     []string        // every secret it may be given, sorted
	Timeout         time.Duration   // of one call of the tool itself

	spec spec
	code code
}

// The transports.
const (
	HTTP = "http"
	Exec = "exec"
	File = "file"
	SMTP = "smtp"
)

// Config are the operator's settings that definitions may name as
// `${config.NAME}`. They hold no secrets.
type Config map[string]string

// Frozen is a request with everything resolved but secrets and sealed values:
// canonical JSON of a [Request]. It goes into the subject that is approved,
// byte for byte.
type Frozen = json.RawMessage

// Description is what a call is about, in words computed from its parameters.
type Description struct {
	Summary string // what will be done
	Target  string // to what
	Impact  string // what follows; empty if the tool does not say
}

// How near to exactly once a write tool comes ([Tool.Honesty]).
const (
	HonestyRead        = "read"
	HonestyKey         = "key"
	HonestyQuery       = "query"
	HonestyKeyAndQuery = "key+query"
	HonestyPerson      = "none: a person decides"
)

// Compensation names the tool that corrects a confirmed call of this one.
type Compensation struct {
	Tool string
	With any // a template over params, config and result
}

// CanQuery reports whether the target can be asked what happened.
func (t *Tool) CanQuery() bool { return t.spec.Reconcile != nil || t.Write && t.Transport == File }

// CanResend reports whether sending the same key again is declared safe, and
// for how long after the first sending.
func (t *Tool) CanResend() (ttl time.Duration, ok bool) {
	if t.spec.Idempotency == nil {
		return 0, false
	}
	return t.spec.Idempotency.TTL.Duration(), true
}

// HasPrecondition reports whether something is read when asked and again
// right before sending. Every file write has one: what it replaces.
func (t *Tool) HasPrecondition() bool {
	return t.spec.Precondition != nil || t.Write && t.Transport == File
}

// HasPreview reports whether the target can show what would happen. For a
// file write it is what the file holds now.
func (t *Tool) HasPreview() bool { return t.spec.Preview != nil || t.Write && t.Transport == File }

// Compensation returns what corrects a confirmed call, if the tool says.
func (t *Tool) Compensation() (Compensation, bool) {
	c := t.spec.Compensate
	if c == nil {
		return Compensation{}, false
	}
	return Compensation{Tool: c.Tool, With: c.With}, true
}

// Honesty says how near to exactly once a write comes: whether a lost answer
// is settled by sending the same key again, by asking, by either, or only by
// a person.
func (t *Tool) Honesty() string {
	_, key := t.CanResend()
	switch {
	case !t.Write:
		return HonestyRead
	case key && t.CanQuery():
		return HonestyKeyAndQuery
	case key:
		return HonestyKey
	case t.CanQuery():
		return HonestyQuery
	}
	return HonestyPerson
}
