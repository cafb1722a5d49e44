package server_test

import (
	"html"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// addresses are where the links and forms of a page about the request lead.
func addresses(w *httptest.ResponseRecorder, page string) (out []string) {
	for _, m := range links.FindAllStringSubmatch(w.Body.String(), -1) {
		out = append(out, html.UnescapeString(m[1]))
	}
	for _, f := range forms.FindAllString(w.Body.String(), -1) {
		if m := goal.FindStringSubmatch(f); m != nil && strings.Contains(f, `method="post"`) {
			out = append(out, html.UnescapeString(m[1]))
		}
	}
	n := 0
	for _, to := range out {
		exact := strings.Contains(to, "/subject") || strings.Contains(to, "/value") || strings.Contains(to, "/receipt")
		if strings.HasPrefix(to, page) && !exact {
			out[n] = to
			n++
		}
	}
	return out[:n]
}

// TestOrigin_TheListARequestWasOpenedFromIsNeverLost arms, comments, edits,
// fails, decides and takes back: the way back stays the list of the beginning.
func TestOrigin_TheListARequestWasOpenedFromIsNeverLost(t *testing.T) {
	s := newSite(t)
	a := s.refund("Damaged.")
	page, from := "/approvals/"+a.ID, "?from=approvals"
	check := func(what string, w *httptest.ResponseRecorder, code int) {
		t.Helper()
		s.want(what, w, code)
		if code == http.StatusSeeOther {
			if to := w.Header().Get("Location"); to != page+from {
				t.Errorf("%s leads to %s, want %s", what, to, page+from)
			}
			return
		}
		all := addresses(w, page)
		if len(all) == 0 {
			t.Errorf("%s has no address of the request", what)
		}
		for _, to := range all {
			if !strings.Contains(to, "from=approvals") {
				t.Errorf("%s: %s forgets the list", what, to)
			}
		}
	}
	w := s.get("ana", page+from)
	check("the page", w, http.StatusOK)
	if !strings.Contains(w.Body.String(), `name="from" value="approvals"`) {
		t.Error("the form that arms forgets the list")
	}
	check("the armed page", s.get("ana", page+from+"&arm="+a.Digest), http.StatusOK)
	check("a comment", s.post("ana", page+"/comments"+from, "comment", "Looks right."), http.StatusSeeOther)
	check("an empty comment", s.post("ana", page+"/comments"+from, "comment", " "), http.StatusUnprocessableEntity)
	check("a form's own address", s.get("ana", page+"/decision"+from), http.StatusSeeOther)
	check("no reason", s.post("ana", page+"/decision"+from, "verdict", "reject", "digest", a.Digest), http.StatusUnprocessableEntity)
	check("the edit page", s.get("ana", page+"/edit"+from), http.StatusOK)
	check("a checked edit", s.post("ana", page+"/edit"+from, "do", "check", "digest", a.Digest, "/amount", "9900"), http.StatusOK)
	check("a saved edit", s.post("ana", page+"/edit"+from, "do", "save", "digest", a.Digest, "/amount", "9900"), http.StatusSeeOther)
	check("a decision", s.post("ana", page+"/decision"+from, "verdict", "approve", "digest", s.request(a.ID).Digest), http.StatusSeeOther)
	if w := s.post("", page+"/comments"+from, "comment", "Late."); !strings.Contains(w.Body.String(), `value="`+page+from+`"`) {
		t.Error("signing in after the session ended forgets the list")
	}
}
