package browser

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"countersign/internal/desk"
	"countersign/internal/identity"
	"countersign/web/templates/pages"
	"countersign/web/templates/parts"

	"github.com/labstack/echo/v4"
)

// risks are the steps of risk, lowest first.
var risks = []string{"low", "medium", "high", "critical"}

// listFilter is what narrows a list of requests.
type listFilter struct{ text, risk, tool, status string }

func filterOf(c echo.Context) listFilter {
	return listFilter{c.QueryParam("q"), c.QueryParam("risk"), c.QueryParam("tool"), c.QueryParam("status")}
}

// fits reports whether a request passes the filter: for the lists that are
// read whole.
func (f listFilter) fits(a desk.Approval) bool {
	if f.risk != "" && a.Risk != f.risk || f.tool != "" && a.Tool != f.tool {
		return false
	}
	all := strings.ToLower(strings.Join([]string{a.ID, a.Target, a.Summary, a.Title, a.Initiator.Name, a.ParamsHash, a.Digest, a.Workflow}, "\n"))
	return strings.Contains(all, strings.ToLower(f.text))
}

// asks reports whether a question passes the filter.
func (f listFilter) asks(q desk.Question) bool {
	all := strings.ToLower(strings.Join([]string{string(q.Run), q.RunKey, q.Text, q.Title, q.Initiator.Name, q.Workflow}, "\n"))
	return f.risk == "" && f.tool == "" && strings.Contains(all, strings.ToLower(f.text))
}

// showInbox is GET /inbox.
func (b *Browser) showInbox(c echo.Context) error {
	asked, err := b.desk.OpenQuestions(c.Request().Context(), who(c))
	if err != nil {
		return err
	}
	return b.wholeList(c, "For me", "/inbox", b.desk.Inbox, asked.Items, parts.Empty{Title: "Nothing waits for you", Text: "What needs your decision or your answer appears here by itself."})
}

// showWaiting is GET /waiting.
func (b *Browser) showWaiting(c echo.Context) error {
	return b.wholeList(c, "Waiting on others", "/waiting", b.desk.WaitingOnOthers, nil, parts.Empty{Title: "Nothing waits on others", Text: "Requests that you started, or voted on, and that others must decide appear here."})
}

type lister = func(context.Context, identity.Principal) (desk.Page[desk.Approval], error)

// wholeList shows a list that is short enough to be read whole, grouped by
// how soon it is due.
func (b *Browser) wholeList(c echo.Context, title, url string, list lister, asked []desk.Question, empty parts.Empty) error {
	all, err := list(c.Request().Context(), who(c))
	if err != nil {
		return err
	}
	f := filterOf(c)
	fit := b.dueRows(those(all.Items, f.fits), those(asked, f.asks), strings.TrimPrefix(url, "/"))
	page, err := b.frame(c, title)
	if err != nil {
		return err
	}
	q := parts.Queue{Title: title, URL: url, Search: listSearch(url, f, false, all.Items), Groups: dueGroups(fit)}
	if len(fit) == 0 {
		q.Empty = &empty
		if len(all.Items)+len(asked) > 0 {
			q.Empty = nothingMatches(url)
		}
	}
	return render(c, http.StatusOK, pages.Inbox(pages.InboxView{Page: page, Queue: q, Overview: b.overview(all.Items, asked)}))
}

func nothingMatches(url string) *parts.Empty {
	return &parts.Empty{Title: "Nothing matches", Text: "Something waits, but not this. Take a filter off.", Next: &parts.Link{Text: "Clear the filters", URL: url}}
}

func listSearch(url string, f listFilter, withStatus bool, items []desk.Approval) parts.Search {
	var tools []string
	for _, a := range items {
		if a.Tool != "" && !slices.Contains(tools, a.Tool) {
			tools = append(tools, a.Tool)
		}
	}
	slices.Sort(tools)
	filters := []parts.Filter{filter("risk", "Risk", f.risk, risks...), filter("tool", "Tool", f.tool, tools...)}
	if withStatus {
		filters = append(filters, filter("status", "Status", f.status, "pending", "approved", "allowed", "denied", "rejected", "expired", "withdrawn"))
	}
	return search(url, f.text, "target, person, digest, id", map[string]string{"risk": f.risk, "tool": f.tool, "status": f.status}, filters...)
}

// queueRow is a request in two lines.
func (b *Browser) queueRow(a desk.Approval, from string) parts.QueueRow {
	row := parts.QueueRow{ID: a.ID, URL: withQuery(address("/approvals/", a.ID), "from", from), Risk: a.Risk, Title: heading(a), By: byName(a.Initiator.Name, a.OnBehalfOf), Progress: progress(a.Groups)}
	if a.Status != "pending" {
		st := status(a.Status)
		if a.Outcome != "" && a.Status != "rejected" { // what was rejected is never sent
			st = status(a.Outcome)
		}
		row.Status = &st
		row.LeftTime = b.at(a.UpdatedAt)
		row.Left = row.LeftTime.Relative
		return row
	}
	if !a.DecideBy.IsZero() {
		b.until(&row, a.DecideBy)
	}
	if a.Eligible.DeadEnd != "" {
		row.Tags = append(row.Tags, "nobody can complete it")
	}
	return row
}

