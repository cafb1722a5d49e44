package desk_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"countersign/internal/audit/receipt"
	"countersign/internal/desk"
	"countersign/internal/engine"
)

const planFlow = `format: 1
workflow: plan
version: 1
title: Plan, then publish
input: {type: object, additionalProperties: false, required: [plan], properties: {plan: {type: string, minLength: 1}}}
steps:
  - id: plan
    title: The plan
    approve:
      document: {plan: "${input.plan}"}
      guards: [publish]
    on_reject: end
  - id: publish
    action: kb.publish
    with: {page: plan, body: "${input.plan}"}
output: {verdict: "${steps.plan.output.verdict}", by: "${steps.plan.output.by}", page: "${steps.publish.output.path}"}
`

// planned starts a run that presents a document, and waits for its request.
func (w *world) planned() (engine.Run, desk.Approval) {
	w.t.Helper()
	w.must(os.WriteFile(filepath.Join(w.dir, "workflows", "plan.yaml"), []byte(planFlow), 0o644))
	_, err := w.inst.LoadDefinitions(w.t.Context())
	w.must(err)
	run, _, err := w.desk.StartRun(w.t.Context(), w.principal("dev"), desk.StartRun{Workflow: "plan", Input: json.RawMessage(`{"plan":"Do nothing twice."}`)})
	w.must(err)
	run = w.waitFor(run, engine.WaitingApproval)
	return run, w.request("ana", run)
}

// waitAt waits until the run waits for the approval of the step.
func (w *world) waitAt(run engine.Run, step string) {
	w.t.Helper()
	w.eventually(func() (bool, string) {
		now, err := w.desk.Run(w.t.Context(), desk.Terminal(), string(run.ID))
		w.must(err)
		return now.Status == engine.WaitingApproval && now.Step == step, fmt.Sprintf("run is %s at %s (%v), want it to wait at %s", now.Status, now.Step, now.Error, step)
	})
}

func TestDocument_ApprovedIsTakenOnceAndProven(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run, a := w.planned()
	if !strings.Contains(a.Impact, "sends nothing") || !strings.Contains(a.Impact, "Publish (kb.publish)") {
		t.Errorf("what follows is %q, want it to name the action it guards", a.Impact)
	}
	w.approve("ana", a)
	w.waitAt(run, "publish")
	taken := w.entries("approval.taken", a.ID)
	if len(taken) != 1 || taken[0].Digest != a.Digest || taken[0].Run != run.ID {
		t.Fatalf("the log has %+v, want one entry that the run took the approval of %s", taken, a.Digest)
	}
	now, err := w.desk.Approval(t.Context(), w.principal("ana"), a.ID)
	w.must(err)
	if now.Status != "approved" || now.StartedAt.IsZero() {
		t.Errorf("after the run has gone on the request is %s, taken at %v", now.Status, now.StartedAt)
	}
	_, err = w.desk.Revoke(t.Context(), w.principal("ana"), a.ID, "Too late.")
	w.wantProblem(err, "already_sent")
	file, err := w.desk.Receipt(t.Context(), w.principal("chloe"), a.ID)
	w.must(err)
	head, err := w.desk.Head(t.Context(), w.principal("chloe"))
	w.must(err)
	if _, err := receipt.Check(file, head.PublicKey); err != nil {
		t.Errorf("the receipt of the document: %v", err)
	}
	page, err := w.desk.Approvals(t.Context(), w.principal("ben"), desk.ApprovalQuery{Run: run.ID, Status: "pending"})
	w.must(err)
	publish, err := w.desk.Approval(t.Context(), w.principal("ben"), page.Items[0].ID)
	w.must(err)
	w.approve("ben", publish)
	run = w.waitFor(run, engine.Completed)
	if !strings.Contains(string(run.Output), `"verdict":"approve"`) {
		t.Errorf("the output is %s", run.Output)
	}
	report, err := w.desk.Verify(t.Context(), w.principal("chloe"))
	w.must(err)
	if !report.OK {
		t.Errorf("the log does not verify: %+v", report.Findings)
	}
}

func TestDocument_RejectedEndsTheRunWithTheReason(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run, a := w.planned()
	_, err := w.desk.Decide(t.Context(), w.principal("ana"), a.ID, desk.Decide{Verdict: "reject", Digest: a.Digest, Comment: "Not this week."})
	w.must(err)
	run = w.waitFor(run, engine.Rejected)
	if run.Error == nil || !strings.Contains(run.Error.Message, "Not this week.") {
		t.Errorf("the run ends with %v, want the reason", run.Error)
	}
	if taken := w.entries("approval.taken", a.ID); len(taken) != 0 {
		t.Errorf("a rejection was taken as an approval: %+v", taken)
	}
}

// What was approved is looked at once more before the run goes on: a changed
// record, or somebody who is gone, stops it.
func TestDocument_WhatChangesAfterTheApproval_StopsTheRun(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *world, a desk.Approval)
		says   string
	}{
		"the document is changed": {func(w *world, a desk.Approval) {
			w.tamper(`UPDATE revision SET subject = replace(subject, 'Do nothing twice.', 'Do it all twice.')`)
		}, "changed"},
		"the initiator is disabled": {func(w *world, a desk.Approval) {
			w.must(w.desk.SetActive(w.t.Context(), w.principal("chloe"), w.principal("dev").Person, false))
			w.start()
		}, "no longer active"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			run, a := w.planned()
			w.idle()
			w.approve("ana", a)
			c.change(w, a)
			run = w.waitFor(run, engine.Blocked)
			if run.Error == nil || !strings.Contains(strings.ToLower(run.Error.Message), c.says) {
				t.Errorf("the run is blocked with %v, want it to say %q", run.Error, c.says)
			}
			if taken := w.entries("approval.taken", a.ID); len(taken) != 0 {
				t.Errorf("the approval was taken: %+v", taken)
			}
		})
	}
}

func TestDocument_NotDecidedInTimeExpires(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run, a := w.planned()
	w.close()
	w.ahead = a.DecideBy.Sub(a.CreatedAt) + time.Minute
	w.open()
	w.start()
	w.waitFor(run, engine.RunExpired)
	_, err := w.decide("ana", "approve", a)
	w.wantProblem(err, "expired")
}
