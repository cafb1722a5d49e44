package tools

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"countersign/internal/canon"
)

// masked replaces a secret wherever it is echoed.
const masked = "***"

// secretBytesMin is the shortest secret: a shorter one could not be masked
// without masking ordinary text too.
const secretBytesMin = 4

// mask knows the secrets of one sending, in every form they may come back in.
type mask struct {
	needles [][]byte
	alone   []string // sensitive values, hidden where they are the whole of a text or number, or a word
}

func (m *mask) add(secret string) {
	forms := []string{secret, url.QueryEscape(secret), url.PathEscape(secret), strings.ReplaceAll(url.QueryEscape(secret), "+", "%20")}
	if quoted, err := json.Marshal(secret); err == nil {
		forms = append(forms, string(quoted[1:len(quoted)-1]))
	}
	var plain bytes.Buffer
	enc := json.NewEncoder(&plain)
	enc.SetEscapeHTML(false)
	if enc.Encode(secret) == nil {
		forms = append(forms, strings.TrimSuffix(plain.String(), "\n")[1:plain.Len()-2])
	}
	for _, f := range forms {
		if !slices.ContainsFunc(m.needles, func(n []byte) bool { return string(n) == f }) {
			m.needles = append(m.needles, []byte(f))
		}
	}
	slices.SortFunc(m.needles, func(a, b []byte) int { return len(b) - len(a) })
}

// bytes returns b with every secret replaced. With cut, a secret whose
// beginning is at the very end of b is replaced too.
func (m *mask) bytes(b []byte, cut bool) []byte {
	for _, n := range m.needles {
		b = bytes.ReplaceAll(b, n, []byte(masked))
	}
	if !cut {
		return b
	}
	for _, n := range m.needles {
		for k := min(len(n)-1, len(b)); k >= secretBytesMin; k-- {
			if bytes.HasSuffix(b, n[:k]) {
				return append(slices.Clone(b[:len(b)-k]), masked...)
			}
		}
	}
	return b
}

func (m *mask) text(s string) string { return m.words(string(m.bytes([]byte(s), false))) }

// words replaces what is too short to be hidden inside of others where no letter
// or digit is beside it.
func (m *mask) words(s string) string {
	for _, short := range m.alone {
		if len(short) < secretBytesMin {
			s = replaceWord(s, short)
		}
	}
	return s
}

func replaceWord(s, word string) string {
	var b strings.Builder
	for rest, before := s, rune(0); ; {
		i := strings.Index(rest, word)
		if i < 0 {
			b.WriteString(rest)
			return b.String()
		}
		if r, n := utf8.DecodeLastRuneInString(rest[:i]); n > 0 {
			before = r
		}
		after, _ := utf8.DecodeRuneInString(rest[i+len(word):])
		b.WriteString(rest[:i])
		if inWord(before) || inWord(after) {
			b.WriteString(word)
		} else {
			b.WriteString(masked)
		}
		before, _ = utf8.DecodeLastRuneInString(word)
		rest = rest[i+len(word):]
	}
}

func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// value masks every string of a decoded JSON value.
func (m *mask) value(v any) any {
	if len(m.needles) == 0 && len(m.alone) == 0 {
		return v
	}
	switch v := v.(type) {
	case string:
		if slices.Contains(m.alone, v) {
			return masked
		}
		return m.text(v)
	case float64:
		if slices.Contains(m.alone, canon.Number(v)) {
			return masked
		}
	case []any:
		for i, x := range v {
			v[i] = m.value(x)
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[m.text(k)] = m.value(x)
		}
		return out
	}
	return v
}
