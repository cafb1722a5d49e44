package workflow_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/internal/problem"
	"countersign/internal/workflow"
)

const flowV1 = `
- id: look
  call: docs.collect
- id: write
  action: kb.publish
  with: {text: "${steps.look.output.text}"}
  on_reject: {goto: look, max_passes: 3}
- id: tell
  action: ops.restart
  with: {service: "x"}
`

// done is the event of a step that is done.
func done(kind workflow.EventKind, path string) workflow.Event {
	return workflow.Event{Kind: kind, Path: path, Pass: 1, Output: json.RawMessage(`{"text":"x"}`), At: time.Unix(1, 0)}
}

var proposedWrite = []workflow.Event{{Kind: workflow.Started}, done(workflow.StepCompleted, "look"), {Kind: workflow.ActionProposed, Path: "write", Pass: 1}}

func TestAdopt_WhatIsDoneStaysAndWhatIsOpenIsPutAnew(t *testing.T) {
	old, err := compile(t, flowV1).Fold(proposedWrite)
	if err != nil {
		t.Fatal(err)
	}
	next := compile(t, strings.Replace(flowV1, "- id: write", "- id: check\n  set: {ok: true}\n- id: publish", 1))
	a, err := next.Adopt(old, compile(t, flowV1), map[string]string{"write": "publish"})
	if err != nil {
		t.Fatal(err)
	}
	if st := a.State.Step("look"); st.Status != workflow.Completed || !st.Left || st.Pass != 1 {
		t.Errorf("look is %+v, want it done", st)
	}
	if st := a.State.Step("publish"); st.Status != workflow.Pending || st.Pass != 1 || st.Revises != 1 {
		t.Errorf("publish is %+v, want it put anew in place of pass 1", st)
	}
	if !slices.Equal(a.Kept, []workflow.Kept{{Old: "look", New: "look"}}) || !slices.Equal(a.Again, []workflow.Kept{{Old: "write", New: "publish"}}) || len(a.Dropped) != 0 {
		t.Errorf("kept %v, again %v, dropped %v", a.Kept, a.Again, a.Dropped)
	}
	if old.Step("write").Status != workflow.Waiting {
		t.Error("the old state was changed")
	}
	tasks, err := next.Next(t.Context(), a.State, workflow.RunInfo{Input: map[string]any{}}, func(string, int) (any, error) { return map[string]any{"text": "x"}, nil }, time.Unix(2, 0))
	if err != nil || len(tasks) != 1 || tasks[0].Path != "check" {
		t.Errorf("what comes next is %+v (%v), want the step put before the open one", tasks, err)
	}
}

func TestAdopt_RefusesWhatDoesNotFit(t *testing.T) {
	rejected := append(slices.Clone(proposedWrite), workflow.Event{Kind: workflow.ActionRejected, Path: "write", Pass: 1, Output: json.RawMessage(`{"verdict":"reject","by":"Ana","comment":"no","digest":"d"}`)})
	for name, c := range map[string]struct {
		events  []workflow.Event
		change  []string // of the old text
		renames map[string]string
		says    string // empty: it fits
	}{
		"the open step is gone":              {proposedWrite, []string{"id: write", "id: other"}, nil, "stands at step write"},
		"the rejected step is gone":          {rejected, []string{"id: write", "id: other"}, nil, "stands at step write"},
		"the open step is renamed":           {proposedWrite, []string{"id: write", "id: other"}, map[string]string{"write": "other"}, ""},
		"a step to come is gone":             {proposedWrite, []string{"- id: tell\n  action: ops.restart\n  with: {service: \"x\"}\n", ""}, nil, ""},
		"the open step is of another kind":   {proposedWrite, []string{"action: kb.publish\n  with: {text: \"${steps.look.output.text}\"}\n  on_reject: {goto: look, max_passes: 3}", "set: {a: 1}"}, nil, "was begun as action and is set"},
		"a done step is of another kind":     {proposedWrite, []string{"call: docs.collect", "set: {text: x}"}, nil, "was begun as call and is set"},
		"a new step before one that is done": {proposedWrite, []string{"- id: look", "- id: first\n  set: {a: 1}\n- id: look"}, nil, "first stands before look"},
		"two steps become one":               {append(slices.Clone(proposedWrite), done(workflow.EffectConfirmed, "write"), workflow.Event{Kind: workflow.ActionProposed, Path: "tell", Pass: 1}), []string{"id: write", "id: other"}, map[string]string{"write": "tell"}, "more than one step would become tell"},
		"a rejected step whose rule changed": {rejected, []string{"{goto: look, max_passes: 3}", "end"}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			old := compile(t, flowV1)
			s, err := old.Fold(c.events)
			if err != nil {
				t.Fatal(err)
			}
			next := compile(t, strings.NewReplacer(c.change...).Replace(flowV1))
			_, err = next.Adopt(s, old, c.renames)
			if c.says == "" && err != nil {
				t.Errorf("it is refused: %v", err)
			}
			if c.says != "" && (!problem.HasCode(err, "cannot_migrate") || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("error = %v, want one that says %q", err, c.says)
			}
		})
	}
}

