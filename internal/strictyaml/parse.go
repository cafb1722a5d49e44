// Package strictyaml reads definitions: YAML in which every value knows its
// place in the file and nothing is guessed.
//
// It guarantees one document within limits, no duplicate, unknown or non-string
// keys, no merge keys, no tags, and scalars that mean what is written: a wrong
// kind is a problem with file, line, column and advice, never a silent
// conversion. It must not know what any key means.
package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// The limits of one file.
const (
	SizeMax  = 1 << 20 // bytes
	DepthMax = 64      // nested mappings and lists, as canon.DefaultLimits
	NodesMax = 50_000  // values after aliases are expanded
)

// Parse reads the one document of a file. Aliases are expanded, within
// NodesMax; merge keys, tags, and keys that are not strings are refused. The
// error is Problems.
func Parse(file string, src []byte) (*Node, error) {
	root, err := document(file, src)
	if err != nil {
		return nil, err
	}
	b := builder{file: file, lines: bytes.Split(src, []byte("\n")), open: map[*yaml.Node]bool{}}
	n := b.node(root, 0)
	if err := b.problems.Err(); err != nil {
		return nil, err
	}
	return n, nil
}

func fault(pos Pos, format string, args ...any) error {
	return Problems{{pos, fmt.Sprintf(format, args...)}}
}

func document(file string, src []byte) (*yaml.Node, error) {
	at := Pos{File: file}
	if len(src) > SizeMax {
		return nil, fault(at, "the file is %d bytes long; at most %d are read", len(src), SizeMax)
	}
	if !utf8.Valid(src) {
		return nil, fault(invalidPos(file, src), "the file is not UTF-8 text")
	}
	dec := yaml.NewDecoder(bytes.NewReader(src))
	var doc, second yaml.Node
	switch err := decode(dec, &doc); {
	case errors.Is(err, io.EOF):
		return nil, fault(at, "the file is empty")
	case err != nil:
		return nil, syntax(file, err)
	}
	switch err := decode(dec, &second); {
	case err == nil:
		return nil, fault(Pos{file, second.Line, second.Column}, "a second document starts here; one file holds one definition")
	case !errors.Is(err, io.EOF):
		return nil, syntax(file, err)
	}
	if len(doc.Content) != 1 {
		return nil, fault(at, "the file is empty")
	}
	return doc.Content[0], nil
}

// decode keeps a panic of the YAML library, which raises its errors that way
// and has missed catching some, from reaching our caller.
func decode(dec *yaml.Decoder, n *yaml.Node) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: the text can't be parsed (%v)", r)
		}
	}()
	return dec.Decode(n)
}

var errorLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

func syntax(file string, err error) error {
	m := errorLine.FindStringSubmatch(strings.ReplaceAll(err.Error(), "\n", " "))
	if m == nil {
		return fault(Pos{File: file}, "%v", err)
	}
	line, _ := strconv.Atoi(m[1])
	return fault(Pos{File: file, Line: line}, "this is not valid YAML: %s", m[2])
}

func invalidPos(file string, src []byte) Pos {
	for i := 0; i < len(src); {
		r, n := utf8.DecodeRune(src[i:])
		if r == utf8.RuneError && n <= 1 {
			before := src[:i]
			return Pos{file, 1 + bytes.Count(before, []byte("\n")), 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])}
		}
		i += n
	}
	return Pos{File: file}
}

// builder turns the library's tree into ours and refuses what Parse refuses.
type builder struct {
	file     string
	lines    [][]byte
	nodes    int
	open     map[*yaml.Node]bool // containers being built: an alias to one is a cycle
	problems Problems
	full     bool
}

func (b *builder) pos(y *yaml.Node) Pos { return Pos{b.file, y.Line, y.Column} }

func (b *builder) node(y *yaml.Node, depth int) *Node {
	n := &Node{Pos: b.pos(y), lines: b.lines}
	tooDeep := depth >= DepthMax && (y.Kind == yaml.MappingNode || y.Kind == yaml.SequenceNode)
	if b.nodes++; b.nodes > NodesMax || tooDeep {
		b.overflow(n.Pos, tooDeep)
		return n
	}
	if y.Kind == yaml.AliasNode {
		if b.open[y.Alias] {
			b.problems.Add(n.Pos, "the alias *%s stands inside what it names", y.Value)
			return n
		}
		return b.node(y.Alias, depth)
	}
	if y.Style&yaml.TaggedStyle != 0 {
		b.problems.Add(n.Pos, "tags such as %s are not used here; write the plain value", y.Tag)
		return n
	}
	b.open[y] = true
	defer delete(b.open, y)
	switch y.Kind {
	case yaml.MappingNode:
		n.Kind = KindMap
		b.mapping(n, y, depth)
	case yaml.SequenceNode:
		n.Kind = KindSeq
		for _, item := range y.Content {
			if b.full {
				return n
			}
			n.items = append(n.items, b.node(item, depth+1))
		}
	default:
		n.value, n.tag, n.style = y.Value, y.ShortTag(), y.Style
	}
	return n
}

func (b *builder) overflow(pos Pos, tooDeep bool) {
	if b.full {
		return
	}
	b.full = true
	if tooDeep {
		b.problems.Add(pos, "values nest deeper than %d levels", DepthMax)
		return
	}
	b.problems.Add(pos, "the file holds more than %d values, counting what aliases repeat", NodesMax)
}

func (b *builder) mapping(n *Node, y *yaml.Node, depth int) {
	n.byKey = make(map[string]int, len(y.Content)/2)
	for i := 0; i+1 < len(y.Content) && !b.full; i += 2 {
		k := y.Content[i]
		if b.refusedKey(k) {
			continue
		}
		if first, ok := n.byKey[k.Value]; ok {
			b.problems.Add(b.pos(k), "duplicate key %q: it is already at line %d, column %d", k.Value, n.keys[first].pos.Line, n.keys[first].pos.Col)
			continue
		}
		n.byKey[k.Value] = len(n.keys)
		n.keys = append(n.keys, key{k.Value, b.pos(k)})
		n.items = append(n.items, b.node(y.Content[i+1], depth+1))
	}
}

func (b *builder) refusedKey(k *yaml.Node) bool {
	switch {
	case k.Kind != yaml.ScalarNode:
		b.problems.Add(b.pos(k), "a key must be plain text, not a list, a mapping or an alias")
	case k.Style&yaml.TaggedStyle != 0:
		b.problems.Add(b.pos(k), "tags such as %s are not used here; write the plain key", k.Tag)
	case k.ShortTag() == "!!merge":
		b.problems.Add(b.pos(k), "merge keys (<<) are not used here; write the keys out, so that everyone sees what applies")
	case k.ShortTag() != "!!str" && k.ShortTag() != "!!timestamp":
		b.problems.Add(b.pos(k), "the key %s is not text to YAML; write %q in quotes", k.Value, k.Value)
	default:
		return false
	}
	return true
}
