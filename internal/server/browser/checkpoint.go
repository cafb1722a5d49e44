package browser

import (
	"fmt"
	"net/http"
	"strconv"

	"countersign/internal/desk"
	"countersign/internal/engine"
	"countersign/internal/problem"
	"countersign/web/templates/pages"
	"countersign/web/templates/parts"

	"github.com/labstack/echo/v4"
)

// showCheckpoint is GET /runs/{id}/checkpoints/{version}.
func (b *Browser) showCheckpoint(c echo.Context) error {
	run, err := b.desk.Run(c.Request().Context(), who(c), c.Param("id"))
	if err != nil {
		return err
	}
	all, err := b.desk.Checkpoints(c.Request().Context(), who(c), c.Param("id"))
	if err != nil {
		return err
	}
	version, err := strconv.ParseInt(c.Param("version"), 10, 64)
	i := int(version) - 1
	if err != nil || i < 0 || i >= len(all.Items) {
		return problem.New(problem.NotFound, "not_found", "The run has no version %s; it has %d.", c.Param("version"), len(all.Items))
	}
	page, err := b.frame(c, fmt.Sprintf("Version %d of run %s", version, runName(run)))
	if err != nil {
		return err
	}
	plan, err := b.desk.WorkflowPlan(c.Request().Context(), who(c), run.WorkflowDigest)
	if err != nil {
		return err
	}
	v := b.checkpointView(run, plan, all.Items, i)
	v.Page = page
	return render(c, http.StatusOK, pages.Checkpoint(v))
}

func (b *Browser) checkpointView(run engine.Run, plan desk.WorkflowPlan, all []engine.Checkpoint, i int) pages.CheckpointView {
	p := all[i]
	url := address("/runs/", string(run.ID))
	v := pages.CheckpointView{Back: parts.Link{Text: "Run " + runName(run), URL: url}, Version: p.Version, Of: int64(len(all)), Event: document("Event", p.Event),
		Facts: []parts.Fact{{Name: "Event", Text: eventWords(p)}, {Name: "Step", Text: p.Path}, {Name: "At", Time: b.at(p.CreatedAt)}, {Name: "By", Text: creator(p.Creator), Mono: true},
			{Name: "Digest", Digest: p.Digest}, {Name: "Previous", Digest: p.Previous}, {Name: "Engine", Text: fmt.Sprintf("%s, state schema %d", p.Engine, p.Schema)}}}
	if i > 0 {
		v.Previous = fmt.Sprintf("%s/checkpoints/%d", url, p.Version-1)
	}
	if i+1 < len(all) {
		v.Next = fmt.Sprintf("%s/checkpoints/%d", url, p.Version+1)
	}
	for _, before := range all[:i+1] {
		if len(before.Output) > 0 && before.Path != "" {
			v.State = append(v.State, pages.RunStep{Path: before.Path, Anchor: fmt.Sprintf("at-%d", before.Version), Title: stepTitle(plan, before.Path), Status: status("completed"),
				Started: b.at(before.CreatedAt), Output: document("Output", before.Output)})
		}
	}
	return v
}
