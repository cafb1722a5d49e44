package parts

import (
	"fmt"
	"strconv"
)

func find(m Map, path string) (MapNode, bool) {
	for _, n := range m.Nodes {
		if n.Path == path {
			return n, true
		}
	}
	return MapNode{}, false
}

// laneAt is where the lane of an edge runs: left of the rows for what goes
// back, right of them for what goes on.
func laneAt(m Map, e MapEdge) int {
	if e.Kind == "back" {
		return left(m) - e.Lane*laneW
	}
	return left(m) + columns(m)*(nodeW+laneW) - laneW + e.Lane*laneW
}

// edgePath goes straight down, across to another column right above the row it
// leads to, or out through its lane and back in.
func edgePath(m Map, e MapEdge) string {
	from, ok := find(m, e.From)
	to, found := find(m, e.To)
	if !ok || !found {
		return ""
	}
	if e.Lane == 0 {
		cx, into := x(m, from)+nodeW/2, x(m, to)+nodeW/2
		if cx == into {
			return fmt.Sprintf("M%d %dV%d", cx, y(from)+nodeH, y(to)-gap(to))
		}
		return fmt.Sprintf("M%d %dV%dH%dV%d", cx, y(from)+nodeH, y(to)-(rowH-nodeH)/2, into, y(to)-gap(to))
	}
	side, lane := x(m, from)+nodeW, laneAt(m, e)
	turn, into := 8, x(m, to)+nodeW+4
	if e.Kind == "back" {
		side, turn, into = x(m, from), -8, x(m, to)-4
	}
	start, end := y(from)+nodeH/2+exit(e), y(to)+entry(to)-exit(e)
	down := 8
	if end < start {
		down = -8
	}
	if to.Path == "" {
		into = x(m, to) + nodeW/2 + 12
		end = y(to) + 10
		if e.Kind != "back" {
			into = x(m, to) + nodeW/2 + 46
		}
	}
	return fmt.Sprintf("M%d %dH%dq%d 0 %d %dV%dq0 %d %d %dH%d", side, start, lane-turn, turn, turn, down, end-down, down, -turn, down, into)
}

// exit keeps what leaves a node apart from what comes in on the same side.
func exit(e MapEdge) int { return min(4*e.Lane, 12) }

func entry(n MapNode) int {
	if n.Path == "" {
		return 10
	}
	return nodeH / 2
}

func gap(n MapNode) int {
	if n.Path == "" {
		return -1
	}
	return 3
}

func arrowHead(m Map, e MapEdge) string {
	to, found := find(m, e.To)
	if _, ok := find(m, e.From); !ok || !found {
		return ""
	}
	if e.Lane == 0 {
		return fmt.Sprintf("M%d %dl-4 -6h8Z", x(m, to)+nodeW/2, y(to)-gap(to)+2)
	}
	switch {
	case to.Path == "":
		return fmt.Sprintf("M%d %dl6 -4v8Z", x(m, to)+nodeW/2+44, y(to)+10)
	case e.Kind == "back":
		return fmt.Sprintf("M%d %dl-6 -4v8Z", x(m, to)-1, y(to)+entry(to)-exit(e))
	}
	return fmt.Sprintf("M%d %dl6 -4v8Z", x(m, to)+nodeW+1, y(to)+entry(to)-exit(e))
}

func labelX(m Map, e MapEdge) string {
	if e.Kind == "back" {
		return strconv.Itoa(laneAt(m, e) - 6)
	}
	return strconv.Itoa(laneAt(m, e) + 6)
}

func labelY(m Map, e MapEdge) string {
	from, _ := find(m, e.From)
	to, _ := find(m, e.To)
	if to.Path == "" {
		return strconv.Itoa(y(from) + nodeH/2 + exit(e) + 16)
	}
	return strconv.Itoa((y(from)+y(to)+nodeH)/2 + 4)
}

func labelSide(e MapEdge) string {
	if e.Kind == "back" {
		return "end"
	}
	return "start"
}
