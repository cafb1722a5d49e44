package browser

import (
	"fmt"

	"countersign/internal/desk"
	"countersign/internal/engine"
	"countersign/internal/workflow"
	"countersign/web/templates/parts"
)

// runMap draws where a run is in its workflow.
func runMap(s story) parts.Map {
	m := planMap(s.plan)
	m.Title = fmt.Sprintf("%s %d: where this run is", s.run.Workflow, s.run.WorkflowVersion)
	last := map[string]engine.Step{}
	for _, t := range s.steps {
		if t.Pass >= last[t.Path].Pass {
			last[t.Path] = t
		}
	}
	for i, n := range m.Nodes {
		m.Nodes[i].State, m.Nodes[i].Word = nodeState(n.Path, last[n.Path], s.run)
		if t, ok := last[n.Path]; ok {
			m.Nodes[i].Passes, m.Nodes[i].URL = t.Pass, "#"+anchor(t.Path, t.Pass)
		}
	}
	for i, e := range m.Edges {
		from, to := last[e.From], last[e.To]
		m.Edges[i].Taken = e.Kind == string(workflow.EdgeNext) && from.Status == "completed" && (to.Path != "" || e.To == "" && engine.Final(s.run.Status))
	}
	return m
}

// planMap is a workflow's picture without a run.
func planMap(plan desk.WorkflowPlan) parts.Map {
	m := parts.Map{Title: plan.Title, Lanes: plan.Graph.Lanes}
	for _, n := range plan.Graph.Nodes {
		m.Nodes = append(m.Nodes, parts.MapNode{Path: n.Path, Title: n.Title, Kind: string(n.Kind), Tool: n.Tool, Row: n.Row, Col: n.Col, State: "todo"})
	}
	for _, e := range plan.Graph.Edges {
		m.Edges = append(m.Edges, parts.MapEdge{From: e.From, To: e.To, Kind: string(e.Kind), Label: edgeLabel(e), Lane: e.Lane})
	}
	return m
}

func edgeLabel(e workflow.Edge) string {
	if e.Kind == workflow.EdgeNext || e.Why == "then" {
		return ""
	}
	if e.Max > 0 {
		return fmt.Sprintf("%s, at most %d times", e.Why, e.Max)
	}
	return e.Why
}

// nodeState is how a step looks in the picture.
func nodeState(path string, t engine.Step, r engine.Run) (state, word string) {
	if path == "" {
		if engine.Final(r.Status) {
			return map[bool]string{true: "done", false: "bad"}[r.Status == engine.Completed], status(r.Status).Word
		}
		return "todo", ""
	}
	switch t.Status {
	case "completed":
		return "done", "completed"
	case "skipped":
		return "skipped", "skipped"
	case "failed", "cancelled":
		return "bad", t.Status
	case "waiting", "running":
		return waitState(path, r)
	}
	if r.Step == path && !engine.Final(r.Status) {
		return waitState(path, r)
	}
	return "todo", ""
}

func waitState(path string, r engine.Run) (state, word string) {
	switch r.Status {
	case engine.WaitingApproval, engine.WaitingInput:
		return "wait", status(r.Status).Word
	case engine.Blocked:
		return "bad", "blocked"
	case engine.Sleeping, engine.Retrying:
		return "wait", status(r.Status).Word
	}
	return "now", "running"
}
