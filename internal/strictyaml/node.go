package strictyaml

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"countersign/internal/canon"
	"countersign/internal/nearest"
)

// Kind is the shape of a node.
type Kind int

// The three shapes.
const (
	KindScalar Kind = iota
	KindMap
	KindSeq
)

// Node is one value of the file. Methods on a nil Node return zero values and
// report nothing, so that an optional key reads in one line; Map.Need reports
// what is missing.
type Node struct {
	Kind Kind
	Pos  Pos

	value string // scalar: unquoted text
	tag   string // scalar: what YAML takes the plain text for
	style yaml.Style
	keys  []key
	items []*Node // list items, or mapping values in the order of keys
	byKey map[string]int
	lines [][]byte // the file
}

type key struct {
	name string
	pos  Pos
}

// describe names the node in messages.
func (n *Node) describe() string {
	switch {
	case n.Kind == KindMap:
		return "a mapping"
	case n.Kind == KindSeq:
		return "a list"
	case n.quoted():
		return "text in quotes"
	case n.value == "":
		return "nothing"
	}
	return clip(n.value)
}

func clip(s string) string {
	const most = 40
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		s = s[:i] + "…"
	}
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

func (n *Node) quoted() bool {
	return n.style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
}

// Seq returns the items of a list.
func (n *Node) Seq(p *Problems) []*Node {
	if n == nil {
		return nil
	}
	if n.Kind != KindSeq {
		p.Add(n.Pos, "expected a list, got %s", n.describe())
		return nil
	}
	return n.items
}

// Strings returns a list of strings.
func (n *Node) Strings(p *Problems) []string {
	var all []string
	for _, item := range n.Seq(p) {
		all = append(all, item.String(p))
	}
	return all
}

// Map is a mapping in the order of the file.
type Map struct {
	Pos      Pos
	node     *Node
	problems *Problems
}

// Map views the node as a mapping with the known keys; any other key is
// reported with the nearest known one. With no known keys, every key is
// accepted. It never returns nil: a nil node and a node of another kind (which
// is reported) are an empty Map.
func (n *Node) Map(p *Problems, known ...string) *Map {
	if n == nil {
		return &Map{problems: p}
	}
	m := &Map{Pos: n.Pos, node: n, problems: p}
	if n.Kind != KindMap {
		p.Add(n.Pos, "expected a mapping, got %s", n.describe())
		m.node = nil
		return m
	}
	if len(known) == 0 {
		return m
	}
	for _, k := range n.keys {
		if !slices.Contains(known, k.name) {
			p.Add(k.pos, "%s", Unknown("key", k.name, known))
		}
	}
	return m
}

// Unknown is the message for a name that is not one of known: it suggests the
// nearest one or lists them.
func Unknown(what, name string, known []string) string {
	if near := nearest.Word(name, known); near != "" {
		return fmt.Sprintf("unknown %s %q; did you mean %q?", what, clip(name), near)
	}
	if len(known) == 0 {
		return fmt.Sprintf("unknown %s %q; there is none", what, clip(name))
	}
	list := known
	if len(list) > 20 {
		list = append(append([]string(nil), list[:20]...), "…")
	}
	return fmt.Sprintf("unknown %s %q; known: %s", what, clip(name), strings.Join(list, ", "))
}

// Nearest returns the known word closest to word, or "".
func Nearest(word string, known []string) string { return nearest.Word(word, known) }

// Get returns the value of a key, or nil.
func (m *Map) Get(name string) *Node {
	if m.node == nil {
		return nil
	}
	if i, ok := m.node.byKey[name]; ok {
		return m.node.items[i]
	}
	return nil
}

// Need is Get that reports a missing key.
func (m *Map) Need(name string) *Node {
	n := m.Get(name)
	if n == nil && m.node != nil {
		m.problems.Add(m.Pos, "the key %q is missing", name)
	}
	return n
}

// Has reports whether the key is there.
func (m *Map) Has(name string) bool { return m.Get(name) != nil }

// Keys returns the keys in the order of the file.
func (m *Map) Keys() []string {
	if m.node == nil {
		return nil
	}
	all := make([]string, len(m.node.keys))
	for i, k := range m.node.keys {
		all[i] = k.name
	}
	return all
}

// KeyPos is the place of a key, or of the mapping when it has no such key.
func (m *Map) KeyPos(name string) Pos {
	if m.node == nil {
		return m.Pos
	}
	if i, ok := m.node.byKey[name]; ok {
		return m.node.keys[i].pos
	}
	return m.Pos
}

// Find returns the place of the value that the JSON Pointer names, or of its
// nearest ancestor that exists.
func (n *Node) Find(pointer string) Pos { return n.find(pointer).At(-1) }

// FindOffset is the place of a byte offset inside the scalar that the JSON
// Pointer names; see At.
func (n *Node) FindOffset(pointer string, offset int) Pos { return n.find(pointer).At(offset) }

func (n *Node) find(pointer string) *Node {
	tokens, _ := canon.Tokens(pointer)
	for _, t := range tokens {
		next := n.child(t)
		if next == nil {
			break
		}
		n = next
	}
	return n
}

func (n *Node) child(token string) *Node {
	switch {
	case n == nil:
		return nil
	case n.Kind == KindMap:
		if i, ok := n.byKey[token]; ok {
			return n.items[i]
		}
	case n.Kind == KindSeq:
		if i, ok := canon.Index(token, len(n.items)); ok {
			return n.items[i]
		}
	}
	return nil
}
