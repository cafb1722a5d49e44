// Package api is the programs' side over HTTP: bearer tokens, JSON in and
// out, problem+json for errors.
//
// It guarantees that every body passes the strict intake of the product, that
// unknown fields are refused, and that no cookie is ever read. Who may do
// what is decided by the use cases, not here. It must not know pages or SQL.
package api

import (
	"log/slog"
	"net/http"
	"strings"

	"countersign/internal/desk"
	"countersign/internal/identity"
	"countersign/internal/live"
	"countersign/internal/problem"

	"github.com/labstack/echo/v4"
)

// Options is what the API is made of.
type Options struct {
	Desk    *desk.Desk
	Hub     *live.Hub
	BaseURL string
	Version string
	Logger  *slog.Logger
}

type api struct {
	desk    *desk.Desk
	hub     *live.Hub
	baseURL string
	logger  *slog.Logger
	waits   *waits
}

// prefix is where the API is mounted.
const prefix = "/api/v1"

// Owns reports whether a request is the API's to answer, also when no route
// matched.
func Owns(c echo.Context) bool { return strings.HasPrefix(c.Request().URL.Path, prefix+"/") }

// Mount adds the API's routes to the group, which is prefix.
func Mount(g *echo.Group, o Options) {
	a := &api{desk: o.Desk, hub: o.Hub, baseURL: o.BaseURL, logger: o.Logger, waits: newWaits()}
	g.GET("/openapi.json", openAPI)

	g = g.Group("", a.authenticate)
	g.POST("/runs", a.startRun)
	g.GET("/runs", a.listRuns)
	g.GET("/runs/:id", a.showRun)
	g.GET("/runs/:id/steps", a.listSteps)
	g.GET("/runs/:id/checkpoints", a.listCheckpoints)
	g.GET("/runs/:id/effects", a.listRunEffects)
	g.GET("/runs/:id/audit", a.listRunEntries)
	g.POST("/runs/:id/resume", a.resumeRun)
	g.POST("/runs/:id/cancel", a.cancelRun)
	g.POST("/runs/:id/replay", a.replayRun)
	g.POST("/runs/:id/migrate", a.migrateRun)
	g.POST("/runs/:id/erase", a.eraseRun)
	g.GET("/runs/:id/corrections", a.corrections)
	g.POST("/runs/:id/corrections", a.correctRun)
	g.GET("/runs/:id/answers", a.listAnswers)
	g.POST("/runs/:id/answers", a.answer)
	g.GET("/questions", a.listQuestions)

	g.GET("/todo", a.listTodo)
	g.GET("/effects", a.listEffects)
	g.GET("/effects/:id", a.showEffect)
	g.POST("/effects/:id/resolve", a.resolveEffect)

	g.POST("/actions", a.proposeAction)
	g.GET("/actions/:id", a.showAction)
	g.POST("/actions/:id/withdraw", a.withdrawAction)

	g.GET("/approvals", a.listApprovals)
	g.GET("/approvals/:id", a.showApproval)
	g.POST("/approvals/:id/decision", a.decide)
	g.POST("/approvals/:id/edit", a.edit)
	g.POST("/approvals/:id/retract", a.retract)
	g.POST("/approvals/:id/extend", a.extend)
	g.POST("/approvals/:id/revoke", a.revoke)
	g.POST("/approvals/:id/comments", a.comment)

	g.GET("/workflows", a.listDefinitions("workflow"))
	g.GET("/tools", a.listDefinitions("tool"))
	g.GET("/policies", a.listDefinitions("policy"))
	g.POST("/policies/explain", a.explain)

	g.GET("/audit/entries", a.listEntries)
	g.GET("/audit/head", a.head)
	g.GET("/audit/proof", a.proof)
	g.GET("/audit/receipt/:id", a.receipt)

	g.GET("/events", a.events)
}

const principalKey = "api.principal"

// authenticate takes the bearer token and nothing else.
func (a *api) authenticate(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		secret := bearer(c)
		if secret == "" {
			c.Response().Header().Set("WWW-Authenticate", `Bearer realm="countersign"`)
			return problem.New(problem.Unauthenticated, "token_missing", "Send a token as `Authorization: Bearer cst_…`; an administrator makes one with console token create.")
		}
		p, err := a.desk.TokenPrincipal(c.Request().Context(), secret)
		if err != nil {
			c.Response().Header().Set("WWW-Authenticate", `Bearer realm="countersign", error="invalid_token"`)
			return err
		}
		c.Set(principalKey, p)
		return next(c)
	}
}

// bearer is the token of a request, or "".
func bearer(c echo.Context) string {
	secret, ok := strings.CutPrefix(c.Request().Header.Get("Authorization"), "Bearer ")
	if !ok {
		return ""
	}
	return secret
}

func principal(c echo.Context) identity.Principal {
	p, _ := c.Get(principalKey).(identity.Principal)
	return p
}

// created answers 201 with the object's address.
func created(c echo.Context, location string, v any) error {
	c.Response().Header().Set("Location", prefix+location)
	return writeJSON(c, http.StatusCreated, v)
}
