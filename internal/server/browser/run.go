package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"countersign/internal/audit"
	"countersign/internal/desk"
	"countersign/internal/engine"
	"countersign/internal/id"
	"countersign/internal/problem"
	"countersign/internal/server/edge"
	"countersign/web/templates/pages"
	"countersign/web/templates/parts"

	"github.com/labstack/echo/v4"
)

// showRun is GET /runs/{id}.
func (b *Browser) showRun(c echo.Context) error { return b.runPage(c, http.StatusOK, refused{}) }

// refused is a form of a run's page that was refused, with what was typed.
type refused struct {
	reason, fault string // of the cancel form, or the correction form

	question string // anchor of the question that was answered
	answer   *problem.Error
	typed    json.RawMessage
}

// runPage shows a run.
func (b *Browser) runPage(c echo.Context, code int, r refused) error {
	story, err := b.runStory(c)
	if err != nil {
		return err
	}
	page, err := b.frame(c, "Run "+runName(story.run))
	if err != nil {
		return err
	}
	v := b.runView(story)
	v.Page = page
	v.Actions = runActions(story.run, desk.May(who(c), "operate") || story.run.Initiator == string(who(c).Person))
	for _, offer := range []func(echo.Context, engine.Run, *pages.RunActions) error{b.corrections, b.moves} {
		if err := offer(c, story.run, &v.Actions); err != nil {
			return err
		}
	}
	v.Actions.Reason, v.Actions.Error = r.reason, r.fault
	for _, q := range story.questions {
		if a := b.asking(c, q, r); a != nil {
			v.Asking = append(v.Asking, *a)
		}
	}
	return render(c, code, pages.Run(v))
}

// story is a run with everything that belongs to it.
type story struct {
	run       engine.Run
	steps     []engine.Step
	effects   []engine.Effect
	points    []engine.Checkpoint
	requests  []desk.Approval
	entries   []audit.Entry
	questions []desk.Question
	plan      desk.WorkflowPlan
}

func (b *Browser) runStory(c echo.Context) (s story, err error) {
	ctx, p, ref := c.Request().Context(), who(c), c.Param("id")
	if s.run, err = b.desk.Run(ctx, p, ref); err != nil {
		return s, err
	}
	for _, load := range []func(context.Context) error{
		func(ctx context.Context) error { return items(&s.steps)(b.desk.Steps(ctx, p, ref)) },
		func(ctx context.Context) error { return items(&s.effects)(b.desk.RunEffects(ctx, p, ref)) },
		func(ctx context.Context) error { return items(&s.points)(b.desk.Checkpoints(ctx, p, ref)) },
		func(ctx context.Context) error {
			return items(&s.requests)(b.desk.Approvals(ctx, p, desk.ApprovalQuery{Run: s.run.ID}))
		},
		func(ctx context.Context) error {
			return items(&s.entries)(b.desk.Entries(ctx, p, desk.EntryQuery{Run: string(s.run.ID)}))
		},
		func(ctx context.Context) error { return items(&s.questions)(b.desk.RunQuestions(ctx, p, ref)) },
		func(ctx context.Context) error {
			s.plan, err = b.desk.WorkflowPlan(ctx, p, s.run.WorkflowDigest)
			return err
		},
	} {
		if err := load(ctx); err != nil {
			return s, err
		}
	}
	return s, nil
}

// items puts a page's items where they belong.
func items[T any](into *[]T) func(desk.Page[T], error) error {
	return func(page desk.Page[T], err error) error {
		*into = page.Items
		return err
	}
}

