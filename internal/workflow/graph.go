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
	Col   int // from 0; each branch has its own
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

// WhySkipped is the Why of the edge past a parallel step that may be skipped.
const WhySkipped = "skipped"

// The edges.
const (
	EdgeNext    EdgeKind = "next"    // on to the following step, into a branch, or out of it
	EdgeForward EdgeKind = "forward" // a goto down: the lane is on the right
	EdgeBack    EdgeKind = "back"    // a goto up or to itself: the lane is on the left
	EdgeEnd     EdgeKind = "end"     // the run ends here by rule: the lane is on the right
)

// Graph lays the steps out. The same workflow always gives the same picture.
func (w *Workflow) Graph() Graph {
	var g Graph
	rows, _ := g.place(w.top, 0, 0)
	for _, st := range w.steps {
		g.Edges = append(g.Edges, edges(st)...)
	}
	g.Nodes = append(g.Nodes, Node{Title: "End", Row: rows})
	g.lay()
	return g
}

// place puts the steps of a scope under each other, and the branches of a
// parallel step beside each other below it. It returns the row below them all
// and how many columns they take.
func (g *Graph) place(sc *scope, row, col int) (below, width int) {
	width = 1
	for _, st := range sc.steps {
		g.Nodes = append(g.Nodes, Node{Path: st.Path, Kind: st.Kind, Title: st.Title, Tool: st.Tool, Row: row, Col: col})
		row++
		next, taken := row, 0
		for _, b := range st.branches {
			end, wide := g.place(b, row, col+taken)
			next, taken = max(next, end), taken+wide
		}
		row, width = next, max(width, taken)
	}
	return row, width
}

// next is the path of the step that control comes to when it has left st: the
// following one, or what follows the branches it ends one of. Empty: the end.
func (st *Step) next() string {
	switch following := st.Index + 1; {
	case following < len(st.scope.steps):
		return st.scope.steps[following].Path
	case st.scope.of != nil:
		return st.scope.of.next()
	}
	return ""
}

// edges lists the ways out of one step, the default ends left out: that a
// rejected run ends rejected needs no line. A parallel step leads to the first
// step of each branch, and past them only when it may be skipped.
func edges(st *Step) []Edge {
	var edges []Edge
	for _, b := range st.branches {
		edges = append(edges, Edge{From: st.Path, To: b.steps[0].Path, Kind: EdgeNext})
	}
	switch {
	case st.Kind == Fork && st.Optional():
		edges = append(edges, Edge{From: st.Path, To: st.next(), Kind: EdgeForward, Why: WhySkipped})
	case st.Kind != Fork && (st.then.Do == DoNext || st.Optional()):
		edges = append(edges, Edge{From: st.Path, To: st.next(), Kind: EdgeNext})
	}
	add := func(r Rule, why string) {
		var to *Step
		if r.Do == DoGoto {
			to = st.scope.find(r.To)
		}
		switch {
		case r.Do == DoGoto && to.Index > st.Index:
			edges = append(edges, Edge{From: st.Path, To: to.Path, Kind: EdgeForward, Why: why})
		case r.Do == DoGoto:
			edges = append(edges, Edge{From: st.Path, To: to.Path, Kind: EdgeBack, Why: why, Max: r.MaxPasses})
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
