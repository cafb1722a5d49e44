// Package canon is the one door through which JSON enters, and the one form in
// which it is hashed: strict reading, RFC 8785 canonical bytes, SHA-256 digests
// and JSON Pointers (RFC 6901).
//
// It guarantees that two texts with the same canonical form mean the same, and
// that canonical bytes read back as themselves: duplicate names, inexact
// Unicode, numbers that would change by being read, and anything beyond the
// stated limits are refused with a *problem.Error that says where. It must not
// know schemas, YAML or any domain type.
package canon

import (
	"encoding/json"

	"countersign/internal/problem"
)

// Limits bounds one document. A zero field means the default.
type Limits struct {
	Bytes int // length of the text
	Depth int // nested objects and arrays
	Keys  int // object members in the whole document
}

// DefaultLimits are those of every intake that states no others.
var DefaultLimits = Limits{Bytes: 1 << 20, Depth: 64, Keys: 10_000}

var errSoon = problem.New(problem.Internal, "internal", "not built yet")

// Canonical reads one JSON value strictly and returns its RFC 8785 form.
func Canonical(src []byte, l Limits) (json.RawMessage, error) { return nil, errSoon }

// Decode reads strictly into a Go value: an unknown field is refused, names
// match exactly. The error is a *problem.Error whose fields are JSON Pointers.
func Decode(src []byte, l Limits, v any) error { return errSoon }

// Marshal gives the canonical form of a Go value.
func Marshal(v any) (json.RawMessage, error) { return nil, errSoon }

// Value decodes JSON into nil, bool, float64, string, []any, map[string]any.
func Value(src json.RawMessage) (any, error) { return nil, errSoon }

// Digest is the SHA-256 of b written "sha256:<hex>".
func Digest(b []byte) string { return "" }

// DigestOf is the digest of the canonical form of v.
func DigestOf(v any) (string, error) { return "", errSoon }

// Get returns what the JSON Pointer names inside a decoded value.
func Get(v any, pointer string) (any, bool) { return nil, false }

// Set returns a copy of v in which the pointer names x.
func Set(v any, pointer string, x any) (any, error) { return nil, errSoon }