func (b *Browser) runView(s story) pages.RunView {
	r := s.run
	v := pages.RunView{ID: string(r.ID), Name: runName(r), Title: s.plan.Title, URL: address("/runs/", string(r.ID)), Status: status(r.Status),
		Workflow: parts.Link{Text: fmt.Sprintf("%s %d", r.Workflow, r.WorkflowVersion), URL: fmt.Sprintf("/definitions/workflow/%s/%d", r.Workflow, r.WorkflowVersion)},
		Version:  r.Version, Map: runMap(s), Input: document("Input", r.Input), Output: document("Output", r.Output), Facts: b.runFacts(r)}
	for _, w := range r.WaitingFor {
		v.Waiting = append(v.Waiting, b.waiting(w))
	}
	if r.Error != nil {
		v.Error = runError(r)
	}
	for _, t := range s.steps {
		step := b.runStep(t, stepTitle(s.plan, t.Path))
		step.Note = questionNote(s.questions, t)
		v.Steps = append(v.Steps, step)
	}
	for _, e := range s.effects {
		v.Effects = append(v.Effects, b.effectRow(e))
	}
	for _, a := range s.requests {
		v.Requests = append(v.Requests, pages.RequestRow{URL: address("/approvals/", a.ID), Title: heading(a), Revision: a.Revision, Status: status(a.Status),
			Digest: a.Digest, By: a.ClosedBy, At: b.at(a.CreatedAt)})
	}
	for _, p := range slices.Backward(s.points) {
		v.Points = append(v.Points, b.pointRow(r, p))
	}
	for _, e := range s.entries {
		v.Audit = append(v.Audit, b.entryRow(e))
	}
	return v
}

func (b *Browser) waiting(w engine.Waiting) pages.Waiting {
	v := pages.Waiting{Title: w.NextAction, Who: w.Who, Until: b.at(w.Until), Resumes: w.ResumesWhen}
	switch {
	case w.Kind == engine.WaitApproval && w.Subject != "":
		v.Title, v.Next = "Approval of "+w.Path, &parts.Link{Text: "Open the request", URL: address("/approvals/", w.Subject)}
	case w.Kind == engine.WaitInput:
		v.Title = "An answer at " + w.Path
	case w.Kind == engine.WaitTimer:
		v.Title = "Asleep at " + w.Path
	case w.Kind == engine.WaitRetry:
		v.Title = "The next try of " + w.Path + " waits"
	case w.Kind == engine.WaitPerson && id.Valid("eff_", w.Subject):
		v.Next = &parts.Link{Text: "Say what happened", URL: address("/effects/", w.Subject)}
	}
	return v
}

func runError(r engine.Run) *parts.Notice {
	title := "It failed"
	if r.Status == engine.Blocked {
		title = "It is blocked: a person must act"
	}
	return &parts.Notice{Tone: "bad", Title: title, Text: r.Error.Message}
}

// runActions are the buttons that apply now.
func runActions(r engine.Run, may bool) pages.RunActions {
	a := pages.RunActions{Expected: r.Version}
	switch {
	case engine.Final(r.Status):
		a.WhyNone = "It has ended. A run that has ended is not started again."
		return a
	case !may:
		a.WhyNone = "Operators, and whoever started the run, can resume or cancel it."
		return a
	}
	url := address("/runs/", string(r.ID))
	a.Cancel, a.CancelNote = url+"/cancel", "What was not sent will not be. What was sent is waited for, or stays unknown until somebody says."
	a.Resume, a.ResumeNote = url+"/resume", "Continues after version "+strconv.FormatInt(r.Version, 10)+". Its record, versions, unknown effects, approvals and deadlines are checked first."
	return a
}

// stepTitle is what the workflow calls a step; its path where it says nothing.
func stepTitle(plan desk.WorkflowPlan, path string) string {
	for _, n := range plan.Graph.Nodes {
		if n.Path == path && n.Title != "" {
			return n.Title
		}
	}
	return path
}

func (b *Browser) runStep(t engine.Step, title string) pages.RunStep {
	v := pages.RunStep{Path: t.Path, Pass: t.Pass, Anchor: anchor(t.Path, t.Pass), Title: title, Kind: t.Kind, Tool: t.Tool, Status: status(t.Status), Attempts: t.Attempts,
		Started: b.at(t.StartedAt), Output: document("Output", t.Output)}
	if t.Status != "waiting" {
		v.Took = took(t.StartedAt, t.UpdatedAt)
	}
	if t.Error != nil {
		v.Error = t.Error.Message
	}
	return v
}

