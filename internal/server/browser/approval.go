package browser

import (
	"context"
	"net/http"
	"strings"

	"countersign/internal/approvals"
	"countersign/internal/canon"
	"countersign/internal/desk"
	"countersign/internal/identity"
	"countersign/internal/problem"
	"countersign/internal/server/edge"
	"countersign/web/templates/pages"
	"countersign/web/templates/parts"

	"github.com/labstack/echo/v4"
)

// decisionForm is what a person typed on the page of a request, and why it
// came back.
type decisionForm struct {
	armed   string // digest that was armed
	reason  string
	fault   string // beside the reason
	banner  *parts.Notice
	diff    *parts.Values
	revoke  string // fault beside the revocation
	remark  string // fault beside the comment
	comment string
}

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
	from := c.QueryParam("from")
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
	if err != nil || len(all.Items) == 0 {
		return parts.Queue{}, back, err
	}
	q := parts.Queue{Title: title, URL: "/" + from, Search: listSearch("/"+from, listFilter{}, false, nil), Groups: b.dueGroups(all.Items, from)}
	for g := range q.Groups {
		for r := range q.Groups[g].Rows {
			q.Groups[g].Rows[r].Current = q.Groups[g].Rows[r].ID == current
		}
	}
	return q, back, nil
}

// decide is POST /approvals/{id}/decision.
func (b *Browser) decide(c echo.Context) error {
	in := desk.Decide{Verdict: c.FormValue("verdict"), Digest: c.FormValue("digest"), Comment: strings.TrimSpace(c.FormValue("comment"))}
	if preset := c.FormValue("preset"); preset != "" && in.Verdict == approvals.VerdictReject {
		in.Comment = strings.TrimSpace(preset + " " + in.Comment)
	}
	decided, err := b.desk.Decide(c.Request().Context(), who(c), c.Param("id"), in)
	p := problem.From(err)
	switch {
	case p == nil:
		say(c, "good", "You "+verdictWord(in.Verdict)+" it", after(decided))
		return see(c, withQuery(address("/approvals/", c.Param("id")), "from", c.QueryParam("from")))
	case p.Kind == problem.Invalid && p.Code == "invalid":
		f := decisionForm{reason: in.Comment, fault: firstFault(p)}
		if in.Verdict == approvals.VerdictApprove {
			f.armed = in.Digest
		}
		return b.approvalPage(c, edge.Status(p), f)
	case p.Kind == problem.Conflict || p.Kind == problem.Forbidden || p.Code == "clock_suspect":
		return b.approvalPage(c, edge.Status(p), decisionForm{reason: in.Comment, banner: b.tooLate(p), diff: seenDiff(p)})
	}
	return err
}

// after says what follows from a decision, in the approver's words.
func after(d desk.Decided) string {
	switch {
	case d.Status == "rejected":
		return "Nothing is sent. The run, and whoever asked, are told your reason."
	case d.Complete:
		return "It is checked once more and then carried out. This page shows what becomes of it."
	}
	return "It waits for the others who must agree."
}

func firstFault(p *problem.Error) string {
	if len(p.Fields) > 0 {
		return p.Fields[0].Message
	}
	return p.Message
}

// tooLate is the banner of a decision that came on an old page, second, or
// without the right to it: who decided what, and when.
func (b *Browser) tooLate(p *problem.Error) *parts.Notice {
	return &parts.Notice{Tone: "warn", Title: "Your decision was not recorded", Text: p.Message}
}

// seenDiff is what changed between the page that was decided on and now.
func seenDiff(p *problem.Error) *parts.Values {
	changes, ok := p.Details["changes"].([]desk.Change)
	if !ok {
		raw, other := p.Details["changes"].([]approvals.Change)
		if !other {
			return nil
		}
		for _, c := range raw {
			changes = append(changes, desk.Change{Pointer: c.Pointer, Old: c.Old, New: c.New})
		}
	}
	return diffValues("What changed while you were looking", "the page you decided on", changes)
}

