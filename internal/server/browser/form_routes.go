package browser

import "github.com/labstack/echo/v4"

// formRoutes are the addresses that take a form and show no page of their own.
// A form that came back, or an error about it, is reloaded there: that leads to
// the page that holds the form.
func formRoutes(g *echo.Group) {
	back := func(page func(echo.Context) string, forms ...string) {
		for _, form := range forms {
			g.GET(form, func(c echo.Context) error { return see(c, page(c)) })
		}
	}
	one := func(prefix string) func(echo.Context) string {
		return func(c echo.Context) string { return address(prefix, c.Param("id")) }
	}
	the := func(page string) func(echo.Context) string { return func(echo.Context) string { return page } }
	request := func(c echo.Context) string { return requestURL(c, "") }

	back(request, "/approvals/:id/decision", "/approvals/:id/reveal", "/approvals/:id/revoke", "/approvals/:id/retract", "/approvals/:id/extend", "/approvals/:id/comments")
	back(one("/runs/"), "/runs/:id/resume", "/runs/:id/cancel", "/runs/:id/answers", "/runs/:id/corrections", "/runs/:id/migrate")
	back(one("/effects/"), "/effects/:id/ask", "/effects/:id/resolve")
	back(the("/audit"), "/audit/verify")
	back(the("/people"), "/people/:id/roles", "/people/:id/active")
	back(the("/account"), "/account/password", "/account/tokens", "/tokens/:id/revoke", "/sessions/:id/end")
	back(the("/"), "/signout")
}
