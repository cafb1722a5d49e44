package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// Who approved takes it back from the page, and an operator gives more time.
func TestReconsider_FromTheRequestsPage(t *testing.T) {
	s := newSite(t)
	a := s.refundOf(75_000, "Damaged.")
	page := "/approvals/" + a.ID
	if strings.Contains(readable(s.get("ana", page)), "Take my approval back") {
		t.Error("who has not approved is offered to take it back")
	}
	s.want("approving", s.post("ana", page+"/decision", "verdict", "approve", "digest", a.Digest), http.StatusSeeOther)
	s.want("the page of who approved", s.get("ana", page), http.StatusOK, "Take my approval back", "Give more time", "given by ana")
	ben := readable(s.get("ben", page))
	if strings.Contains(ben, "Take my approval back") || strings.Contains(ben, "Give more time") {
		t.Error("somebody else is offered it")
	}

	s.want("without a reason", s.post("ana", page+"/retract", "reason", " "), http.StatusUnprocessableEntity, "say why")
	s.want("with one", s.post("ana", page+"/retract", "reason", "Wrong order."), http.StatusSeeOther)
	again := s.get("ana", page)
	s.want("afterwards", again, http.StatusOK, "took the approval of revision 1 back", "Wrong order.", "0 of 2")
	if text := readable(again); strings.Contains(text, "given by ana") || strings.Contains(text, "Take my approval back") {
		t.Errorf("the page counts an approval that was taken back:\n%s", text)
	}
	s.want("twice", s.post("ana", page+"/retract", "reason", "Wrong order."), http.StatusSeeOther)

	s.want("more time, without a reason", s.post("ana", page+"/extend", "hours", "72", "reason", ""), http.StatusUnprocessableEntity, "say why")
	s.want("without hours", s.post("ana", page+"/extend", "reason", "Holiday."), http.StatusBadRequest)
	s.want("more time", s.post("ana", page+"/extend", "hours", "72", "reason", "Holiday."), http.StatusSeeOther)
	if now := s.request(a.ID); !now.DecideBy.Equal(a.DecideBy.Add(72*time.Hour)) || now.Digest != a.Digest {
		t.Errorf("the request is to be decided by %v, want three days after %v", now.DecideBy, a.DecideBy)
	}
	s.want("afterwards", s.get("ben", page), http.StatusOK, "time to decide extended", "Holiday.")
}