// diffValues is a table of differences.
func diffValues(caption, against string, changes []desk.Change) *parts.Values {
	v := &parts.Values{Caption: caption, Against: against}
	for _, ch := range changes {
		row := parts.Value{Name: readable(strings.TrimPrefix(ch.Pointer, "/params")), Pointer: ch.Pointer, Text: leafText(ch.New), Old: leafText(ch.Old), Change: "changed"}
		switch {
		case ch.Old == nil:
			row.Change = "added"
		case ch.New == nil:
			row.Change, row.Text = "removed", ""
		}
		v.Rows = append(v.Rows, row)
	}
	if len(v.Rows) == 0 {
		return nil
	}
	return v
}

// leafText is a leaf as it is read: a text without quotes, anything else as
// it is stored.
func leafText(raw []byte) string {
	v, err := canon.Value(raw)
	if err != nil {
		return string(raw)
	}
	if s, ok := v.(string); ok {
		return s
	}
	return string(raw)
}

// revoke is POST /approvals/{id}/revoke.
func (b *Browser) revoke(c echo.Context) error {
	_, err := b.desk.Revoke(c.Request().Context(), who(c), c.Param("id"), c.FormValue("reason"))
	if p := problem.From(err); p != nil {
		if p.Kind == problem.Internal || p.Kind == problem.NotFound {
			return err
		}
		return b.approvalPage(c, edge.Status(p), decisionForm{revoke: firstFault(p), reason: c.FormValue("reason")})
	}
	say(c, "good", "The approval was taken back", "Nothing was sent. The request waits for a decision again, as a new revision.")
	return see(c, address("/approvals/", c.Param("id")))
}

// comment is POST /approvals/{id}/comments.
func (b *Browser) comment(c echo.Context) error {
	err := b.desk.Comment(c.Request().Context(), who(c), c.Param("id"), c.FormValue("comment"))
	if p := problem.From(err); p != nil {
		if p.Kind == problem.Internal || p.Kind == problem.NotFound {
			return err
		}
		return b.approvalPage(c, edge.Status(p), decisionForm{remark: firstFault(p), comment: c.FormValue("comment")})
	}
	return see(c, address("/approvals/", c.Param("id")))
}

// downloadSubject is GET /approvals/{id}/subject: the bytes the digest is of.
func (b *Browser) downloadSubject(c echo.Context) error {
	a, err := b.desk.Approval(c.Request().Context(), who(c), c.Param("id"))
	if err != nil {
		return err
	}
	if len(a.Sensitive) > 0 && !desk.May(who(c), "audit:read") {
		return errSensitive
	}
	return c.Blob(http.StatusOK, "text/plain; charset=utf-8", a.Subject)
}

// errSensitive refuses bytes that hold what pages hide.
var errSensitive = problem.New(problem.Forbidden, "sensitive", "These bytes hold sensitive values, which only auditors may read.")

// downloadValue is GET /approvals/{id}/value?path=…: the exact bytes of one
// parameter.
func (b *Browser) downloadValue(c echo.Context) error {
	a, err := b.desk.Approval(c.Request().Context(), who(c), c.Param("id"))
	if err != nil {
		return err
	}
	whole := a.Shown
	if a.Kind == approvals.KindDocument {
		whole = a.Document
	}
	doc, err := canon.Value(whole)
	if err != nil {
		return err
	}
	v, ok := canon.Get(doc, c.QueryParam("path"))
	if !ok {
		return problem.New(problem.NotFound, "not_found", "The request has no such value.")
	}
	if s, text := v.(string); text {
		return c.Blob(http.StatusOK, "text/plain; charset=utf-8", []byte(s))
	}
	raw, err := canon.Marshal(v)
	if err != nil {
		return err
	}
	return c.Blob(http.StatusOK, "text/plain; charset=utf-8", raw)
}

// downloadReceipt is GET /approvals/{id}/receipt.
func (b *Browser) downloadReceipt(c echo.Context) error {
	file, err := b.desk.Receipt(c.Request().Context(), who(c), c.Param("id"))
	if err != nil {
		return err
	}
	c.Response().Header().Set("Content-Disposition", `attachment; filename="receipt-`+c.Param("id")+`.json"`)
	return c.Blob(http.StatusOK, "application/json", file)
}
