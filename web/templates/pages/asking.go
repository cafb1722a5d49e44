package pages

import "countersign/web/templates/parts"

// Asking is an open question of a run, or one that was just closed under
// somebody's hands. POST Answer: step, pass, one field per JSON Pointer.
type Asking struct {
	Anchor string // id on the page: "ask-details-1"
	Title  string // of the step; untrusted
	Text   string // the question; untrusted
	Until  parts.Time
	Answer string // URL of the form; empty: this person cannot answer
	WhyNot string // untrusted
	WhoCan []string
	Hidden []parts.Hidden
	Fields []parts.Field
	Keep   bool          // what is typed may be kept in the tab until it is sent
	Error  *parts.Notice // why an answer was not recorded
	Typed  *parts.JSON   // what was typed into a form that is gone
}
