package strictyaml

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"countersign/internal/canon"
	"countersign/internal/problem"
)

// String returns a scalar as it is written: no, 1.10 and 00501 stay what they
// are. Nothing, ~ and null are reported, since they are rarely meant as text.
func (n *Node) String(p *Problems) string {
	switch {
	case n == nil:
		return ""
	case n.Kind != KindScalar:
		p.Add(n.Pos, "expected text, got %s", n.describe())
		return ""
	case n.tag == "!!null":
		p.Add(n.Pos, `expected text, got %s; write "" for empty text`, n.describe())
		return ""
	}
	return n.value
}

// Int returns a decimal integer, written plainly: 3, not "3", 0x3, 03 or 3.0.
func (n *Node) Int(p *Problems) int {
	if n == nil {
		return 0
	}
	digits := strings.TrimPrefix(n.value, "-")
	i, err := strconv.Atoi(n.value)
	if n.Kind != KindScalar || err != nil || n.quoted() || digits[0] == '+' || digits[0] == '0' && n.value != "0" {
		p.Add(n.Pos, "expected a whole number such as 3, got %s", n.describe())
		return 0
	}
	return i
}

// Bool returns true or false, written plainly. yes, no, on, off and other
// spellings are reported.
func (n *Node) Bool(p *Problems) bool {
	if n == nil {
		return false
	}
	if n.Kind == KindScalar && !n.quoted() {
		switch n.value {
		case "true":
			return true
		case "false":
			return false
		}
		switch strings.ToLower(n.value) {
		case "yes", "on", "y", "true":
			p.Add(n.Pos, "expected true or false, got %s; write true", n.value)
			return false
		case "no", "off", "n", "false":
			p.Add(n.Pos, "expected true or false, got %s; write false", n.value)
			return false
		}
	}
	p.Add(n.Pos, "expected true or false, got %s", n.describe())
	return false
}

// Duration returns a length of time; see ParseDuration. A number without a unit
// is reported, in quotes or not.
func (n *Node) Duration(p *Problems) time.Duration {
	if n == nil {
		return 0
	}
	if n.Kind != KindScalar || n.value == "" {
		p.Add(n.Pos, "expected a duration such as 90m or 3d, got %s", n.describe())
		return 0
	}
	d, err := ParseDuration(n.value)
	if err != nil {
		p.Add(n.Pos, "%v", err)
	}
	return d
}

// JSON returns the plain JSON value of the node: nil, bool, float64, string,
// []any or map[string]any. Quoted and block scalars are strings. Of plain
// scalars, true, false, null and numbers in JSON's own grammar (that canon
// accepts) are what JSON says; whatever else YAML would convert (0644, 00501,
// 0x1F, 1_000, .inf, +1, True, ~, nothing) is reported with advice. All the rest
// is text as written: no, off, 1.2.3, and dates.
func (n *Node) JSON(p *Problems) any {
	if n == nil {
		return nil
	}
	switch n.Kind {
	case KindMap:
		m := make(map[string]any, len(n.keys))
		for i, k := range n.keys {
			m[k.name] = n.items[i].JSON(p)
		}
		return m
	case KindSeq:
		s := make([]any, len(n.items))
		for i, item := range n.items {
			s[i] = item.JSON(p)
		}
		return s
	}
	return n.scalarJSON(p)
}

// jsonNumber is the grammar of RFC 8259; YAML takes some of it for text (1e400).
var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

func (n *Node) scalarJSON(p *Problems) any {
	if !n.quoted() && jsonNumber.MatchString(n.value) {
		return n.number(p)
	}
	if n.quoted() || n.tag == "!!str" || n.tag == "!!timestamp" {
		return n.value
	}
	switch n.value {
	case "true":
		return true
	case "false":
		return false
	case "null":
		return nil
	case "":
		p.Add(n.Pos, `there is no value here; write null, "" or a value`)
		return nil
	}
	switch n.tag {
	case "!!bool":
		p.Add(n.Pos, "write %s, or %q in quotes to keep it as text", strings.ToLower(n.value), n.value)
	case "!!null":
		p.Add(n.Pos, "write null, or %q in quotes to keep it as text", n.value)
	case "!!merge":
		p.Add(n.Pos, "write %q in quotes to keep it as text", n.value)
	default:
		return n.number(p)
	}
	return nil
}

func (n *Node) number(p *Problems) any {
	v, err := canon.Value([]byte(n.value))
	if f, ok := v.(float64); err == nil && ok {
		return f
	}
	if bad, ok := errors.AsType[*problem.Error](err); ok && bad.Kind == problem.Invalid {
		p.Add(n.Pos, "the number %s", bad.Fields[0].Message)
		return nil
	}
	p.Add(n.Pos, "%s is not a number in JSON; write it in quotes (%q) to keep it as text, or as a plain decimal number", clip(n.value), clip(n.value))
	return nil
}

// ParseDuration reads Go's duration syntax with two more units: d is 24 hours
// and w is 7 days, both whole days of UTC with no calendar in them (1w2d12h).
// Negative durations and numbers without a unit are errors.
func ParseDuration(s string) (time.Duration, error) {
	rest, total := s, time.Duration(0)
	for rest != "" {
		end := strings.IndexFunc(rest, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
		if end <= 0 {
			return 0, badDuration(s)
		}
		unitEnd := end + 1
		for unitEnd < len(rest) && (rest[unitEnd] < '0' || rest[unitEnd] > '9') && rest[unitEnd] != '.' {
			unitEnd++
		}
		part, err := durationPart(rest[:end], rest[end:unitEnd])
		if err != nil || total > total+part {
			return 0, badDuration(s)
		}
		total += part
		rest = rest[unitEnd:]
	}
	if s == "" {
		return 0, badDuration(s)
	}
	return total, nil
}

func durationPart(number, unit string) (time.Duration, error) {
	times := time.Duration(1)
	switch unit {
	case "d":
		unit, times = "h", 24
	case "w":
		unit, times = "h", 7*24
	}
	d, err := time.ParseDuration(number + unit)
	if err != nil {
		return 0, err
	}
	if d > (1<<63-1)/times {
		return 0, errors.New("too long")
	}
	return d * times, nil
}

func badDuration(s string) error {
	if strings.Trim(s, "0123456789.") == "" && s != "" {
		return fmt.Errorf("the duration %s has no unit; write one of s, m, h, d or w after it, such as %ss", clip(s), clip(s))
	}
	if strings.HasPrefix(s, "-") {
		return fmt.Errorf("the duration %s is negative", clip(s))
	}
	return fmt.Errorf("%q is not a duration; write one such as 30s, 90m, 1.5h, 3d or 1w", clip(s))
}