func TestAdopt_BranchesAreMovedBeforeOrBehindThem(t *testing.T) {
	const flow = "- {id: look, call: docs.collect}\n- {id: par, parallel: {l: [{id: p, set: 1}], r: [{id: q, action: kb.publish}]}}\n- {id: tell, action: ops.restart, with: {service: x}}\n"
	old := compile(t, flow)
	next := compile(t, strings.Replace(flow, "id: q", "id: k", 1))
	renames := map[string]string{"q": "k"}
	events := []workflow.Event{{Kind: workflow.Started}, done(workflow.StepCompleted, "look"), {Kind: workflow.BranchesOpened, Path: "par", Pass: 1},
		done(workflow.StepCompleted, "par/l/p"), {Kind: workflow.ActionProposed, Path: "par/r/q", Pass: 1}}
	inside, err := old.Fold(events)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := next.Adopt(inside, old, renames); !problem.HasCode(err, "cannot_migrate") || !strings.Contains(err.Error(), "stands in the branches of step par") {
		t.Errorf("inside the branches: %v", err)
	}
	behind, err := old.Fold(append(events, done(workflow.EffectConfirmed, "par/r/q"), done(workflow.StepCompleted, "par"), workflow.Event{Kind: workflow.ActionProposed, Path: "tell", Pass: 1}))
	if err != nil {
		t.Fatal(err)
	}
	a, err := next.Adopt(behind, old, renames)
	if err != nil || a.State.Step("par/r/k").Pass != 1 || a.State.Step("par").Status != workflow.Completed {
		t.Errorf("behind the branches: %v, %+v", err, a.State.Steps)
	}
}

func TestAdopt_CarriesCountsAndFeedbackOver(t *testing.T) {
	old := compile(t, flowV1)
	events := append(slices.Clone(proposedWrite), workflow.Event{Kind: workflow.ActionRejected, Path: "write", Pass: 1, Output: json.RawMessage(`{"verdict":"reject","by":"Ana","comment":"no","digest":"d"}`)},
		workflow.Event{Kind: workflow.Goto, Path: "write", Pass: 1, Data: json.RawMessage(`{"to":"look","why":"rejected"}`)})
	s, err := old.Fold(events)
	if err != nil {
		t.Fatal(err)
	}
	a, err := compile(t, strings.Replace(flowV1, "id: write", "id: publish", 1)).Adopt(s, old, map[string]string{"write": "publish"})
	if err != nil {
		t.Fatal(err)
	}
	if n := a.State.Jumps["publish rejected look"]; n != 1 || len(a.State.Jumps) != 1 {
		t.Errorf("the counts are %v, want the loop taken once under its new name", a.State.Jumps)
	}
	if f := a.State.Feedback; f == nil || f.Path != "publish" || f.Comment != "no" || s.Feedback.Path != "write" {
		t.Errorf("the feedback is %+v, the old one %+v", f, s.Feedback)
	}
	if st := a.State.Step("publish"); st.Pass != 1 {
		t.Errorf("publish is at pass %d: its next key would be one that was used", st.Pass)
	}
}

func TestFoldMoves_FollowsTheRecordThroughItsVersions(t *testing.T) {
	old, next := compile(t, flowV1), compile(t, strings.Replace(flowV1, "id: write", "id: publish", 1))
	versions := func(digest string) (*workflow.Workflow, error) {
		return map[string]*workflow.Workflow{old.Digest: old, next.Digest: next}[digest], nil
	}
	move, err := json.Marshal(workflow.Move{From: old.Digest, To: next.Digest, RenameSteps: map[string]string{"write": "publish"}})
	if err != nil {
		t.Fatal(err)
	}
	events := append(slices.Clone(proposedWrite), workflow.Event{Kind: workflow.Migrated, Data: move}, workflow.Event{Kind: workflow.ActionProposed, Path: "publish", Pass: 2})
	s, err := next.FoldMoves(old.Digest, events, versions)
	if err != nil {
		t.Fatal(err)
	}
	if st := s.Step("publish"); st.Status != workflow.Waiting || st.Pass != 2 {
		t.Errorf("publish is %+v", st)
	}
	if _, err := old.FoldMoves(old.Digest, events, versions); err == nil {
		t.Error("a record that ends with another version is taken")
	}
	if _, err := next.Fold(events); err == nil {
		t.Error("a record with a move is folded as if it were of one version")
	}
}
