package browser

import (
	"encoding/json"
	"fmt"
	"net/http"

	"countersign/internal/canon"
	"countersign/internal/desk"
	"countersign/internal/problem"
	"countersign/internal/server/edge"
	"countersign/web/templates/pages"
	"countersign/web/templates/parts"

	"github.com/labstack/echo/v4"
)

// newRun is GET /runs/new: the choice of a workflow, then its form.
func (b *Browser) newRun(c echo.Context) error { return b.startPage(c, http.StatusOK, nil) }

func (b *Browser) startPage(c echo.Context, code int, fault *problem.Error) error {
	page, err := b.frame(c, "Start a run")
	if err != nil {
		return err
	}
	v := pages.StartView{Page: page}
	name := c.FormValue("workflow")
	if name == "" {
		list, err := b.desk.DefinitionList(c.Request().Context(), who(c), "workflow")
		if err != nil {
			return err
		}
		for _, d := range list.Items {
			if d.InForce {
				v.Choices = append(v.Choices, pages.StartChoice{Name: fmt.Sprintf("%s %d", d.Name, d.Version), Title: d.Title, URL: withQuery("/runs/new", "workflow", d.Name)})
			}
		}
		return render(c, code, pages.Start(v))
	}
	form, err := b.desk.StartForm(c.Request().Context(), who(c), name)
	if err != nil {
		return err
	}
	v.Title, v.Action, v.Hidden = form.Title, "/runs", []parts.Hidden{{Name: "workflow", Value: name}}
	for _, f := range form.Fields {
		v.Fields = append(v.Fields, schemaField(f, typed(c, f), faultAt(fault, f.Pointer)))
	}
	v.Fields = append(v.Fields, parts.Field{Name: "run_key", Label: "Key", Hint: "a name of your own; the same key and input give the run that exists", Kind: "text", Value: c.FormValue("run_key"), Error: faultAt(fault, "/run_key")})
	if fault != nil {
		v.Error = &parts.Notice{Tone: "bad", Title: fault.Message}
	}
	return render(c, code, pages.Start(v))
}

// startRun is POST /runs.
func (b *Browser) startRun(c echo.Context) error {
	form, err := b.desk.StartForm(c.Request().Context(), who(c), c.FormValue("workflow"))
	if err != nil {
		return err
	}
	input := map[string]json.RawMessage{}
	for _, f := range form.Fields {
		if raw := value(f, c.FormValue(f.Pointer)); raw != nil {
			input[f.Name] = raw
		}
	}
	raw, err := canon.Marshal(input)
	if err != nil {
		return err
	}
	run, _, err := b.desk.StartRun(c.Request().Context(), who(c), desk.StartRun{Workflow: c.FormValue("workflow"), Input: raw, Key: c.FormValue("run_key")})
	if p := problem.From(err); p != nil {
		if p.Kind != problem.Invalid && p.Kind != problem.Malformed && p.Code != "run_key_taken" {
			return err
		}
		return b.startPage(c, edge.Status(p), p)
	}
	return see(c, address("/runs/", string(run.ID)))
}
