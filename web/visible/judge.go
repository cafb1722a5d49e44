package visible

import (
	"unicode"
	"unicode/utf8"
)

// verdict is what is wrong with showing a character as it is.
type verdict int

const (
	fine verdict = iota
	direction
	invisible
	control
	invalid
	unassigned
	stacked
	verdicts // how many there are
)

type marks [verdicts]bool

var sentence = [verdicts]string{
	direction:  "contains characters that change the reading direction",
	invisible:  "contains invisible characters",
	control:    "contains control characters",
	invalid:    "contains bytes that are not text",
	unassigned: "contains characters that have no agreed meaning",
	stacked:    "contains stacked marks that cover other text",
}

func (m marks) sentences() []string {
	var out []string
	for v, found := range m {
		if found {
			out = append(out, sentence[v])
		}
	}
	return out
}

// bidi are the characters of Unicode's bidirectional controls (UAX 9).
var bidi = &unicode.RangeTable{R16: []unicode.Range16{
	{Lo: 0x061C, Hi: 0x061C, Stride: 1}, {Lo: 0x200E, Hi: 0x200F, Stride: 1},
	{Lo: 0x202A, Hi: 0x202E, Stride: 1}, {Lo: 0x2066, Hi: 0x2069, Stride: 1},
}, LatinOffset: 0}

// blank are characters that show nothing though their category says they do,
// and spaces that are not the space. The ideographic space stays: it is what
// Chinese and Japanese texts use.
var blank = &unicode.RangeTable{R16: []unicode.Range16{
	{Lo: 0x00A0, Hi: 0x00A0, Stride: 1}, {Lo: 0x034F, Hi: 0x034F, Stride: 1}, {Lo: 0x115F, Hi: 0x1160, Stride: 1},
	{Lo: 0x1680, Hi: 0x1680, Stride: 1}, {Lo: 0x17B4, Hi: 0x17B5, Stride: 1}, {Lo: 0x180B, Hi: 0x180F, Stride: 1},
	{Lo: 0x2000, Hi: 0x200A, Stride: 1}, {Lo: 0x2028, Hi: 0x2029, Stride: 1}, {Lo: 0x202F, Hi: 0x202F, Stride: 1},
	{Lo: 0x205F, Hi: 0x205F, Stride: 1}, {Lo: 0x2800, Hi: 0x2800, Stride: 1}, {Lo: 0x3164, Hi: 0x3164, Stride: 1},
	{Lo: 0xFE00, Hi: 0xFE0F, Stride: 1}, {Lo: 0xFFA0, Hi: 0xFFA0, Stride: 1},
}, R32: []unicode.Range32{{Lo: 0xE0100, Hi: 0xE01EF, Stride: 1}}, LatinOffset: 0}

// marksMax is how many combining marks may stand on one character; languages
// need up to three.
const marksMax = 3

// context remembers what stood before, for characters that are harmless only
// in company.
type context struct {
	symbol bool // the last visible character was a pictograph
	marks  int  // combining marks since the last base character
}

func (c *context) judge(r rune, size int) verdict {
	if r == utf8.RuneError && size == 1 {
		return invalid
	}
	if c.symbol && (r == 0xFE0F || r == 0x200D) {
		return fine // one picture made of several
	}
	if unicode.Is(unicode.Mn, r) && !unicode.Is(blank, r) {
		if c.marks++; c.marks > marksMax {
			return stacked
		}
		return fine
	}
	c.marks = 0
	c.symbol = unicode.Is(unicode.So, r) || unicode.Is(unicode.Sk, r) && r > 0xFFFF
	return alone(r)
}

func alone(r rune) verdict {
	switch {
	case r == '\n' || r == '\t' || r == ' ' || r == 0x3000:
		return fine
	case unicode.Is(bidi, r):
		return direction
	case unicode.Is(unicode.Cc, r):
		return control
	case unicode.Is(unicode.Cf, r) || unicode.Is(blank, r):
		return invisible
	case unicode.Is(unicode.Co, r) || !assigned(r):
		return unassigned
	}
	return fine
}

func assigned(r rune) bool {
	return unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z)
}
