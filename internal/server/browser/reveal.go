package browser

import (
	"net/http"

	"countersign/internal/desk"
	"countersign/internal/identity"
	"countersign/internal/problem"
	"countersign/web/templates/parts"

	"github.com/labstack/echo/v4"
)

// reveal is POST /approvals/{id}/reveal: the request's page with one
// sensitive value shown, once, to whoever may see it.
func (b *Browser) reveal(c echo.Context) error {
	pointer := c.FormValue("path")
	value, err := b.desk.Reveal(c.Request().Context(), who(c), c.Param("id"), pointer)
	if problem.HasCode(err, "sensitive_gone") || problem.HasCode(err, "sensitive_altered") {
		return b.approvalPage(c, http.StatusConflict, decisionForm{banner: &parts.Notice{Tone: "bad", Title: "The value cannot be shown", Text: problem.From(err).Message}})
	}
	if err != nil {
		return err
	}
	return b.approvalPage(c, http.StatusOK, decisionForm{shown: map[string]string{pointer: leafText(value)}})
}

// sensitive offers the sensitive values among the rows to whoever may see
// them, and shows those that were asked for.
func sensitive(rows []parts.Value, a desk.Approval, f decisionForm, p identity.Principal) {
	for i := range rows {
		r := &rows[i]
		if !r.Masked {
			continue
		}
		if text, ok := f.shown[r.Pointer]; ok {
			r.Masked, r.Text, r.Origin = false, text, "sensitive: shown to you once, and recorded"
			continue
		}
		if a.Eligible.You || desk.May(p, "audit:read") {
			r.UnmaskURL = withQuery(address("/approvals/", a.ID)+"/reveal", "from", f.from)
		}
	}
}
