package api

import (
	"encoding/json"
	"net/http"

	"countersign/internal/desk"

	"github.com/labstack/echo/v4"
)

// startRun is POST /runs.
func (a *api) startRun(c echo.Context) error {
	var in struct {
		Workflow   string          `json:"workflow"`
		Version    int             `json:"version"`
		Input      json.RawMessage `json:"input"`
		RunKey     string          `json:"run_key"`
		Thread     string          `json:"thread"`
		OnBehalfOf string          `json:"on_behalf_of"`
	}
	body, err := readJSON(c, &in)
	if err != nil {
		return err
	}
	run, isNew, err := a.desk.StartRun(c.Request().Context(), principal(c), desk.StartRun{
		Workflow: in.Workflow, Version: in.Version, Input: in.Input, Key: in.RunKey, Thread: in.Thread, OnBehalfOf: in.OnBehalfOf,
		Once: once(c, body),
	})
	if err != nil {
		return err
	}
	if !isNew {
		c.Response().Header().Set("Idempotency-Replayed", "true")
	}
	return created(c, "/runs/"+string(run.ID), run)
}

// once is the caller's idempotency key with what it must always come with.
func once(c echo.Context, body []byte) desk.Once {
	return desk.Once{Key: c.Request().Header.Get("Idempotency-Key"), Route: c.Path(), Body: body}
}

// listRuns is GET /runs.
func (a *api) listRuns(c echo.Context) error {
	q := newQuery(c)
	f := desk.RunQuery{Status: q.text("status"), Workflow: q.text("workflow"), Initiator: q.text("initiator"), Text: q.text("q"), Since: q.instant("since")}
	f.Cursor, f.Limit = q.page()
	if err := q.err(); err != nil {
		return err
	}
	page, err := a.desk.Runs(c.Request().Context(), principal(c), f)
	return orJSON(c, page, err)
}

// orJSON answers v unless there is an error.
func orJSON(c echo.Context, v any, err error) error {
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, v)
}

// showRun is GET /runs/{id}, waiting with ?wait= until the version passes
// ?after=.
func (a *api) showRun(c echo.Context) error {
	q := newQuery(c)
	wait, after := q.wait(), q.integer("after", 0, 1<<53, -1)
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
	run, err := a.desk.WaitRun(c.Request().Context(), principal(c), c.Param("id"), after, wait)
	return orJSON(c, run, err)
}

// listSteps is GET /runs/{id}/steps.
func (a *api) listSteps(c echo.Context) error {
	if err := newQuery(c).err(); err != nil {
		return err
	}
	page, err := a.desk.Steps(c.Request().Context(), principal(c), c.Param("id"))
	return orJSON(c, page, err)
}

// listCheckpoints is GET /runs/{id}/checkpoints.
func (a *api) listCheckpoints(c echo.Context) error {
	if err := newQuery(c).err(); err != nil {
		return err
	}
	page, err := a.desk.Checkpoints(c.Request().Context(), principal(c), c.Param("id"))
	return orJSON(c, page, err)
}

// listRunEffects is GET /runs/{id}/effects.
func (a *api) listRunEffects(c echo.Context) error {
	if err := newQuery(c).err(); err != nil {
		return err
	}
	page, err := a.desk.RunEffects(c.Request().Context(), principal(c), c.Param("id"))
	return orJSON(c, page, err)
}

// listRunEntries is GET /runs/{id}/audit.
func (a *api) listRunEntries(c echo.Context) error {
	q := newQuery(c)
	f := desk.EntryQuery{Run: c.Param("id")}
	f.Cursor, f.Limit = q.page()
	if err := q.err(); err != nil {
		return err
	}
	page, err := a.desk.Entries(c.Request().Context(), principal(c), f)
	return orJSON(c, page, err)
}

// resumeRun is POST /runs/{id}/resume.
func (a *api) resumeRun(c echo.Context) error {
	var in struct {
		ExpectedVersion *int64 `json:"expected_version"`
	}
	if _, err := readJSON(c, &in); err != nil {
		return err
	}
	if in.ExpectedVersion == nil {
		return missing("/expected_version", "the version of the run you looked at, so that an old page cannot undo a newer state")
	}
	resumed, err := a.desk.Resume(c.Request().Context(), principal(c), c.Param("id"), *in.ExpectedVersion)
	return orJSON(c, resumed, err)
}

// cancelRun is POST /runs/{id}/cancel.
func (a *api) cancelRun(c echo.Context) error {
	var in struct {
		Reason string `json:"reason"`
	}
	if _, err := readJSON(c, &in); err != nil {
		return err
	}
	run, err := a.desk.Cancel(c.Request().Context(), principal(c), c.Param("id"), in.Reason)
	return orJSON(c, run, err)
}

// replayRun is POST /runs/{id}/replay.
func (a *api) replayRun(c echo.Context) error {
	if _, err := readJSON(c, &struct{}{}); err != nil {
		return err
	}
	replay, err := a.desk.Replay(c.Request().Context(), principal(c), c.Param("id"))
	return orJSON(c, replay, err)
}

// migrateRun is POST /runs/{id}/migrate.
func (a *api) migrateRun(c echo.Context) error {
	var in struct {
		To              int    `json:"to"`
		ExpectedVersion *int64 `json:"expected_version"`
		DryRun          bool   `json:"dry_run"`
	}
	if _, err := readJSON(c, &in); err != nil {
		return err
	}
	if in.ExpectedVersion == nil {
		return missing("/expected_version", "the version of the run you looked at, so that an old page cannot undo a newer state")
	}
	moved, err := a.desk.Migrate(c.Request().Context(), principal(c), c.Param("id"), desk.Migrate{To: in.To, Expected: *in.ExpectedVersion, DryRun: in.DryRun})
	return orJSON(c, moved, err)
}

// eraseRun is POST /runs/{id}/erase.
func (a *api) eraseRun(c echo.Context) error {
	var in struct {
		Reason string `json:"reason"`
	}
	if _, err := readJSON(c, &in); err != nil {
		return err
	}
	erased, err := a.desk.Erase(c.Request().Context(), principal(c), c.Param("id"), in.Reason)
	return orJSON(c, erased, err)
}

// corrections is GET /runs/{id}/corrections.
func (a *api) corrections(c echo.Context) error {
	plan, err := a.desk.CorrectionPlan(c.Request().Context(), principal(c), c.Param("id"))
	return orJSON(c, desk.Page[desk.Correction]{Items: plan}, err)
}

// correctRun is POST /runs/{id}/corrections.
func (a *api) correctRun(c echo.Context) error {
	var in struct {
		Reason string `json:"reason"`
	}
	if _, err := readJSON(c, &in); err != nil {
		return err
	}
	run, err := a.desk.Correct(c.Request().Context(), principal(c), c.Param("id"), in.Reason)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, run)
}
