package parts

import (
	"strings"
	"testing"
)

// The head of an arrow sits where its line ends, also when the line goes to
// another column.
func TestArrowHead_SitsWhereTheLineEnds(t *testing.T) {
	m := Map{Nodes: []MapNode{{Path: "fork", Row: 0}, {Path: "left", Row: 1}, {Path: "right", Row: 1, Col: 1}, {Path: "after", Row: 2}}}
	for _, e := range []MapEdge{{From: "fork", To: "left"}, {From: "fork", To: "right"}, {From: "right", To: "after"}} {
		line, head := edgePath(m, e), arrowHead(m, e)
		end, _, _ := strings.Cut(strings.TrimPrefix(head, "M"), " ")
		at := line[1:strings.Index(line, " ")]
		if i := strings.LastIndex(line, "H"); i >= 0 {
			at = line[i+1 : i+strings.Index(line[i:], "V")]
		}
		if at != end {
			t.Errorf("from %s to %s the line %s ends at %s, its head %s is at %s", e.From, e.To, line, at, head, end)
		}
	}
}
