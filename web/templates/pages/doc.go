// Package pages holds the pages, each a view struct and a templ component of
// the same name: Inbox shows an InboxView. README.md beside the templates
// lists the addresses the pages link and post to.
//
// It guarantees that a page is complete without script, that controls which
// decide come after the evidence in reading and tab order, and that nothing
// is decided by a GET or by Enter in a field. Views hold strings, numbers,
// flags and URLs, ready formatted. A URL that is empty means that the action
// is not offered. It must not know any domain package.
package pages
