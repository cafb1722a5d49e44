package desk_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"countersign/internal/desk"
	"countersign/internal/engine"
	"countersign/internal/testkit"
	"countersign/internal/workflow"
)

const noteV1 = `format: 1
workflow: note
version: 1
title: A note
input: {type: object, additionalProperties: false, required: [text], properties: {text: {type: string}}}
steps:
  - id: text
    set: {text: "${input.text}"}
  - id: write
    title: Write it
    action: kb.publish
    with: {page: notes/one, body: "${steps.text.output.text}"}
output: {page: "${steps.write.output.path}"}
`

// noteV2 renames both steps, writes another page and adds a step that names
// what was done under an old name.
var noteV2 = strings.NewReplacer("version: 1", "version: 2", "id: text", "id: say", "steps.text.", "steps.say.", "id: write", "id: publish", "notes/one", "notes/two",
	"output: {page: \"${steps.write.output.path}\"}\n", "  - id: after\n    set: {said: \"${steps.say.output.text}\"}\noutput: {page: \"${steps.publish.output.path}\", said: \"${steps.after.output.said}\"}\nmigrate:\n  - {from: 1, rename_steps: {text: say, write: publish}}\n").Replace(noteV1)

func (w *world) define(name, text string) {
	w.t.Helper()
	w.must(os.WriteFile(filepath.Join(w.dir, "workflows", name), []byte(text), 0o644))
	_, err := w.inst.LoadDefinitions(w.t.Context())
	w.must(err)
}

// noted is a run of the first version that waits for the approval of its note.
func (w *world) noted() (engine.Run, desk.Approval) {
	w.t.Helper()
	w.define("note.yaml", noteV1)
	run, _, err := w.desk.StartRun(w.t.Context(), w.principal("dev"), desk.StartRun{Workflow: "note", Input: json.RawMessage(`{"text":"Hello."}`)})
	w.must(err)
	run = w.waitFor(run, engine.WaitingApproval)
	return run, w.request("ana", run)
}

func (w *world) migrate(run engine.Run, in desk.Migrate) (desk.MigrationView, error) {
	w.t.Helper()
	return w.desk.Migrate(w.t.Context(), w.principal("ana"), string(run.ID), in)
}

// pending is the one request of the run that waits.
func (w *world) pending(run engine.Run) desk.Approval {
	w.t.Helper()
	page, err := w.desk.Approvals(w.t.Context(), w.principal("ana"), desk.ApprovalQuery{Run: run.ID, Status: "pending"})
	w.must(err)
	if len(page.Items) != 1 {
		w.t.Fatalf("%d requests of run %s wait, want 1", len(page.Items), run.ID)
	}
	a, err := w.desk.Approval(w.t.Context(), w.principal("ana"), page.Items[0].ID)
	w.must(err)
	return a
}

func TestMigrate_AnOpenRunGoesOnInTheNewVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run, old := w.noted()
	w.define("note.yaml", noteV2)

	before := len(w.entries("", ""))
	plan, err := w.migrate(run, desk.Migrate{Expected: run.Version, DryRun: true})
	w.must(err)
	if plan.From != 1 || plan.To != 2 || len(plan.Kept) != 1 || len(plan.Again) != 1 || plan.Again[0] != (workflow.Kept{Old: "write", New: "publish"}) {
		t.Errorf("the dry run says %s", asJSON(t, plan))
	}
	if now := w.waitFor(run, engine.WaitingApproval); now.Version != run.Version || now.WorkflowVersion != 1 || len(w.entries("", "")) != before {
		t.Errorf("the dry run changed the run to %s", asJSON(t, now))
	}

	_, err = w.migrate(run, desk.Migrate{Expected: run.Version})
	w.must(err)
	w.waitAt(run, "publish")
	now, err := w.desk.Approval(t.Context(), w.principal("ana"), old.ID)
	w.must(err)
	if now.Status == "pending" && now.Revision == old.Revision {
		t.Errorf("the old request still stands: %s", asJSON(t, now))
	}
	_, err = w.decide("ana", "approve", old)
	if err == nil {
		t.Error("what the old version asked can still be approved")
	}
	next := w.pending(run)
	if !strings.Contains(next.Summary, "notes/two") {
		t.Errorf("the new version asks for %q", next.Summary)
	}
	w.approve("ana", next)
	run = w.waitFor(run, engine.Completed)
	if run.WorkflowVersion != 2 || !strings.Contains(string(run.Output), "Hello.") {
		t.Errorf("the run ends as %s", asJSON(t, run))
	}
	if _, err := os.Stat(filepath.Join(w.dir, "kb", "notes", "one.md")); err == nil {
		t.Error("the old version's page was written")
	}
	if got := w.entries("run.migrate", string(run.ID)); len(got) != 1 || got[0].Actor.Name != "Ana" {
		t.Errorf("the log has %+v", got)
	}
	report, err := w.desk.Verify(t.Context(), w.principal("chloe"))
	w.must(err)
	if !report.OK {
		t.Errorf("the log does not verify: %+v", report.Findings)
	}
}

