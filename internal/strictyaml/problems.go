package strictyaml

import (
	"fmt"
	"sort"
	"strings"
)

// problemsMax bounds the faults kept for one file; a last line says that there
// are more.
const problemsMax = 100

// Pos is a place in a file; lines and columns (characters) count from 1, and 0
// is unknown.
type Pos struct {
	File      string
	Line, Col int
}

// String writes "file:line:col", leaving out what is unknown.
func (p Pos) String() string {
	s := p.File
	if p.Line > 0 {
		s += fmt.Sprintf(":%d", p.Line)
		if p.Col > 0 {
			s += fmt.Sprintf(":%d", p.Col)
		}
	}
	return s
}

// Problem is one fault at one place.
type Problem struct {
	Pos     Pos
	Message string
}

// Problems are the faults of a file. As an error they are never empty; Err
// makes that distinction.
type Problems []Problem

// Error writes one line per fault.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, x := range p {
		lines[i] = x.Pos.String() + ": " + x.Message
	}
	return strings.Join(lines, "\n")
}

// Add appends a fault, up to problemsMax of them.
func (p *Problems) Add(pos Pos, format string, args ...any) {
	switch {
	case len(*p) < problemsMax:
		*p = append(*p, Problem{pos, fmt.Sprintf(format, args...)})
	case len(*p) == problemsMax:
		*p = append(*p, Problem{Pos{File: pos.File}, fmt.Sprintf("there are more faults than the %d shown; mend these first", problemsMax)})
	}
}

// Err returns the faults sorted by place, or nil when there are none.
func (p Problems) Err() error {
	if len(p) == 0 {
		return nil
	}
	sorted := append(Problems(nil), p...)
	sort.SliceStable(sorted, func(i, j int) bool { return sorted[i].Pos.before(sorted[j].Pos) })
	return sorted
}

// before orders places; what has no line comes last.
func (p Pos) before(q Pos) bool {
	switch {
	case p.File != q.File:
		return p.File < q.File
	case (p.Line == 0) != (q.Line == 0):
		return q.Line == 0
	case p.Line != q.Line:
		return p.Line < q.Line
	}
	return p.Col < q.Col
}
