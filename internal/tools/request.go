package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"countersign/internal/canon"
	"countersign/internal/problem"
	"countersign/internal/sealed"
)

// requestType names the frozen form of a request.
const requestType = "countersign.request/1"

// RequestBytesMax bounds a frozen request.
const RequestBytesMax = 10 << 20

// requestLimits are those of a frozen request, which holds its params twice.
var requestLimits = canon.Limits{Bytes: RequestBytesMax, Depth: 100, Keys: 100_000}

// Request is what a frozen request says: everything the transport will use.
// The idempotency key is not in it; KeyHeader says where an HTTP request
// carries it, a program finds it in COUNTERSIGN_IDEMPOTENCY_KEY.
type Request struct {
	Type      string `json:"type"`
	Transport string `json:"transport"`
	TimeoutMS int64  `json:"timeout_ms"`

	Method      string           `json:"method,omitzero"` // http
	URL         Parts            `json:"url,omitzero"`
	Headers     map[string]Parts `json:"headers,omitzero"`
	Body        json.RawMessage  `json:"body,omitzero"`         // sent as these bytes once secrets are in place
	BodySecrets map[string]Parts `json:"body_secrets,omitzero"` // JSON Pointer into Body → what stands there
	KeyHeader   string           `json:"key_header,omitzero"`

	Argv  []string         `json:"argv,omitzero"` // exec
	Env   map[string]Parts `json:"env,omitzero"`
	Dir   string           `json:"dir,omitzero"`
	Stdin json.RawMessage  `json:"stdin,omitzero"`

	Root    string       `json:"root,omitzero"` // file
	Path    string       `json:"path,omitzero"`
	Content *string      `json:"content,omitzero"`
	Collect *collectSpec `json:"collect,omitzero"`

	Mail *Mail `json:"mail,omitzero"` // smtp
}

// Part is a piece of text, or the name of a secret or the commitment of a
// sensitive value that takes its place.
type Part struct {
	Text   string
	Secret string
	Sealed sealed.Commitment
}

// plain reports whether the part is text.
func (p Part) plain() bool { return p.Secret == "" && p.Sealed == "" }

// Parts are text that may hold secrets and sensitive values. Its JSON is a
// string, or, where there are any, a list of strings, {"$secret": "NAME"} and
// {"$commit": "hmac-sha256:…"}.
type Parts []Part

// String shows the text with every secret named and what is sealed hidden.
func (p Parts) String() string {
	var b strings.Builder
	for _, x := range p {
		b.WriteString(x.Text)
		switch {
		case x.Secret != "":
			b.WriteString("${secret." + x.Secret + "}")
		case x.Sealed != "":
			b.WriteString(sealed.Hidden)
		}
	}
	return b.String()
}

// fill puts the secrets in place.
func (p Parts) fill(get func(name string) (string, error)) (string, error) {
	var b strings.Builder
	for _, x := range p {
		b.WriteString(x.Text)
		if x.Secret == "" {
			continue
		}
		v, err := get(x.Secret)
		if err != nil {
			return "", err
		}
		b.WriteString(v)
	}
	return b.String(), nil
}

type secretRef struct {
	Secret string `json:"$secret"`
}

// MarshalJSON writes a string or a list.
func (p Parts) MarshalJSON() ([]byte, error) {
	list, text := []any{}, true
	for _, x := range p {
		switch {
		case x.Secret != "":
			list, text = append(list, secretRef{x.Secret}), false
		case x.Sealed != "":
			list, text = append(list, x.Sealed.Leaf()), false
		default:
			list = append(list, x.Text)
		}
	}
	if text {
		return json.Marshal(p.String())
	}
	return json.Marshal(list)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (p *Parts) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		*p = Parts{{Text: text}}
		return nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(b, &list); err != nil {
		return fmt.Errorf("read parts: %w", err)
	}
	*p = nil
	for _, item := range list {
		var ref secretRef
		var leaf any
		switch {
		case json.Unmarshal(item, &text) == nil:
			*p = append(*p, Part{Text: text})
		case json.Unmarshal(item, &leaf) == nil && isSealed(leaf):
			c, _ := sealed.Of(leaf)
			*p = append(*p, Part{Sealed: c})
		case json.Unmarshal(item, &ref) == nil && ref.Secret != "":
			*p = append(*p, Part{Secret: ref.Secret})
		default:
			return errors.New("a part is text, or names a secret or a sealed value")
		}
	}
	return nil
}

func isSealed(v any) bool {
	_, ok := sealed.Of(v)
	return ok
}

// ReadFrozen reads a frozen request back.
func ReadFrozen(f Frozen) (*Request, error) {
	var r Request
	if err := canon.Decode(f, requestLimits, &r); err != nil {
		return nil, fmt.Errorf("read frozen request: %w", err)
	}
	if r.Type != requestType {
		return nil, problem.New(problem.Invalid, "request_type", "The frozen request has the type %q; this console reads %s.", r.Type, requestType)
	}
	return &r, nil
}

func (r *Request) freeze() (Frozen, error) {
	r.Type = requestType
	f, err := canon.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("freeze request: %w", err)
	}
	if len(f) > RequestBytesMax {
		return nil, problem.New(problem.TooLarge, "request_too_large", "The request is %d bytes long; the limit is %d.", len(f), RequestBytesMax)
	}
	return f, nil
}