func anchor(path string, pass int) string { return fmt.Sprintf("step-%s-%d", path, pass) }

func (b *Browser) effectRow(e engine.Effect) pages.EffectRow {
	return pages.EffectRow{ID: string(e.ID), URL: address("/effects/", string(e.ID)), Path: e.Path, Tool: fmt.Sprintf("%s %d", e.Tool, e.ToolVersion), Status: status(e.Status),
		Key: e.Key, Attempts: e.Attempts, Sent: b.at(e.SentAt), Receipt: e.ExternalRef, By: e.ResolvedBy}
}

func (b *Browser) pointRow(r engine.Run, p engine.Checkpoint) pages.PointRow {
	return pages.PointRow{Version: p.Version, URL: fmt.Sprintf("/runs/%s/checkpoints/%d", r.ID, p.Version), Event: eventWords(p), Path: p.Path, By: creator(p.Creator), At: b.at(p.CreatedAt), Digest: p.Digest}
}

func creator(c engine.Creator) string {
	if c.Person != nil {
		return c.Person.Name
	}
	return fmt.Sprintf("%s, fence %d", c.Driver, c.Fence)
}

func (b *Browser) runFacts(r engine.Run) []parts.Fact {
	facts := []parts.Fact{
		{Name: "Run", Text: string(r.ID), Mono: true}, {Name: "Started by", Text: byName(r.InitiatorName, r.OnBehalfOf)}, {Name: "Started", Time: b.at(r.CreatedAt)},
		{Name: "Last progress", Time: b.at(r.UpdatedAt)},
	}
	if !r.FinishedAt.IsZero() {
		facts = append(facts, parts.Fact{Name: "Ended", Time: b.at(r.FinishedAt)})
	}
	if r.Key != "" {
		facts = append(facts, parts.Fact{Name: "Key", Text: r.Key, Mono: true})
	}
	facts = append(facts, parts.Fact{Name: "Workflow", Digest: r.WorkflowDigest}, parts.Fact{Name: "Trace", Text: r.TraceID, Mono: true})
	if r.Lease.Owner != "" {
		facts = append(facts, parts.Fact{Name: "Driven by", Text: r.Lease.Owner + ", fence " + strconv.FormatInt(r.Lease.Fence, 10), Mono: true})
	}
	return facts
}

// resumeRun is POST /runs/{id}/resume.
func (b *Browser) resumeRun(c echo.Context) error {
	expected, err := strconv.ParseInt(c.FormValue("expected_version"), 10, 64)
	if err != nil {
		return problem.New(problem.Malformed, "malformed", "The form lacks the version of the run it was made on. Open the run again.")
	}
	resumed, err := b.desk.Resume(c.Request().Context(), who(c), c.Param("id"), expected)
	if p := problem.From(err); p != nil {
		if p.Kind != problem.Conflict {
			return err
		}
		say(c, "warn", "Nothing was started", p.Message)
	} else {
		say(c, "good", "Resumed", "It goes on from version "+strconv.FormatInt(resumed.Run.Version, 10)+".")
	}
	return see(c, address("/runs/", c.Param("id")))
}

// cancelRun is POST /runs/{id}/cancel.
func (b *Browser) cancelRun(c echo.Context) error {
	reason := c.FormValue("reason")
	_, err := b.desk.Cancel(c.Request().Context(), who(c), c.Param("id"), reason)
	if p := problem.From(err); p != nil {
		if p.Kind == problem.Invalid {
			return b.runPage(c, edge.Status(p), refused{reason: reason, fault: faultAt(p, "/reason")})
		}
		return err
	}
	say(c, "good", "Cancelled", "Nothing more is sent for this run.")
	return see(c, address("/runs/", c.Param("id")))
}
