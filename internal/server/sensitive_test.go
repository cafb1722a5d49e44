package server_test

import (
	"net/http"
	"os"
	"strings"
	"testing"
)

// The note of this site's refunds is sensitive; it is made of the order.
func TestReveal_ShowsOneValueOnceToWhoMaySeeIt(t *testing.T) {
	s := newSite(t)
	const file, value = "/shop.refund.yaml", "Refund for order 4180"
	dir := s.inst.Config.Tools
	text, err := os.ReadFile(dir + file)
	s.must(err)
	changed := strings.NewReplacer("\nversion: 1\n", "\nversion: 2\n", "\neditable:", "\nsensitive: [/note]\neditable:").Replace(string(text))
	s.must(os.WriteFile(dir+file, []byte(changed), 0o644))
	_, err = s.inst.LoadDefinitions(t.Context())
	s.must(err)
	a := s.refund("Damaged.")
	page := "/approvals/" + a.ID

	first := s.get("ana", page)
	s.want("the page", first, http.StatusOK, "hidden: sensitive", "Show it (this is recorded)")
	if strings.Contains(readable(first), value) {
		t.Errorf("the page shows the value before it was asked for")
	}
	s.want("asked for", s.post("ana", page+"/reveal", "path", "/note"), http.StatusOK, value, "shown to you once, and recorded")
	if strings.Contains(readable(s.get("ana", page)), value) {
		t.Errorf("the page goes on showing the value")
	}
	if strings.Contains(readable(s.get("dev", page)), "Show it") {
		t.Errorf("the initiator is offered what they may not see")
	}
	s.want("the initiator", s.post("dev", page+"/reveal", "path", "/note"), http.StatusForbidden)
	s.want("no such value", s.post("ana", page+"/reveal", "path", "/amount"), http.StatusNotFound)
	s.want("the edit form", s.get("ana", page+"/edit"), http.StatusOK, "left empty, it stays as it is")
	s.want("the copy", s.get("ana", page+"/value?path=/note"), http.StatusOK, "$commit")
}
