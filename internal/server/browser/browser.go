// Package browser is the pages' side: cookies, forms, redirects, and the
// mapping from what the use cases say to what the pages show.
//
// It guarantees that every page but sign-in, the first start and static files
// needs a session, that the person who acts comes from that session alone,
// that GET changes nothing but the note of a first view, and that what was
// typed survives every refusal. It must not know SQL, bearer tokens, or how a
// use case does what it does.
package browser

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"

	"countersign/internal/desk"
	"countersign/internal/identity"
	"countersign/internal/live"
	"countersign/internal/problem"
	"countersign/internal/server/edge"
	"countersign/web/static"

	"github.com/a-h/templ"
	"github.com/gorilla/sessions"
	"github.com/labstack/echo/v4"
)

// Options is what the pages are made of.
type Options struct {
	Desk    *desk.Desk
	Hub     *live.Hub
	BaseURL string // https there makes the cookie Secure
	Version string
	Logger  *slog.Logger
}

// Browser answers the requests of people.
type Browser struct {
	desk    *desk.Desk
	hub     *live.Hub
	cookies sessions.Store
	logger  *slog.Logger
}

// New returns the pages over a desk.
func New(o Options) (*Browser, error) {
	return &Browser{desk: o.Desk, hub: o.Hub, cookies: newCookies(strings.HasPrefix(o.BaseURL, "https://")), logger: o.Logger}, nil
}

// Mount adds the pages' routes.
func (b *Browser) Mount(e *echo.Echo) {
	e.GET(static.Prefix+"*", echo.WrapHandler(static.Handler()))
	e.GET("/favicon.ico", echo.WrapHandler(static.Handler()))

	open := e.Group("", edge.SameOrigin())
	open.GET("/signin", b.showSignIn)
	open.POST("/signin", b.signIn)
	open.GET("/setup", b.showSetup)
	open.POST("/setup", b.setUp)

	own := e.Group("", edge.SameOrigin(), b.signedIn)
	own.POST("/signout", b.signOut)
	own.GET("/help/keys", b.showHelp)
	own.GET("/events", b.events)
	b.approverRoutes(own)
	b.operatorRoutes(own)
	b.auditorRoutes(own)
	b.personRoutes(own)
	formRoutes(own)
}

// events is GET /events: which topics changed, while the session lasts.
func (b *Browser) events(c echo.Context) error {
	token := b.token(c)
	stands := func(ctx context.Context) error { return b.desk.SessionStands(ctx, token) }
	return edge.Stream(c, b.hub, edge.Audience{May: stands, Again: desk.TopicAccess})
}

const (
	principalKey = "browser.principal"
	sinceKey     = "browser.since" // the last event before anything was read for the page
)

// who is the person of the session.
func who(c echo.Context) identity.Principal {
	p, _ := c.Get(principalKey).(identity.Principal)
	return p
}

// signedIn lets only requests of a session pass. A page that was asked for is
// come back to after signing in.
func (b *Browser) signedIn(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		token := b.token(c)
		if token == "" {
			return toSignIn(c)
		}
		p, err := b.desk.SessionPrincipal(c.Request().Context(), token)
		if problem.HasCode(err, "signed_out") {
			return toSignIn(c)
		}
		if err != nil {
			return err
		}
		c.Set(principalKey, p)
		c.Set(sinceKey, b.hub.Last())
		return next(c)
	}
}

func toSignIn(c echo.Context) error {
	switch {
	case c.Path() == "/events":
		return problem.New(problem.Unauthenticated, "signed_out", "You are signed out.")
	case c.Request().Method == http.MethodGet:
		return c.Redirect(http.StatusSeeOther, signInURL(c.Request().URL.RequestURI()))
	}
	return signedOut(c)
}

// render writes a page that was rendered whole: a page that fails is an error,
// never half a page.
func render(c echo.Context, status int, page templ.Component) error {
	var b bytes.Buffer
	if err := page.Render(c.Request().Context(), &b); err != nil {
		return err
	}
	return c.HTMLBlob(status, b.Bytes())
}

// see sends the browser to another page after a POST.
func see(c echo.Context, url string) error { return c.Redirect(http.StatusSeeOther, url) }
