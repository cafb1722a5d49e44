package workflow_test

import (
	"encoding/json"
	"testing"
	"time"

	"countersign/internal/workflow"

	"github.com/google/go-cmp/cmp"
)

const freshSteps = `
- {id: docs, call: docs.collect, fresh_for: 24h}
- {id: other, call: docs.collect}
- {id: plan, call: planner.draft, with: {docs: "${steps.docs.output}"}}
- {id: publish, action: kb.publish, with: {body: "${steps.plan.output}", other: "${steps.other.output}"}}
- {id: tell, action: ops.restart, with: {service: "${steps.plan.output}"}}
`

func TestFresh_AnOpenRequestBuiltOnAStaleReadIsTakenBack(t *testing.T) {
	r := start(t, compile(t, freshSteps), `{}`)
	r.call("docs", 1, `1`)
	r.call("other", 1, `2`)
	r.call("plan", 1, `3`)
	r.propose("publish", 1)
	r.now = begin.Add(24*time.Hour - 1)
	if events := r.w.Stale(r.s, "publish", r.now); len(events) != 0 {
		t.Fatalf("stale before its time: %v", events)
	}
	r.now = begin.Add(24 * time.Hour)
	events := r.w.Stale(r.s, "publish", r.now)
	if want := []workflow.Event{{Kind: workflow.StepRefreshed, Path: "docs", Pass: 1}}; !cmp.Equal(events, want) {
		t.Fatalf("stale gives %v, want %v", events, want)
	}
	for _, e := range events {
		r.apply(e)
	}
	r.call("docs", 2, `4`)
	r.call("plan", 2, `5`) // and other is not read again
	if task := r.propose("publish", 2); task.Revises != 1 || string(task.Params) != `{"body":5,"other":2}` {
		t.Errorf("proposes %s replacing pass %d", task.Params, task.Revises)
	}
}

func TestFresh_AStaleReadIsRepeatedWhenALaterStepNeedsIt(t *testing.T) {
	w := compile(t, `
- {id: docs, call: docs.collect, fresh_for: 1h}
- {id: plan, set: "${steps.docs.output}"}
- {id: nap, sleep: 2h}
- {id: again, when: "steps.plan.output > 0", call: planner.draft, with: {plan: "${steps.plan.output}"}}
`)
	r := start(t, w, `{}`)
	r.call("docs", 1, `1`)
	task := r.want(workflow.TaskSleep, "nap", 1)
	r.now = task.Until
	if len(task.Events) != 0 {
		t.Fatal("the sleep is not set")
	}
	r.call("docs", 2, `2`)
	if task := r.call("again", 1, `0`); string(task.Params) != `{"plan":2}` { // and there is no second nap
		t.Errorf("params = %s", task.Params)
	}
	r.finish(workflow.RunCompleted, "null")
}

func TestFresh_WhatIsDoneStaysDone(t *testing.T) {
	r := start(t, compile(t, freshSteps), `{}`)
	r.call("docs", 1, `1`)
	r.call("other", 1, `2`)
	r.call("plan", 1, `"checkout"`)
	r.propose("publish", 1)
	r.apply(workflow.Event{Kind: workflow.EffectConfirmed, Path: "publish", Pass: 1, Output: json.RawMessage(`9`)})
	r.now = begin.Add(48 * time.Hour)
	r.call("docs", 2, `1`)
	r.call("plan", 2, `"search"`)
	r.propose("tell", 1)
	if st := r.s.Step("publish"); st.Status != workflow.Completed || st.Pass != 1 {
		t.Errorf("the published page is %+v", st)
	}
}

func TestFresh_TwoStaleReadsAreRepeatedTogether(t *testing.T) {
	w := compile(t, `
- {id: a, call: docs.collect, fresh_for: 1h}
- {id: b, call: docs.collect, fresh_for: 1h, with: {a: "${steps.a.output}"}}
- {id: c, call: docs.collect, fresh_for: 1h}
- {id: nap, sleep: 1h}
- {id: d, set: ["${steps.b.output}", "${steps.c.output}"]}
`)
	r := start(t, w, `{}`)
	r.call("a", 1, `1`)
	r.call("b", 1, `1`)
	r.call("c", 1, `1`)
	r.want(workflow.TaskSleep, "nap", 1)
	r.now = begin.Add(time.Hour)
	for _, id := range []string{"a", "b", "c"} { // b depends on a and is cleared with it
		r.call(id, 2, `2`)
	}
	r.finish(workflow.RunCompleted, "null")
}

func TestFresh_ForShorterThanTheWorkFailsInsteadOfGoingRound(t *testing.T) {
	w := compile(t, `
- {id: a, call: docs.collect, fresh_for: 1ms}
- {id: b, set: "${steps.a.output}"}
`)
	r := start(t, w, `{}`)
	passes := 0
	for {
		task := r.next()
		if task.Kind == workflow.TaskFinish {
			break
		}
		passes++
		r.call("a", passes, `1`)
		r.now = r.now.Add(time.Second)
	}
	if f := r.finish(workflow.RunFailed, ""); f.Error.Code != "never_fresh" || passes != 21 {
		t.Errorf("after %d passes: %v", passes, f.Error)
	}
}

func TestFresh_StepsJumpedOverStayOutUnlessTheJumpIsUndone(t *testing.T) {
	w := compile(t, `
- {id: a, call: docs.collect, fresh_for: 1h}
- {id: b, call: planner.draft, with: {a: "${steps.a.output}"}, on_error: {goto: d}}
- {id: c, set: "${steps.a.output}"}
- {id: d, sleep: 1h}
- {id: e, set: "${steps.a.output}"}
---
output: {b: "${steps.b.status}", c: "${steps.c.output}"}
`)
	r := start(t, w, `{}`)
	r.call("a", 1, `1`)
	r.want(workflow.TaskCall, "b", 1)
	r.apply(workflow.Event{Kind: workflow.StepFailed, Path: "b", Pass: 1, Error: &workflow.Failure{Class: workflow.Permanent, Message: "m"}})
	r.want(workflow.TaskSleep, "d", 1)
	r.now = begin.Add(time.Hour)
	r.call("a", 2, `2`)
	r.call("b", 2, `3`) // this time it works, so c runs
	r.finish(workflow.RunCompleted, `{"b":"completed","c":2}`)
}
