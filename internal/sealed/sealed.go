// Package sealed is the form in which a sensitive value stands wherever it is
// stored, hashed, shown or logged: {"$commit": "hmac-sha256:<64 hex digits>"}.
//
// It guarantees that a document is searched and changed by that form alone,
// also where a text has one inside it. It is pure: it knows neither keys nor
// values; those are vault's.
package sealed

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"countersign/internal/canon"
)

// Mark is the one key of the form.
const Mark = "$commit"

// Commitment stands for a value: an HMAC under a salt of the value's run, so
// that it cannot be guessed, also once value and salt are gone (DESIGN
// section 9).
type Commitment string

// Prefix names the algorithm in front of the digits.
const Prefix = "hmac-sha256:"

var (
	form   = regexp.MustCompile(`^hmac-sha256:[0-9a-f]{64}$`)
	inText = regexp.MustCompile(`\{"\$commit":"(hmac-sha256:[0-9a-f]{64})"\}`)
)

// Leaf is what stands in a decoded document in place of the value.
func (c Commitment) Leaf() map[string]any { return map[string]any{Mark: string(c)} }

// Of reads a decoded value as a sealed leaf.
func Of(v any) (Commitment, bool) {
	m, ok := v.(map[string]any)
	if !ok || len(m) != 1 {
		return "", false
	}
	s, ok := m[Mark].(string)
	return Commitment(s), ok && form.MatchString(s)
}

// In reports whether a document may have sealed leaves. It is cheap and may
// err on the side of yes.
func In(doc json.RawMessage) bool { return strings.Contains(string(doc), Mark) }

// within are the commitments of a leaf, or inside of a text.
func within(leaf any) (all []Commitment) {
	if c, ok := Of(leaf); ok {
		return []Commitment{c}
	}
	text, _ := leaf.(string)
	for _, m := range inText.FindAllStringSubmatch(text, -1) {
		all = append(all, Commitment(m[1]))
	}
	return all
}

// Place is where in a document a sealed leaf stands.
type Place struct {
	Pointer    string
	Commitment Commitment
}

// Places lists the sealed leaves of a decoded document, in the order of their
// pointers. Those inside of texts are not among them.
func Places(v any) (out []Place) {
	each(v, "", func(at string, c Commitment) { out = append(out, Place{at, c}) })
	slices.SortFunc(out, func(a, b Place) int { return strings.Compare(a.Pointer, b.Pointer) })
	return out
}

func each(v any, at string, visit func(at string, c Commitment)) {
	eachLeaf(v, at, func(at string, v any) {
		if c, ok := Of(v); ok {
			visit(at, c)
		}
	})
}

// eachLeaf visits sealed leaves, and whatever is neither object nor list.
func eachLeaf(v any, at string, visit func(at string, v any)) {
	if _, ok := Of(v); ok {
		visit(at, v)
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			eachLeaf(x, canon.Join(at, k), visit)
		}
	case []any:
		for i, x := range v {
			eachLeaf(x, canon.Join(at, strconv.Itoa(i)), visit)
		}
	default:
		visit(at, v)
	}
}

// Forged finds the form's key, or a text that has the form inside, in a decoded
// document from outside, where it is not allowed: at which pointer.
func Forged(v any) (pointer string, found bool) { return forged(v, "") }

// Foreign finds a sealed leaf in a decoded document, also inside of a text, that
// own does not have: at which pointer.
func Foreign(v any, own json.RawMessage) (pointer string, found bool) {
	eachLeaf(v, "", func(at string, v any) {
		if !slices.ContainsFunc(within(v), func(c Commitment) bool { return !strings.Contains(string(own), string(c)) }) {
			return
		}
		pointer, found = at, true
	})
	return pointer, found
}

func forged(v any, at string) (string, bool) {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			if k == Mark {
				return at, true
			}
			if p, found := forged(x, canon.Join(at, k)); found {
				return p, true
			}
		}
	case []any:
		for i, x := range v {
			if p, found := forged(x, canon.Join(at, strconv.Itoa(i))); found {
				return p, true
			}
		}
	case string:
		return at, inText.MatchString(v)
	}
	return "", false
}

// Replace returns a copy of a decoded document with every sealed leaf replaced
// by what value gives. Texts stay as they are, and v is not changed.
func Replace(v any, value func(Commitment) (any, error)) (any, error) {
	return walk(v, value, func(s string) (string, error) { return s, nil })
}

// ReplaceAll is Replace that also puts the words of values into texts that
// have a sealed leaf inside.
func ReplaceAll(v any, value func(Commitment) (any, error)) (any, error) {
	return walk(v, value, func(s string) (string, error) { return Text(s, value) })
}

func walk(v any, value func(Commitment) (any, error), text func(string) (string, error)) (any, error) {
	if c, ok := Of(v); ok {
		return value(c)
	}
	var err error
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			if out[k], err = walk(x, value, text); err != nil {
				return nil, err
			}
		}
		return out, nil
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			if out[i], err = walk(x, value, text); err != nil {
				return nil, err
			}
		}
		return out, nil
	case string:
		return text(v)
	}
	return v, nil
}

// Text returns a text with the words of values in place of the sealed leaves
// inside.
func Text(s string, value func(Commitment) (any, error)) (string, error) {
	if !strings.Contains(s, Mark) {
		return s, nil
	}
	var failed error
	out := inText.ReplaceAllStringFunc(s, func(leaf string) string {
		v, err := value(Commitment(inText.FindStringSubmatch(leaf)[1]))
		if err == nil {
			leaf, err = Words(v)
		}
		failed = errors.Join(failed, err)
		return leaf
	})
	return out, failed
}

// Words is a value inside a text: a string as it is, anything else as
// canonical JSON.
func Words(v any) (string, error) {
	if s, ok := v.(string); ok {
		return s, nil
	}
	raw, err := canon.Marshal(v)
	return string(raw), err
}

// Hidden stands wherever a sealed value would be read by people.
const Hidden = "•••"

func hidden(Commitment) (any, error) { return Hidden, nil }

// Hide returns a copy of a decoded document with Hidden in place of every
// sealed leaf, also inside of texts.
func Hide(v any) any {
	out, _ := ReplaceAll(v, hidden) // hiding cannot fail
	return out
}

// HideText is Hide for a text.
func HideText(s string) string {
	out, _ := Text(s, hidden)
	return out
}
