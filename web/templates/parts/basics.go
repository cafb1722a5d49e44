package parts

// Time is an instant, ready to show. The zero Time is shown as a dash.
type Time struct {
	Relative string // "3 min ago", "in 18 min"
	Absolute string // with the zone of the person: "Tue 1 Dec 2026, 12:40 CET"
	ISO      string // RFC 3339, for the datetime attribute
}

// Clock is an instant until which something may be done.
type Clock struct {
	Label  string // "Decide by", "Start by"
	Time   Time
	Urgent bool // little is left
	Passed bool
	// Ticks lets the script count down while the page is open.
	Ticks bool
}

// Link is a way to another page. An empty URL shows the text alone.
type Link struct {
	Text string // untrusted
	URL  string
}

// Status says where something stands. Code chooses shape and colour and is one
// of the tones below or a status of the product, see toneOf; Word is what is
// read.
type Status struct {
	Code string
	Word string
}

// Notice is a message at the top of a page or beside a form.
type Notice struct {
	Tone  string // info, good, wait, warn, bad, unknown
	Title string // one short sentence
	Text  string // what it means and what to do next; untrusted
	Lines []string
	Next  *Link // the one thing to do
}

// Fact is one line of a list of facts. Of Text, Time, Digest and Link the
// first that is set is shown.
type Fact struct {
	Name   string
	Text   string // untrusted
	Mono   bool   // Text is an id, a key or the like
	Digest string // "sha256:…", shown in groups of four with a copy button
	Time   Time
	Link   *Link
	Status *Status
}

// Step is one stage of a flow or of a progress line.
type Step struct {
	Title string
	State string // done, now, todo, bad, unknown, skipped
	Note  string // untrusted
	Time  Time
}

// Moment is one line of a timeline, newest last.
type Moment struct {
	Time  Time
	Who   string // untrusted; empty: the console itself
	What  string // "approved revision 2"
	Note  string // untrusted: a comment, in the person's words
	Tone  string // as Notice.Tone; may be empty
	Entry *Link  // the audit entry
}

// Empty is what a list shows instead of rows. The three reasons have
// different texts: nothing is there, nothing matches, not connected.
type Empty struct {
	Title string
	Text  string
	Next  *Link
}

// JSON is a document shown as it is stored, folded when long.
type JSON struct {
	Title   string
	Text    string // untrusted
	CopyURL string // GET gives exactly these bytes; may be empty
	Open    bool
}
