// Package strictyaml reads definitions: YAML in which every value knows its
// place in the file and nothing is guessed.
//
// It guarantees one document within limits, no duplicate, unknown or non-string
// keys, no merge keys, and scalars that mean what is written: a wrong kind is a
// problem with file, line, column and advice, never a silent conversion. It must
// not know what any key means.
package strictyaml

import (
	"fmt"
	"sort"
	"strings"
	"time"

	"countersign/internal/nearest"
)

// Pos is a place in a file; lines and columns count from 1, 0 is unknown.
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

// Problems are the faults of a file, in order of place. They are an error when
// there is at least one; Err makes that distinction.
type Problems []Problem

// Error writes one line per fault.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, x := range p {
		lines[i] = x.Pos.String() + ": " + x.Message
	}
	return strings.Join(lines, "\n")
}

// Add appends a fault.
func (p *Problems) Add(pos Pos, format string, args ...any) {
	*p = append(*p, Problem{pos, fmt.Sprintf(format, args...)})
}

// Err returns the faults sorted by place, or nil when there are none.
func (p Problems) Err() error {
	if len(p) == 0 {
		return nil
	}
	sorted := append(Problems(nil), p...)
	sort.SliceStable(sorted, func(i, j int) bool {
		a, b := sorted[i].Pos, sorted[j].Pos
		if a.File != b.File {
			return a.File < b.File
		}
		if a.Line != b.Line {
			return a.Line < b.Line
		}
		return a.Col < b.Col
	})
	return sorted
}

// Kind is the shape of a node.
type Kind int

// The three shapes.
const (
	KindScalar Kind = iota
	KindMap
	KindSeq
)

// Node is one value of the file. Methods on a nil Node return zero values and
// report nothing, so that optional keys read in one line.
type Node struct {
	Kind Kind
	Pos  Pos
}

// Parse reads the one document of a file. The error is Problems.
func Parse(file string, src []byte) (*Node, error) {
	return nil, Problems{{Pos{File: file}, "not built yet"}}
}

// Map views the node as a mapping with the known keys; others are reported.
// With no known keys any key is allowed. It returns an empty Map, never nil.
func (n *Node) Map(p *Problems, known ...string) *Map { return &Map{} }

// String returns the scalar as it is written; null and empty are reported.
func (n *Node) String(p *Problems) string { return "" }

// Int returns a plain decimal integer.
func (n *Node) Int(p *Problems) int { return 0 }

// Bool returns plain true or false; yes, no, on and off are reported.
func (n *Node) Bool(p *Problems) bool { return false }

// Duration reads Go syntax with d (24h) and w (7d); bare numbers are reported.
func (n *Node) Duration(p *Problems) time.Duration { return 0 }

// Strings returns a sequence of strings.
func (n *Node) Strings(p *Problems) []string { return nil }

// Seq returns the items of a sequence.
func (n *Node) Seq(p *Problems) []*Node { return nil }

// JSON returns the plain JSON value of the node.
func (n *Node) JSON(p *Problems) any { return nil }

// Find returns the place of what the JSON Pointer names, or of its nearest
// ancestor that exists.
func (n *Node) Find(pointer string) Pos { return Pos{} }

// FindOffset is Find moved to a byte offset inside the text of the scalar there.
func (n *Node) FindOffset(pointer string, offset int) Pos { return Pos{} }

// At is the place of a byte offset inside the scalar's text.
func (n *Node) At(offset int) Pos { return Pos{} }

// Map is a mapping in the order of the file.
type Map struct {
	Pos Pos
}

// Get returns the value of a key, or nil.
func (m *Map) Get(key string) *Node { return nil }

// Need is Get that reports a missing key.
func (m *Map) Need(key string) *Node { return nil }

// Has reports whether the key is there.
func (m *Map) Has(key string) bool { return false }

// Keys returns the keys in the order of the file.
func (m *Map) Keys() []string { return nil }

// KeyPos is the place of a key.
func (m *Map) KeyPos(key string) Pos { return Pos{} }

// ParseDuration reads Go syntax with d (24h) and w (7d); it needs a unit.
func ParseDuration(s string) (time.Duration, error) { return 0, fmt.Errorf("not built yet") }

// Nearest returns the known word closest to word, or "".
func Nearest(word string, known []string) string { return nearest.Word(word, known) }
