package server_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

var (
	links = regexp.MustCompile(`(?:href|src|data-copy-url)="([^"]*)"`)
	forms = regexp.MustCompile(`<form[^>]*>`)
	goal  = regexp.MustCompile(`action="([^"]*)"`)
)

// visit follows every link from the start page as somebody, and returns the
// pages with what they answered and the addresses their forms post to, each
// with a page it stands on.
func (s *site) visit(who string) (answers map[string]int, from, posts map[string]string) {
	answers, from, posts = map[string]int{}, map[string]string{"/": "the start"}, map[string]string{}
	for todo := []string{"/"}; len(todo) > 0; todo = todo[1:] {
		at := todo[0]
		if _, seen := answers[at]; seen {
			continue
		}
		w := s.get(who, at)
		answers[at] = w.Code
		next := []string{w.Header().Get("Location")}
		if strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
			for _, m := range links.FindAllStringSubmatch(w.Body.String(), -1) {
				next = append(next, html.UnescapeString(m[1]))
			}
			for _, f := range forms.FindAllString(w.Body.String(), -1) {
				if m := goal.FindStringSubmatch(f); m != nil && strings.Contains(f, `method="post"`) {
					posts[html.UnescapeString(m[1])] = at
				} else if m != nil {
					next = append(next, html.UnescapeString(m[1]))
				}
			}
		}
		for _, link := range next {
			link, _, _ = strings.Cut(link, "#")
			to, ok := resolved(at, link)
			if _, known := from[to]; ok && !known {
				from[to] = at
				todo = append(todo, to)
			}
		}
	}
	return answers, from, posts
}

// resolved is where a link on a page leads, if it stays here.
func resolved(at, link string) (string, bool) {
	base, err := url.Parse(at)
	if err != nil || link == "" {
		return "", false
	}
	to, err := base.Parse(link)
	if err != nil || to.Host != "" || to.Scheme != "" {
		return "", false
	}
	return to.RequestURI(), true
}

// TestLinks_EveryOneAnswersForWhoeverIsShownIt follows every link of every
// page: none is dead, and none leads where its reader may not go.
func TestLinks_EveryOneAnswersForWhoeverIsShownIt(t *testing.T) {
	s := newSite(t)
	open, agreed, refused := s.refund("Damaged."), s.refund("Late."), s.refund("Lost.")
	s.want("approve", s.post("ana", "/approvals/"+agreed.ID+"/decision", "verdict", "approve", "digest", agreed.Digest, "password", "correct horse ana"), http.StatusSeeOther)
	s.want("reject", s.post("ana", "/approvals/"+refused.ID+"/decision", "verdict", "reject", "digest", refused.Digest, "comment", "No."), http.StatusSeeOther)
	routes, _ := s.routes()
	for who := range staff {
		answers, from, posts := s.visit(who)
		if len(answers) < 20 || answers["/approvals/"+open.ID+"?from=approvals"] != http.StatusOK {
			t.Errorf("%s reaches %d pages only, without an open request among them", who, len(answers))
		}
		for at, code := range answers {
			if code >= http.StatusBadRequest {
				t.Errorf("%s: %s, linked on %s, answers %d", who, at, from[at], code)
			}
		}
		for at, page := range posts {
			if !posted(routes, at) {
				t.Errorf("%s: a form on %s posts to %s, where nothing is", who, page, at)
			}
		}
	}
}

// posted says whether a route takes a POST there.
func posted(routes []string, at string) bool {
	at, _, _ = strings.Cut(at, "?")
	for _, r := range routes {
		method, path, _ := strings.Cut(r, " ")
		if method == http.MethodPost && fits(strings.Split(path, "/"), strings.Split(at, "/")) {
			return true
		}
	}
	return false
}

func fits(route, path []string) bool {
	if len(route) != len(path) {
		return false
	}
	for i := range route {
		if route[i] != path[i] && !(strings.HasPrefix(route[i], ":") && path[i] != "") {
			return false
		}
	}
	return true
}

func TestForms_SentAfterTheSessionEndedKeepWhatWasWritten(t *testing.T) {
	s := newSite(t)
	a := s.refund("Damaged.")
	w := s.post("", "/approvals/"+a.ID+"/decision", "verdict", "reject", "digest", a.Digest, "comment", "The parcel <was> found.", "password", "correct horse ana")
	s.want("a decision without a session", w, http.StatusUnauthorized, "Nothing was changed.", "The parcel <was> found.", "Sign in")
	if !strings.Contains(w.Body.String(), `value="/approvals/`+a.ID+`"`) {
		t.Error("signing in does not lead back to the request")
	}
	if strings.Contains(w.Body.String(), "correct horse") {
		t.Error("the page repeats the password")
	}
	s.want("a form without text", s.post("", "/runs", "workflow", "refund"), http.StatusUnauthorized, "has to be typed again")
	if now := s.request(a.ID); now.Status != "pending" {
		t.Errorf("the request is %s, want pending", now.Status)
	}
}

func TestEdit_WhoeverMayNotIsToldBeforeTyping(t *testing.T) {
	s := newSite(t)
	a := s.refund("Damaged.")
	s.want("an approver", s.get("ana", "/approvals/"+a.ID+"/edit"), http.StatusOK, "May be changed")
	for _, who := range []string{"chloe", "dev"} {
		w := s.get(who, "/approvals/"+a.ID+"/edit")
		s.want(who, w, http.StatusForbidden, "Only those who can decide a request can edit it")
	}
	s.want("reject", s.post("ana", "/approvals/"+a.ID+"/decision", "verdict", "reject", "digest", a.Digest, "comment", "No."), http.StatusSeeOther)
	s.want("after the decision", s.get("ana", "/approvals/"+a.ID+"/edit"), http.StatusConflict, "This request is rejected")
}
