package browser

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/gorilla/sessions"
	"github.com/labstack/echo/v4"
)

// What the cookie is called: with TLS under the prefix that ties it to this
// host (RFC 6265bis).
const (
	cookieSecure = "__Host-countersign"
	cookiePlain  = "countersign"
	tokenField   = "token"
)

// sessionDays is how long the browser keeps the cookie; the session behind it
// ends on the server, sooner.
const sessionDays = 7

// cookies keeps gorilla's session in one cookie whose only content is an
// opaque token. It is neither signed nor encrypted: the token is 260 random
// bits that mean nothing but a row on the server, which holds its digest.
type cookies struct {
	options sessions.Options
	name    string
}

func newCookies(secure bool) sessions.Store {
	c := &cookies{name: cookiePlain, options: sessions.Options{Path: "/", MaxAge: sessionDays * 24 * 3600, HttpOnly: true, SameSite: http.SameSiteLaxMode}}
	if secure {
		c.name, c.options.Secure = cookieSecure, true
	}
	return c
}

// Get returns the session of the request.
func (s *cookies) Get(r *http.Request, name string) (*sessions.Session, error) {
	return sessions.GetRegistry(r).Get(s, name)
}

// New reads the cookie; one that is missing or malformed is an empty session.
func (s *cookies) New(r *http.Request, name string) (*sessions.Session, error) {
	session := sessions.NewSession(s, name)
	options := s.options
	session.Options = &options
	session.IsNew = true
	if c, err := r.Cookie(s.name); err == nil && wellFormed(c.Value) {
		session.Values[tokenField] = c.Value
		session.IsNew = false
	}
	return session, nil
}

// Save writes the cookie; a negative MaxAge removes it.
func (s *cookies) Save(_ *http.Request, w http.ResponseWriter, session *sessions.Session) error {
	token, _ := session.Values[tokenField].(string)
	http.SetCookie(w, sessions.NewCookie(s.name, token, session.Options))
	return nil
}

// wellFormed keeps out what no token of ours looks like.
func wellFormed(token string) bool {
	return len(token) >= 40 && len(token) <= 80 && !strings.ContainsFunc(token, func(r rune) bool {
		return (r < 'A' || r > 'Z') && (r < '2' || r > '7')
	})
}

// token returns the session token of the request, or "".
func (b *Browser) token(c echo.Context) string {
	s, err := b.cookies.Get(c.Request(), "session")
	if err != nil {
		return ""
	}
	token, _ := s.Values[tokenField].(string)
	return token
}

// keep sets the cookie to a token; an empty one removes it.
func (b *Browser) keep(c echo.Context, token string) error {
	s, err := b.cookies.Get(c.Request(), "session")
	if err != nil {
		return err
	}
	s.Values[tokenField] = token
	if token == "" {
		s.Options.MaxAge = -1
	}
	return s.Save(c.Request(), c.Response())
}

// signInURL is the sign-in page that leads back to a page of this console.
func signInURL(next string) string {
	if next = local(next); next == "/" {
		return "/signin"
	}
	return "/signin?next=" + url.QueryEscape(next)
}

// local returns a path of this console, or "/": never another site, whatever
// the address pretends.
func local(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(u.Path, "/") ||
		strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") || strings.HasPrefix(u.Path, "/signin") {
		return "/"
	}
	return next
}
