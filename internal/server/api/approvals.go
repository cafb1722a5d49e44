package api

import (
	"encoding/json"
	"net/http"
	"time"

	"countersign/internal/desk"
	"countersign/internal/id"
	"countersign/internal/problem"

	"github.com/labstack/echo/v4"
)

// missing is the problem of a field that a body needs.
func missing(pointer, why string) error {
	return problem.New(problem.Invalid, "invalid", "The body lacks a field that this call needs.").At(pointer, "%s", why)
}

// listTodo is GET /todo?for=me: what waits for the caller, in inbox order.
func (a *api) listTodo(c echo.Context) error {
	q := newQuery(c)
	whose := q.text("for")
	if err := q.err(); err != nil {
		return err
	}
	if whose != "" && whose != "me" {
		return problem.New(problem.Invalid, "invalid_query", "Only your own list can be read.").At("for", "must be me")
	}
	page, err := a.desk.Inbox(c.Request().Context(), principal(c))
	return orJSON(c, page, err)
}

// listApprovals is GET /approvals.
func (a *api) listApprovals(c echo.Context) error {
	q := newQuery(c)
	f := desk.ApprovalQuery{Status: q.text("status"), Tool: q.text("tool"), Risk: q.text("risk"), Text: q.text("q"), ForMe: q.text("for") == "me", Run: id.Run(q.text("run"))}
	f.Cursor, f.Limit = q.page()
	if err := q.err(); err != nil {
		return err
	}
	page, err := a.desk.Approvals(c.Request().Context(), principal(c), f)
	return orJSON(c, page, err)
}

// showApproval is GET /approvals/{id}.
func (a *api) showApproval(c echo.Context) error {
	if err := newQuery(c).err(); err != nil {
		return err
	}
	view, err := a.desk.Approval(c.Request().Context(), principal(c), c.Param("id"))
	return orJSON(c, view, err)
}

// decide is POST /approvals/{id}/decision.
func (a *api) decide(c echo.Context) error {
	var in struct {
		Verdict string `json:"verdict"`
		Digest  string `json:"digest"`
		Comment string `json:"comment"`
	}
	if _, err := readJSON(c, &in); err != nil {
		return err
	}
	decided, err := a.desk.Decide(c.Request().Context(), principal(c), c.Param("id"), desk.Decide{Verdict: in.Verdict, Digest: in.Digest, Comment: in.Comment})
	return orJSON(c, decided, err)
}

// edit is POST /approvals/{id}/edit.
func (a *api) edit(c echo.Context) error {
	var in struct {
		Digest string `json:"digest"`
		Edits  []struct {
			Path  string          `json:"path"`
			Value json.RawMessage `json:"value"`
		} `json:"edits"`
		Comment string `json:"comment"`
	}
	if _, err := readJSON(c, &in); err != nil {
		return err
	}
	e := desk.Edit{Digest: in.Digest, Comment: in.Comment}
	for _, one := range in.Edits {
		e.Edits = append(e.Edits, desk.FieldEdit{Pointer: one.Path, Value: one.Value})
	}
	view, err := a.desk.Edit(c.Request().Context(), principal(c), c.Param("id"), e)
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusCreated, view)
}

// retract is POST /approvals/{id}/retract.
func (a *api) retract(c echo.Context) error {
	var in struct {
		Reason string `json:"reason"`
	}
	if _, err := readJSON(c, &in); err != nil {
		return err
	}
	view, err := a.desk.Retract(c.Request().Context(), principal(c), c.Param("id"), in.Reason)
	return orJSON(c, view, err)
}

// extend is POST /approvals/{id}/extend.
func (a *api) extend(c echo.Context) error {
	var in struct {
		DecideBy time.Time `json:"decide_by"`
		Reason   string    `json:"reason"`
	}
	if _, err := readJSON(c, &in); err != nil {
		return err
	}
	view, err := a.desk.Extend(c.Request().Context(), principal(c), c.Param("id"), in.DecideBy, in.Reason)
	return orJSON(c, view, err)
}

// revoke is POST /approvals/{id}/revoke.
func (a *api) revoke(c echo.Context) error {
	var in struct {
		Reason string `json:"reason"`
	}
	if _, err := readJSON(c, &in); err != nil {
		return err
	}
	view, err := a.desk.Revoke(c.Request().Context(), principal(c), c.Param("id"), in.Reason)
	return orJSON(c, view, err)
}

// comment is POST /approvals/{id}/comments.
func (a *api) comment(c echo.Context) error {
	var in struct {
		Text string `json:"text"`
	}
	if _, err := readJSON(c, &in); err != nil {
		return err
	}
	if err := a.desk.Comment(c.Request().Context(), principal(c), c.Param("id"), in.Text); err != nil {
		return err
	}
	view, err := a.desk.Approval(c.Request().Context(), principal(c), c.Param("id"))
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusCreated, view)
}
