// Package visible makes text that somebody else wrote safe to read. It splits
// a string into what may be shown as it is and what must be shown as an
// escape such as ⟦U+202E⟧, and says what a reader could be deceived by:
// reading direction, invisible and control characters, words of several
// scripts, look-alike hosts, names in front of a host.
//
// It guarantees that nothing is left out or reordered: the runs in order are
// the string, every rune once. It is pure, and must not know HTML or where a
// string came from.
package visible

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Run is a stretch of text. Text of an escape names the character and stands
// for Raw; otherwise Text and Raw are equal.
type Run struct {
	Text   string
	Raw    string
	Escape bool
}

// Text is an inspected string.
type Text struct {
	Runs     []Run
	Warnings []string // sentences without a full stop, each at most once
	Hosts    []Host   // hosts of the addresses in it that a reader should see apart
	Chars    int      // characters (runes)
	Lines    int      // at least 1
	Long     bool     // more than a reader takes in at a glance: fold it
	Head     string   // with Long: how it begins, escapes written out
	Tail     string   // with Long: how it ends
}

// Limits beyond which a value is folded, and what is shown of it then.
const (
	LongChars = 320
	LongLines = 6
	glimpse   = 72 // characters of Head and Tail
)

// Inspect splits s and says what is suspicious about it. It takes time and
// memory linear in the length of s.
func Inspect(s string) Text {
	t := Text{Lines: 1 + strings.Count(strings.TrimSuffix(s, "\n"), "\n")}
	var found marks
	var plain, escaped strings.Builder // the run that is being collected; at most one is not empty
	raw := 0                           // where it began
	flush := func(to int) {
		if plain.Len() > 0 {
			t.Runs = append(t.Runs, Run{Text: plain.String(), Raw: s[raw:to]})
		} else if escaped.Len() > 0 {
			t.Runs = append(t.Runs, Run{Text: escaped.String(), Raw: s[raw:to], Escape: true})
		}
		plain.Reset()
		escaped.Reset()
		raw = to
	}
	c := context{}
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		t.Chars++
		if kind := c.judge(r, size); kind == fine {
			if escaped.Len() > 0 {
				flush(i)
			}
			plain.WriteString(s[i : i+size])
		} else {
			if plain.Len() > 0 {
				flush(i)
			}
			found[kind] = true
			escaped.WriteString(escape(r, s[i:i+size]))
		}
		i += size
	}
	flush(len(s))
	t.Warnings = found.sentences()
	t.Warnings = append(t.Warnings, edges(s)...)
	t.Warnings = append(t.Warnings, mixtures(s)...)
	t.Hosts = hosts(s)
	t.fold()
	return t
}

// String is the text with its escapes written out, on one line per line.
func (t Text) String() string {
	var b strings.Builder
	for _, r := range t.Runs {
		b.WriteString(r.Text)
	}
	return b.String()
}

// Size says how much there is, for the mark of a folded value: "4,312
// characters, 3 lines".
func (t Text) Size() string {
	size := Count(t.Chars) + " characters"
	if t.Chars == 1 {
		size = "1 character"
	}
	if t.Lines > 1 {
		size += ", " + Count(t.Lines) + " lines"
	}
	return size
}

func (t *Text) fold() {
	t.Long = t.Chars > LongChars || t.Lines > LongLines
	if !t.Long {
		return
	}
	all := []rune(strings.Join(strings.Fields(t.String()), " "))
	n := min(glimpse, len(all))
	t.Head, t.Tail = string(all[:n]), string(all[len(all)-n:])
}

// Count writes n with a comma between groups of three digits.
func Count(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// escape names a character. Bytes that are no UTF-8 are named one by one.
func escape(r rune, raw string) string {
	if r == utf8.RuneError && len(raw) == 1 {
		return fmt.Sprintf("⟦byte %02X⟧", raw[0])
	}
	return fmt.Sprintf("⟦U+%04X⟧", r)
}

// edges warns of spaces that nobody sees.
func edges(s string) []string {
	inner := strings.TrimSuffix(s, "\n") // a text file ends with a line break
	switch front, back := inner != strings.TrimLeftFunc(inner, unicode.IsSpace), inner != strings.TrimRightFunc(inner, unicode.IsSpace); {
	case strings.TrimSpace(inner) == "" && inner != "":
		return []string{"consists of white space only"}
	case front && back:
		return []string{"begins and ends with white space"}
	case front:
		return []string{"begins with white space"}
	case back:
		return []string{"ends with white space"}
	}
	return nil
}
