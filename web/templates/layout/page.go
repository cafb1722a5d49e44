// Package layout holds the frame of every page: head, top bar, rail, main
// region, keyboard help.
//
// It guarantees landmarks, one h1, a way past the navigation, and no inline
// style or script. It must not know any domain package.
package layout

import "countersign/web/templates/parts"

// Page is what the frame shows around a page.
type Page struct {
	Title string // of the document and usually of the h1; untrusted
	Lang  string // "en" when empty
	Theme string // light, dark, or empty: as the system is set
	CSS   string // URLs of the bundles, from package static
	JS    string
	Icon  string

	// Person is nil on pages before sign-in, which then have no rail.
	Person  *Person
	Tenant  string
	Rail    []RailGroup
	Posture []PostureItem
	Events  string        // URL of the event stream; empty: the page is not live
	AsOf    parts.Time    // when the server made the page
	Flash   *parts.Notice // what the last POST did; shown once
}

// Person is who is signed in.
type Person struct {
	Name    string // untrusted
	Detail  string // "approver, finance"
	Account string // URL
}

// RailGroup is a heading of the rail with its places.
type RailGroup struct {
	Title string // may be empty
	Items []RailItem
}

// RailItem is a place in the rail. Counts are the server's; above 99 the
// caller writes "99+".
type RailItem struct {
	Text    string
	URL     string
	Icon    string // inbox, waiting, decided, all, runs, attention, audit, definitions, people
	Count   string // empty: none
	Urgent  bool   // the count asks for action now
	Current bool
	Key     string // the second key after g: "i"
}

// PostureItem is one statement of the line at the top: "audit verified to
// 18,422 at 09:14", "1 unknown effect".
type PostureItem struct {
	Text string
	Tone string // good, warn, bad, unknown; empty: plain
	URL  string // may be empty
}
