package browser

import (
	"net/http"

	"countersign/internal/identity"
	"countersign/internal/problem"
	"countersign/internal/server/edge"
	"countersign/web/templates/pages"
	"countersign/web/templates/parts"

	"github.com/labstack/echo/v4"
)

// showSignIn is GET /signin.
func (b *Browser) showSignIn(c echo.Context) error {
	return render(c, http.StatusOK, pages.SignIn(pages.SignInView{Page: bare("Sign in"), Action: "/signin", Next: local(c.QueryParam("next"))}))
}

// signIn is POST /signin.
func (b *Browser) signIn(c echo.Context) error {
	next := local(c.FormValue("next"))
	credentials := identity.Credentials{Email: c.FormValue("email"), Password: c.FormValue("password"), Address: c.RealIP()}
	token, err := b.desk.SignIn(c.Request().Context(), credentials, c.Request().UserAgent())
	if p := problem.From(err); p != nil {
		if p.Kind == problem.Internal {
			return err
		}
		view := pages.SignInView{Page: bare("Sign in"), Action: "/signin", Email: credentials.Email, Next: next, Error: notice("bad", p)}
		return render(c, edge.Status(p), pages.SignIn(view))
	}
	if err := b.keep(c, token); err != nil {
		return err
	}
	return see(c, next)
}

// notice is a problem as a message above a form.
func notice(tone string, p *problem.Error) *parts.Notice {
	n := &parts.Notice{Tone: tone, Title: p.Message}
	for _, f := range p.Fields {
		line := f.Message
		if f.Pointer != "" {
			line = f.Pointer + " " + line
		}
		n.Lines = append(n.Lines, line)
	}
	return n
}

// signOut is POST /signout.
func (b *Browser) signOut(c echo.Context) error {
	if err := b.desk.SignOut(c.Request().Context(), who(c)); err != nil {
		return err
	}
	if err := b.keep(c, ""); err != nil {
		return err
	}
	return see(c, "/signin")
}

// showSetup is GET /setup?token=…, the page of the first start.
func (b *Browser) showSetup(c echo.Context) error {
	token := c.QueryParam("token")
	if err := b.desk.CheckSetup(c.Request().Context(), token); err != nil {
		return err
	}
	return render(c, http.StatusOK, pages.Setup(setupView(token, identity.NewPerson{}, nil)))
}

// setUp is POST /setup.
func (b *Browser) setUp(c echo.Context) error {
	token, n := c.FormValue("token"), identity.NewPerson{Name: c.FormValue("name"), Email: c.FormValue("email"), Password: c.FormValue("password")}
	var err error
	if n.Password != c.FormValue("again") {
		err = problem.New(problem.Invalid, "invalid", "The two passwords differ.").At("/password", "type the same password twice")
	} else {
		_, err = b.desk.CompleteSetup(c.Request().Context(), token, n)
	}
	if p := problem.From(err); p != nil {
		if p.Kind != problem.Invalid {
			return err
		}
		return render(c, failedForm, pages.Setup(setupView(token, n, p)))
	}
	session, err := b.desk.SignIn(c.Request().Context(), identity.Credentials{Email: n.Email, Password: n.Password, Address: c.RealIP()}, c.Request().UserAgent())
	if err != nil {
		return err
	}
	if err := b.keep(c, session); err != nil {
		return err
	}
	return see(c, "/")
}

func setupView(token string, n identity.NewPerson, p *problem.Error) pages.SetupView {
	v := pages.SetupView{Page: bare("First start"), Action: "/setup", Token: token, Fields: []parts.Field{
		{Name: "name", Label: "Your name", Kind: "text", Value: n.Name, Required: true, Complete: "name", Focus: true, Error: faultAt(p, "/name")},
		{Name: "email", Label: "E-mail address", Kind: "email", Value: n.Email, Required: true, Complete: "username", Error: faultAt(p, "/email")},
		{Name: "password", Label: "Password", Hint: "at least 12 characters; a few unrelated words are easy to remember", Kind: "password", Required: true, Complete: "new-password", Error: faultAt(p, "/password")},
		{Name: "again", Label: "The same password again", Kind: "password", Required: true, Complete: "new-password"},
	}}
	if p != nil {
		v.Error = &parts.Notice{Tone: "bad", Title: p.Message}
	}
	return v
}

// faultAt is what is wrong with one field, or "".
func faultAt(p *problem.Error, pointer string) string {
	if p == nil {
		return ""
	}
	for _, f := range p.Fields {
		if f.Pointer == pointer {
			return f.Message
		}
	}
	return ""
}

// showHelp is GET /help/keys.
func (b *Browser) showHelp(c echo.Context) error {
	page, err := b.frame(c, "Keyboard")
	if err != nil {
		return err
	}
	return render(c, http.StatusOK, pages.Help(pages.HelpView{Page: page}))
}
