package browser

import (
	"strconv"
	"time"

	"countersign/internal/desk"
	"countersign/internal/identity"
	"countersign/internal/problem"
	"countersign/internal/server/edge"
	"countersign/web/templates/pages"

	"github.com/labstack/echo/v4"
)

// The forms of reconsidering, as decisionForm.again and their addresses name
// them.
const (
	formRetract = "retract"
	formExtend  = "extend"
)

// extendHoursMax is the longest time the page gives more at once.
const extendHoursMax = 168

// reconsider is what the person may change about a request that waits.
func reconsider(a desk.Approval, f decisionForm, p identity.Principal) *pages.Reconsider {
	url := func(form string) string { return withQuery(address("/approvals/", a.ID)+"/"+form, "from", f.from) }
	r := &pages.Reconsider{Open: f.again, Reason: f.reason, Error: f.fault}
	for _, d := range a.Decisions {
		if d.Person.ID == string(p.Person) && d.Revision == a.Revision && d.Verdict == "approve" && d.RetractedAt.IsZero() {
			r.Retract = url(formRetract)
		}
	}
	if desk.May(p, "operate") && !a.DecideBy.IsZero() {
		r.Extend = url(formExtend)
	}
	if r.Retract == "" && r.Extend == "" {
		return nil
	}
	return r
}

// retract is POST /approvals/{id}/retract.
func (b *Browser) retract(c echo.Context) error {
	_, err := b.desk.Retract(c.Request().Context(), who(c), c.Param("id"), c.FormValue("reason"))
	if err != nil {
		return b.notReconsidered(c, formRetract, err)
	}
	say(c, "good", "Your approval was taken back", "It counts no more. You can decide again.")
	return see(c, requestURL(c, ""))
}

// extend is POST /approvals/{id}/extend.
func (b *Browser) extend(c echo.Context) error {
	hours, err := strconv.Atoi(c.FormValue("hours"))
	if err != nil || hours < 1 || hours > extendHoursMax {
		return problem.New(problem.Malformed, "malformed", "The form does not say how much more time. Open the request again.")
	}
	a, err := b.desk.Approval(c.Request().Context(), who(c), c.Param("id"))
	if err != nil {
		return err
	}
	a, err = b.desk.Extend(c.Request().Context(), who(c), a.ID, a.DecideBy.Add(time.Duration(hours)*time.Hour), c.FormValue("reason"))
	if err != nil {
		return b.notReconsidered(c, formExtend, err)
	}
	say(c, "good", "There is more time", "It can be decided until "+b.at(a.DecideBy).Absolute+".")
	return see(c, requestURL(c, ""))
}

// notReconsidered shows the form again where its reason is at fault, and says
// otherwise why nothing was changed.
func (b *Browser) notReconsidered(c echo.Context, form string, err error) error {
	p := problem.From(err)
	switch {
	case p.Kind == problem.Invalid:
		return b.approvalPage(c, edge.Status(p), decisionForm{again: form, reason: c.FormValue("reason"), fault: firstFault(p)})
	case p.Kind == problem.Conflict:
		say(c, "warn", "Nothing was changed", p.Message)
		return see(c, requestURL(c, ""))
	}
	return err
}
