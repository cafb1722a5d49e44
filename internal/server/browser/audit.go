package browser

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"countersign/internal/audit"
	"countersign/internal/desk"
	"countersign/internal/id"
	"countersign/internal/identity"
	"countersign/internal/problem"
	"countersign/web/templates/pages"
	"countersign/web/templates/parts"

	"github.com/labstack/echo/v4"
)

// showAudit is GET /audit.
func (b *Browser) showAudit(c echo.Context) error { return b.auditPage(c, nil) }

func (b *Browser) auditPage(c echo.Context, result *pages.VerifyResult) error {
	f, dates, err := entryQuery(c)
	if err != nil {
		return err
	}
	list, err := b.desk.Entries(c.Request().Context(), who(c), f)
	if err != nil {
		return err
	}
	head, err := b.desk.Head(c.Request().Context(), who(c))
	if err != nil {
		return err
	}
	page, err := b.frame(c, "Audit")
	if err != nil {
		return err
	}
	v := pages.AuditView{Page: page, Result: result, Verify: "/audit/verify", HeadURL: "/audit/head", JSONLines: "/audit/export.jsonl", CSV: "/audit/export.csv",
		Search: search("/audit", f.Text, "person, object, action, digest", map[string]string{"action": f.Action}, filter("action", "Action", f.Action, auditActions...)),
		Head:   []parts.Fact{{Name: "Entries under the last signed head", Text: thousands(head.Size)}, {Name: "Public key", Text: head.PublicKey, Mono: true}}}
	v.Search.Fields = dates
	for _, e := range list.Items {
		v.Rows = append(v.Rows, b.entryRow(e))
	}
	if len(v.Rows) == 0 {
		v.Empty = &parts.Empty{Title: "No entry matches", Text: "Take a filter off, or search for less.", Next: &parts.Link{Text: "All entries", URL: "/audit"}}
	}
	if list.Next != "" {
		v.More = withQuery("/audit", "q", f.Text, "action", f.Action, "since", c.QueryParam("since"), "until", c.QueryParam("until"), "cursor", list.Next)
	}
	return render(c, http.StatusOK, pages.Audit(v))
}

// auditActions are the actions that are filtered by most.
var auditActions = []string{"approval.requested", "approval.approve", "approval.reject", "approval.edited", "approval.renewed", "approval.expired", "approval.tampered", "approval.taken",
	"effect.sent", "effect.confirmed", "effect.unknown", "run.start", "run.resume", "run.ask", "run.answer", "person.signed_in", "definition.added"}

// entryQuery reads the filters; dates are days in UTC, the last one included.
func entryQuery(c echo.Context) (desk.EntryQuery, []parts.Field, error) {
	f := desk.EntryQuery{Text: c.QueryParam("q"), Person: c.QueryParam("person"), Action: c.QueryParam("action"), Cursor: c.QueryParam("cursor")}
	fields := []parts.Field{{Name: "since", Label: "From", Kind: "date", Value: c.QueryParam("since")}, {Name: "until", Label: "To", Kind: "date", Value: c.QueryParam("until")}}
	for i, into := range []*time.Time{&f.Since, &f.Until} {
		if fields[i].Value == "" {
			continue
		}
		day, err := time.Parse(time.DateOnly, fields[i].Value)
		if err != nil {
			return f, fields, problem.New(problem.Invalid, "invalid", "A day of the filter cannot be read.").At(fields[i].Name, "must look like 2026-12-01")
		}
		*into = day.AddDate(0, 0, i)
	}
	return f, fields, nil
}

func (b *Browser) entryRow(e audit.Entry) pages.EntryRow {
	return pages.EntryRow{Seq: thousands(e.Seq), URL: address("/audit/entries/", string(e.ID)), At: b.at(e.Time), Who: actorName(e.Actor), How: joinWords(e.Actor.How, e.Channel),
		Action: e.Action, Subject: subject(e.Subject), Outcome: entryOutcome(e), Digest: e.Digest}
}

// actorName is who acted; a policy's own name does not say that it is one.
func actorName(a audit.Actor) string {
	if a.Kind == "policy" {
		return "policy " + a.Name
	}
	return a.Name
}

func joinWords(words ...string) string {
	var out []string
	for _, w := range words {
		if w != "" {
			out = append(out, w)
		}
	}
	return strings.Join(out, ", ")
}

// entryOutcome is the outcome of an entry: a state, or a remark such as
// "revision 2" or the roles somebody has now.
func entryOutcome(e audit.Entry) parts.Status {
	if code, refused := strings.CutPrefix(e.Outcome, "refused: "); refused {
		return parts.Status{Code: "refused", Word: "refused: " + strings.ReplaceAll(code, "_", " ")}
	}
	subject, verb, _ := strings.Cut(e.Action, ".")
	remark := subject == "person" || subject == "token" || verb == "viewed" || subject == "sensitive" || strings.Contains(e.Outcome, " ")
	if remark && e.Outcome != "ok" {
		return parts.Status{Code: "plain", Word: e.Outcome}
	}
	return status(e.Outcome)
}

