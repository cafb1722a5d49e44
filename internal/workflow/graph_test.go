package workflow_test

import (
	"testing"

	"countersign/internal/workflow"

	"github.com/google/go-cmp/cmp"
)

func TestGraph_ShowsEveryWay(t *testing.T) {
	w := compile(t, `
- {id: a, call: docs.collect, on_error: {denied: {goto: c}, default: fail}}
- {id: b, when: input.x, set: 1, then: end}
- {id: c, action: kb.publish, on_reject: {goto: a, max_passes: 3}, on_expire: {ask_again: true, max_passes: 2}}
`)
	want := workflow.Graph{
		Nodes: []workflow.Node{
			{Path: "a", Kind: workflow.Call, Title: "A", Tool: "docs.collect", Row: 0},
			{Path: "b", Kind: workflow.Set, Title: "B", Row: 1},
			{Path: "c", Kind: workflow.Action, Title: "C", Tool: "kb.publish", Row: 2},
			{Title: "End", Row: 3},
		},
		Edges: []workflow.Edge{
			{From: "a", To: "b", Kind: workflow.EdgeNext},
			{From: "a", To: "c", Kind: workflow.EdgeForward, Why: "denied", Lane: 1},
			{From: "b", To: "c", Kind: workflow.EdgeNext},
			{From: "b", Kind: workflow.EdgeEnd, Why: "then", Lane: 2},
			{From: "c", Kind: workflow.EdgeNext},
			{From: "c", To: "a", Kind: workflow.EdgeBack, Why: "rejected", Max: 3, Lane: 2},
			{From: "c", To: "c", Kind: workflow.EdgeBack, Why: "expired", Max: 2, Lane: 1},
		},
		Lanes: 2,
	}
	if diff := cmp.Diff(want, w.Graph()); diff != "" {
		t.Errorf("graph (-want +got):\n%s", diff)
	}
}

func TestSteps_AreListedForPages(t *testing.T) {
	w := compile(t, `
- {id: look_up, call: docs.collect, fresh_for: 1h, when: "true"}
- {id: ok, title: "May we?", approve: {document: 1, guards: [go_on]}}
- {id: go_on, action: kb.publish}
`)
	want := []workflow.StepInfo{
		{Path: "look_up", Kind: workflow.Call, Title: "Look up", Tool: "docs.collect", Optional: true, FreshFor: 3600e9},
		{Path: "ok", Kind: workflow.Gate, Title: "May we?", Guards: []string{"go_on"}},
		{Path: "go_on", Kind: workflow.Action, Title: "Go on", Tool: "kb.publish"},
	}
	if diff := cmp.Diff(want, w.Steps()); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if want := []string{"docs.collect", "kb.publish"}; !cmp.Equal(w.Tools, want) {
		t.Errorf("tools = %v, want %v", w.Tools, want)
	}
}
