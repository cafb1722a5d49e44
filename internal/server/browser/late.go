package browser

import (
	"net/http"
	"strings"

	"countersign/web/templates/pages"
	"countersign/web/templates/parts"

	"github.com/labstack/echo/v4"
)

// lateTexts are the fields of forms in which people write sentences, and what
// they are called when they are handed back. Passwords are never among them.
var lateTexts = [][2]string{{"comment", "Your comment or reason, kept for you"}, {"reason", "Your reason, kept for you"}, {"evidence", "Your evidence, kept for you"}, {"note", "Your note, kept for you"}}

// lateMax bounds what is handed back of one field.
const lateMax = 8000

// signedOut answers a form that was sent after the session had ended: nothing
// happened, and what was written can be copied.
func signedOut(c echo.Context) error {
	view := pages.SignInView{Page: bare("Sign in"), Action: "/signin", Next: local(formPage(c)),
		Error: &parts.Notice{Tone: "warn", Title: "You were signed out before this arrived", Text: "Nothing was changed. Sign in, and do it again; what you typed has to be typed again."}}
	for _, f := range lateTexts {
		if text := c.FormValue(f[0]); strings.TrimSpace(text) != "" && len(text) <= lateMax {
			view.Drafts = append(view.Drafts, parts.Field{Name: f[0], Label: f[1], Value: text})
		}
	}
	if len(view.Drafts) > 0 {
		view.Error.Text = "Nothing was changed. Sign in, and do it again; what you wrote is kept below to be copied."
	}
	return render(c, http.StatusUnauthorized, pages.SignIn(view))
}

// formPage is the page on which the form of a POST stands.
func formPage(c echo.Context) string {
	route, path := c.Path(), c.Request().URL.EscapedPath()
	part := strings.Split(strings.TrimPrefix(path, "/"), "/")
	switch {
	case route == "/signout":
		return "/"
	case route == "/runs":
		return "/runs/new"
	case strings.HasPrefix(route, "/tokens/"), strings.HasPrefix(route, "/sessions/"), strings.HasPrefix(route, "/account/"):
		return "/account"
	case route == "/approvals/:id/edit":
		return requestURL(c, "/edit")
	case strings.HasPrefix(route, "/approvals/:id/"):
		return requestURL(c, "")
	case route == "/definitions/explain":
		return path
	case len(part) > 2 && (part[0] == "runs" || part[0] == "effects"):
		return "/" + part[0] + "/" + part[1]
	}
	return "/" + part[0]
}
