package server_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// everybody may open what has no secret and needs no role.
const everybody = "ana ben chloe dev"

// pageRoles says of every route for people who may use it; "open" needs no
// session. Whoever is listed may still be told that a request cannot be revoked
// or that nothing waits to be answered. Dev may edit as the initiator.
var pageRoles = map[string]string{
	"GET /static/*": "open", "GET /favicon.ico": "open", "GET /healthz": "open", "GET /readyz": "open",
	"GET /signin": "open", "POST /signin": "open", "GET /setup": "open", "POST /setup": "open",
	"POST /signout": everybody, "GET /help/keys": everybody, "GET /events": everybody, "GET /": everybody,
	"GET /inbox": everybody, "GET /waiting": everybody, "GET /decisions": everybody, "GET /approvals": everybody,
	"GET /approvals/:id": everybody, "GET /approvals/:id/subject": everybody, "GET /approvals/:id/value": everybody,
	"GET /approvals/:id/receipt": everybody, "POST /approvals/:id/decision": "ana ben", "GET /approvals/:id/edit": "ana ben",
	"POST /approvals/:id/edit": "ana ben dev", "POST /approvals/:id/reveal": "ana ben chloe", "POST /approvals/:id/revoke": everybody, "POST /approvals/:id/retract": everybody, "POST /approvals/:id/extend": "ana chloe", "POST /approvals/:id/comments": everybody,
	"GET /runs": everybody, "GET /runs/new": everybody, "POST /runs": "dev ana", "GET /runs/:id": everybody,
	"GET /runs/:id/checkpoints/:version": everybody, "POST /runs/:id/resume": "ana chloe dev", "POST /runs/:id/cancel": "ana chloe dev",
	"POST /runs/:id/answers": "ana ben", "POST /runs/:id/corrections": "ana chloe dev",
	"POST /runs/:id/migrate": "ana chloe", "GET /runs/:id/migrate": everybody,
	"GET /attention": everybody, "GET /effects/:id": everybody, "POST /effects/:id/ask": "ana", "POST /effects/:id/resolve": "ana",
	"GET /audit": "ana chloe", "POST /audit/verify": "ana chloe", "GET /audit/export.jsonl": "ana chloe", "GET /audit/export.csv": "ana chloe",
	"GET /audit/head": "ana chloe", "GET /audit/entries/:id": "ana chloe",
	"GET /definitions": everybody, "GET /definitions/explain": everybody, "POST /definitions/explain": everybody,
	"GET /definitions/:kind/:name/:version": everybody, "GET /people": "chloe", "POST /people": "chloe",
	"POST /people/:id/roles": "chloe", "POST /people/:id/active": "chloe",
	"GET /account": everybody, "POST /account/password": everybody, "POST /account/tokens": everybody,
	"POST /tokens/:id/revoke": everybody, "POST /sessions/:id/end": everybody,

	// Addresses of forms, which lead back to the page that holds the form.
	"GET /approvals/:id/decision": everybody, "GET /approvals/:id/reveal": everybody, "GET /approvals/:id/revoke": everybody, "GET /approvals/:id/retract": everybody, "GET /approvals/:id/extend": everybody, "GET /approvals/:id/comments": everybody,
	"GET /runs/:id/resume": everybody, "GET /runs/:id/cancel": everybody, "GET /runs/:id/answers": everybody, "GET /runs/:id/corrections": everybody,
	"GET /effects/:id/ask": everybody, "GET /effects/:id/resolve": everybody, "GET /audit/verify": everybody,
	"GET /people/:id/roles": everybody, "GET /people/:id/active": everybody, "GET /signout": everybody,
	"GET /account/password": everybody, "GET /account/tokens": everybody, "GET /tokens/:id/revoke": everybody, "GET /sessions/:id/end": everybody,
}

// routes are those the router has for people, as "METHOD /path".
func (s *site) routes() (pages, programs []string) {
	for _, r := range s.server.Routes() {
		name := r.Method + " " + r.Path
		switch {
		case r.Method == echoNotFound:
		case strings.HasPrefix(r.Path, "/api/"):
			programs = append(programs, name)
		default:
			pages = append(pages, name)
		}
	}
	return pages, programs
}

// echoNotFound is the method under which the router lists the fallback of a
// group.
const echoNotFound = "echo_route_not_found"

func TestRoutes_EveryOneIsListedAndNeedsASession(t *testing.T) {
	s := newSite(t)
	pages, programs := s.routes()
	listed := map[string]bool{}
	for _, name := range pages {
		listed[name] = true
		method, path, _ := strings.Cut(name, " ")
		roles, known := pageRoles[name]
		if !known {
			t.Errorf("%s is not in the table of who may use it", name)
			continue
		}
		if roles == "open" {
			continue
		}
		w := s.send("", method, concrete(path), nil)
		signIn := w.Code == http.StatusSeeOther && strings.HasPrefix(w.Header().Get("Location"), "/signin")
		if !signIn && w.Code != http.StatusUnauthorized {
			t.Errorf("%s without a session: status %d to %q, want the sign-in page", name, w.Code, w.Header().Get("Location"))
		}
	}
	for name := range pageRoles {
		if !listed[name] {
			t.Errorf("%s is in the table and not in the router", name)
		}
	}
	for _, name := range programs {
		method, path, _ := strings.Cut(name, " ")
		if path == "/api/v1/openapi.json" {
			continue
		}
		if w := s.send("ana", method, concrete(path), nil); w.Code != http.StatusUnauthorized {
			t.Errorf("%s with a cookie only: status %d, want 401", name, w.Code)
		}
	}
}

