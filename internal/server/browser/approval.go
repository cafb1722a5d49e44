package browser

import (
	"context"
	"net/http"

	"countersign/internal/desk"
	"countersign/internal/identity"
	"countersign/web/templates/pages"
	"countersign/web/templates/parts"

	"github.com/labstack/echo/v4"
)

// showApproval is GET /approvals/{id}. It changes nothing but the note that
// this person saw this revision for the first time.
func (b *Browser) showApproval(c echo.Context) error {
	return b.approvalPage(c, http.StatusOK, decisionForm{armed: c.QueryParam("arm")})
}

func (b *Browser) approvalPage(c echo.Context, code int, f decisionForm) error {
	ctx, p := c.Request().Context(), who(c)
	a, err := b.desk.Approval(ctx, p, c.Param("id"))
	if err != nil {
		return err
	}
	page, err := b.frame(c, heading(a))
	if err != nil {
		return err
	}
	f.from = origin(c)
	v := b.approvalView(a, f, p)
	v.Page = page
	if v.Queue, v.Back, err = b.besides(c, a.ID); err != nil {
		return err
	}
	if err := render(c, code, pages.Approval(v)); err != nil {
		return err
	}
	if c.Request().Header.Get(liveHeader) == "" { // a page that refreshes itself is not somebody reading
		b.noteView(ctx, p, a)
	}
	return nil
}

// liveHeader marks what the pages' script fetches to refresh a region.
const liveHeader = "X-Live"

// noteView notes the first view. It never keeps anybody from reading.
func (b *Browser) noteView(ctx context.Context, p identity.Principal, a desk.Approval) {
	if err := b.desk.RecordView(ctx, p, a.ID, a.Revision); err != nil {
		b.logger.Warn("note a first view", "approval", a.ID, "cause", err)
	}
}

// besides is the list the request was opened from, shown beside it where
// there is room.
func (b *Browser) besides(c echo.Context, current string) (parts.Queue, parts.Link, error) {
	from := origin(c)
	title, list := "For me", lister(b.desk.Inbox)
	switch from {
	case "waiting":
		title, list = "Waiting on others", b.desk.WaitingOnOthers
	case "decisions":
		return parts.Queue{}, parts.Link{Text: "My decisions", URL: "/decisions"}, nil
	case "approvals":
		return parts.Queue{}, parts.Link{Text: "All approvals", URL: "/approvals"}, nil
	default:
		from = "inbox"
	}
	back := parts.Link{Text: title, URL: "/" + from}
	all, err := list(c.Request().Context(), who(c))
	if err != nil {
		return parts.Queue{}, back, err
	}
	var asked desk.Page[desk.Question]
	if from == "inbox" {
		if asked, err = b.desk.OpenQuestions(c.Request().Context(), who(c)); err != nil {
			return parts.Queue{}, back, err
		}
	}
	if len(all.Items)+len(asked.Items) == 0 {
		return parts.Queue{}, back, nil
	}
	q := parts.Queue{Title: title, URL: "/" + from, Search: listSearch("/"+from, listFilter{}, false, nil), Groups: dueGroups(b.dueRows(all.Items, asked.Items, from))}
	for g := range q.Groups {
		for r := range q.Groups[g].Rows {
			q.Groups[g].Rows[r].Current = q.Groups[g].Rows[r].ID == current
		}
	}
	return q, back, nil
}
