package pages

import (
	"countersign/web/templates/layout"
	"countersign/web/templates/parts"
)

// SignInView is the page before everything. POST Action: email, password,
// next.
type SignInView struct {
	Page   layout.Page
	Action string
	Email  string // as typed
	Next   string // where to go afterwards, a path of this site; may be empty
	Error  *parts.Notice
	Drafts []parts.Field // what was typed into a form that came too late
}

// SetupView makes the first administrator; it is reached by the one-time link
// only. POST Action: token, name, email, password, again.
type SetupView struct {
	Page   layout.Page
	Action string
	Token  string
	Fields []parts.Field // name, email, password, again
	Error  *parts.Notice
}
