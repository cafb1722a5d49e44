package api

import (
	"net/http"

	"countersign/internal/desk"

	"github.com/labstack/echo/v4"
)

// listEntries is GET /audit/entries.
func (a *api) listEntries(c echo.Context) error {
	q := newQuery(c)
	f := desk.EntryQuery{Person: q.text("person"), Subject: q.text("subject"), Action: q.text("action"), Run: q.text("run"),
		Text: q.text("q"), Since: q.instant("since"), Until: q.instant("until")}
	f.Cursor, f.Limit = q.page()
	if err := q.err(); err != nil {
		return err
	}
	page, err := a.desk.Entries(c.Request().Context(), principal(c), f)
	return orJSON(c, page, err)
}

// head is GET /audit/head.
func (a *api) head(c echo.Context) error {
	head, err := a.desk.Head(c.Request().Context(), principal(c))
	return orJSON(c, head, err)
}

// proof is GET /audit/proof?entry=.
func (a *api) proof(c echo.Context) error {
	q := newQuery(c)
	entry := q.text("entry")
	if err := q.err(); err != nil {
		return err
	}
	proof, err := a.desk.Proof(c.Request().Context(), principal(c), entry)
	return orJSON(c, proof, err)
}

// receipt is GET /audit/receipt/{approval}.
func (a *api) receipt(c echo.Context) error {
	file, err := a.desk.Receipt(c.Request().Context(), principal(c), c.Param("id"))
	if err != nil {
		return err
	}
	c.Response().Header().Set("Content-Disposition", `attachment; filename="receipt-`+c.Param("id")+`.json"`)
	return c.Blob(http.StatusOK, "application/json", file)
}
