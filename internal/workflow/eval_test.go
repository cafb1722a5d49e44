package workflow_test

import (
	"strings"
	"testing"

	"countersign/internal/workflow"

	"github.com/google/go-cmp/cmp"
)

func TestOutputs_AreAskedOnlyForStepsThatAreNamed(t *testing.T) {
	w := compile(t, `
- {id: a, set: 1}
- {id: b, set: 2}
- {id: c, set: "${steps.b.output}"}
---
output: "${steps.c.output}"
`)
	r := start(t, w, `{}`)
	r.finish(workflow.RunCompleted, `2`)
	if want := []string{"b@1", "c@1"}; !cmp.Equal(r.asked, want) {
		t.Errorf("asked for %v, want %v", r.asked, want)
	}
}

func TestOutputs_AreDataAndNeverEvaluated(t *testing.T) { // H08
	w := compile(t, `
- {id: a, call: docs.collect}
- {id: b, action: kb.publish, with: {body: "${steps.a.output}", text: "say ${steps.a.output}"}}
`)
	r := start(t, w, `{}`)
	r.call("a", 1, `"${input.x} ${secret.X} $(id)"`)
	task := r.propose("b", 1)
	if want := `{"body":"${input.x} ${secret.X} $(id)","text":"say ${input.x} ${secret.X} $(id)"}`; string(task.Params) != want {
		t.Errorf("params = %s, want %s", task.Params, want)
	}
}

func TestExpression_ThatFailsIsTheStepsFailure(t *testing.T) {
	w := compile(t, `
- {id: a, call: docs.collect}
- {id: b, action: kb.publish, with: {body: "${steps.a.output.missing}"}}
`)
	r := start(t, w, `{}`)
	r.call("a", 1, `{}`)
	f := r.finish(workflow.RunFailed, "")
	if f.Error.Class != workflow.Invalid || !strings.HasPrefix(f.Error.Message, "b: with") {
		t.Errorf("error = %+v; want class invalid and the step's path first", f.Error)
	}
}

func TestParams_MustBeAMap(t *testing.T) {
	r := start(t, compile(t, `[{id: a, call: docs.collect, with: "${input}"}]`), `[1]`)
	if f := r.finish(workflow.RunFailed, ""); f.Error.Class != workflow.Invalid {
		t.Errorf("error = %v", f.Error)
	}
}

func TestBusinessKey_IsTextAndNeverEmpty(t *testing.T) {
	w := compile(t, `[{id: a, action: kb.publish, key: "week-${input.week}"}]`)
	if got := start(t, w, `{"week":48}`).propose("a", 1).BusinessKey; got != "week-48" {
		t.Errorf("key = %q", got)
	}
	w = compile(t, `[{id: a, action: kb.publish, key: "${input.week}"}]`)
	f := start(t, w, `{"week":" "}`).finish(workflow.RunFailed, "")
	if f.Error.Class != workflow.Invalid || !strings.Contains(f.Error.Message, "empty") {
		t.Errorf("error = %v", f.Error)
	}
	f = start(t, w, `{"week":"`+strings.Repeat("x", 201)+`"}`).finish(workflow.RunFailed, "")
	if !strings.Contains(f.Error.Message, "the limit is 200") {
		t.Errorf("error = %v; want the limit in it", f.Error)
	}
}

func TestOutputTemplate_ThatFailsFailsTheRun(t *testing.T) {
	w := compile(t, "[{id: a, set: 1}]\n---\noutput: \"${steps.a.output.x}\"\n")
	if f := start(t, w, `{}`).finish(workflow.RunFailed, ""); f.Error.Class != workflow.Invalid {
		t.Errorf("error = %v", f.Error)
	}
}

func TestRunNames_AreShown(t *testing.T) {
	w := compile(t, `
- {id: a, set: "${run.id} ${run.key} ${run.thread} ${run.initiator} ${run.on_behalf_of} ${run.started_at}"}
---
output: "${steps.a.output}"
`)
	start(t, w, `{}`).finish(workflow.RunCompleted, `"run_1 k-1 th ana ben 2026-12-01T09:00:00Z"`)
}

func TestTexts_AreLimited(t *testing.T) {
	long := `{"x":"` + strings.Repeat("y", 300_000) + `"}`
	for steps, want := range map[string]string{
		`[{id: a, action: kb.publish, reason: "${input.x}"}]`:                                 "the limit is 16384",
		`[{id: a, approve: {document: "${input.x}"}}, {id: b, action: kb.publish}]`:           "the limit is 262144",
		`[{id: a, approve: {document: 1, title: "${input.x}"}}, {id: b, action: kb.publish}]`: "the limit is 800",
		`[{id: a, when: "input.x", set: 1}]`:                                                  "when",
		`[{id: a, when: "input.y == 1", set: 1}]`:                                             "when",
	} {
		f := start(t, compile(t, steps), long).finish(workflow.RunFailed, "")
		if f.Error.Class != workflow.Invalid || !strings.Contains(f.Error.Message, want) {
			t.Errorf("%s: %v; want %q in it", steps, f.Error, want)
		}
		if len(f.Error.Message) > 1000 {
			t.Errorf("%s: the message has %d bytes", steps, len(f.Error.Message))
		}
	}
}

func TestSleep_RefusesWhatIsNoDuration(t *testing.T) {
	w := compile(t, `[{id: nap, sleep: "${input.for}"}]`)
	for _, input := range []string{`"60"`, `"-1h"`, `"367d"`, `"soon"`} {
		f := start(t, w, `{"for":`+input+`}`).finish(workflow.RunFailed, "")
		if f.Error.Class != workflow.Invalid {
			t.Errorf("sleep %s: %v", input, f.Error)
		}
	}
}

func TestFeedback_ReachesTheStepThatIsGoneBackTo(t *testing.T) {
	w := compile(t, `
- id: draft
  call: planner.draft
  with: {hint: "${run.feedback == null ? 'none' : run.feedback.by + ': ' + run.feedback.comment}"}
- id: publish
  action: kb.publish
  on_reject: {goto: draft, max_passes: 2}
`)
	r := start(t, w, `{}`)
	if got := string(r.call("draft", 1, `{}`).Params); got != `{"hint":"none"}` {
		t.Errorf("first hint: %s", got)
	}
	r.propose("publish", 1)
	r.reject("publish", 1, "shorter, please")
	if got := string(r.call("draft", 2, `{}`).Params); got != `{"hint":"Ben: shorter, please"}` {
		t.Errorf("second hint: %s", got)
	}
}
