package pages

import (
	"countersign/web/templates/layout"
	"countersign/web/templates/parts"
)

// PeopleView is for administrators. POST Add: name, email, password, roles
// (one field per role). Rows post to their own URLs.
type PeopleView struct {
	Page   layout.Page
	Rows   []PersonRow
	Add    string
	Fields []parts.Field
	Roles  []RoleBox // of the new person
	Error  *parts.Notice
	Tokens []TokenRow
	Secret *NewSecret
}

// PersonRow is one person. POST RolesURL: role (repeated). POST ActiveURL:
// active=yes|no.
type PersonRow struct {
	ID        string
	Name      string // untrusted
	Email     string // untrusted
	Roles     []string
	Boxes     []RoleBox
	Status    parts.Status // active, disabled
	Seen      parts.Time
	You       bool
	RolesURL  string
	ActiveURL string
	Deputy    string // "Ben Okafor until Fri 4 Dec"; may be empty
}

// RoleBox is one role that can be ticked.
type RoleBox struct {
	Value   string
	Hint    string
	Checked bool
}

// TokenRow is one token. POST Revoke.
type TokenRow struct {
	Name    string // untrusted
	Owner   string // untrusted
	Kind    string // machine, personal
	Scopes  []string
	Expires parts.Time
	Status  parts.Status
	Revoke  string
}

// NewSecret shows a token's secret, once.
type NewSecret struct{ Name, Secret string }

// AccountView is the person's own page. POST Password: old, new, again. POST
// Token: name, scope (repeated), expires. Sessions post to their End.
type AccountView struct {
	Page       layout.Page
	Facts      []parts.Fact
	Password   string
	PasswordIn []parts.Field
	Sessions   []SessionRow
	Tokens     []TokenRow
	Token      string
	TokenIn    []parts.Field
	Scopes     []RoleBox
	Secret     *NewSecret
	SignOut    string // POST
	Error      *parts.Notice
}

// SessionRow is one place where the person is signed in. POST End.
type SessionRow struct {
	Where string // "Firefox on Linux"; untrusted
	From  string // address; untrusted
	Began parts.Time
	Seen  parts.Time
	This  bool
	End   string
}
