package workflow_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"testing"
	"time"

	"countersign/internal/workflow"

	"github.com/google/go-cmp/cmp"
)

func example(t testing.TB, name string) *workflow.Workflow {
	t.Helper()
	src, err := os.ReadFile("../../examples/workflows/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	w, err := workflow.Compile(name+".yaml", src, catalog())
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestRun_TheWeeklyReportFromStartToEnd(t *testing.T) {
	r := start(t, example(t, "weekly-report"), `{"folder":".","week":"2026-W48"}`)
	task := r.call("collect_context", 1, `{"count":2,"documents":[{"title":"a"},{"title":"b"}]}`)
	if got, want := string(task.Params), `{"folder":"."}`; got != want {
		t.Errorf("params of collect_context = %s, want %s", got, want)
	}
	task = r.call("make_plan", 1, `{"markdown":"# W48","why":"it is Tuesday"}`)
	if got, want := string(task.Params), `{"documents":[{"title":"a"},{"title":"b"}],"week":"2026-W48"}`; got != want {
		t.Errorf("params of make_plan = %s, want %s", got, want)
	}
	task = r.propose("publish", 1)
	if got, want := string(task.Params), `{"body":"# W48","page":"reports/2026-W48"}`; got != want || task.Reason != "it is Tuesday" {
		t.Errorf("publish proposes %s because %q, want %s", got, task.Reason, want)
	}
	if d := r.s.Step("make_plan").Digest; !cmp.Equal(task.Outputs, map[string]string{"make_plan": d}) || d == "" {
		t.Errorf("publish is built from %v, want make_plan with digest %s", task.Outputs, d)
	}
	r.apply(workflow.Event{Kind: workflow.EffectConfirmed, Path: "publish", Pass: 1, Output: json.RawMessage(`{"digest":"sha256:1","path":"reports/2026-W48.md"}`)})
	r.finish(workflow.RunCompleted, `{"digest":"sha256:1","documents":2,"page":"reports/2026-W48.md"}`)
}

func TestRun_ARejectedPlanIsMadeAgainAndEveryPassHasItsOwnProposal(t *testing.T) { // D28
	r := start(t, example(t, "weekly-report"), `{"folder":".","week":"2026-W48"}`)
	r.call("collect_context", 1, `{"count":0,"documents":[]}`)
	for pass := 1; pass <= 3; pass++ {
		r.call("make_plan", pass, `{"markdown":"x","why":"y"}`)
		r.propose("publish", pass)
		if pass < 3 {
			r.reject("publish", pass, "not yet")
		}
	}
	r.apply(workflow.Event{Kind: workflow.EffectConfirmed, Path: "publish", Pass: 3, Output: json.RawMessage(`{"digest":"d","path":"p"}`)})
	r.finish(workflow.RunCompleted, `{"digest":"d","documents":0,"page":"p"}`)
}

func TestRun_RejectionEndsTheRunWhenThePassesAreUsed(t *testing.T) {
	r := start(t, example(t, "weekly-report"), `{"folder":".","week":"2026-W48"}`)
	r.call("collect_context", 1, `{"count":0,"documents":[]}`)
	for pass := 1; pass <= 3; pass++ {
		r.call("make_plan", pass, `{"markdown":"x","why":"y"}`)
		r.propose("publish", pass)
		r.reject("publish", pass, "never")
	}
	f := r.finish(workflow.RunRejected, "")
	if want := "Rejected by Ben: never"; f.Error == nil || f.Error.Message != want {
		t.Errorf("the run says %v, want %q", f.Error, want)
	}
}

func TestWhen_SkipsAndTheOutputIsNull(t *testing.T) {
	w := compile(t, `
- {id: a, call: docs.collect, when: input.go}
- {id: b, set: {output: "${steps.a.output}", status: "${steps.a.status}"}}
---
output: "${steps.b.output}"
`)
	r := start(t, w, `{"go":false}`)
	r.finish(workflow.RunCompleted, `{"output":null,"status":"skipped"}`)
	r = start(t, w, `{"go":true}`)
	r.call("a", 1, `7`)
	r.finish(workflow.RunCompleted, `{"output":7,"status":"completed"}`)
}

func TestSleep_IsSetOnceAndEndsAtItsInstant(t *testing.T) { // D17
	r := start(t, compile(t, "- {id: nap, sleep: \"${input.for}\"}\n- {id: a, call: docs.collect}"), `{"for":"1d"}`)
	task := r.want(workflow.TaskSleep, "nap", 1)
	until := begin.Add(24 * time.Hour)
	if !task.Until.Equal(until) || len(task.Events) != 0 {
		t.Fatalf("sleeps until %s with %v, want %s", task.Until, task.Events, until)
	}
	r.now = begin.Add(-2 * time.Hour) // the clock jumps back: nothing moves
	if task := r.want(workflow.TaskSleep, "nap", 1); !task.Until.Equal(until) {
		t.Errorf("after a jump back until = %s", task.Until)
	}
	r.now = until
	r.want(workflow.TaskCall, "a", 1)
	r.now = begin // and does not sleep again
	r.want(workflow.TaskCall, "a", 1)
}

func TestApprove_GivesItsVerdictAsOutput(t *testing.T) {
	w := compile(t, `
- {id: draft, call: planner.draft}
- {id: ok, approve: {document: {text: "${steps.draft.output}"}, title: "Draft ${run.key}"}, on_reject: {goto: draft, max_passes: 2}}
- {id: publish, action: kb.publish, with: {digest: "${steps.ok.output.digest}"}, reason: "${steps.ok.output.comment}"}
`)
	r := start(t, w, `{}`)
	r.call("draft", 1, `"x"`)
	task := r.want(workflow.TaskApprove, "ok", 1)
	if string(task.Document) != `{"text":"x"}` || task.Title != "Draft k-1" {
		t.Errorf("presents %s as %q", task.Document, task.Title)
	}
	r.apply(workflow.Event{Kind: workflow.ApproveOpened, Path: "ok", Pass: 1})
	r.want(workflow.TaskWait, "ok", 1)
	r.reject("ok", 1, "no")
	r.call("draft", 2, `"y"`)
	r.want(workflow.TaskApprove, "ok", 2)
	r.apply(workflow.Event{Kind: workflow.ApproveOpened, Path: "ok", Pass: 2})
	r.apply(workflow.Event{Kind: workflow.ApproveDone, Path: "ok", Pass: 2, Output: verdict(workflow.Approve, "fine")})
	task = r.propose("publish", 1)
	if string(task.Params) != `{"digest":"sha256:00"}` || task.Reason != "fine" {
		t.Errorf("publish gets %s because %q", task.Params, task.Reason)
	}
}

func TestApprove_WithoutTitleShowsTheStepsTitle(t *testing.T) {
	w := compile(t, `[{id: look_at, approve: {document: 1}}, {id: b, action: kb.publish}]`)
	if got := start(t, w, `{}`).want(workflow.TaskApprove, "look_at", 1).Title; got != "Look at" {
		t.Errorf("title = %q", got)
	}
}

func TestExpired_AsksAgainAFewTimesThenExpires(t *testing.T) {
	w := compile(t, `
- {id: a, call: docs.collect}
- {id: b, action: kb.publish, on_expire: {ask_again: true, max_passes: 2}}
`)
	r := start(t, w, `{}`)
	r.call("a", 1, `1`)
	for pass := 1; pass <= 2; pass++ {
		r.propose("b", pass)
		r.apply(workflow.Event{Kind: workflow.ActionExpired, Path: "b", Pass: pass})
	}
	r.finish(workflow.RunExpired, "")
}

func TestOnError_GoesByClass(t *testing.T) {
	w := compile(t, `
- id: a
  call: docs.collect
  on_error: {permanent: end, denied: ask_person, refused: {goto: c}, default: {goto: a, max_passes: 2}}
- {id: b, set: 1}
- {id: c, set: "${steps.a.status}"}
---
output: "${steps.c.output}"
`)
	fail := func(r *world, pass int, class string) {
		r.want(workflow.TaskCall, "a", pass)
		r.apply(workflow.Event{Kind: workflow.StepFailed, Path: "a", Pass: pass, Error: &workflow.Failure{Class: class, Message: "m"}})
	}
	r := start(t, w, `{}`)
	fail(r, 1, workflow.Permanent)
	r.finish(workflow.RunCompleted, `null`)

	r = start(t, w, `{}`)
	fail(r, 1, workflow.Refused)
	r.finish(workflow.RunCompleted, `"failed"`)
	if got := r.s.Step("b"); got.Status != workflow.Skipped || got.Jumped != "a" {
		t.Errorf("the step jumped over is %+v", got)
	}

	r = start(t, w, `{}`)
	fail(r, 1, workflow.Transient)
	fail(r, 2, workflow.Transient)
	if f := r.finish(workflow.RunFailed, ""); f.Error.Class != workflow.Transient {
		t.Errorf("exhausted: %v; want the failure itself", f.Error)
	}

	r = start(t, w, `{}`)
	fail(r, 1, workflow.Denied)
	if task := r.want(workflow.TaskWait, "a", 1); task.Wait != workflow.WaitPerson || task.Error.Message != "m" {
		t.Errorf("waits for %q because of %v", task.Wait, task.Error)
	}
	r.apply(workflow.Event{Kind: workflow.StepRetried, Path: "a", Pass: 1})
	r.call("a", 2, `1`)
	r.finish(workflow.RunCompleted, `"completed"`)
}

func TestAction_EndsThatAreNoDecisionFollowOnError(t *testing.T) {
	w := compile(t, `
- {id: a, action: kb.publish, on_error: {denied: {goto: c}, refused: ask_person}}
- {id: c, set: 1}
`)
	for kind, want := range map[workflow.EventKind]string{
		workflow.ActionDenied:    workflow.RunCompleted,
		workflow.EffectRefused:   "person",
		workflow.EffectAbandoned: workflow.RunFailed,
	} {
		r := start(t, w, `{}`)
		r.propose("a", 1)
		r.apply(workflow.Event{Kind: kind, Path: "a", Pass: 1})
		task := r.next()
		got := task.Wait
		if task.Kind == workflow.TaskFinish {
			got = task.Finish.Status
		}
		if got != want {
			t.Errorf("%s leads to %s, want %s", kind, got, want)
		}
	}
}

func TestThen_LoopsUntilItsWhenIsFalse(t *testing.T) {
	w := compile(t, `
- {id: a, call: planner.draft}
- {id: again, when: "steps.a.output < 3", set: true, then: {goto: a, max_passes: 5}}
---
output: "${steps.a.output}"
`)
	r := start(t, w, `{}`)
	r.call("a", 1, `1`)
	r.call("a", 2, `2`)
	r.call("a", 3, `3`)
	r.finish(workflow.RunCompleted, `3`)

	r = start(t, w, `{}`)
	for pass := 1; pass <= 5; pass++ {
		r.call("a", pass, `0`)
	}
	if f := r.finish(workflow.RunFailed, ""); f.Error.Code != "passes_exhausted" {
		t.Errorf("a loop that never ends ends with %v", f.Error)
	}
}

func TestThen_EndFinishesEarly(t *testing.T) {
	w := compile(t, `
- {id: a, when: input.early, set: early, then: end}
- {id: b, call: docs.collect}
---
output: {a: "${steps.a.output}", b: "${steps.b.status}"}
`)
	start(t, w, `{"early":true}`).finish(workflow.RunCompleted, `{"a":"early","b":"pending"}`)
}

func TestCancel_EndsFromAnywhere(t *testing.T) {
	w := example(t, "weekly-report")
	r := start(t, w, `{"folder":".","week":"2026-W48"}`)
	for _, at := range []func(){func() {}, func() { r.next() }, func() { r.call("collect_context", 1, `{"documents":[]}`) },
		func() { r.call("make_plan", 1, `{"markdown":"x","why":"y"}`); r.propose("publish", 1) }} {
		at()
		s, err := w.Apply(r.s, workflow.Event{Kind: workflow.Cancelled, Error: &workflow.Failure{Class: workflow.Denied, Message: "stop"}})
		if err != nil || !s.Over() || s.Finish.Status != workflow.RunCancelled {
			t.Errorf("cancel: %v, %s", err, dump(s))
		}
		for _, kind := range workflow.Kinds {
			if _, err := w.Apply(s, workflow.Event{Kind: kind, Path: "publish", Pass: 1, Output: verdict(workflow.Reject, ""), Data: json.RawMessage(`{}`)}); err == nil {
				t.Errorf("%s is accepted after the end", kind)
			}
		}
	}
}

func TestNext_ReportsWhatIsNotTheStepsFault(t *testing.T) {
	w := compile(t, "- {id: a, set: 1}\n- {id: b, set: \"${steps.a.output}\"}")
	r := start(t, w, `{}`)
	r.apply(workflow.Event{Kind: workflow.Started})
	r.apply(workflow.Event{Kind: workflow.StepCompleted, Path: "a", Pass: 1, Output: json.RawMessage(`1`)})
	broken := errors.New("disk")
	_, err := w.Next(t.Context(), r.s, r.run, func(string, int) (any, error) { return nil, broken }, r.now)
	if !errors.Is(err, broken) {
		t.Errorf("next = %v, want the error of the outputs", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Next(gone, r.s, r.run, r.outputs, r.now); !errors.Is(err, context.Canceled) {
		t.Errorf("next with a cancelled context = %v; it must not become a failure of the run", err)
	}
}
