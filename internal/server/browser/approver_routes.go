package browser

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

// approverRoutes are the pages of those who decide.
func (b *Browser) approverRoutes(g *echo.Group) {
	g.GET("/", func(c echo.Context) error { return c.Redirect(http.StatusSeeOther, "/inbox") })
	g.GET("/inbox", b.showInbox)
	g.GET("/waiting", b.showWaiting)
	g.GET("/decisions", b.showDecisions)
	g.GET("/approvals", b.showApprovals)
	g.GET("/approvals/:id", b.showApproval)
	g.GET("/approvals/:id/subject", b.downloadSubject)
	g.GET("/approvals/:id/value", b.downloadValue)
	g.GET("/approvals/:id/receipt", b.downloadReceipt)
	g.POST("/approvals/:id/decision", b.decide)
	g.GET("/approvals/:id/edit", b.showEdit)
	g.POST("/approvals/:id/edit", b.edit)
	g.POST("/approvals/:id/reveal", b.reveal)
	g.POST("/approvals/:id/retract", b.retract)
	g.POST("/approvals/:id/extend", b.extend)
	g.POST("/approvals/:id/revoke", b.revoke)
	g.POST("/approvals/:id/comments", b.comment)
}