func TestMigrate_Refused_LeavesTheRunAsItWas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run, _ := w.noted()
	try := func(text string, in desk.Migrate, code, says string) {
		t.Helper()
		if text != "" {
			w.define("note.yaml", text)
		}
		_, err := w.migrate(run, in)
		if p := w.wantProblem(err, code); !strings.Contains(asJSON(t, p), says) {
			t.Errorf("%s: %s, want it to say %q", code, asJSON(t, p), says)
		}
		if now := w.waitFor(run, engine.WaitingApproval); now.Version != run.Version || now.WorkflowVersion != 1 {
			t.Errorf("after the refusal (%s) the run is %s", code, asJSON(t, now))
		}
	}
	version := func(n string, change ...string) string {
		return strings.NewReplacer(append([]string{"version: 2", "version: " + n}, change...)...).Replace(noteV2)
	}
	try("", desk.Migrate{Expected: -1}, "cannot_migrate", "version 1 already")
	try("", desk.Migrate{To: 7, Expected: -1}, "unknown_workflow", "version 7")
	try(version("2", "{from: 1, rename_steps: {text: say, write: publish}}", "{from: 1}"), desk.Migrate{Expected: -1}, "cannot_migrate", "stands at step write")
	try(version("3", "migrate:\n  - {from: 1, rename_steps: {text: say, write: publish}}\n", ""), desk.Migrate{Expected: -1}, "no_migration", "from: 1")
	try(version("4", "required: [text], properties: {text: {type: string}}", "required: [text, who], properties: {text: {type: string}, who: {type: string}}"), desk.Migrate{Expected: -1}, "cannot_migrate", "/who")
	try(version("5", "properties: {text: {type: string}}", "properties: {text: {type: string}, who: {type: string, default: all}}"), desk.Migrate{Expected: -1}, "cannot_migrate", "adds defaults")
	try(version("6", "steps:\n", "sensitive: [/text]\nsteps:\n"), desk.Migrate{Expected: -1}, "cannot_migrate", "sensitive")
	try(version("8"), desk.Migrate{Expected: run.Version - 1}, "version_conflict", "")
	_, err := w.desk.Migrate(t.Context(), w.principal("dev"), string(run.ID), desk.Migrate{Expected: -1})
	w.wantProblem(err, "forbidden")
	_, err = w.desk.Cancel(t.Context(), w.principal("ana"), string(run.ID), "Enough.")
	w.must(err)
	_, err = w.migrate(run, desk.Migrate{Expected: -1})
	w.wantProblem(err, "already_finished")
}

// What was approved under the old version is not what the new one would send.
func TestMigrate_AfterTheApproval_AsksAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run, a := w.noted()
	w.idle()
	w.approve("ana", a)
	w.define("note.yaml", noteV2)
	_, err := w.migrate(run, desk.Migrate{Expected: -1})
	w.must(err)
	w.start()
	w.waitAt(run, "publish")
	if effects, err := w.desk.RunEffects(t.Context(), w.principal("ana"), string(run.ID)); err != nil || len(effects.Items) != 2 || effects.Items[0].Status != engine.Abandoned || effects.Items[1].Status != engine.Prepared {
		t.Errorf("the ledger is %s, %v", asJSON(t, effects.Items), err)
	}
}

// What was sent and never heard of has to be settled under the version that
// sent it.
func TestMigrate_WithAnUnknownEffect_IsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run, e := w.unknown("high")
	raw, err := os.ReadFile(filepath.Join(w.dir, "workflows", "refund.yaml"))
	w.must(err)
	w.define("refund.yaml", versionLine.ReplaceAllString(string(raw), "version: 9")+"migrate: [{from: 1}]\n")
	_, err = w.migrate(run, desk.Migrate{Expected: -1})
	if p := w.wantProblem(err, "effect_unsettled"); p.Details["effect"] != any(e.ID) {
		t.Errorf("it does not name the effect: %s", asJSON(t, p))
	}
}

// A row that says another version than the record does is not believed.
func TestMigrate_VersionChangedInTheDatabase_Blocks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run, a := w.noted()
	w.define("note.yaml", noteV2)
	w.close()
	testkit.Outsider(t, filepath.Join(w.dir, "countersign.db"),
		`UPDATE run SET workflow_version = 2, workflow_digest = (SELECT digest FROM definition WHERE kind = 'workflow' AND name = 'note' AND version = 2) WHERE id = '`+string(run.ID)+`'`)
	w.open()
	w.start()
	w.approve("ana", a)
	if now := w.waitFor(run, engine.Blocked); now.Error == nil || !strings.Contains(now.Error.Message, "altered") {
		t.Errorf("the run is blocked with %v", now.Error)
	}
}

