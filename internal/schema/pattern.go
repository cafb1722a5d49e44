package schema

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
)

var (
	lookAround    = regexp.MustCompile(`\(\?<?[=!]`)
	backReference = regexp.MustCompile(`\\[1-9]|\\k<`)
	possessive    = regexp.MustCompile(`\(\?>|[+*?}]\+`)
)

// explainPattern says why a pattern that works in JavaScript may not work here.
func explainPattern(p string, err error) string {
	const why = "patterns are RE2, which always runs in linear time and leaves this out"
	switch {
	case lookAround.MatchString(p):
		return fmt.Sprintf("the pattern %s uses look-ahead or look-behind; %s. Use several patterns under allOf, or minLength", p, why)
	case backReference.MatchString(p):
		return fmt.Sprintf("the pattern %s refers back to a group; %s", p, why)
	case possessive.MatchString(p):
		return fmt.Sprintf("the pattern %s uses an atomic or possessive group; %s", p, why)
	}
	if bad, ok := errors.AsType[*syntax.Error](err); ok {
		return fmt.Sprintf("the pattern %s is not a regular expression (RE2): %s: %s", p, bad.Code, bad.Expr)
	}
	return fmt.Sprintf("the pattern %s is not a regular expression: %v", p, err)
}

// anchored reports whether a match must cover the whole text.
func anchored(p string) bool {
	re, err := syntax.Parse(p, syntax.Perl)
	return err == nil && begins(re) && ends(re)
}

func begins(re *syntax.Regexp) bool {
	return edge(re, syntax.OpBeginText, func(sub []*syntax.Regexp) *syntax.Regexp { return sub[0] })
}

func ends(re *syntax.Regexp) bool {
	return edge(re, syntax.OpEndText, func(sub []*syntax.Regexp) *syntax.Regexp { return sub[len(sub)-1] })
}

// edge follows the outermost part of a pattern on one side.
func edge(re *syntax.Regexp, op syntax.Op, outer func([]*syntax.Regexp) *syntax.Regexp) bool {
	switch re.Op {
	case op:
		return true
	case syntax.OpConcat, syntax.OpCapture:
		return edge(outer(re.Sub), op, outer)
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			if !edge(sub, op, outer) {
				return false
			}
		}
		return true
	}
	return false
}
