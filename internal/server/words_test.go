package server_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"countersign/internal/desk"
)

// TestPages_SpeakInWords looks for what pages said in codes, or not at all.
func TestPages_SpeakInWords(t *testing.T) {
	s := newSite(t)
	a := s.refund("Damaged.")
	s.want("a first view", s.get("ana", "/approvals/"+a.ID), http.StatusOK)
	for _, c := range []struct{ path, says, not string }{
		{"/definitions/policy/default/1", "2 of finance", ""},
		{"/definitions/tool/shop.refund/1", "asking the target, and sending the same key again", "key+query"},
		{"/definitions/tool/ops.restart/1", "a person, with evidence", "none: a person"},
		{"/runs/" + a.Run, "Look up the order", "action_proposed"},
		{"/runs/" + a.Run + "/checkpoints/3", "asks for approval", ""},
		{"/runs/" + a.Run + "/checkpoints/2", "Look up the order", ""},
	} {
		w := s.get("chloe", c.path)
		s.want(c.path, w, http.StatusOK, c.says)
		text, _, _ := strings.Cut(readable(w), "As it was written")
		if c.not != "" && strings.Contains(text, c.not) {
			t.Errorf("%s says %q", c.path, c.not)
		}
	}
}

// TestAudit_ARemarkIsNoState: what a look or a change of roles notes is not
// shown as an outcome that nobody knows.
func TestAudit_ARemarkIsNoState(t *testing.T) {
	s := newSite(t)
	a := s.refund("Damaged.")
	s.want("a first view", s.get("ana", "/approvals/"+a.ID), http.StatusOK)
	s.must(s.inst.Desk.SetRoles(t.Context(), desk.Terminal(), s.principal("dev").Person, []string{"builder", "viewer"}))
	w := s.get("chloe", "/audit")
	s.want("the log", w, http.StatusOK, "revision 1", "builder viewer")
	_, rows, _ := strings.Cut(w.Body.String(), `id="main"`)
	if strings.Contains(rows, "tone-unknown") {
		t.Errorf("a remark is shown as an outcome that nobody knows:\n%s", regexp.MustCompile(`(?s)tone-unknown.{0,900}`).FindString(rows))
	}
}
