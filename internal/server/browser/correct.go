package browser

import (
	"slices"

	"countersign/internal/desk"
	"countersign/internal/engine"
	"countersign/internal/problem"
	"countersign/internal/server/edge"
	"countersign/web/templates/pages"

	"github.com/labstack/echo/v4"
)

// corrections offers what corrects a run that has ended to whoever may propose
// it, if anything does.
func (b *Browser) corrections(c echo.Context, r engine.Run, a *pages.RunActions) error {
	p := who(c)
	mine := desk.May(p, "operate") || r.Initiator == string(p.Person)
	if !engine.Final(r.Status) || !mine || !desk.May(p, "actions:propose") {
		return nil
	}
	plan, err := b.desk.CorrectionPlan(c.Request().Context(), p, string(r.ID))
	if err != nil || !slices.ContainsFunc(plan, func(x desk.Correction) bool { return x.Tool != "" }) {
		return err
	}
	a.Correct = address("/runs/", string(r.ID)) + "/corrections"
	for _, x := range plan {
		f := pages.Fix{Did: x.Step + " with " + x.Did, Why: x.Why}
		if x.Tool != "" {
			f.With = x.Tool + ": " + x.Summary
		}
		a.Fixes = append(a.Fixes, f)
	}
	return nil
}

// correctRun is POST /runs/{id}/corrections: it leads to the run that corrects.
func (b *Browser) correctRun(c echo.Context) error {
	reason := c.FormValue("reason")
	run, err := b.desk.Correct(c.Request().Context(), who(c), c.Param("id"), reason)
	if p := problem.From(err); p != nil {
		if p.Kind == problem.Invalid {
			return b.runPage(c, edge.Status(p), refused{reason: reason, fault: faultAt(p, "/reason")})
		}
		return err
	}
	say(c, "good", "Proposed", "Nothing was done yet: each action waits for its approval.")
	return see(c, address("/runs/", string(run.ID)))
}
