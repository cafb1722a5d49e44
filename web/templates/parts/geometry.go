package parts

import (
	"fmt"
	"strconv"
	"strings"

	"countersign/web/visible"
)

// Measures of the picture, in pixels at its natural size.
const (
	nodeW, nodeH = 232, 46
	rowH         = 74 // from one row to the next
	laneW        = 22 // from one lane to the next
	labelW       = 118
	padding      = 10
	nodeChars    = 28 // of a title that fits into a node
)

func left(m Map) int {
	x := padding
	if used(m, "back") {
		x += labelW + m.Lanes*laneW
	}
	return x
}

func used(m Map, kinds ...string) bool {
	for _, e := range m.Edges {
		for _, k := range kinds {
			if e.Kind == k && e.Lane > 0 {
				return true
			}
		}
	}
	return false
}

func columns(m Map) int {
	most := 0
	for _, n := range m.Nodes {
		most = max(most, n.Col)
	}
	return most + 1
}

func rows(m Map) int {
	most := 0
	for _, n := range m.Nodes {
		most = max(most, n.Row)
	}
	return most + 1
}

func width(m Map) int {
	w := left(m) + columns(m)*(nodeW+laneW) - laneW + padding
	if used(m, "forward", "end") {
		w += m.Lanes*laneW + labelW
	}
	return w
}

func height(m Map) int { return 2*padding + (rows(m)-1)*rowH + 28 }

func mapBox(m Map) string    { return fmt.Sprintf("0 0 %d %d", width(m), height(m)) }
func mapWidth(m Map) string  { return strconv.Itoa(width(m)) }
func mapHeight(m Map) string { return strconv.Itoa(height(m)) }

// mapLabel says in words what the picture shows.
func mapLabel(m Map) string {
	said := []string{visible.Plain(m.Title)}
	for _, n := range m.Nodes {
		if n.Path != "" && n.Word != "" {
			said = append(said, visible.Plain(n.Title)+": "+n.Word)
		}
	}
	return strings.Join(said, "; ")
}

func x(m Map, n MapNode) int { return left(m) + n.Col*(nodeW+laneW) }
func y(n MapNode) int        { return padding + n.Row*rowH }

func nodeX(m Map, n MapNode) string      { return strconv.Itoa(x(m, n)) }
func nodeY(n MapNode) string             { return strconv.Itoa(y(n)) }
func nodeWidth() string                  { return strconv.Itoa(nodeW) }
func nodeHeight() string                 { return strconv.Itoa(nodeH) }
func nodeTextX(m Map, n MapNode) string  { return strconv.Itoa(x(m, n) + 36) }
func nodeTitleY(n MapNode) string        { return strconv.Itoa(y(n) + 20) }
func nodeWordY(n MapNode) string         { return strconv.Itoa(y(n) + 36) }
func nodeMiddle(m Map, n MapNode) string { return strconv.Itoa(x(m, n) + nodeW/2) }
func endY(n MapNode) string              { return strconv.Itoa(y(n) + 10) }
func endTextX(m Map, n MapNode) string   { return strconv.Itoa(x(m, n) + nodeW/2 + 14) }
func endTextY(n MapNode) string          { return strconv.Itoa(y(n) + 14) }

// nodeRound draws what asks people with round ends.
func nodeRound(n MapNode) string {
	switch n.Kind {
	case "action", "approve", "ask":
		return strconv.Itoa(nodeH / 2)
	}
	return "5"
}

func nodeTitle(n MapNode) string {
	title := []rune(visible.Plain(n.Title))
	if len(title) > nodeChars {
		return string(title[:nodeChars-1]) + "…"
	}
	return string(title)
}

func nodeWord(n MapNode) string {
	parts := []string{n.Kind}
	if n.Word != "" {
		parts = []string{n.Word}
	}
	if n.Passes > 1 {
		parts = append(parts, strconv.Itoa(n.Passes)+" passes")
	}
	return strings.Join(parts, " · ")
}

func endWord(n MapNode) string {
	if n.Word != "" {
		return n.Word
	}
	return "end"
}

// nodeMark is the state as a shape: a tick, a dot, a cross, a question mark,
// a dash.
func nodeMark(m Map, n MapNode) string {
	cx, cy := x(m, n)+20, y(n)+nodeH/2
	at := func(f string) string {
		return fmt.Sprintf("M%d %d", cx, cy) + f
	}
	switch n.State {
	case "done":
		return at("m-5 0 l3.5 4 l6.5 -8")
	case "now", "wait":
		return at("m-4 0 a4 4 0 1 0 8 0 a4 4 0 1 0 -8 0")
	case "bad":
		return at("m-4 -4 l8 8 m0 -8 l-8 8")
	case "unknown":
		return at("m-3 -2 c0 -5 6 -5 6 0 c0 2.5 -3 2.5 -3 5 m0 2.5 v.5")
	case "skipped":
		return at("m-5 0 h10")
	}
	return at("m-4.5 0 a4.5 4.5 0 1 0 9 0 a4.5 4.5 0 1 0 -9 0")
}
