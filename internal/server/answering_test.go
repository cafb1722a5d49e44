package server_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"countersign/internal/desk"
	"countersign/internal/engine"
)

// goodwill starts a run that asks how much is refunded.
func (s *site) goodwill() (engine.Run, string) {
	s.t.Helper()
	run, _, err := s.inst.Desk.StartRun(s.t.Context(), s.principal("dev"), desk.StartRun{Workflow: "goodwill", Input: json.RawMessage(`{"order_id":"4180"}`)})
	s.must(err)
	s.reach(run, engine.WaitingInput)
	return run, "/runs/" + string(run.ID)
}

const howMuch = "How much of order 4180 should be refunded to "

func TestAnswer_FromTheInboxToTheRun(t *testing.T) {
	s := newSite(t)
	run, page := s.goodwill()
	s.want("Ana's inbox", s.get("ana", "/inbox"), 200, howMuch, page+"#ask-details-1", "question")
	s.want("a search that finds it", s.get("ana", "/inbox?q=goodwill"), 200, howMuch)
	s.want("a search that does not", s.get("ana", "/inbox?q=weekly"), 200, "Nothing matches")
	s.want("a filter for requests", s.get("ana", "/inbox?risk=high"), 200, "Nothing matches")
	s.want("Dev's inbox", s.get("dev", "/inbox"), 200, "Nothing waits for you")
	s.want("the run, for Ana", s.get("ana", page), 200, howMuch, page+"/answers", "/amount", "/why", "Amount", "In cents")
	s.want("the run, for Dev", s.get("dev", page), 200, howMuch, "You may not answer this. People with the role operator or finance can.", "Can answer: ")
	if w := s.get("dev", page); strings.Contains(w.Body.String(), page+"/answers") {
		t.Error("Dev is shown a form")
	}
	w := s.post("ana", page+"/answers", "step", "details", "pass", "1", "/amount", "1500", "/why", "A chipped mug.")
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != page {
		t.Fatalf("the answer: status %d to %q", w.Code, w.Header().Get("Location"))
	}
	s.reach(run, engine.Completed)
	s.want("the run afterwards", s.get("ana", page), 200, "Answered by ana.", "run.answer")
	s.want("Ana's inbox afterwards", s.get("ana", "/inbox"), 200, "Nothing waits for you")
	s.want("the form's own address", s.get("ana", page+"/answers"), http.StatusSeeOther)
}

func TestAnswer_WhatDoesNotFitComesBackWithAllThatWasTyped(t *testing.T) {
	s := newSite(t)
	run, page := s.goodwill()
	before := s.size()
	w := s.post("ana", page+"/answers", "step", "details", "pass", "1", "/amount", "lots & lots", "/why", "Because\r\nof <b>.")
	s.want("a word for a number", w, 422, "Something below needs another look; nothing was recorded", "lots & lots", "Because\r\nof <b>.", "must be")
	if strings.Contains(w.Body.String(), "<b>") {
		t.Error("what was typed is not escaped")
	}
	s.want("nothing at all", s.post("ana", page+"/answers", "step", "details", "pass", "1"), 422, "nothing was recorded")
	for _, pairs := range [][]string{{}, {"step", "details"}, {"step", "details", "pass", "x"}, {"step", "details", "pass", "0"}} {
		s.want("a form of something else", s.post("ana", page+"/answers", pairs...), 400)
	}
	s.want("another step", s.post("ana", page+"/answers", "step", "refund", "pass", "1"), 404)
	s.want("a later pass", s.post("ana", page+"/answers", "step", "details", "pass", "2"), 404)
	if s.size() != before {
		t.Error("a slip of the pen is in the log")
	}
	now, err := s.inst.Desk.Run(t.Context(), desk.Terminal(), string(run.ID))
	s.must(err)
	if now.Status != engine.WaitingInput || now.Version != run.Version && now.Version < 3 {
		t.Errorf("the run is %s at version %d", now.Status, now.Version)
	}
	s.want("Dev, who may not", s.post("dev", page+"/answers", "step", "details", "pass", "1", "/amount", "1", "/why", "x"), 403, "People with the role operator or finance can")
}

func TestAnswer_WhoComesSecondIsToldWhoWasFirstAndKeepsWhatWasTyped(t *testing.T) {
	s := newSite(t)
	run, page := s.goodwill()
	s.want("Ana", s.post("ana", page+"/answers", "step", "details", "pass", "1", "/amount", "1500", "/why", "A chipped mug."), http.StatusSeeOther)
	s.want("Ana, who pressed twice", s.post("ana", page+"/answers", "step", "details", "pass", "1", "/amount", "1500", "/why", "A chipped mug."), http.StatusSeeOther)
	s.want("Ben", s.post("ben", page+"/answers", "step", "details", "pass", "1", "/amount", "2000", "/why", "It was late."), 409,
		"ana has answered this already. Your answer was not recorded.", "What you typed", "It was late.")
	s.reach(run, engine.Completed)
	past, err := s.ledger.Effects()
	s.must(err)
	if len(past) != 1 || !strings.Contains(string(past[0].Body), "1500") {
		t.Errorf("the shop did %v", past)
	}
}
