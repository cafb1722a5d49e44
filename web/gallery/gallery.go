// Package gallery shows every page with made-up content: empty, full, in each
// of its states, and with texts that try to deceive. Tests compare the pages
// with what is expected and people look at them without running anything.
//
// It guarantees that every page of web/templates/pages is in it. It must not
// know any domain package.
package gallery

import (
	"countersign/web/static"
	"countersign/web/templates/layout"
	"countersign/web/templates/pages"
	"countersign/web/templates/parts"

	"github.com/a-h/templ"
)

// Exhibit is one page in one state.
type Exhibit struct {
	Name    string // "approval-pending": page and state
	Page    templ.Component
	Hostile bool // its texts try to deceive
}

// Exhibits are all of them, in the order of a visit.
func Exhibits() []Exhibit {
	var all []Exhibit
	for _, room := range [][]Exhibit{doors(), lists(), approvals(), edits(), runs(), stuck(), log(), definitions(), people(), failures()} {
		all = append(all, room...)
	}
	return all
}

// show makes an exhibit of a page with a view, and with deceive a second one
// whose texts are hostile.
func show[V any](name string, page func(V) templ.Component, v V) Exhibit {
	return Exhibit{Name: name, Page: page(v)}
}

func deceive[V any](name string, page func(V) templ.Component, v V) Exhibit {
	return Exhibit{Name: name + "-hostile", Page: page(Poison(v)), Hostile: true}
}

// bare is the frame before sign-in.
func bare(title string) layout.Page {
	return layout.Page{Title: title, CSS: static.CSS(), JS: static.JS(), Icon: static.Icon()}
}

// frame is the frame around a page, with the place that is current.
func frame(title, current string) layout.Page {
	p := bare(title)
	p.Person = &layout.Person{Name: "Ana Ruiz", Detail: "finance, operator, admin", Account: "/account"}
	p.Tenant = "default"
	p.AsOf = at("now", "Tue 1 Dec 2026, 12:22 CET", "2026-12-01T11:22:00Z")
	p.Events = "/events"
	p.Posture = []layout.PostureItem{
		{Text: "audit verified to 18,422 at 09:14", Tone: "good", URL: "/audit"},
		{Text: "1 unknown effect", Tone: "unknown", URL: "/attention"},
	}
	p.Rail = []layout.RailGroup{
		{Items: []layout.RailItem{
			{Text: "For me", URL: "/inbox", Icon: "inbox", Count: "7", Key: "i"},
			{Text: "Waiting on others", URL: "/waiting", Icon: "waiting", Count: "3", Key: "w"},
			{Text: "My decisions", URL: "/decisions", Icon: "decided", Key: "d"},
			{Text: "All approvals", URL: "/approvals", Icon: "all"},
		}},
		{Items: []layout.RailItem{
			{Text: "Runs", URL: "/runs", Icon: "runs", Key: "r"},
			{Text: "Needs attention", URL: "/attention", Icon: "attention", Count: "4", Urgent: true, Key: "a"},
			{Text: "Audit", URL: "/audit", Icon: "audit"},
			{Text: "Definitions", URL: "/definitions", Icon: "definitions"},
			{Text: "People", URL: "/people", Icon: "people"},
		}},
	}
	for g := range p.Rail {
		for i := range p.Rail[g].Items {
			p.Rail[g].Items[i].Current = p.Rail[g].Items[i].URL == current
		}
	}
	return p
}

func at(relative, absolute, iso string) parts.Time {
	return parts.Time{Relative: relative, Absolute: absolute, ISO: iso}
}

// Instants that many exhibits share.
var (
	now      = at("now", "Tue 1 Dec 2026, 12:22 CET", "2026-12-01T11:22:00Z")
	minute   = at("1 min ago", "Tue 1 Dec 2026, 12:21 CET", "2026-12-01T11:21:00Z")
	minutes  = at("14 min ago", "Tue 1 Dec 2026, 12:08 CET", "2026-12-01T11:08:00Z")
	hours    = at("3 h ago", "Tue 1 Dec 2026, 09:20 CET", "2026-12-01T08:20:00Z")
	days     = at("2 days ago", "Sun 29 Nov 2026, 16:02 CET", "2026-11-29T15:02:00Z")
	soon     = at("in 18 min", "Tue 1 Dec 2026, 12:40 CET", "2026-12-01T11:40:00Z")
	later    = at("in 1 h", "Tue 1 Dec 2026, 13:24 CET", "2026-12-01T12:24:00Z")
	tomorrow = at("in 21 h", "Wed 2 Dec 2026, 09:30 CET", "2026-12-02T08:30:00Z")
)

// Digests that many exhibits share.
const (
	digest1 = "sha256:9f2c41ab07d3e58864f1a2c9be0d7735c1e0a9f45b6283d17c40eefa9182b3a1"
	digest2 = "sha256:41d8be20a7c35f1099ee04b1c62d83f57a0b9c18e4d27f6630518ac9d2fb7e04"
	digest3 = "sha256:c07715ea3d9f48b2610dfe83a94b5c27d8130e6fa2945bc7ee81f3560d9a42cb"
)

func doors() []Exhibit {
	fields := []parts.Field{
		{Name: "name", Label: "Your name", Kind: "text", Required: true, Complete: "name", Value: "Ana Ruiz"},
		{Name: "email", Label: "Email", Kind: "email", Required: true, Complete: "username", Value: "ana@example.org"},
		{Name: "password", Label: "Password", Kind: "password", Required: true, Complete: "new-password", Hint: "at least 12 characters"},
		{Name: "again", Label: "Password again", Kind: "password", Required: true, Complete: "new-password"},
	}
	wrong := pages.SignInView{Page: bare("Sign in"), Action: "/signin", Email: "ana@example.org", Next: "/approvals/apr_71",
		Error: &parts.Notice{Tone: "bad", Title: "That email and password do not belong together.", Text: "Two more tries now; after that, one every minute."}}
	setup := pages.SetupView{Page: bare("First start"), Action: "/setup", Token: "set_1", Fields: fields}
	fields[2].Error = "This is 8 characters long; it must be at least 12."
	return []Exhibit{
		show("signin", pages.SignIn, pages.SignInView{Page: bare("Sign in"), Action: "/signin"}),
		show("signin-wrong", pages.SignIn, wrong),
		deceive("signin", pages.SignIn, wrong),
		show("setup", pages.Setup, setup),
		deceive("setup", pages.Setup, setup),
		show("help", pages.Help, pages.HelpView{Page: frame("Keyboard", "")}),
	}
}
