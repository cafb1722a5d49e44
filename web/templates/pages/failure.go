package pages

import (
	"countersign/web/templates/layout"
	"countersign/web/templates/parts"
)

// FailureView is the page of an error: what happened, that nothing was lost,
// and what to do.
type FailureView struct {
	Page      layout.Page
	Status    int    // 403, 404, 409, 413, 422, 429, 500, 503
	Title     string // "Somebody else decided first"
	Text      string // the problem's sentence; untrusted
	Faults    []Fault
	Lost      string // "Nothing was changed." and the like
	Draft     string // what was typed; untrusted
	Diff      *parts.Values
	Facts     []parts.Fact // "decided by", "when", "current version"
	Next      []parts.Link // the first is the main one
	Reference string
}

// Fault is one fault of an input.
type Fault struct {
	Where string // untrusted
	What  string // untrusted
}

// HelpView is the page of the keyboard list, for when there is no script to
// open it in place.
type HelpView struct{ Page layout.Page }
