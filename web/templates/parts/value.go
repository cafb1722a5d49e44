package parts

import (
	"slices"

	"countersign/web/visible"
)

// Value is one named value as it will be used, exactly. Objects and lists
// are given leaf by leaf: {"items":[{"sku":"a"}]} is one Value with Name
// "items / 0 / sku".
type Value struct {
	Name    string // the path of the leaf, readable; untrusted
	Pointer string // JSON Pointer (RFC 6901), shown on request
	Title   string // the schema's title; may be empty
	Hint    string // the schema's description; may be empty
	Type    string // "text", "integer", "yes or no", "empty list", …
	// Text is the value: a string without quotes, anything else in its stored
	// (RFC 8785) form. Untrusted.
	Text string
	// Reading says the value as people write it, "125.00 EUR", beside the
	// exact Text; OldReading likewise of Old. May be empty.
	Reading    string
	OldReading string
	Origin     string // where it came from: "input.amount", "edited by Ana Ruiz", "default of the tool"

	// Change says how it differs from what Values.Against names: "", added,
	// changed, removed. Old is the value there; untrusted.
	Change string
	Old    string

	// Masked values show the beginning of their commitment instead of Text,
	// which must then be empty. UnmaskURL is where a person with the right
	// asks for the value.
	Masked      bool
	Fingerprint string
	UnmaskURL   string

	CopyURL string // GET gives exactly the bytes of the value; may be empty
}

// Values is a table of values.
type Values struct {
	Caption string // read by screen readers: "Parameters of revision 2"
	Rows    []Value
	Short   bool   // names and values only: for what a target measured
	Against string // what Change compares with: "revision 1"; empty: nothing
	// Compare are the other comparisons offered; the one in use has no URL.
	Compare []Link
	// Unfold shows long values open: for the confirm step and for paper.
	Unfold bool
	// MustOpen makes the script keep Approve off until every folded value
	// was opened: set for high and critical risk.
	MustOpen bool
}

// traced reports whether it is known of any row where it came from.
func (v Values) traced() bool {
	return slices.ContainsFunc(v.Rows, func(r Value) bool { return r.Origin != "" })
}

// Folded counts the values shown folded.
func (v Values) Folded() int {
	n := 0
	for _, r := range v.Rows {
		if r.folds() && !v.Unfold {
			n++
		}
	}
	return n
}

// folds reports whether the value is too long to be taken in at a glance.
func (v Value) folds() bool {
	return !v.Masked && (visible.Inspect(v.Text).Long || visible.Inspect(v.Old).Long)
}
