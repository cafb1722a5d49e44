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
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// Limits bounds one document. A zero field means the default.
type Limits struct {
	Bytes int // length of the text
	Depth int // nested objects and arrays
	Keys  int // object members in the whole document
}

// DefaultLimits are those of every intake that states no others.
var DefaultLimits = Limits{Bytes: 1 << 20, Depth: 64, Keys: 10_000}

// inside are the limits of what the program made itself: only the nesting that
// jsontext supports.
var inside = Limits{Bytes: 1 << 40, Depth: 10_000, Keys: 1 << 40}

func (l Limits) filled() Limits {
	if l.Bytes == 0 {
		l.Bytes = DefaultLimits.Bytes
	}
	if l.Depth == 0 {
		l.Depth = DefaultLimits.Depth
	}
	if l.Keys == 0 {
		l.Keys = DefaultLimits.Keys
	}
	return l
}

// Canonical reads exactly one JSON value and returns its RFC 8785 form. It
// refuses, as a *problem.Error: what is not JSON (RFC 8259) or not I-JSON
// (RFC 7493: duplicate names at any depth, invalid UTF-8, lone surrogates),
// numbers that a double cannot hold (see checkNumber), and anything past l.
func Canonical(src []byte, l Limits) (json.RawMessage, error) {
	if err := check(src, l.filled()); err != nil {
		return nil, err
	}
	return form(src)
}

// form canonicalizes bytes that have been checked.
func form(src []byte) (json.RawMessage, error) {
	out := jsontext.Value(src).Clone()
	if err := out.Canonicalize(); err != nil {
		return nil, fmt.Errorf("canonicalize checked json: %w", err)
	}
	return json.RawMessage(out), nil
}

// marshaling is encoding/json's meaning of Go values (nil slices are null,
// durations are nanoseconds), without its silent repairs of bad UTF-8.
var marshaling = jsonv2.JoinOptions(
	jsonv1.DefaultOptionsV1(),
	jsonv1.ReportErrorsWithLegacySemantics(false),
	jsontext.AllowInvalidUTF8(false),
	jsontext.AllowDuplicateNames(false),
	jsontext.EscapeForHTML(false),
	jsontext.EscapeForJS(false),
)

// Marshal gives the canonical form of a Go value, read as encoding/json reads
// it. Invalid UTF-8, infinities and integers that a double cannot hold exactly
// are errors.
func Marshal(v any) (json.RawMessage, error) {
	raw, err := jsonv2.Marshal(v, marshaling)
	if err != nil {
		return nil, fmt.Errorf("marshal canonical json: %w", err)
	}
	if err := check(raw, inside); err != nil {
		return nil, err
	}
	return form(raw)
}

// Value decodes one JSON value into nil, bool, float64, string, []any and
// map[string]any, as strictly as Canonical but without its size limits.
func Value(src json.RawMessage) (any, error) {
	if err := check(src, inside); err != nil {
		return nil, err
	}
	var v any
	if err := jsonv2.Unmarshal(src, &v); err != nil {
		return nil, fmt.Errorf("decode checked json: %w", err)
	}
	return v, nil
}

// Digest is the SHA-256 of b, written "sha256:<64 hex digits>".
func Digest(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// DigestOf is the digest of the canonical form of v.
func DigestOf(v any) (string, error) {
	b, err := Marshal(v)
	if err != nil {
		return "", err
	}
	return Digest(b), nil
}
