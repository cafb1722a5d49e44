package browser

import (
	"fmt"
	"net/http"

	"countersign/internal/desk"
	"countersign/internal/engine"
	"countersign/web/templates/pages"
	"countersign/web/templates/parts"

	"github.com/labstack/echo/v4"
)

// listRuns is GET /runs.
func (b *Browser) listRuns(c echo.Context) error {
	f := desk.RunQuery{Status: c.QueryParam("status"), Workflow: c.QueryParam("workflow"), Initiator: c.QueryParam("initiator"), Text: c.QueryParam("q"), Cursor: c.QueryParam("cursor")}
	list, err := b.desk.Runs(c.Request().Context(), who(c), f)
	if err != nil {
		return err
	}
	names, err := b.workflowNames(c)
	if err != nil {
		return err
	}
	page, err := b.frame(c, "Runs")
	if err != nil {
		return err
	}
	v := pages.RunsView{Page: page, Search: search("/runs", f.Text, "id or key", map[string]string{"status": f.Status, "workflow": f.Workflow},
		filter("status", "Status", f.Status, engine.Running, engine.WaitingApproval, engine.Sleeping, engine.Retrying, engine.Blocked, engine.Completed,
			engine.RunRejected, engine.RunExpired, engine.Failed, engine.Cancelled),
		filter("workflow", "Workflow", f.Workflow, names...))}
	for _, r := range list.Items {
		v.Rows = append(v.Rows, b.runRow(r))
	}
	if len(v.Rows) == 0 {
		v.Empty = emptyRuns(v.Search.Clear != "")
	}
	if list.Next != "" {
		v.More = withQuery("/runs", "q", f.Text, "status", f.Status, "workflow", f.Workflow, "cursor", list.Next)
	}
	if desk.May(who(c), "runs:write") {
		v.Start = "/runs/new"
	}
	return render(c, http.StatusOK, pages.Runs(v))
}

func emptyRuns(filtered bool) *parts.Empty {
	if filtered {
		return &parts.Empty{Title: "No run matches", Text: "Take a filter off, or search for less.", Next: &parts.Link{Text: "All runs", URL: "/runs"}}
	}
	return &parts.Empty{Title: "No runs yet", Text: "Runs are started here, from the command line, or by programs through the API."}
}

// workflowNames lists the workflows people can start, by name.
func (b *Browser) workflowNames(c echo.Context) ([]string, error) {
	list, err := b.desk.DefinitionList(c.Request().Context(), who(c), "workflow")
	var names []string
	for _, d := range list.Items {
		if d.InForce {
			names = append(names, d.Name)
		}
	}
	return names, err
}

func (b *Browser) runRow(r engine.Run) pages.RunRow {
	row := pages.RunRow{ID: string(r.ID), URL: address("/runs/", string(r.ID)), Name: runName(r), Workflow: fmt.Sprintf("%s %d", r.Workflow, r.WorkflowVersion),
		Status: status(r.Status), Step: r.Step, By: byName(r.InitiatorName, r.OnBehalfOf), Started: b.at(r.CreatedAt), Progress: b.at(r.UpdatedAt)}
	if len(r.WaitingFor) > 0 {
		row.Waits = r.WaitingFor[0].NextAction
	}
	if r.Status == engine.Blocked && r.Error != nil {
		row.Waits = r.Error.Message
	}
	return row
}

// runName is the run's key, else the end of its id.
func runName(r engine.Run) string {
	if r.Key != "" {
		return r.Key
	}
	return shortID(string(r.ID))
}
