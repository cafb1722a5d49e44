// Package identity knows people: who they are, how they prove it, which roles
// they hold, their sessions and their tokens.
//
// It guarantees that no password, session token or token secret is stored in
// a form that could be used, that a disabled person has no session or token
// left, that a machine's token can never decide, and that wrong sign-ins are
// limited per account and per address. It must not know HTTP or what the
// roles are good for.
package identity

import (
	"embed"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"countersign/internal/id"
	"countersign/internal/problem"
	"countersign/internal/store"
)

//go:embed migrations
var migrations embed.FS

// Migrations is this package's line of the database schema.
var Migrations = store.Line{Name: "identity", FS: migrations, Dir: "migrations", Guarded: []string{"person", "role_member", "token", "setup_token"}}

// The kinds of principals.
const (
	KindPerson  = "person"
	KindMachine = "machine"
)

// Principal is who acts in one request, as the session or token proved it.
type Principal struct {
	Tenant  string
	Kind    string    // KindPerson or KindMachine
	Person  id.Person // the person, also the owner behind a token
	Name    string
	Email   string
	Roles   []string
	Token   id.Token // empty for a session
	Scopes  []string // of the token
	Session id.Session
	How     string // password, token, personal token, data folder
	Channel string // browser, api, command line
}

// The scopes a token may have (API.md).
var Scopes = []string{"runs:read", "runs:write", "actions:propose", "actions:execute", "approvals:read", "approvals:decide", "operate", "audit:read", "admin"}

// ScopeDecide is the scope that machines never get.
const ScopeDecide = "approvals:decide"

// The well-known roles; others only make their holders eligible in policies.
var WellKnownRoles = []string{"admin", "operator", "builder", "auditor", "approver", "viewer"}

var (
	roleForm  = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)
	emailForm = regexp.MustCompile(`^[^\s\p{C}@<>"]{1,64}@[^\s\p{C}@<>"]{1,190}$`)
)

// Limits of what people are called.
const (
	nameCharsMax = 100
	rolesMax     = 50
)

func checkRole(role string) error {
	if roleForm.MatchString(role) {
		return nil
	}
	return problem.New(problem.Invalid, "invalid", "%q is not a role: use lower case letters, digits and dashes, beginning with a letter, at most 32.", role).At("/roles", "does not fit")
}

func normalEmail(email string) (string, error) {
	email = strings.ToLower(strings.TrimSpace(email))
	if !emailForm.MatchString(email) {
		return "", problem.New(problem.Invalid, "invalid", "That is not an e-mail address.").At("/email", "must look like name@example.org")
	}
	return email, nil
}

func normalName(name string) (string, error) {
	name = strings.Join(strings.Fields(name), " ")
	if n := len([]rune(name)); n == 0 || n > nameCharsMax {
		return "", problem.New(problem.Invalid, "invalid", "A name is needed.").At("/name", "has %d characters; 1 to %d are allowed", n, nameCharsMax)
	}
	if strings.ContainsFunc(name, misleads) {
		return "", problem.New(problem.Invalid, "invalid", "The name has characters that cannot be seen.").At("/name", "has control characters or marks that turn the direction of writing")
	}
	return name, nil
}

// misleads reports characters that make a name look like another one: control
// characters and the marks that turn the direction of writing (UAX 9).
func misleads(r rune) bool {
	return unicode.IsControl(r) || r == utf8.RuneError || unicode.Is(unicode.Bidi_Control, r)
}
