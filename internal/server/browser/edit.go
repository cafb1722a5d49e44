package browser

import (
	"fmt"
	"net/http"
	"slices"

	"countersign/internal/desk"
	"countersign/internal/problem"
	"countersign/internal/server/edge"
	"countersign/web/templates/pages"
	"countersign/web/templates/parts"

	"github.com/labstack/echo/v4"
)

// showEdit is GET /approvals/{id}/edit. Whoever could not save is told so
// before typing.
func (b *Browser) showEdit(c echo.Context) error {
	a, err := b.desk.Approval(c.Request().Context(), who(c), c.Param("id"))
	if err != nil {
		return err
	}
	switch {
	case a.Status != "pending":
		return problem.New(problem.Conflict, "not_pending", "This request is %s: nothing about it can be changed any more.", status(a.Status).Word)
	case !a.Eligible.You && a.Eligible.Why != "":
		return problem.New(problem.Forbidden, "not_eligible", "Only those who can decide a request can edit it. You cannot: %s.", a.Eligible.Why)
	case !a.Eligible.You:
		return problem.New(problem.Forbidden, "not_eligible", "Only those who can decide a request can edit it, and you are not among them.")
	case len(a.Editable) == 0:
		return problem.New(problem.Forbidden, "not_editable", "Nothing in this request may be edited. It can be rejected, with a reason.")
	}
	return b.editPage(c, http.StatusOK, nil, nil)
}

func (b *Browser) editPage(c echo.Context, code int, fault *problem.Error, outcome *desk.EditOutcome) error {
	a, err := b.desk.Approval(c.Request().Context(), who(c), c.Param("id"))
	if err != nil {
		return err
	}
	fields, err := b.desk.EditForm(c.Request().Context(), who(c), a)
	if err != nil {
		return err
	}
	page, err := b.frame(c, "Edit: "+heading(a))
	if err != nil {
		return err
	}
	v := pages.EditView{Page: page, Back: parts.Link{Text: heading(a), URL: requestURL(c, "")}, Action: requestURL(c, "/edit"), Sentence: heading(a), Risk: a.Risk, Digest: a.Digest, Revision: a.Revision,
		Fixed:   fixed(a),
		Comment: parts.Field{Name: "comment", Label: "Why the change", Kind: "text", Value: c.FormValue("comment"), Max: 2000, Error: faultAt(fault, "/comment")}}
	for _, f := range fields {
		value := typed(c, f)
		field := schemaField(f, value, faultAt(fault, f.Pointer))
		field.Original, field.Changed = f.Default, value != f.Default
		field.Reading = reading(value, f.Pointer, a.ParamLabels)
		v.Fields = append(v.Fields, field)
	}
	if fault != nil {
		v.Errors = &parts.Notice{Tone: "bad", Title: fault.Message}
		if fault.Code == "invalid" && len(fault.Fields) > 0 {
			v.Errors.Title = "Something below needs another look; nothing was saved"
		}
		if fault.Code == "stale_digest" {
			v.Errors.Text = "The fields keep what you typed; they are compared with the revision that is there now."
		}
	}
	if outcome != nil {
		v.Outcome = editOutcome(a, *outcome)
	}
	return render(c, code, pages.Edit(v))
}

// fixed are the parameters that cannot be changed here.
func fixed(a desk.Approval) parts.Values {
	v := params(a, false)
	v.Caption, v.Against, v.MustOpen = "Cannot be changed here", "", false
	v.Rows = slices.DeleteFunc(v.Rows, func(r parts.Value) bool { return slices.Contains(a.Editable, r.Pointer) })
	return v
}

func editOutcome(a desk.Approval, o desk.EditOutcome) *pages.EditOutcome {
	out := &pages.EditOutcome{Sentence: o.Summary, Save: fmt.Sprintf("Save as revision %d", o.Revision), Policy: explained(desk.Explanation{Effect: o.Effect, Rule: o.Rule, Groups: o.Groups})}
	if d := diffValues("What would change", fmt.Sprintf("revision %d", a.Revision), o.Changes, a.ParamLabels); d != nil {
		out.Diff = *d
	}
	switch o.Effect {
	case "allow":
		out.Notes = append(out.Notes, "The policy allows this without anybody: saving it lets it happen.")
	case "deny":
		out.Notes = append(out.Notes, "The policy does not allow this: saving it ends the request.")
	}
	for _, d := range a.Decisions {
		if d.Revision == a.Revision && d.Verdict == "approve" && d.RetractedAt.IsZero() {
			out.Notes = append(out.Notes, "The approval of "+d.Person.Name+" no longer counts.")
		}
	}
	if o.Problem != "" {
		out.Notes = append(out.Notes, "As things are, "+o.Problem+".")
	}
	return out
}

// edit is POST /approvals/{id}/edit: do=check shows what saving would make,
// do=save makes it.
func (b *Browser) edit(c echo.Context) error {
	a, err := b.desk.Approval(c.Request().Context(), who(c), c.Param("id"))
	if err != nil {
		return err
	}
	fields, err := b.desk.EditForm(c.Request().Context(), who(c), a)
	if err != nil {
		return err
	}
	in := desk.Edit{Digest: c.FormValue("digest"), Comment: c.FormValue("comment")}
	form, err := c.FormParams()
	if err != nil {
		return err
	}
	for _, f := range fields {
		if !form.Has(f.Pointer) || form.Get(f.Pointer) == f.Default {
			continue
		}
		raw := value(f, form.Get(f.Pointer))
		if raw == nil {
			raw = text("")
		}
		in.Edits = append(in.Edits, desk.FieldEdit{Pointer: f.Pointer, Value: raw})
	}
	if c.FormValue("do") == "save" {
		return b.saveEdit(c, in)
	}
	outcome, err := b.desk.CheckEdit(c.Request().Context(), who(c), c.Param("id"), in)
	if p := problem.From(err); p != nil {
		return b.editRefused(c, p, err)
	}
	return b.editPage(c, http.StatusOK, nil, &outcome)
}

func (b *Browser) saveEdit(c echo.Context, in desk.Edit) error {
	next, err := b.desk.Edit(c.Request().Context(), who(c), c.Param("id"), in)
	if p := problem.From(err); p != nil {
		return b.editRefused(c, p, err)
	}
	say(c, "good", fmt.Sprintf("Saved as revision %d", next.Revision), "Earlier decisions no longer count for it.")
	return see(c, requestURL(c, ""))
}

// editRefused shows the form again with what was typed.
func (b *Browser) editRefused(c echo.Context, p *problem.Error, err error) error {
	if p.Kind == problem.Internal || p.Kind == problem.NotFound {
		return err
	}
	return b.editPage(c, edge.Status(p), p, nil)
}
