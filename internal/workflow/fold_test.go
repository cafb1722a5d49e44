package workflow_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"countersign/internal/workflow"

	"github.com/google/go-cmp/cmp"
)

// bodies are one step of each kind, with a `when` so that it may be skipped.
var bodies = map[workflow.Kind]string{
	workflow.Call:   `call: docs.collect, fresh_for: 1d`,
	workflow.Action: `action: kb.publish`,
	workflow.Gate:   `approve: {document: 1}`,
	workflow.Ask:    `ask: "How much?", form: {type: object}, answer_within: 1h`,
	workflow.Set:    `set: 1`,
	workflow.Sleep:  `sleep: 1h`,
	workflow.Fork:   `parallel: {l: [{id: p, set: 1}], r: [{id: q, set: 1}]}`,
}

// opening begins the open kinds, closing completes each kind.
var (
	opening = map[workflow.Kind]workflow.EventKind{workflow.Action: workflow.ActionProposed,
		workflow.Gate: workflow.ApproveOpened, workflow.Ask: workflow.AskOpened, workflow.Sleep: workflow.SleepSet, workflow.Fork: workflow.BranchesOpened}
	closing = map[workflow.Kind]workflow.EventKind{workflow.Call: workflow.StepCompleted, workflow.Set: workflow.StepCompleted,
		workflow.Action: workflow.EffectConfirmed, workflow.Gate: workflow.ApproveDone, workflow.Ask: workflow.AskAnswered, workflow.Sleep: workflow.SleepDone, workflow.Fork: workflow.StepCompleted}
)

// wellFormed are events of the kind that lack nothing, in every variant that
// some situation might accept.
func wellFormed(kind workflow.EventKind, path string, pass int) []workflow.Event {
	e := workflow.Event{Kind: kind, Path: path, Pass: pass, At: begin}
	var all []workflow.Event
	switch kind {
	case workflow.Started, workflow.Cancelled:
		return []workflow.Event{{Kind: kind}}
	case workflow.Finished:
		for _, status := range []string{"completed", "rejected", "expired", "failed"} {
			f := workflow.Finish{Status: status, Output: json.RawMessage(`null`), Error: &workflow.Failure{Class: workflow.Bug, Message: "m"}}
			all = append(all, f.Event())
		}
		return all
	case workflow.Goto:
		for _, why := range []string{"then", "error", "rejected", "expired"} {
			data, _ := json.Marshal(workflow.Jump{To: "x", Why: why})
			all = append(all, workflow.Event{Kind: kind, Path: path, Pass: pass, Data: data})
		}
		return all
	case workflow.StepCompleted, workflow.EffectConfirmed:
		e.Output = json.RawMessage(`1`)
	case workflow.ActionRejected:
		e.Output = verdict(workflow.Reject, "no")
	case workflow.ApproveDone:
		e.Output = verdict(workflow.Approve, "")
	case workflow.StepFailed:
		e.Error = &workflow.Failure{Class: workflow.Permanent, Message: "m"}
	case workflow.AskAnswered:
		e.Output = json.RawMessage(`{}`)
	case workflow.SleepSet, workflow.AskOpened:
		e.Until = begin
	}
	return []workflow.Event{e}
}

// drive folds kinds of events into a fresh run of w, all of step x.
func drive(t *testing.T, w *workflow.Workflow, kinds ...workflow.EventKind) workflow.State {
	t.Helper()
	s, err := w.Apply(w.Begin(), workflow.Event{Kind: workflow.Started})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range kinds {
		pass := max(s.Step("x").Pass, 1)
		if s, err = w.Apply(s, wellFormed(kind, "x", pass)[0]); err != nil {
			t.Fatal(err)
		}
		if kind != workflow.BranchesOpened {
			continue
		}
		for _, path := range []string{"x/l/p", "x/r/q"} {
			if s, err = w.Apply(s, wellFormed(workflow.StepCompleted, path, 1)[0]); err != nil {
				t.Fatal(err)
			}
		}
	}
	return s
}

