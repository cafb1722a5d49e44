package server_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"countersign/internal/desk"
	"countersign/internal/engine"
)

const noteFlow = `format: 1
workflow: note
version: 1
title: A note
steps:
  - id: write
    action: kb.publish
    with: {page: notes/one, body: "Hello."}
`

// define puts another text of a workflow in force.
func (s *site) define(name, text string) {
	s.t.Helper()
	s.must(os.WriteFile(filepath.Join(s.inst.Config.Workflows, name), []byte(text), 0o644))
	_, err := s.inst.LoadDefinitions(s.t.Context())
	s.must(err)
}

// An operator moves a run to the version in force from its page, which says
// what follows; a version it does not fit says why not.
func TestMigrate_FromTheRunsPage(t *testing.T) {
	s := newSite(t)
	s.define("note.yaml", noteFlow)
	run, _, err := s.inst.Desk.StartRun(t.Context(), s.principal("dev"), desk.StartRun{Workflow: "note", Input: json.RawMessage(`{}`)})
	s.must(err)
	s.reach(run, engine.WaitingApproval)
	page := "/runs/" + string(run.ID)
	if strings.Contains(readable(s.get("ana", page)), "Go on in workflow") {
		t.Error("a run of the version in force is offered another one")
	}

	second := strings.NewReplacer("version: 1", "version: 2", "id: write", "id: put").Replace(noteFlow)
	s.define("note.yaml", second+"migrate: [{from: 1}]\n")
	s.want("a version it does not fit", s.get("ana", page), http.StatusOK, "Go on in workflow version 2", "stands at step write")
	s.define("note.yaml", strings.Replace(second, "version: 2", "version: 3", 1)+"migrate: [{from: 1, rename_steps: {write: put}}]\n")
	s.want("a version it fits", s.get("ana", page), http.StatusOK, "Go on in workflow version 3", "write (now put)")
	if strings.Contains(readable(s.get("dev", page)), "Go on in workflow") {
		t.Error("who does not operate is offered it")
	}

	s.want("an old page", s.post("ana", page+"/migrate", "to", "3", "expected_version", "1"), http.StatusSeeOther)
	now, err := s.inst.Desk.Run(t.Context(), s.principal("ana"), string(run.ID))
	s.must(err)
	if now.WorkflowVersion != 1 {
		t.Fatalf("an old page moved the run to version %d", now.WorkflowVersion)
	}
	s.want("moving", s.post("ana", page+"/migrate", "to", "3", "expected_version", "2"), http.StatusSeeOther)
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		text := readable(s.get("ana", page))
		if strings.Contains(text, "went on to another version") && strings.Contains(text, "Approval of put") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the page does not say that it went on:\n%s", text)
		}
	}
	s.want("a form without versions", s.post("ana", page+"/migrate"), http.StatusBadRequest)
}
