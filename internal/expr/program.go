package expr

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"

	"countersign/internal/problem"
)

// program is one compiled expression; it is safe for concurrent use.
type program struct {
	source  string
	tree    ast.Expr
	run     cel.Program
	members map[string]map[string]bool // root name → members named statically
}

// compile checks one expression. Offsets of faults are bytes into source.
func compile(source string, names Names) (*program, Errors) {
	if strings.TrimSpace(source) == "" {
		return nil, Errors{{Message: "the expression is empty"}}
	}
	if n := utf8.RuneCountInString(source); n > SourceMax {
		return nil, Errors{{Message: fmt.Sprintf("the expression has %d characters; at most %d are allowed", n, SourceMax)}}
	}
	if !utf8.ValidString(source) {
		return nil, Errors{{Message: "the expression is not UTF-8 text"}}
	}
	env, err := environment(names)
	if err != nil {
		return nil, Errors{{Message: err.Error()}}
	}
	parsed, issues := env.Parse(source)
	if issues.Err() != nil {
		return nil, faults(source, issues)
	}
	w := walker{source: source, names: names, env: env, info: parsed.NativeRep().SourceInfo(), members: map[string]map[string]bool{}}
	w.walk(parsed.NativeRep().Expr(), nil)
	if len(w.errors) > 0 {
		return nil, w.errors
	}
	checked, issues := env.Check(parsed)
	if issues.Err() != nil {
		return nil, faults(source, issues)
	}
	run, err := env.Program(checked, cel.CostLimit(CostMax), cel.CostTracking(cost{}), cel.InterruptCheckFrequency(interruptEach))
	if err != nil {
		return nil, Errors{{Message: err.Error()}}
	}
	return &program{source: source, tree: parsed.NativeRep().Expr(), run: run, members: w.members}, nil
}

// faults turns CEL's issues into ours, the first of each place.
func faults(source string, issues *cel.Issues) Errors {
	var all Errors
	for _, e := range issues.Errors() {
		offset := byteOffset(source, e.Location.Line(), e.Location.Column())
		if slices.ContainsFunc(all, func(x *Error) bool { return x.Offset == offset }) {
			continue
		}
		all = append(all, &Error{Offset: offset, Message: plain(e.Message)})
	}
	return all
}

// plain shortens the messages of the parser, whose lists of what it would have
// accepted help nobody.
func plain(message string) string {
	message, syntax := strings.CutPrefix(message, "Syntax error: ")
	if i := strings.Index(message, " expecting "); i > 0 {
		message = message[:i]
	}
	if strings.Contains(message, "<EOF>") {
		return "the expression ends too early"
	}
	message = strings.ReplaceAll(message, " (in container '')", "")
	if what, ok := strings.CutPrefix(message, "found no matching overload for "); ok {
		message = "these kinds of values can't go together: " + what
	}
	if syntax {
		return "this is not an expression: " + message
	}
	return message
}

// byteOffset is the place of a line (from 1) and a column (characters, from 0).
func byteOffset(source string, line, col int) int {
	at := 0
	for ; line > 1; line-- {
		i := strings.IndexByte(source[at:], '\n')
		if i < 0 {
			break
		}
		at += i + 1
	}
	for ; col > 0 && at < len(source); col-- {
		_, n := utf8.DecodeRuneInString(source[at:])
		at += n
	}
	return at
}

// eval runs the expression and returns a new plain JSON value.
func (p *program) eval(ctx context.Context, vars map[string]any) (any, error) {
	if vars == nil {
		vars = map[string]any{}
	}
	val, _, err := p.run.ContextEval(ctx, vars)
	if err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("evaluate %s: %w", clip(p.source), ctx.Err())
		}
		return nil, p.explain(err, vars)
	}
	left := ResultMax
	out, err := native(val, 0, &left)
	if err != nil {
		return nil, failed(p.source, "%v", err)
	}
	return out, nil
}

// explain names the path that is missing, which CEL does not.
func (p *program) explain(err error, vars map[string]any) *problem.Error {
	message := err.Error()
	switch {
	case strings.Contains(message, "actual cost limit exceeded"):
		return failed(p.source, "it costs more than the limit of %d", CostMax).Because(err)
	case strings.Contains(message, "no such key") || strings.Contains(message, "no such overload") || strings.Contains(message, "no such attribute") || strings.Contains(message, "index out of bounds"):
		if found := missing(p.tree, vars, nil); found != "" {
			return failed(p.source, "%s", found).Because(err)
		}
	}
	return failed(p.source, "%s", strings.TrimSuffix(message, ".")).Because(errors.Unwrap(err))
}

func (p *program) list(root string) []string {
	return slices.Sorted(maps.Keys(p.members[root]))
}
