package expr

import (
	"slices"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// Compared lists the texts, sorted, that the expression compares the variable
// with: by == and !=, or as members of a list by `in`. A text that no value of
// the variable can have is most often a misspelling.
func (e *Expr) Compared(variable string) []string {
	var texts []string
	is := func(x ast.Expr) bool { return x.Kind() == ast.IdentKind && x.AsIdent() == variable }
	ast.PreOrderVisit(e.program.tree, ast.NewExprVisitor(func(x ast.Expr) {
		if x.Kind() != ast.CallKind {
			return
		}
		args := x.AsCall().Args()
		switch x.AsCall().FunctionName() {
		case operators.Equals, operators.NotEquals:
			if is(args[0]) {
				texts = append(texts, literals(args[1])...)
			} else if is(args[1]) {
				texts = append(texts, literals(args[0])...)
			}
		case operators.In:
			if is(args[0]) && args[1].Kind() == ast.ListKind {
				texts = append(texts, literals(args[1].AsList().Elements()...)...)
			}
		}
	}))
	slices.Sort(texts)
	return slices.Compact(texts)
}

// literals are the expressions that are texts as they stand.
func literals(all ...ast.Expr) (texts []string) {
	for _, x := range all {
		if x.Kind() != ast.LiteralKind {
			continue
		}
		if s, ok := x.AsLiteral().(types.String); ok {
			texts = append(texts, string(s))
		}
	}
	return texts
}
