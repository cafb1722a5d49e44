// Package expr is the expression language of definitions: CEL inside ${ }.
//
// It guarantees that expressions are checked when a definition is loaded, that
// they are pure (no clock, no randomness, no environment), bounded in size and
// cost, that values are plain JSON on both sides, and that what an expression
// returns is data and never evaluated again. It must not know what the names
// stand for.
//
// JSON numbers are doubles. A whole number written in an expression, and what
// size() and int() give, is a CEL int; the two compare by value and mix in
// arithmetic, which then gives a double. Two ints divide to an int, as in CEL.
// string() and joined text write numbers in the RFC 8785 form. decimal("12.50")
// is an exact decimal that compares with decimals and numbers.
package expr

import (
	"fmt"
	"slices"
	"strings"

	"countersign/internal/problem"
)

// The limits of expressions.
const (
	SourceMax     = 4096      // characters of one expression
	TextMax       = 256 << 10 // bytes of one template string
	NodesMax      = 1000      // nodes of one expression, macros expanded
	NestingMax    = 50        // depth of one expression
	CostMax       = 1_000_000 // CEL cost units of one evaluation
	ResultMax     = 4 << 20   // bytes of one result, about: its strings and 8 for anything else
	DepthMax      = 64        // nesting of a template and of a result
	MembersMax    = 10_000    // values in a template
	interruptEach = 100       // loop turns between looks at the context
)

// Names are the variables a place knows. The zero Names knows none.
type Names struct {
	sorted []string
	secret bool
}

// Vars makes Names. The name "secret" is special: it is no variable, but allows
// the part ${secret.NAME} in CompileText.
func Vars(names ...string) Names {
	n := Names{sorted: slices.Clone(names)}
	slices.Sort(n.sorted)
	n.sorted = slices.Compact(n.sorted)
	if i, ok := slices.BinarySearch(n.sorted, "secret"); ok {
		n.sorted, n.secret = slices.Delete(n.sorted, i, i+1), true
	}
	return n
}

func (n Names) has(name string) bool {
	_, ok := slices.BinarySearch(n.sorted, name)
	return ok
}

// Error is one fault found when compiling.
type Error struct {
	Pointer string // JSON Pointer to the string inside the value; "" for a lone text
	Offset  int    // bytes into that string
	Message string
}

// Error is the message.
func (e *Error) Error() string {
	if e.Pointer != "" {
		return e.Pointer + ": " + e.Message
	}
	return e.Message
}

// Errors are all faults of one value; every Compile function returns them.
type Errors []*Error

// Error joins the messages.
func (e Errors) Error() string {
	all := make([]string, len(e))
	for i, x := range e {
		all[i] = x.Error()
	}
	return strings.Join(all, "; ")
}

// err is nil for no faults, where a typed nil would not be.
func (e Errors) err() error {
	if len(e) == 0 {
		return nil
	}
	return e
}

// shift moves faults to a place inside a larger string.
func (e Errors) shift(offset int) Errors {
	for _, x := range e {
		x.Offset += offset
	}
	return e
}

// failed is a run-time fault of an expression: a problem Invalid with the code
// "expression".
func failed(source, format string, args ...any) *problem.Error {
	what := fmt.Sprintf(format, args...)
	return problem.New(problem.Invalid, "expression", "The expression %s can't be evaluated: %s.", clip(source), what).With("expression", source)
}

func clip(s string) string {
	const most = 80
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
