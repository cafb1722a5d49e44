package server_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"countersign/internal/desk"
	"countersign/internal/engine"
	"countersign/internal/id"
)

// An operator corrects what a run published, from its page.
func TestCorrect_FromTheRunsPage(t *testing.T) {
	s := newSite(t)
	view, _, err := s.inst.Desk.Propose(t.Context(), s.principal("dev"), desk.ProposeAction{Tool: "kb.publish",
		Params: json.RawMessage(`{"page":"notes/one","body":"Wrong."}`), Reason: "To tell everybody."})
	s.must(err)
	run := engine.Run{ID: id.Run(view.Run)}
	s.reach(run, engine.WaitingApproval)
	a := s.request(view.Approval)
	s.want("approving", s.post("ana", "/approvals/"+a.ID+"/decision", "verdict", "approve", "digest", a.Digest), http.StatusSeeOther)
	s.reach(run, engine.Completed)

	page := "/runs/" + view.Run
	s.want("the page", s.get("ana", page), http.StatusOK, "Correct what it did", "kb.publish: Publish the page notes/one")
	if strings.Contains(readable(s.get("ben", page)), "Correct what it did") {
		t.Error("who may not propose is offered it")
	}
	s.want("without a reason", s.post("ana", page+"/corrections", "reason", " "), http.StatusUnprocessableEntity, "Correct what it did", "Reason")
	w := s.post("ana", page+"/corrections", "reason", "Wrong page.")
	s.want("with one", w, http.StatusSeeOther)
	to := w.Header().Get("Location")
	s.reach(engine.Run{ID: id.Run(strings.TrimPrefix(to, "/runs/"))}, engine.WaitingApproval)
	s.want("the run it leads to", s.get("ana", to), http.StatusOK, "Correct what a run did", "Publish the page notes/one")
}
