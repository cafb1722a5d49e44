package parts

// Field is one input of a form, usually made from a JSON Schema.
type Field struct {
	ID    string // of the control; made from Name when empty
	Name  string // of the form field; for values of a document its JSON Pointer
	Label string
	Hint  string // what is expected, with limits: "whole number, 1 to 1,000,000"
	// Kind is text, integer, number, yesno, choice, multiline, password,
	// email, json, list (one value a line), date.
	Kind     string
	Value    string // as typed, whatever it was; untrusted
	Original string // what it was before editing; shown as "was …" when Changed
	Changed  bool
	Reading  string // what the value means, naming it: "12500 is 125.00 EUR"
	Error    string // what is wrong and what to do; empty: nothing
	Required bool
	Note     string   // beside the label of one that is not required; empty: "optional"
	Options  []Option // choice
	Complete string   // autocomplete token: "username", "current-password", "new-password"
	Max      int      // maxlength in characters; 0: none
	Rows     int      // multiline; 0: 4
	Focus    bool     // focus starts here
}

// Option is one value of a choice.
type Option struct {
	Value, Text string
	Selected    bool
}

// Hidden is a value a form carries along.
type Hidden struct{ Name, Value string }