// heading is what a request does, in one line.
func heading(a desk.Approval) string {
	if a.Summary != "" {
		return a.Summary
	}
	return a.Title
}

// progress is "1 of 2" over all groups; empty where one approval is enough.
func progress(groups []desk.Group) string {
	need, have := 0, 0
	for _, g := range groups {
		need, have = need+g.Need, have+g.Have
	}
	if need < 2 {
		return ""
	}
	return fmt.Sprintf("%d of %d", have, need)
}

func (b *Browser) overview(all []desk.Approval, asked []desk.Question) []parts.Fact {
	facts := []parts.Fact{{Name: "Waiting", Text: plural(len(all), "request")}}
	if len(asked) > 0 {
		facts = append(facts, parts.Fact{Name: "Asked", Text: plural(len(asked), "question")})
	}
	for _, a := range all {
		if !a.DecideBy.IsZero() {
			return append(facts, parts.Fact{Name: "Next deadline", Time: b.at(a.DecideBy)})
		}
	}
	return facts
}

// showDecisions is GET /decisions: what p decided and what came of it.
func (b *Browser) showDecisions(c echo.Context) error {
	all, err := b.desk.MyDecisions(c.Request().Context(), who(c), c.QueryParam("cursor"))
	if err != nil {
		return err
	}
	page, err := b.frame(c, "My decisions")
	if err != nil {
		return err
	}
	f := filterOf(c)
	groups := []parts.QueueGroup{{Title: "Outcome unknown", Tone: "unknown"}, {Title: "Decided"}}
	var seen []desk.Approval
	for _, m := range all.Items {
		seen = append(seen, m.Approval)
		if !f.fits(m.Approval) {
			continue
		}
		row := b.queueRow(m.Approval, "decisions")
		row.Note = "You " + verdictWord(m.Decision.Verdict) + fmt.Sprintf(" revision %d, ", m.Decision.Revision) + b.at(m.Decision.DecidedAt).Relative
		i := 1
		if m.Approval.Outcome == "unknown" {
			i = 0
		}
		groups[i].Rows = append(groups[i].Rows, row)
	}
	q := parts.Queue{Title: "My decisions", URL: "/decisions", Search: listSearch("/decisions", f, false, seen),
		Groups: slices.DeleteFunc(groups, func(g parts.QueueGroup) bool { return len(g.Rows) == 0 })}
	if len(q.Groups) == 0 {
		q.Empty = &parts.Empty{Title: "You have decided nothing yet", Text: "What you approve or reject stays here, with what became of it."}
		if len(all.Items) > 0 {
			q.Empty = nothingMatches("/decisions")
		}
	}
	if all.Next != "" {
		q.More = withQuery("/decisions", "cursor", all.Next)
	}
	return render(c, http.StatusOK, pages.Inbox(pages.InboxView{Page: page, Queue: q}))
}

func verdictWord(verdict string) string {
	if verdict == "reject" {
		return "rejected"
	}
	return "approved"
}

// showApprovals is GET /approvals: all of them.
func (b *Browser) showApprovals(c echo.Context) error {
	f := filterOf(c)
	all, err := b.desk.Approvals(c.Request().Context(), who(c), desk.ApprovalQuery{Status: f.status, Tool: f.tool, Risk: f.risk, Text: f.text, Cursor: c.QueryParam("cursor")})
	if err != nil {
		return err
	}
	page, err := b.frame(c, "All approvals")
	if err != nil {
		return err
	}
	q := parts.Queue{Title: "All approvals", URL: "/approvals", Search: listSearch("/approvals", f, true, all.Items)}
	g := parts.QueueGroup{Title: "Newest first"}
	for _, a := range all.Items {
		g.Rows = append(g.Rows, b.queueRow(a, "approvals"))
	}
	switch {
	case len(g.Rows) > 0:
		q.Groups = []parts.QueueGroup{g}
	case q.Search.Clear != "":
		q.Empty = nothingMatches("/approvals")
	default:
		q.Empty = &parts.Empty{Title: "No requests yet", Text: "Requests appear here when a run or a program wants to change something."}
	}
	if all.Next != "" {
		q.More = withQuery("/approvals", "q", f.text, "risk", f.risk, "tool", f.tool, "status", f.status, "cursor", all.Next)
	}
	return render(c, http.StatusOK, pages.Inbox(pages.InboxView{Page: page, Queue: q}))
}