// subject links what an entry is about, where it has a page.
func subject(s string) parts.Link {
	for prefix, page := range map[string]string{"apr_": "/approvals/", "run_": "/runs/", "eff_": "/effects/"} {
		if id.Valid(prefix, s) {
			return parts.Link{Text: shortID(s), URL: address(page, s)}
		}
	}
	return parts.Link{Text: s}
}

// verifyAudit is POST /audit/verify.
func (b *Browser) verifyAudit(c echo.Context) error {
	report, err := b.desk.Verify(c.Request().Context(), who(c))
	if err != nil {
		return err
	}
	result := &pages.VerifyResult{Notice: parts.Notice{Tone: "good", Title: "The log verifies", Text: "Every entry, node and signed head was recomputed and agrees, and with the heads copied beside the database."}}
	if !report.OK {
		result.Notice = parts.Notice{Tone: "bad", Title: "The log does NOT verify", Text: "Keep the data folder as it is, and compare it with a backup and the heads you copied away."}
	}
	for _, t := range report.Tenants {
		name := t.Tenant
		if name == "" {
			name = "instance"
		}
		result.Facts = append(result.Facts, parts.Fact{Name: name, Text: fmt.Sprintf("%s under %s", plural(int(t.Entries), "entry"), plural(int(t.Heads), "signed head"))})
	}
	for _, f := range report.Findings {
		result.Faults = append(result.Faults, fmt.Sprintf("entry %d: %s", f.Seq, f.What))
	}
	return b.auditPage(c, result)
}

// exportAudit is GET /audit/export.jsonl and .csv.
func (b *Browser) exportAudit(format, mime string) echo.HandlerFunc {
	return func(c echo.Context) error {
		if !desk.May(who(c), "audit:read") {
			return b.desk.Export(c.Request().Context(), who(c), format, nil) // says why not
		}
		c.Response().Header().Set("Content-Type", mime)
		c.Response().Header().Set("Content-Disposition", `attachment; filename="audit.`+format+`"`)
		return b.desk.Export(c.Request().Context(), who(c), format, c.Response())
	}
}

// downloadHead is GET /audit/head.
func (b *Browser) downloadHead(c echo.Context) error {
	head, err := b.desk.Head(c.Request().Context(), who(c))
	if err != nil {
		return err
	}
	c.Response().Header().Set("Content-Disposition", `attachment; filename="head.txt"`)
	return c.String(http.StatusOK, head.Note)
}

// showEntry is GET /audit/entries/{id}.
func (b *Browser) showEntry(c echo.Context) error {
	story, err := b.desk.EntryStory(c.Request().Context(), who(c), c.Param("id"))
	if err != nil {
		return err
	}
	e := story.Entry
	page, err := b.frame(c, fmt.Sprintf("Entry %s", thousands(e.Seq)))
	if err != nil {
		return err
	}
	v := pages.EntryView{Page: page, Back: entryBack(who(c), e), Seq: thousands(e.Seq), Action: e.Action, Payload: document("What it says a salted digest of", story.Payload),
		Leaf: document("The entry, as the log commits to it", []byte(story.Proof.Body)), Facts: b.entryFacts(e), Proof: pages.Proof{Holds: true,
			Text: "Included under the signed head of the log.", Hashes: story.Hashes, Head: &parts.JSON{Title: "Signed head", Text: story.Proof.Head}, Command: "console audit verify --data DIR"}}
	return render(c, http.StatusOK, pages.Entry(v))
}

// entryBack leads to the log for those who may read it; others came from the
// run.
func entryBack(p identity.Principal, e audit.Entry) parts.Link {
	switch {
	case desk.May(p, "audit:read"):
		return parts.Link{Text: "Audit", URL: "/audit"}
	case e.Run != "":
		return parts.Link{Text: "Run", URL: address("/runs/", string(e.Run))}
	}
	return parts.Link{Text: "For me", URL: "/inbox"}
}

// actorWords is a name and what kind of actor it is, where the name does not
// say so.
func actorWords(a audit.Actor) string {
	if a.Name == a.Kind {
		return a.Name
	}
	return joinWords(a.Name, a.Kind)
}

func (b *Browser) entryFacts(e audit.Entry) []parts.Fact {
	about, outcome := subject(e.Subject), entryOutcome(e)
	facts := []parts.Fact{{Name: "Time", Time: b.at(e.Time)}, {Name: "By", Text: actorWords(e.Actor)}, {Name: "Proved by", Text: e.Actor.How}, {Name: "Channel", Text: e.Channel}}
	for _, name := range slices.Sorted(maps.Keys(e.Authority)) {
		facts = append(facts, parts.Fact{Name: strings.ReplaceAll(name, "_", " "), Text: e.Authority[name], Mono: true})
	}
	if e.Subject != "" {
		facts = append(facts, parts.Fact{Name: "About", Link: &about})
	}
	if e.Run != "" {
		run := subject(string(e.Run))
		facts = append(facts, parts.Fact{Name: "Run", Link: &run})
	}
	if e.Outcome != "" {
		facts = append(facts, parts.Fact{Name: "Outcome", Status: &outcome})
	}
	return append(facts, parts.Fact{Name: "Digest", Digest: e.Digest})
}
