package browser

import "github.com/labstack/echo/v4"

// operatorRoutes are the pages of those who look after runs.
func (b *Browser) operatorRoutes(g *echo.Group) {
	g.GET("/runs", b.listRuns)
	g.GET("/runs/new", b.newRun)
	g.POST("/runs", b.startRun)
	g.GET("/runs/:id", b.showRun)
	g.GET("/runs/:id/checkpoints/:version", b.showCheckpoint)
	g.POST("/runs/:id/resume", b.resumeRun)
	g.POST("/runs/:id/cancel", b.cancelRun)
	g.POST("/runs/:id/answers", b.answer)
	g.POST("/runs/:id/corrections", b.correctRun)
	g.POST("/runs/:id/migrate", b.migrateRun)
	g.GET("/attention", b.showAttention)
	g.GET("/effects/:id", b.showEffect)
	g.POST("/effects/:id/ask", b.askTarget)
	g.POST("/effects/:id/resolve", b.resolveEffect)
}

// auditorRoutes are the record and the definitions.
func (b *Browser) auditorRoutes(g *echo.Group) {
	g.GET("/audit", b.showAudit)
	g.POST("/audit/verify", b.verifyAudit)
	g.GET("/audit/export.jsonl", b.exportAudit("jsonl", "application/jsonl"))
	g.GET("/audit/export.csv", b.exportAudit("csv", "text/csv; charset=utf-8"))
	g.GET("/audit/head", b.downloadHead)
	g.GET("/audit/entries/:id", b.showEntry)
	g.GET("/definitions", b.showDefinitions)
	g.GET("/definitions/explain", b.showExplain)
	g.POST("/definitions/explain", b.explain)
	g.GET("/definitions/:kind/:name/:version", b.showDefinition)
}

// personRoutes are people, for administrators, and one's own account.
func (b *Browser) personRoutes(g *echo.Group) {
	g.GET("/people", b.showPeople)
	g.POST("/people", b.addPerson)
	g.POST("/people/:id/roles", b.setRoles)
	g.POST("/people/:id/active", b.setActive)
	g.GET("/account", b.showAccount)
	g.POST("/account/password", b.changePassword)
	g.POST("/account/tokens", b.createToken)
	g.POST("/tokens/:id/revoke", b.revokeToken)
	g.POST("/sessions/:id/end", b.endSession)
}
