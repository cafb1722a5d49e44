package browser

import (
	"net/http"

	"countersign/internal/approvals"
	"countersign/internal/canon"
	"countersign/internal/problem"

	"github.com/labstack/echo/v4"
)

// downloadSubject is GET /approvals/{id}/subject: the bytes the digest is of.
func (b *Browser) downloadSubject(c echo.Context) error {
	a, err := b.desk.Approval(c.Request().Context(), who(c), c.Param("id"))
	if err != nil {
		return err
	}
	return c.Blob(http.StatusOK, "text/plain; charset=utf-8", a.Subject)
}

var errNoValue = problem.New(problem.NotFound, "not_found", "The request has no such value.")

// downloadValue is GET /approvals/{id}/value?path=…: the exact bytes of one
// parameter.
func (b *Browser) downloadValue(c echo.Context) error {
	a, err := b.desk.Approval(c.Request().Context(), who(c), c.Param("id"))
	if err != nil {
		return err
	}
	whole := a.Params
	if a.Kind == approvals.KindDocument {
		whole = a.Document
	}
	if len(whole) == 0 {
		return errNoValue
	}
	doc, err := canon.Value(whole)
	if err != nil {
		return err
	}
	v, ok := canon.Get(doc, c.QueryParam("path"))
	if !ok {
		return errNoValue
	}
	if s, text := v.(string); text {
		return c.Blob(http.StatusOK, "text/plain; charset=utf-8", []byte(s))
	}
	raw, err := canon.Marshal(v)
	if err != nil {
		return err
	}
	return c.Blob(http.StatusOK, "text/plain; charset=utf-8", raw)
}

// downloadReceipt is GET /approvals/{id}/receipt.
func (b *Browser) downloadReceipt(c echo.Context) error {
	file, err := b.desk.Receipt(c.Request().Context(), who(c), c.Param("id"))
	if err != nil {
		return err
	}
	c.Response().Header().Set("Content-Disposition", `attachment; filename="receipt-`+c.Param("id")+`.json"`)
	return c.Blob(http.StatusOK, "application/json", file)
}
