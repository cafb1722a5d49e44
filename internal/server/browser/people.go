package browser

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"countersign/internal/id"
	"countersign/internal/identity"
	"countersign/internal/problem"
	"countersign/internal/server/edge"
	"countersign/web/templates/pages"
	"countersign/web/templates/parts"

	"github.com/labstack/echo/v4"
)

// showPeople is GET /people, for administrators.
func (b *Browser) showPeople(c echo.Context) error { return b.peoplePage(c, http.StatusOK, nil) }

func (b *Browser) peoplePage(c echo.Context, code int, fault *problem.Error) error {
	people, err := b.desk.People(c.Request().Context(), who(c))
	if err != nil {
		return err
	}
	tokens, err := b.desk.Tokens(c.Request().Context(), who(c), true)
	if err != nil {
		return err
	}
	page, err := b.frame(c, "People")
	if err != nil {
		return err
	}
	roles, err := b.desk.Roles(c.Request().Context(), who(c))
	if err != nil {
		return err
	}
	known := rolesOf(roles, people)
	v := pages.PeopleView{Page: page, Add: "/people", Roles: roleBoxes(known, c.Request().Form["role"]), Fields: []parts.Field{
		{Name: "name", Label: "Name", Kind: "text", Value: c.FormValue("name"), Required: true, Error: faultAt(fault, "/name")},
		{Name: "email", Label: "E-mail address", Kind: "email", Value: c.FormValue("email"), Required: true, Error: faultAt(fault, "/email")},
		{Name: "password", Label: "First password", Hint: "at least 12 characters; they can change it", Kind: "password", Required: true, Complete: "new-password", Error: faultAt(fault, "/password")}}}
	if fault != nil {
		v.Error = &parts.Notice{Tone: "bad", Title: fault.Message}
	}
	names := map[id.Person]string{}
	for _, p := range people {
		names[p.ID] = p.Name
		v.Rows = append(v.Rows, personRow(p, known, p.ID == who(c).Person))
	}
	for _, t := range tokens {
		row := b.tokenRow(t, names[t.Owner])
		if row.Revoke != "" {
			row.Revoke = withQuery(row.Revoke, "from", "people")
		}
		v.Tokens = append(v.Tokens, row)
	}
	return render(c, code, pages.People(v))
}

// rolesOf adds every other role that somebody has.
func rolesOf(roles []string, people []identity.Person) []string {
	for _, p := range people {
		for _, r := range p.Roles {
			if !slices.Contains(roles, r) {
				roles = append(roles, r)
			}
		}
	}
	return roles
}

// roleHints say what the well-known roles are for.
var roleHints = map[string]string{"admin": "people, tokens, everything of an operator", "operator": "resume, cancel, settle unknown effects", "builder": "start runs, propose actions",
	"auditor": "read and verify the log", "approver": "decides where no rule says who", "viewer": "reads"}

func roleBoxes(known, checked []string) []pages.RoleBox {
	var boxes []pages.RoleBox
	for _, r := range known {
		boxes = append(boxes, pages.RoleBox{Value: r, Hint: roleHints[r], Checked: slices.Contains(checked, r)})
	}
	return boxes
}

func personRow(p identity.Person, known []string, you bool) pages.PersonRow {
	row := pages.PersonRow{ID: string(p.ID), Name: p.Name, Email: p.Email, Roles: p.Roles, Boxes: roleBoxes(known, p.Roles), Status: parts.Status{Code: "active", Word: "active"}, You: you,
		RolesURL: address("/people/", string(p.ID)) + "/roles", ActiveURL: address("/people/", string(p.ID)) + "/active"}
	if !p.Active {
		row.Status = parts.Status{Code: "disabled", Word: "disabled"}
	}
	return row
}

func (b *Browser) tokenRow(t identity.TokenInfo, owner string) pages.TokenRow {
	row := pages.TokenRow{Name: t.Name, Owner: owner, Kind: "machine", Scopes: t.Scopes, Expires: b.at(t.Expires), Status: parts.Status{Code: "active", Word: "active"},
		Revoke: address("/tokens/", string(t.ID)) + "/revoke"}
	if t.Personal {
		row.Kind = "personal"
	}
	if !t.Revoked.IsZero() || !now().Before(t.Expires) {
		row.Status, row.Revoke = parts.Status{Code: "ended", Word: "ended"}, ""
	}
	return row
}

// addPerson is POST /people.
func (b *Browser) addPerson(c echo.Context) error {
	form, err := c.FormParams()
	if err != nil {
		return err
	}
	n := identity.NewPerson{Email: c.FormValue("email"), Name: c.FormValue("name"), Password: c.FormValue("password"), Roles: form["role"]}
	added, err := b.desk.AddPerson(c.Request().Context(), who(c), n)
	if p := problem.From(err); p != nil {
		if p.Kind != problem.Invalid && p.Code != "email_taken" {
			return err
		}
		return b.peoplePage(c, edge.Status(p), p)
	}
	say(c, "good", added.Name+" was added", "They can sign in with the password you gave.")
	return see(c, "/people")
}

// setRoles is POST /people/{id}/roles.
func (b *Browser) setRoles(c echo.Context) error {
	form, err := c.FormParams()
	if err != nil {
		return err
	}
	if err := b.desk.SetRoles(c.Request().Context(), who(c), id.Person(c.Param("id")), form["role"]); err != nil {
		return err
	}
	say(c, "good", "The roles were changed", "They count from now on, also for requests that wait.")
	return see(c, "/people")
}

