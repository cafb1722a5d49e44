package browser

import (
	"strings"

	"countersign/internal/approvals"
	"countersign/internal/desk"
	"countersign/internal/problem"
	"countersign/internal/server/edge"
	"countersign/web/templates/parts"

	"github.com/labstack/echo/v4"
)

// decisionForm is what a person typed on the page of a request, and why it
// came back.
type decisionForm struct {
	from    string // the list it was opened from
	armed   string // digest that was armed
	reason  string
	fault   string // beside the reason
	banner  *parts.Notice
	diff    *parts.Values
	again   string // the form of reconsidering that came back; reason and fault are its own
	revoke  string // fault beside the revocation
	remark  string // fault beside the comment
	comment string
	shown   map[string]string // sensitive values asked for, by pointer
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
		return see(c, requestURL(c, ""))
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
	return diffValues("What changed while you were looking", "the page you decided on", changes, nil)
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
	return see(c, requestURL(c, ""))
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
	return see(c, requestURL(c, ""))
}