// TestApply_AcceptsExactlyTheLegalEvents tries every event kind, well formed,
// in every situation of every kind of step against the law, written here a
// second time from DESIGN.
func TestApply_AcceptsExactlyTheLegalEvents(t *testing.T) {
	law := map[string]string{
		"ready call":     "step_completed step_failed step_skipped",
		"ready set":      "step_completed step_failed step_skipped",
		"ready action":   "action_denied action_proposed step_failed step_skipped",
		"ready approve":  "action_denied approve_opened step_failed step_skipped",
		"ready sleep":    "sleep_set step_failed step_skipped",
		"open action":    "action_denied action_expired action_rejected action_revised effect_abandoned effect_confirmed effect_refused step_failed",
		"open approve":   "action_denied action_expired action_revised approve_done step_failed",
		"open sleep":     "sleep_done",
		"ready ask":      "ask_opened step_failed step_skipped",
		"open ask":       "ask_answered ask_expired",
		"left call":      "step_refreshed",
		"ready parallel": "branches_opened step_failed step_skipped",
		"open parallel":  "step_completed step_failed",
	}
	for _, kind := range []workflow.Kind{workflow.Call, workflow.Action, workflow.Gate, workflow.Ask, workflow.Set, workflow.Sleep, workflow.Fork} {
		done := []workflow.EventKind{closing[kind]}
		if o, ok := opening[kind]; ok {
			done = []workflow.EventKind{o, closing[kind]}
		}
		law["then-goto "+string(kind)], law["then-end "+string(kind)] = "goto", "finished"
		law["failed "+string(kind)], law["failed-goto "+string(kind)], law["failed-ask "+string(kind)] = "finished", "goto", "step_retried"

		body := "- {id: x, when: \"true\", " + bodies[kind]
		states := map[string]struct {
			steps string
			after []workflow.EventKind
		}{
			"ready":       {body + "}\n- {id: y, set: 1}", nil},
			"left":        {body + "}\n- {id: y, set: 1}", done},
			"then-goto":   {body + ", then: {goto: x, max_passes: 2}}", done},
			"then-end":    {body + ", then: end}", done},
			"failed":      {body + "}", []workflow.EventKind{workflow.StepFailed}},
			"failed-goto": {body + ", on_error: {goto: x, max_passes: 2}}", []workflow.EventKind{workflow.StepFailed}},
			"failed-ask":  {body + ", on_error: ask_person}", []workflow.EventKind{workflow.StepFailed}},
			"later":       {"- {id: y, set: 1}\n" + body + "}", nil},
		}
		if o, ok := opening[kind]; ok {
			states["open"] = struct {
				steps string
				after []workflow.EventKind
			}{body + "}", []workflow.EventKind{o}}
		}
		for name, st := range states {
			situation := name + " " + string(kind)
			t.Run(situation, func(t *testing.T) {
				w := compile(t, st.steps)
				s := drive(t, w, st.after...)
				want := strings.Fields(law[situation] + " cancelled")
				slices.Sort(want)
				if diff := cmp.Diff(want, accepted(w, s)); diff != "" {
					t.Errorf("legal events (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// accepted lists the kinds of events of step x which the state accepts at the
// right pass, and holds that a wrong pass is never accepted.
func accepted(w *workflow.Workflow, s workflow.State) []string {
	var got []string
	st := s.Step("x")
	right := st.Pass
	if st.Status == workflow.Pending {
		right++
	}
	for _, kind := range workflow.Kinds {
		for _, e := range wellFormed(kind, "x", right) {
			if _, err := w.Apply(s, e); err == nil {
				got = append(got, string(kind))
				break
			}
		}
		for _, e := range wellFormed(kind, "x", right+1) {
			if _, err := w.Apply(s, e); err == nil && e.Path != "" {
				got = append(got, fmt.Sprintf("%s of the wrong pass", kind))
			}
		}
	}
	slices.Sort(got)
	return got
}

func TestApply_BeforeTheStartAndAfterTheEnd(t *testing.T) {
	w := compile(t, `[{id: x, set: 1}]`)
	if got := accepted(w, w.Begin()); !cmp.Equal(got, []string{"cancelled", "started"}) {
		t.Errorf("before the start: %v", got)
	}
	s := drive(t, w, workflow.StepCompleted)
	if got := accepted(w, s); !cmp.Equal(got, []string{"cancelled", "finished"}) {
		t.Errorf("when all steps are done: %v", got)
	}
	s, err := w.Apply(s, workflow.Finish{Status: "completed"}.Event())
	if err != nil {
		t.Fatal(err)
	}
	if got := accepted(w, s); len(got) != 0 {
		t.Errorf("after the end: %v", got)
	}
	if got := accepted(w, workflow.State{}); len(got) != 0 {
		t.Errorf("a state that Begin did not make accepts %v", got)
	}
}

func TestApply_RefusesWhatLacksSomething(t *testing.T) {
	w := compile(t, `
- {id: a, call: docs.collect, fresh_for: 1h, on_error: {default: {goto: c}}}
- {id: b, set: 1}
- {id: c, approve: {document: 1}}
- {id: d, action: kb.publish}
`)
	fail := &workflow.Failure{Class: workflow.Permanent, Message: "m"}
	failed := workflow.Event{Kind: workflow.StepFailed, Path: "a", Pass: 1, Error: fail}
	jump := workflow.Event{Kind: workflow.Goto, Path: "a", Pass: 1, Data: json.RawMessage(`{"to":"c","why":"error"}`)}
	opened := workflow.Event{Kind: workflow.ApproveOpened, Path: "c", Pass: 2}
	started := workflow.Event{Kind: workflow.Started}
	cases := []struct {
		name string
		pre  []workflow.Event
		e    workflow.Event
		want string
	}{
		{"no output", []workflow.Event{started}, workflow.Event{Kind: workflow.StepCompleted, Path: "a", Pass: 1, At: begin}, "no output"},
		{"no time", []workflow.Event{started}, workflow.Event{Kind: workflow.StepCompleted, Path: "a", Pass: 1, Output: json.RawMessage(`1`)}, "no time"},
		{"no error", []workflow.Event{started}, workflow.Event{Kind: workflow.StepFailed, Path: "a", Pass: 1}, "no error"},
		{"no such class", []workflow.Event{started}, workflow.Event{Kind: workflow.StepFailed, Path: "a", Pass: 1, Error: &workflow.Failure{Class: "bad"}}, `no error class "bad"`},
		{"no such step", []workflow.Event{started}, workflow.Event{Kind: workflow.StepFailed, Path: "../a", Pass: 1, Error: fail}, `no step "../a"`},
		{"no such kind", []workflow.Event{started}, workflow.Event{Kind: "exploded", Path: "a", Pass: 1}, `no event kind "exploded"`},
		{"no when", []workflow.Event{started}, workflow.Event{Kind: workflow.StepSkipped, Path: "a", Pass: 1}, "no `when`"},
		{"goto elsewhere", []workflow.Event{started, failed}, workflow.Event{Kind: workflow.Goto, Path: "a", Pass: 1, Data: json.RawMessage(`{"to":"b","why":"error"}`)}, `not to "b"`},
		{"goto without data", []workflow.Event{started, failed}, workflow.Event{Kind: workflow.Goto, Path: "a", Pass: 1}, "no jump"},
		{"finish while a goto is due", []workflow.Event{started, failed}, workflow.Finish{Status: "failed", Error: fail}.Event(), "not come to an end"},
		{"verdict of neither kind", []workflow.Event{started, failed, jump, opened}, workflow.Event{Kind: workflow.ApproveDone, Path: "c", Pass: 2, Output: json.RawMessage(`{"verdict":"maybe"}`)}, `"maybe"`},
		{"silence", []workflow.Event{started, failed, jump, opened}, workflow.Event{Kind: workflow.ApproveDone, Path: "c", Pass: 2, Output: json.RawMessage(`{}`)}, `the verdict is ""`},
		{"nothing", []workflow.Event{started, failed, jump, opened}, workflow.Event{Kind: workflow.ApproveDone, Path: "c", Pass: 2}, "no verdict"},
	}
	opened.Pass = 1
	for i := range cases {
		t.Run(cases[i].name, func(t *testing.T) {
			c := cases[i]
			s := w.Begin()
			for _, e := range c.pre {
				var err error
				if s, err = w.Apply(s, fitPass(s, e)); err != nil {
					t.Fatal(err)
				}
			}
			before := dump(s)
			_, err := w.Apply(s, fitPass(s, c.e))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("apply = %v, want an error with %q", err, c.want)
			}
			if dump(s) != before {
				t.Error("a refused event changed the state")
			}
		})
	}
}

// fitPass gives the event the pass that the step is at.
func fitPass(s workflow.State, e workflow.Event) workflow.Event {
	if e.Path == "" {
		return e
	}
	st := s.Step(e.Path)
	if e.Pass = st.Pass; st.Status == workflow.Pending {
		e.Pass++
	}
	return e
}

func TestFold_IsApplyOverAllEvents(t *testing.T) {
	r := start(t, example(t, "weekly-report"), `{"folder":".","week":"2026-W48"}`)
	r.call("collect_context", 1, `{"count":0,"documents":[]}`)
	r.call("make_plan", 1, `{"markdown":"x","why":"y"}`)
	r.propose("publish", 1)
	r.reject("publish", 1, "no")
	r.call("make_plan", 2, `{"markdown":"x","why":"y"}`)
	s, err := r.w.Fold(r.events)
	if diff := cmp.Diff(r.s, s); err != nil || diff != "" {
		t.Errorf("fold: %v, difference (-apply +fold):\n%s", err, diff)
	}
	if _, err := r.w.Fold(r.events[1:]); err == nil {
		t.Error("events without the first one fold")
	}
}
