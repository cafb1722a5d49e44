package server_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"countersign/internal/desk"
	"countersign/internal/engine"
)

func TestDecision_DoubleClickIsOneDecisionAndOneEffect(t *testing.T) {
	s := newSite(t)
	a := s.refund("Damaged.")
	path := "/approvals/" + a.ID + "/decision"
	ana := s.token("ana")
	if ana == "" {
		t.Fatal("no session")
	}
	codes := make([]int, 8)
	var all sync.WaitGroup
	for i := range codes {
		all.Go(func() { codes[i] = s.post("ana", path, "verdict", "approve", "digest", a.Digest).Code })
	}
	all.Wait()
	for i, code := range codes {
		if code != http.StatusSeeOther {
			t.Errorf("click %d: status %d, want 303 for each", i, code)
		}
	}
	run, err := s.inst.Desk.Run(t.Context(), desk.Terminal(), a.Run)
	s.must(err)
	s.reach(run, engine.Completed)
	if n := len(s.request(a.ID).Decisions); n != 1 {
		t.Errorf("%d decisions were recorded, want 1", n)
	}
	effects, err := s.ledger.Effects()
	s.must(err)
	n := 0
	for _, e := range effects {
		if e.Kind == "refund" {
			n++
		}
	}
	if n != 1 {
		t.Errorf("the shop refunded %d times, want 1", n)
	}
}

func TestDecision_SecondPersonIsToldWhoDecidedAndKeepsWhatWasTyped(t *testing.T) {
	s := newSite(t)
	a := s.refund("Damaged.")
	path := "/approvals/" + a.ID + "/decision"
	s.want("the first", s.post("ana", path, "verdict", "approve", "digest", a.Digest), http.StatusSeeOther)
	s.want("the second", s.post("ben", path, "verdict", "reject", "digest", a.Digest, "comment", "The parcel is <lost>"), http.StatusConflict,
		"Your decision was not recorded", "ana", "The parcel is <lost>")
}

func TestDecision_OnAnOldPageIsRefusedAndKeepsWhatWasTyped(t *testing.T) {
	s := newSite(t)
	a := s.refund("Damaged.")
	s.want("an edit", s.post("ana", "/approvals/"+a.ID+"/edit", "do", "save", "digest", a.Digest, "/amount", "9900", "comment", "Less."), http.StatusSeeOther)
	s.want("the stale tab", s.post("ben", "/approvals/"+a.ID+"/decision", "verdict", "reject", "digest", a.Digest, "comment", "Too much for me"), http.StatusConflict,
		"Your decision was not recorded", "Too much for me", "9900")
	if now := s.request(a.ID); now.Status != "pending" || len(now.Decisions) != 0 {
		t.Errorf("the request is %s with %d decisions, want pending with none", now.Status, len(now.Decisions))
	}
}

func TestDecision_RejectingNeedsAReason(t *testing.T) {
	s := newSite(t)
	a := s.refund("Damaged.")
	s.want("no reason", s.post("ana", "/approvals/"+a.ID+"/decision", "verdict", "reject", "digest", a.Digest, "comment", "  "), http.StatusUnprocessableEntity)
	if now := s.request(a.ID); now.Status != "pending" {
		t.Errorf("the request is %s, want pending", now.Status)
	}
}

func TestDecision_ReadingNeverDecides(t *testing.T) {
	s := newSite(t)
	a := s.refund("Damaged.")
	page := "/approvals/" + a.ID
	s.want("first view", s.get("ana", page), http.StatusOK)
	before := s.size()
	for _, path := range []string{page, page + "?arm=" + a.Digest, page + "?arm=" + a.Digest + "&verdict=approve&digest=" + a.Digest, page + "/edit", "/inbox", "/approvals"} {
		s.want(path, s.get("ana", path), http.StatusOK)
	}
	s.want("decision by GET", s.get("ana", page+"/decision?verdict=approve&digest="+a.Digest), http.StatusSeeOther)
	if now := s.request(a.ID); now.Status != "pending" || s.size() != before {
		t.Errorf("the request is %s and the log has %s entries, want pending and %s", now.Status, s.size(), before)
	}
}

func TestEdit_CheckingSavesNothing(t *testing.T) {
	s := newSite(t)
	a := s.refund("Damaged.")
	s.want("a check", s.post("ana", "/approvals/"+a.ID+"/edit", "do", "check", "digest", a.Digest, "/amount", "9900"), http.StatusOK, "Save as revision 2")
	s.want("a bad value", s.post("ana", "/approvals/"+a.ID+"/edit", "do", "save", "digest", a.Digest, "/amount", "lots of"), http.StatusUnprocessableEntity, "lots of")
	if now := s.request(a.ID); now.Digest != a.Digest {
		t.Errorf("the request has revision %d, want it unchanged", now.Revision)
	}
}

func TestPages_TextFromOutsideIsInert(t *testing.T) {
	s := newSite(t)
	const hostile = `</script><script>alert(1)</script><img src=x onerror=alert(2)> "><form action=//evil.example> javascript:alert(3)`
	a := s.refund(hostile)
	page := "/approvals/" + a.ID
	for _, path := range []string{page, page + "?arm=" + a.Digest, page + "/edit", "/inbox", "/approvals", "/runs", "/runs/" + a.Run} {
		w := s.get("ana", path)
		s.want(path, w, http.StatusOK)
		for _, live := range []string{"<script>alert", "<img src=x", "<form action=//evil", `href="javascript:`} {
			if strings.Contains(w.Body.String(), live) {
				t.Errorf("%s contains %q alive", path, live)
			}
		}
	}
	s.want("a hostile comment", s.post("ana", page+"/comments", "comment", hostile), http.StatusSeeOther)
	if w := s.get("ben", page); strings.Contains(w.Body.String(), "<script>alert") || !strings.Contains(w.Body.String(), "&lt;script&gt;") {
		t.Error("the comment is missing or alive")
	}
}
