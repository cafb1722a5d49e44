package workflow

import (
	"fmt"
	"slices"
)

// Graph is a workflow laid out for a picture: nodes in rows, edges that go
// straight down or leave through a numbered lane beside the rows. Drawing it
// is somebody else's.
type Graph struct {
	Nodes []Node
	Edges []Edge
	Lanes int // lanes used on each side, the most of both
}

// Node is a step in the picture, or the end of the run (an empty Path).
type Node struct {
	Path  string
	Kind  Kind // empty: the end
	Title string
	Tool  string
	Row   int // from 0, top to bottom
	Col   int // from 0; branches will have their own
}

// Edge is a way that control may take.
type Edge struct {
	From, To string // paths; To is empty for the end
	Kind     EdgeKind
	Why      string // goto, end: then, rejected, expired, error, or the error class
	Max      int    // passes of the loop in all; 0: no loop
	Lane     int    // 0: straight down to the next row; otherwise the distance from the rows
}

// EdgeKind says how an edge is drawn.
type EdgeKind string

// The edges.
const (
	EdgeNext    EdgeKind = "next"    // on to the following step
	EdgeForward EdgeKind = "forward" // a goto down: the lane is on the right
	EdgeBack    EdgeKind = "back"    // a goto up or to itself: the lane is on the left
	EdgeEnd     EdgeKind = "end"     // the run ends here by rule: the lane is on the right
)

// Graph lays the steps out. The same workflow always gives the same picture.
func (w *Workflow) Graph() Graph {
	var g Graph
	for i, st := range w.steps {
		g.Nodes = append(g.Nodes, Node{Path: st.Path, Kind: st.Kind, Title: st.Title, Tool: st.Tool, Row: i})
		g.Edges = append(g.Edges, w.edges(i, st)...)
	}
	g.Nodes = append(g.Nodes, Node{Title: "End", Row: len(w.steps)})
	g.lay()
	return g
}

// edges lists the ways out of one step, the default ends left out: that a
// rejected run ends rejected needs no line.
func (w *Workflow) edges(i int, st *Step) []Edge {
	var edges []Edge
	next := ""
	if i+1 < len(w.steps) {
		next = w.steps[i+1].Path
	}
	if st.then.Do == DoNext || st.Optional() {
		edges = append(edges, Edge{From: st.Path, To: next, Kind: EdgeNext})
	}
	add := func(r Rule, why string) {
		switch {
		case r.Do == DoGoto && w.byPath[r.To].Index > i:
			edges = append(edges, Edge{From: st.Path, To: r.To, Kind: EdgeForward, Why: why})
		case r.Do == DoGoto:
			edges = append(edges, Edge{From: st.Path, To: r.To, Kind: EdgeBack, Why: why, Max: r.MaxPasses})
		case r.Do == DoEnd && (why == WhyThen || st.onError[why].Do == DoEnd):
			edges = append(edges, Edge{From: st.Path, Kind: EdgeEnd, Why: why})
		}
	}
	add(st.then, WhyThen)
	add(st.onReject, WhyRejected)
	add(st.onExpire, WhyExpired)
	for _, class := range sortedKeys(st.onError) {
		add(st.onError[class], class)
	}
	return edges
}

// lay gives each edge beside the rows the nearest lane of its side that is
// free over all the rows it passes; short edges choose first.
func (g *Graph) lay() {
	row := map[string]int{}
	for _, n := range g.Nodes {
		row[n.Path] = n.Row
	}
	span := func(e *Edge) (int, int) {
		a, b := row[e.From], row[e.To]
		return min(a, b), max(a, b)
	}
	var beside []*Edge
	for i := range g.Edges {
		if e := &g.Edges[i]; e.Kind != EdgeNext {
			beside = append(beside, e)
		}
	}
	slices.SortStableFunc(beside, func(a, b *Edge) int {
		la, ha := span(a)
		lb, hb := span(b)
		return (ha - la) - (hb - lb)
	})
	taken := map[string]bool{}
	for _, e := range beside {
		low, high := span(e)
		for e.Lane = 1; !g.claim(taken, e, low, high); e.Lane++ {
		}
		g.Lanes = max(g.Lanes, e.Lane)
	}
}

// claim takes the edge's lane over its rows if it is free.
func (g *Graph) claim(taken map[string]bool, e *Edge, low, high int) bool {
	cell := func(r int) string { return fmt.Sprint(e.Kind == EdgeBack, e.Lane, r) }
	for r := low; r <= high; r++ {
		if taken[cell(r)] {
			return false
		}
	}
	for r := low; r <= high; r++ {
		taken[cell(r)] = true
	}
	return true
}
