package api

import (
	"encoding/json"
	"net/http"

	"countersign/internal/desk"
	"countersign/internal/problem"

	"github.com/labstack/echo/v4"
)

// proposeAction is POST /actions.
func (a *api) proposeAction(c echo.Context) error {
	var in struct {
		Tool           string          `json:"tool"`
		Params         json.RawMessage `json:"params"`
		Reason         string          `json:"reason"`
		Target         string          `json:"target"`
		IdempotencyKey string          `json:"idempotency_key"`
		Thread         string          `json:"thread"`
		OnBehalfOf     string          `json:"on_behalf_of"`
		Model          string          `json:"model"`
		PromptVersion  string          `json:"prompt_version"`
		AgentVersion   string          `json:"agent_version"`
		Execute        string          `json:"execute"`
		Metadata       json.RawMessage `json:"metadata"`
	}
	body, err := readJSON(c, &in)
	if err != nil {
		return err
	}
	if in.Execute != "" && in.Execute != "console" {
		return problem.New(problem.Invalid, "invalid", "This console executes the actions it approves.").At("/execute", "must be console")
	}
	view, isNew, err := a.desk.Propose(c.Request().Context(), principal(c), desk.ProposeAction{
		Tool: in.Tool, Params: in.Params, Reason: in.Reason, Target: in.Target, Key: in.IdempotencyKey, Thread: in.Thread, OnBehalfOf: in.OnBehalfOf,
		Model: in.Model, PromptVersion: in.PromptVersion, AgentVersion: in.AgentVersion, Metadata: in.Metadata, Once: once(c, body),
	})
	if err != nil {
		return err
	}
	if !isNew {
		c.Response().Header().Set("Idempotency-Replayed", "true")
	}
	return created(c, "/actions/"+view.ID, view)
}

// showAction is GET /actions/{id}, waiting with ?wait= until its status
// changes.
func (a *api) showAction(c echo.Context) error {
	q := newQuery(c)
	wait := q.wait()
	if err := q.err(); err != nil {
		return err
	}
	if wait > 0 {
		leave, err := a.waits.enter(principal(c).Token)
		if err != nil {
			return err
		}
		defer leave()
	}
	view, err := a.desk.WaitAction(c.Request().Context(), principal(c), c.Param("id"), wait)
	return orJSON(c, view, err)
}

// withdrawAction is POST /actions/{id}/withdraw.
func (a *api) withdrawAction(c echo.Context) error {
	var in struct {
		Reason string `json:"reason"`
	}
	if _, err := readJSON(c, &in); err != nil {
		return err
	}
	view, err := a.desk.Withdraw(c.Request().Context(), principal(c), c.Param("id"), in.Reason)
	return orJSON(c, view, err)
}

// listEffects is GET /effects.
func (a *api) listEffects(c echo.Context) error {
	q := newQuery(c)
	status := q.text("status")
	cursor, limit := q.page()
	if err := q.err(); err != nil {
		return err
	}
	page, err := a.desk.EffectList(c.Request().Context(), principal(c), desk.EffectQuery{Status: status, Cursor: cursor, Limit: limit})
	return orJSON(c, page, err)
}

// showEffect is GET /effects/{id}.
func (a *api) showEffect(c echo.Context) error {
	if err := newQuery(c).err(); err != nil {
		return err
	}
	effect, err := a.desk.Effect(c.Request().Context(), principal(c), c.Param("id"))
	return orJSON(c, effect, err)
}

// resolveEffect is POST /effects/{id}/resolve.
func (a *api) resolveEffect(c echo.Context) error {
	var in struct {
		Outcome  string          `json:"outcome"`
		Evidence string          `json:"evidence"`
		Receipt  json.RawMessage `json:"receipt"`
	}
	if _, err := readJSON(c, &in); err != nil {
		return err
	}
	effect, err := a.desk.Resolve(c.Request().Context(), principal(c), c.Param("id"), desk.Resolve{Outcome: in.Outcome, Evidence: in.Evidence, Receipt: in.Receipt})
	return orJSON(c, effect, err)
}

// listDefinitions is GET /workflows, /tools and /policies.
func (a *api) listDefinitions(kind string) echo.HandlerFunc {
	return func(c echo.Context) error {
		if err := newQuery(c).err(); err != nil {
			return err
		}
		page, err := a.desk.DefinitionList(c.Request().Context(), principal(c), kind)
		return orJSON(c, page, err)
	}
}

// explain is POST /policies/explain: who would have to approve this call.
func (a *api) explain(c echo.Context) error {
	var in struct {
		Tool       string          `json:"tool"`
		Params     json.RawMessage `json:"params"`
		Workflow   string          `json:"workflow"`
		OnBehalfOf string          `json:"on_behalf_of"`
	}
	if _, err := readJSON(c, &in); err != nil {
		return err
	}
	answer, err := a.desk.Explain(c.Request().Context(), principal(c), desk.Explain{Tool: in.Tool, Params: in.Params, Workflow: in.Workflow, OnBehalfOf: in.OnBehalfOf})
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, answer)
}
