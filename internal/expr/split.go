package expr

import "strings"

// split cuts a template string into literals and expressions. An expression
// ends at the } that closes its ${, with braces and strings inside it counted
// as CEL counts them.
func split(s string) ([]Part, Errors) {
	var parts []Part
	var literal strings.Builder
	start := 0
	flush := func() {
		if literal.Len() > 0 {
			parts = append(parts, Part{Kind: Literal, Text: literal.String(), Offset: start})
			literal.Reset()
		}
	}
	for i := 0; i < len(s); {
		rest := s[i:]
		switch {
		case strings.HasPrefix(rest, "$${"):
			literal.WriteString("${")
			i += 3
		case strings.HasPrefix(rest, "${"):
			flush()
			end := closing(s, i+2)
			if end < 0 {
				return nil, Errors{{Offset: i, Message: "this ${ is not closed; write $${ for a literal ${"}}
			}
			parts = append(parts, Part{Kind: Expression, Text: s[i+2 : end], Offset: i + 2})
			i, start = end+1, end+1
		default:
			literal.WriteByte(s[i])
			i++
		}
	}
	flush()
	return parts, nil
}

// closing is the place of the } that ends the expression at i, or -1.
func closing(s string, i int) int {
	depth := 0
	for i < len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\'':
			i = stringEnd(s, i)
			continue
		case c == '/' && strings.HasPrefix(s[i:], "//"):
			end := strings.IndexByte(s[i:], '\n')
			if end < 0 {
				return -1
			}
			i += end
		case c == '{':
			depth++
		case c == '}' && depth == 0:
			return i
		case c == '}':
			depth--
		}
		i++
	}
	return -1
}

// stringEnd is the place after the CEL string literal that starts at i: single
// or triple quotes, raw when an r stands before them.
func stringEnd(s string, i int) int {
	raw := i > 0 && (s[i-1] == 'r' || s[i-1] == 'R') && (i < 2 || !wordByte(s[i-2]) || s[i-2] == 'b' || s[i-2] == 'B')
	quote := s[i : i+1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(s[i:], triple) {
		quote = triple
	}
	for i += len(quote); i < len(s); {
		switch {
		case s[i] == '\\' && !raw:
			i += 2
		case strings.HasPrefix(s[i:], quote):
			return i + len(quote)
		default:
			i++
		}
	}
	return len(s)
}

func wordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}
