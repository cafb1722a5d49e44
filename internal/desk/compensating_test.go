package desk_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"countersign/internal/desk"
	"countersign/internal/engine"
	"countersign/internal/id"
)

// published is a page that an action published, as dev, and its run.
func (w *world) published() engine.Run {
	w.t.Helper()
	view, _, err := w.desk.Propose(w.t.Context(), w.principal("dev"), desk.ProposeAction{Tool: "kb.publish", Params: []byte(`{"page":"notes/one","body":"Wrong."}`), Reason: "To tell everybody."})
	w.must(err)
	run := w.waitFor(engine.Run{ID: id.Run(view.Run)}, engine.WaitingApproval)
	w.approve("ana", w.request("ana", run))
	return w.waitFor(run, engine.Completed)
}

func (w *world) page(name string) string {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(w.dir, "kb", name))
	w.must(err)
	return string(text)
}

func TestCorrect_ProposesWhatTheToolDeclaresAndDoesItOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.published()
	plan, err := w.desk.CorrectionPlan(t.Context(), w.principal("dev"), string(run.ID))
	if err != nil || len(plan) != 1 || plan[0].Tool != "kb.publish" || plan[0].Why != "" {
		t.Fatalf("plan %+v, %v", plan, err)
	}
	_, err = w.desk.Correct(t.Context(), w.principal("ben"), string(run.ID), "Wrong page.")
	w.wantProblem(err, "forbidden")

	fix, err := w.desk.Correct(t.Context(), w.principal("dev"), string(run.ID), "Wrong page.")
	w.must(err)
	fix = w.waitFor(fix, engine.WaitingApproval)
	a := w.request("ana", fix)
	if a.Reason != "Wrong page." || a.Tool != "kb.publish" || w.page("notes/one.md") != "Wrong." {
		t.Errorf("before the approval: reason %q, tool %s, page %q", a.Reason, a.Tool, w.page("notes/one.md"))
	}
	w.approve("ana", a)
	w.waitFor(fix, engine.Completed)
	if got := w.page("notes/one.md"); !strings.Contains(got, "withdrawn") {
		t.Errorf("after it the page says %q", got)
	}
	again, err := w.desk.Correct(t.Context(), w.principal("dev"), string(run.ID), "Once more.")
	w.must(err)
	if again = w.waitFor(again, engine.Failed); again.Error == nil || again.Error.Code != "duplicate_key" {
		t.Errorf("corrected twice: %+v", again.Error)
	}
}

func TestCorrect_WhatCannotBeCorrected_SaysWhy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.refund(12_500, engine.WaitingApproval)
	_, err := w.desk.Correct(t.Context(), w.principal("dev"), string(run.ID), "Not needed.")
	w.wantProblem(err, "run_open")
	w.approve("ben", w.request("ben", run))
	w.waitFor(run, engine.Completed)
	plan, err := w.desk.CorrectionPlan(t.Context(), w.principal("dev"), string(run.ID))
	if err != nil || len(plan) != 1 || plan[0].Tool != "" || !strings.Contains(plan[0].Why, "names nothing") {
		t.Errorf("plan %+v, %v", plan, err)
	}
	_, err = w.desk.Correct(t.Context(), w.principal("dev"), string(run.ID), "Not needed.")
	w.wantProblem(err, "nothing_to_correct")
}

// What was sealed in the run stays sealed in the one that corrects it, and
// what the tool would need but the receipt lacks is said.
func TestCorrect_SealedParametersStaySealedAndReachTheTarget(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.secretive()
	w.redefineAs("tools/shop.refund.yaml", 3, "\neditable:", "\ncompensate: {tool: kb.publish, with: {page: \"refunds/${params.order_id}\", body: \"${params.note}\"}}\neditable:")
	_, err := w.inst.LoadDefinitions(t.Context())
	w.must(err)
	run, a := w.refundWithCanary("")
	w.approve("ben", a)
	w.waitFor(run, engine.Completed)
	fix, err := w.desk.Correct(t.Context(), w.principal("dev"), string(run.ID), "Publish it instead.")
	w.must(err)
	fix = w.waitFor(fix, engine.WaitingApproval)
	w.approve("ana", w.request("ana", fix))
	w.waitFor(fix, engine.Completed)
	if got := w.page("refunds/4180.md"); got != canary {
		t.Errorf("the page says %q", got)
	}
	w.wantNoCanary()
}
