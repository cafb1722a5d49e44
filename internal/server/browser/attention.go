package browser

import (
	"net/http"
	"strings"

	"countersign/internal/desk"
	"countersign/internal/engine"
	"countersign/web/templates/pages"
	"countersign/web/templates/parts"

	"github.com/labstack/echo/v4"
)

// causes say what each cause of attention means and what the one button of
// its rows says, in the order they are shown.
var causes = []struct{ code, title, tone, next, text string }{
	{engine.CauseUnknown, "Outcome unknown", "unknown", "Say what happened", "Something was sent and nobody can say whether it happened. It is never sent again by itself."},
	{engine.CauseClock, "The clock went back", "bad", "Look at the run", "The machine's clock is more than five minutes behind what was recorded. Nothing is decided or sent until it is put right, or its time is accepted with console clock accept."},
	{engine.CauseTampered, "The record does not agree", "bad", "Look at the run", "What is stored differs from what was recorded. Nothing was sent; keep the folder as it is and look at the audit log."},
	{engine.CauseRestored, "Put back from a backup", "warn", "Look at the run", "It was open in a backup that was restored, and what it did after the backup is not known here. It goes on when somebody resumes it; every action is asked about at its target before it is sent."},
	{engine.CauseVersion, "Cannot continue on this version", "bad", "Look at the run", "The definition the run was started with is gone, or this program cannot run it."},
	{engine.CausePoison, "Keeps failing", "bad", "Look at the run", "Whoever drives this run ends again and again without progress. The other runs go on."},
	{engine.CausePerson, "A person must act", "warn", "Look at the run", "The run does not go on by itself."},
	{desk.CauseDeadEnd, "Nobody can decide it", "warn", "Look at the request", "It waits for an approval that nobody can give as people are now."},
	{desk.CauseUnanswerable, "Nobody can answer it", "warn", "Look at the run", "The run asks what nobody may answer as people are now."},
	{engine.CauseNotStarted, "Approved, but not started", "warn", "Look at the run", "It was agreed to more than a minute ago and was not sent."},
	{engine.CauseOverdue, "Overdue", "warn", "Look at the run", "It should have gone on by now."},
}

// showAttention is GET /attention.
func (b *Browser) showAttention(c echo.Context) error {
	all, err := b.desk.Attention(c.Request().Context(), who(c))
	if err != nil {
		return err
	}
	page, err := b.frame(c, "Needs attention")
	if err != nil {
		return err
	}
	v := pages.AttentionView{Page: page, Groups: b.attentionGroups(all)}
	if err := b.nameStuck(c, v.Groups); err != nil {
		return err
	}
	if len(v.Groups) == 0 {
		v.Empty = &parts.Empty{Title: "Nothing needs you", Text: "No effect is unknown and no run is blocked or late."}
	}
	return render(c, http.StatusOK, pages.Attention(v))
}

func (b *Browser) attentionGroups(all []engine.Attention) []pages.Cause {
	var groups []pages.Cause
	for _, cause := range causes {
		g := pages.Cause{Title: cause.title, Tone: cause.tone, Text: cause.text}
		for _, a := range all {
			if a.Cause == cause.code {
				g.Rows = append(g.Rows, b.stuck(a, cause.next))
			}
		}
		if len(g.Rows) > 0 {
			groups = append(groups, g)
		}
	}
	return groups
}

func (b *Browser) stuck(a engine.Attention, next string) pages.Stuck {
	run := address("/runs/", string(a.Run))
	s := pages.Stuck{Title: "Step " + a.Path + " of run " + shortID(string(a.Run)), URL: run, Where: "run " + shortID(string(a.Run)) + ", step " + a.Path,
		Since: b.at(a.Since), Blocks: a.Blocks, Why: strings.TrimSpace(a.Why + " " + a.Next), Next: parts.Link{Text: next, URL: run}}
	if a.Effect != "" {
		s.URL = address("/effects/", string(a.Effect))
		s.Next.URL = s.URL
	}
	if a.Approval != "" {
		s.URL = address("/approvals/", string(a.Approval))
		s.Next.URL = s.URL
	}
	return s
}

// nameStuck gives what is stuck over an effect the sentence that was decided
// on, in place of a step's name.
func (b *Browser) nameStuck(c echo.Context, groups []pages.Cause) error {
	for _, g := range groups {
		for i, s := range g.Rows {
			effect, ok := strings.CutPrefix(s.URL, "/effects/")
			if !ok {
				continue
			}
			story, err := b.desk.EffectStory(c.Request().Context(), who(c), effect)
			if err != nil {
				return err
			}
			if story.Summary != "" {
				g.Rows[i].Title = story.Summary
			}
		}
	}
	return nil
}
