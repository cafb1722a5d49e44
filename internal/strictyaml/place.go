package strictyaml

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// At is the place in the file of a byte offset inside the scalar's text, so
// that a fault inside an expression can be pointed at. It is exact for plain
// and quoted scalars on one line without escapes and for block scalars;
// otherwise it is the start of the scalar. A negative offset is the start.
func (n *Node) At(offset int) Pos {
	switch {
	case n == nil:
		return Pos{}
	case n.Kind != KindScalar || offset < 0 || offset > len(n.value):
		return n.Pos
	case n.style&yaml.LiteralStyle != 0:
		return n.inBlock(offset)
	case n.style&yaml.FoldedStyle != 0:
		return n.Pos
	}
	return n.onLine(offset)
}

func (n *Node) onLine(offset int) Pos {
	start := n.Pos.Col - 1
	if n.quoted() {
		start++
	}
	line := n.line(n.Pos.Line)
	if !strings.HasPrefix(tail(line, start), n.value) {
		return n.Pos // folded over lines, or with escapes
	}
	return Pos{n.Pos.File, n.Pos.Line, start + 1 + utf8.RuneCountInString(n.value[:offset])}
}

// inBlock finds the line of a literal block: its text starts on the line after
// the indicator, each line indented alike.
func (n *Node) inBlock(offset int) Pos {
	before := n.value[:offset]
	number := n.Pos.Line + 1 + strings.Count(before, "\n")
	inLine := before[strings.LastIndexByte(before, '\n')+1:]
	text, _, _ := strings.Cut(n.value[offset-len(inLine):], "\n")
	line := n.line(number)
	if !bytes.HasSuffix(bytes.TrimRight(line, "\r"), []byte(text)) {
		return n.Pos
	}
	indent := utf8.RuneCount(bytes.TrimRight(line, "\r")) - utf8.RuneCountInString(text)
	return Pos{n.Pos.File, number, indent + 1 + utf8.RuneCountInString(inLine)}
}

func (n *Node) line(number int) []byte {
	if number < 1 || number > len(n.lines) {
		return nil
	}
	return n.lines[number-1]
}

// tail is the line from a column of characters on.
func tail(line []byte, col int) string {
	s := string(line)
	for ; col > 0 && s != ""; col-- {
		_, n := utf8.DecodeRuneInString(s)
		s = s[n:]
	}
	return s
}