// Whoever reloads the answer to a form, or comes back to it after signing in,
// finds the page that holds the form.
func TestForms_AddressesLeadToTheirPage(t *testing.T) {
	s := newSite(t)
	for name := range pageRoles {
		path, isForm := strings.CutPrefix(name, "POST ")
		if !isForm {
			continue
		}
		if w := s.get("chloe", concrete(path)); w.Code == http.StatusMethodNotAllowed || w.Code == http.StatusNotFound && !strings.HasSuffix(path, "/edit") {
			t.Errorf("GET %s: status %d, want the page that holds the form", path, w.Code)
		}
	}
}

func concrete(path string) string {
	return strings.NewReplacer(":id", "x", ":version", "1", ":kind", "workflow", ":name", "refund").Replace(path)
}

func TestRoutes_WithoutTheRoleAreRefused(t *testing.T) {
	s := newSite(t)
	a := s.refund("Damaged.")
	here := func(path string) string {
		for prefix, id := range map[string]string{"/approvals/": a.ID, "/runs/": a.Run, "/people/": string(s.principal("ben").Person)} {
			if strings.HasPrefix(path, prefix) {
				path = strings.Replace(path, ":id", id, 1)
			}
		}
		return concrete(path)
	}
	for name, allowed := range pageRoles {
		method, path, _ := strings.Cut(name, " ")
		if allowed == "open" {
			continue
		}
		for who := range staff {
			if strings.Contains(allowed, who) {
				continue
			}
			w := s.send(who, method, here(path), url.Values{"digest": {a.Digest}, "verdict": {"approve"}, "reason": {"x"}, "expected_version": {"1"}, "to": {"1"}, "hours": {"24"}, "step": {"x"}, "pass": {"1"},
				"active": {"no"}, "do": {"save"}, "/amount": {"9900"}, "comment": {"Less."}})
			if w.Code != http.StatusForbidden && w.Code != http.StatusNotFound {
				t.Errorf("%s as %s: status %d, want 403 or 404", name, who, w.Code)
			}
		}
	}
	if now := s.request(a.ID); now.Status != "pending" {
		t.Errorf("afterwards the request is %s, want pending", now.Status)
	}
}

func TestPosts_FromAnotherSiteDoNothing(t *testing.T) {
	s := newSite(t)
	s.token("ana")
	before := s.size()
	pages, _ := s.routes()
	for _, name := range pages {
		method, path, _ := strings.Cut(name, " ")
		if method != http.MethodPost {
			continue
		}
		for _, sent := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Sec-Fetch-Site", "", "Origin", "https://evil.example"}, {"Sec-Fetch-Site", "", "Origin", "null"}} {
			if w := s.send("ana", method, concrete(path), nil, sent...); w.Code != http.StatusForbidden {
				t.Errorf("%s with %v: status %d, want 403", name, sent, w.Code)
			}
		}
	}
	if s.size() != before {
		t.Errorf("the log grew from %s to %s entries", before, s.size())
	}
	s.want("still signed in", s.get("ana", "/inbox"), http.StatusOK)
}

func TestSignIn_TheCookieIsOpaqueAndKeptFromScripts(t *testing.T) {
	for base, want := range map[string]struct {
		name   string
		secure bool
	}{"http://localhost:8080": {"countersign", false}, "https://console.example.org": {"__Host-countersign", true}} {
		s := newSiteAt(t, base)
		w := s.post("", "/signin", "email", "ana@example.org", "password", "correct horse ana")
		s.want("sign in", w, http.StatusSeeOther)
		c := w.Result().Cookies()[0]
		if c.Name != want.name || c.Secure != want.secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" {
			t.Errorf("%s: cookie %s", base, strings.Replace(c.String(), c.Value, "…", 1))
		}
	}
}

func TestSignIn_LeadsOnlyToThisConsole(t *testing.T) {
	s := newSite(t)
	for next, want := range map[string]string{
		"/approvals?status=pending": "/approvals?status=pending", "": "/", "//evil.example": "/", "https://evil.example/": "/", `/\evil.example`: "/", `\\evil.example`: "/",
		"javascript:alert(1)": "/", "/\t/evil.example": "/", "/signin?next=//evil.example": "/", "evil.example": "/", "/x\r\nSet-Cookie: a=b": "/", "http:evil.example": "/",
		"///evil.example": "/",
	} {
		w := s.post("", "/signin", "email", "ana@example.org", "password", "correct horse ana", "next", next)
		got := w.Header().Get("Location")
		if got != want {
			t.Errorf("next %q leads to %q, want %q", next, got, want)
		}
	}
}

func TestSignIn_WrongPasswordSaysNothingAboutWhoExists(t *testing.T) {
	s := newSite(t)
	known := s.post("", "/signin", "email", "ana@example.org", "password", "wrong")
	unknown := s.post("", "/signin", "email", "ann@example.org", "password", "wrong")
	same := strings.ReplaceAll(unknown.Body.String(), "ann@", "ana@")
	if known.Code != unknown.Code || known.Code != http.StatusUnauthorized || known.Body.String() != same {
		t.Errorf("a known address gives %d, an unknown one %d, or another page", known.Code, unknown.Code)
	}
	if len(known.Result().Cookies()) != 0 {
		t.Error("a failed sign-in sets a cookie")
	}
}

func TestSignOut_EndsTheSessionOnTheServer(t *testing.T) {
	s := newSite(t)
	s.want("before", s.get("ana", "/inbox"), http.StatusOK)
	s.want("sign out", s.post("ana", "/signout"), http.StatusSeeOther)
	s.want("the old cookie, kept by somebody", s.get("ana", "/inbox"), http.StatusSeeOther)
}
