package browser

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"countersign/internal/desk"
	"countersign/internal/identity"
	"countersign/web/static"
	"countersign/web/templates/layout"

	"github.com/labstack/echo/v4"
)

// bare is the frame of a page before sign-in.
func bare(title string) layout.Page {
	return layout.Page{Title: title, CSS: static.CSS(), JS: static.JS(), Icon: static.Icon()}
}

// frame is what stands around a page of a signed-in person.
func (b *Browser) frame(c echo.Context, title string) (layout.Page, error) {
	p, ctx := who(c), c.Request().Context()
	page := bare(title)
	counts, err := b.desk.Counts(ctx, p)
	if err != nil {
		return page, err
	}
	posture, err := b.desk.Posture(ctx)
	if err != nil {
		return page, err
	}
	page.Person = &layout.Person{Name: p.Name, Detail: strings.Join(p.Roles, ", "), Account: "/account"}
	page.Rail = rail(p, counts, place(c))
	page.Posture = postureLine(posture, desk.May(p, "audit:read"))
	page.Events, page.AsOf, page.Flash = stream(c), b.at(time.Now()), said(c)
	return page, nil
}

// stream is the event stream from the moment on at which the page began to be
// made: what happens between reading and listening is not missed.
func stream(c echo.Context) string {
	since, _ := c.Get(sinceKey).(string)
	return withQuery("/events", "after", since)
}

// place is where in the rail a page belongs: a request stands in the list it
// was opened from, an effect with what needs attention.
func place(c echo.Context) string {
	path := c.Request().URL.Path
	if strings.HasPrefix(path, "/effects/") {
		return "/attention"
	}
	if !strings.HasPrefix(path, "/approvals/") {
		return path
	}
	if from := origin(c); from != "" {
		return "/" + from
	}
	return "/inbox"
}

// origin is the list a request was opened from, or "" where nobody said.
func origin(c echo.Context) string {
	switch from := c.QueryParam("from"); from {
	case "inbox", "waiting", "decisions", "approvals":
		return from
	}
	return ""
}

// requestURL is a page or a form of the request the address names. The list it
// was opened from goes along, so that the way back stays the same.
func requestURL(c echo.Context, part string) string {
	return withQuery(address("/approvals/", c.Param("id"))+part, "from", origin(c))
}

// rail is the places of the console, with the server's counts.
func rail(p identity.Principal, n desk.Counts, path string) []layout.RailGroup {
	item := func(text, url, icon, key string, count int, urgent bool) layout.RailItem {
		current := path == url || strings.HasPrefix(path, url+"/")
		return layout.RailItem{Text: text, URL: url, Icon: icon, Key: key, Count: count99(count), Urgent: urgent && count > 0, Current: current}
	}
	groups := []layout.RailGroup{
		{Title: "Approvals", Items: []layout.RailItem{
			item("For me", "/inbox", "inbox", "i", n.ForMe, true),
			item("Waiting on others", "/waiting", "waiting", "w", n.WaitingOnOthers, false),
			item("My decisions", "/decisions", "decided", "d", n.Unknown, true),
			item("All", "/approvals", "all", "", 0, false),
		}},
		{Title: "Operation", Items: []layout.RailItem{
			item("Runs", "/runs", "runs", "r", 0, false),
			item("Needs attention", "/attention", "attention", "", n.Attention, true),
		}},
	}
	rest := layout.RailGroup{Title: "Record"}
	if desk.May(p, "audit:read") {
		rest.Items = append(rest.Items, item("Audit", "/audit", "audit", "a", 0, false))
	}
	rest.Items = append(rest.Items, item("Definitions", "/definitions", "definitions", "", 0, false))
	if desk.May(p, "admin") {
		rest.Items = append(rest.Items, item("People", "/people", "people", "", 0, false))
	}
	return append(groups, rest)
}

func count99(n int) string {
	switch {
	case n <= 0:
		return ""
	case n > 99:
		return "99+"
	}
	return fmt.Sprint(n)
}

// postureLine says what the console promises and how it stands with it; the
// log is led to only for those who may read it.
func postureLine(p desk.Posture, auditor bool) []layout.PostureItem {
	audit := ""
	if auditor {
		audit = "/audit"
	}
	var line []layout.PostureItem
	switch {
	case p.Failed:
		line = append(line, layout.PostureItem{Text: "audit log does NOT verify", Tone: "bad", URL: audit})
	case p.Verified:
		line = append(line, layout.PostureItem{Text: fmt.Sprintf("audit verified to %s at %s", thousands(p.Entries), p.VerifiedAt.Format("15:04 MST")), Tone: "good", URL: audit})
	default:
		line = append(line, layout.PostureItem{Text: "audit not verified since the start", URL: audit})
	}
	if p.Unknown > 0 {
		line = append(line, layout.PostureItem{Text: plural(p.Unknown, "unknown effect"), Tone: "unknown", URL: "/attention"})
	}
	return line
}

// plural is "1 entry", "2 entries".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if stem, ok := strings.CutSuffix(noun, "y"); ok {
		return thousands(int64(n)) + " " + stem + "ies"
	}
	return thousands(int64(n)) + " " + noun + "s"
}

// thousands is 18422 as "18,422".
func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// failedForm is the status of a form whose input is at fault.
const failedForm = http.StatusUnprocessableEntity