const askV1 = `format: 1
workflow: asknote
version: 1
title: Ask for a note
steps:
  - id: nap
    sleep: 1s
  - id: what
    ask: "What should it say?"
    form: {type: object, additionalProperties: false, required: [text], properties: {text: {type: string}}}
    who: {role: operator}
output: "${steps.what.output}"
`

// A timer keeps its end; a question is put anew in the words of the new
// version, and an answer to the old one is refused.
func TestMigrate_TimersStayAndQuestionsArePutAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.define("asknote.yaml", askV1)
	run, _, err := w.desk.StartRun(t.Context(), w.principal("dev"), desk.StartRun{Workflow: "asknote"})
	w.must(err)
	run = w.waitFor(run, engine.Sleeping)
	until := run.WaitingFor[0].Until
	v2 := strings.NewReplacer("version: 1", "version: 2", "sleep: 1s", "sleep: 300h").Replace(askV1) + "migrate: [{from: 1}]\n"
	w.define("asknote.yaml", v2)
	_, err = w.migrate(run, desk.Migrate{Expected: -1})
	w.must(err)
	run = w.waitFor(run, engine.WaitingInput)
	if run.UpdatedAt.Before(until) {
		t.Errorf("the run woke at %v, before its timer of %v", run.UpdatedAt, until)
	}
	w.define("asknote.yaml", strings.NewReplacer("version: 2", "version: 3", "What should it say?", "What should the note say?", "migrate: [{from: 1}]", "migrate: [{from: 2}]").Replace(v2))
	_, err = w.migrate(run, desk.Migrate{Expected: -1})
	w.must(err)
	w.eventually(func() (bool, string) {
		asked, err := w.desk.RunQuestions(t.Context(), w.principal("ana"), string(run.ID))
		w.must(err)
		return len(asked.Items) == 2 && asked.Items[0].Status == engine.QuestionWithdrawn && asked.Items[1].Text == "What should the note say?" && asked.Items[1].Pass == 2,
			"the questions are " + asJSON(t, asked.Items)
	})
	_, err = w.desk.Answer(t.Context(), w.principal("ana"), string(run.ID), desk.Answer{Step: "what", Pass: 1, Value: json.RawMessage(`{"text":"old"}`)})
	w.wantProblem(err, "question_closed")
	_, err = w.desk.Answer(t.Context(), w.principal("ana"), string(run.ID), desk.Answer{Step: "what", Pass: 2, Value: json.RawMessage(`{"text":"new"}`)})
	w.must(err)
	if run = w.waitFor(run, engine.Completed); run.WorkflowVersion != 3 || !strings.Contains(string(run.Output), "new") {
		t.Errorf("the run ends as %s", asJSON(t, run))
	}
}

const forkV1 = `format: 1
workflow: forked
version: 1
title: Two looks
steps:
  - id: looks
    parallel:
      left:
        - id: one
          set: {text: "from the left"}
      right:
        - id: two
          set: {text: "from the right"}
  - id: write
    action: kb.publish
    with: {page: notes/forked, body: "${steps.looks.output.left.text}"}
output: {left: "${steps.looks.output.left.text}", right: "${steps.looks.output.right.text}"}
`

// Renames are of ids at any depth: what a branch did is found under its new
// name.
func TestMigrate_StepsOfBranchesAreRenamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.define("forked.yaml", forkV1)
	run, _, err := w.desk.StartRun(t.Context(), w.principal("dev"), desk.StartRun{Workflow: "forked"})
	w.must(err)
	w.waitAt(run, "write")
	w.define("forked.yaml", strings.NewReplacer("version: 1", "version: 2", "id: one", "id: first", "id: looks", "id: views", "steps.looks", "steps.views").Replace(forkV1)+
		"migrate: [{from: 1, rename_steps: {one: first, looks: views}}]\n")
	plan, err := w.migrate(run, desk.Migrate{Expected: -1, DryRun: true})
	w.must(err)
	if len(plan.Dropped) != 0 {
		t.Errorf("the dry run says %s", asJSON(t, plan))
	}
	_, err = w.migrate(run, desk.Migrate{Expected: -1})
	w.must(err)
	w.waitAt(run, "write")
	w.approve("ana", w.pending(run))
	run = w.waitFor(run, engine.Completed)
	if !strings.Contains(string(run.Output), "from the left") || !strings.Contains(string(run.Output), "from the right") {
		t.Errorf("the run ends with %s", run.Output)
	}
	r, err := w.desk.Replay(t.Context(), w.principal("ana"), string(run.ID))
	w.must(err)
	if len(r.Differences) != 0 {
		t.Errorf("the replay finds %s", asJSON(t, r))
	}
}
