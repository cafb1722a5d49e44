package expr

import (
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"countersign/internal/nearest"
)

// walker checks the names of a parsed expression and collects the members of
// roots that it names statically.
type walker struct {
	source  string
	names   Names
	env     *cel.Env
	info    *ast.SourceInfo
	members map[string]map[string]bool
	errors  Errors
}

func (w *walker) fault(e ast.Expr, format string, args ...any) {
	at := w.info.GetStartLocation(e.ID())
	w.errors = append(w.errors, &Error{Offset: byteOffset(w.source, at.Line(), at.Column()), Message: fmt.Sprintf(format, args...)})
}

// walk visits e with the loop variables bound.
func (w *walker) walk(e ast.Expr, bound []string) {
	if root, member, ok := selected(e); ok && !slices.Contains(bound, root) && w.names.has(root) {
		w.member(root, member)
		return
	}
	switch e.Kind() {
	case ast.IdentKind:
		w.ident(e, bound)
	case ast.SelectKind:
		w.walk(e.AsSelect().Operand(), bound)
	case ast.CallKind:
		w.call(e, bound)
	case ast.ListKind:
		for _, x := range e.AsList().Elements() {
			w.walk(x, bound)
		}
	case ast.MapKind:
		for _, x := range e.AsMap().Entries() {
			w.walk(x.AsMapEntry().Key(), bound)
			w.walk(x.AsMapEntry().Value(), bound)
		}
	case ast.StructKind:
		w.fault(e, "a value can't be built this way; write {'key': value}")
	case ast.ComprehensionKind:
		w.loop(e, bound)
	}
}

// selected recognizes root.member and root["member"].
func selected(e ast.Expr) (root, member string, ok bool) {
	switch e.Kind() {
	case ast.SelectKind:
		if s := e.AsSelect(); s.Operand().Kind() == ast.IdentKind {
			return s.Operand().AsIdent(), s.FieldName(), true
		}
	case ast.CallKind:
		c := e.AsCall()
		if c.FunctionName() != operators.Index || len(c.Args()) != 2 || c.Args()[0].Kind() != ast.IdentKind || c.Args()[1].Kind() != ast.LiteralKind {
			return "", "", false
		}
		if s, isText := c.Args()[1].AsLiteral().(types.String); isText {
			return c.Args()[0].AsIdent(), string(s), true
		}
	}
	return "", "", false
}

func (w *walker) member(root, member string) {
	if w.members[root] == nil {
		w.members[root] = map[string]bool{}
	}
	w.members[root][member] = true
}

func (w *walker) ident(e ast.Expr, bound []string) {
	name := e.AsIdent()
	switch {
	case slices.Contains(bound, name) || strings.HasPrefix(name, "@") || strings.HasPrefix(name, "__"):
	case name == "secret" && w.names.secret:
		w.fault(e, "a secret stands alone, as ${secret.NAME}; it can't be part of an expression")
	case name == "secret" || name == "secrets":
		w.fault(e, "secrets are not known here; only a tool's request may name one, as ${secret.NAME}")
	case name == "steps" && w.names.has(name):
		w.fault(e, "name the step: steps.ID or steps[\"ID\"]; only the outputs that are named are loaded")
	case !w.names.has(name):
		w.unknown(e, "name", name, w.names.sorted)
	}
}

func (w *walker) unknown(e ast.Expr, what, name string, known []string) {
	if near := nearest.Word(name, known); near != "" {
		w.fault(e, "unknown %s %q; did you mean %q?", what, clip(name), near)
		return
	}
	if len(known) == 0 {
		w.fault(e, "unknown %s %q; none is known here", what, clip(name))
		return
	}
	w.fault(e, "unknown %s %q; known here: %s", what, clip(name), strings.Join(known, ", "))
}

func (w *walker) call(e ast.Expr, bound []string) {
	c := e.AsCall()
	if !w.env.HasFunction(c.FunctionName()) {
		var known []string
		for name := range w.env.Functions() {
			if name[0] != '_' && name[0] != '@' && name[0] != '!' && name[0] != '-' {
				known = append(known, name)
			}
		}
		slices.Sort(known)
		w.unknown(e, "function", c.FunctionName(), known)
	}
	if c.IsMemberFunction() {
		w.walk(c.Target(), bound)
	}
	for _, x := range c.Args() {
		w.walk(x, bound)
	}
}

func (w *walker) loop(e ast.Expr, bound []string) {
	c := e.AsComprehension()
	if w.names.has(c.IterVar()) {
		w.fault(e, "the loop variable %q is already a name here; choose another", c.IterVar())
		return
	}
	w.walk(c.IterRange(), bound)
	w.walk(c.AccuInit(), bound)
	inner := append(slices.Clone(bound), c.IterVar(), c.AccuVar())
	if c.HasIterVar2() {
		inner = append(inner, c.IterVar2())
	}
	w.walk(c.LoopCondition(), inner)
	w.walk(c.LoopStep(), inner)
	w.walk(c.Result(), inner)
}