// setActive is POST /people/{id}/active.
func (b *Browser) setActive(c echo.Context) error {
	active := c.FormValue("active")
	if active != "yes" && active != "no" {
		return problem.New(problem.Malformed, "malformed", "The form does not say whether to enable or disable. Nothing was changed.")
	}
	if err := b.desk.SetActive(c.Request().Context(), who(c), id.Person(c.Param("id")), active == "yes"); err != nil {
		return err
	}
	say(c, "good", map[string]string{"yes": "Enabled", "no": "Disabled"}[active], map[string]string{"yes": "They can sign in again.", "no": "Their sessions and tokens ended. What waits for them waits for others."}[active])
	return see(c, "/people")
}

// showAccount is GET /account.
func (b *Browser) showAccount(c echo.Context) error { return b.accountPage(c, http.StatusOK, nil, nil) }

func (b *Browser) accountPage(c echo.Context, code int, fault *problem.Error, secret *pages.NewSecret) error {
	p := who(c)
	sessions, err := b.desk.Sessions(c.Request().Context(), p)
	if err != nil {
		return err
	}
	tokens, err := b.desk.Tokens(c.Request().Context(), p, false)
	if err != nil {
		return err
	}
	page, err := b.frame(c, "Account")
	if err != nil {
		return err
	}
	v := pages.AccountView{Page: page, SignOut: "/signout", Password: "/account/password", Token: "/account/tokens", Secret: secret,
		Facts: []parts.Fact{{Name: "Name", Text: p.Name}, {Name: "E-mail", Text: p.Email}, {Name: "Roles", Text: strings.Join(p.Roles, ", ")}},
		PasswordIn: []parts.Field{
			{Name: "old", Label: "Present password", Kind: "password", Required: true, Complete: "current-password", Error: faultAt(fault, "/old")},
			{Name: "new", Label: "New password", Hint: "at least 12 characters", Kind: "password", Required: true, Complete: "new-password", Error: faultAt(fault, "/password")},
			{Name: "again", Label: "The new one again", Kind: "password", Required: true, Complete: "new-password", Error: faultAt(fault, "/again")}},
		TokenIn: []parts.Field{{Name: "name", Label: "What it is for", Kind: "text", Required: true, Value: c.FormValue("name"), Error: faultAt(fault, "/name")},
			{Name: "expires", Label: "Works for", Kind: "choice", Error: faultAt(fault, "/life"), Options: []parts.Option{{Value: "1h", Text: "one hour"}, {Value: "24h", Text: "a day"}, {Value: "720h", Text: "30 days"}}}}}
	for _, s := range identity.Scopes {
		if s != "admin" {
			v.Scopes = append(v.Scopes, pages.RoleBox{Value: s, Checked: slices.Contains(c.Request().Form["scope"], s)})
		}
	}
	if fault != nil {
		v.Error = notice("bad", fault)
	}
	for _, s := range sessions {
		v.Sessions = append(v.Sessions, pages.SessionRow{Where: agentWord(s.Agent), From: s.Address, Began: b.at(s.Created), Seen: b.at(s.Seen), This: s.ID == p.Session, End: address("/sessions/", string(s.ID)) + "/end"})
	}
	for _, t := range tokens {
		v.Tokens = append(v.Tokens, b.tokenRow(t, p.Name))
	}
	return render(c, code, pages.Account(v))
}

// changePassword is POST /account/password.
func (b *Browser) changePassword(c echo.Context) error {
	var err error
	if c.FormValue("new") != c.FormValue("again") {
		err = problem.New(problem.Invalid, "invalid", "The password was not changed.").At("/again", "type the same password twice")
	} else {
		err = b.desk.ChangePassword(c.Request().Context(), who(c), c.FormValue("old"), c.FormValue("new"))
	}
	if p := problem.From(err); p != nil {
		if p.Kind == problem.Internal {
			return err
		}
		return b.accountPage(c, edge.Status(p), p, nil)
	}
	if err := b.keep(c, ""); err != nil {
		return err
	}
	say(c, "good", "The password was changed", "Every session ended; sign in with the new one.")
	return see(c, "/signin")
}

// createToken is POST /account/tokens: a personal token, shown once.
func (b *Browser) createToken(c echo.Context) error {
	form, err := c.FormParams()
	if err != nil {
		return err
	}
	life, _ := time.ParseDuration(c.FormValue("expires")) // zero is refused with its own message
	secret, info, err := b.desk.CreateToken(c.Request().Context(), who(c), identity.NewToken{Owner: who(c).Person, Name: c.FormValue("name"), Scopes: form["scope"], Personal: true, Life: life})
	if p := problem.From(err); p != nil {
		if p.Kind != problem.Invalid {
			return err
		}
		return b.accountPage(c, edge.Status(p), p, nil)
	}
	return b.accountPage(c, http.StatusOK, nil, &pages.NewSecret{Name: info.Name, Secret: secret})
}

// revokeToken is POST /tokens/{id}/revoke.
func (b *Browser) revokeToken(c echo.Context) error {
	if err := b.desk.RevokeToken(c.Request().Context(), who(c), id.Token(c.Param("id"))); err != nil {
		return err
	}
	say(c, "good", "The token ended", "Whoever holds it can do nothing with it any more.")
	if c.QueryParam("from") == "people" {
		return see(c, "/people")
	}
	return see(c, "/account")
}

// endSession is POST /sessions/{id}/end.
func (b *Browser) endSession(c echo.Context) error {
	if err := b.desk.EndSession(c.Request().Context(), who(c), id.Session(c.Param("id"))); err != nil {
		return err
	}
	say(c, "good", "The session ended", "")
	return see(c, "/account")
}
