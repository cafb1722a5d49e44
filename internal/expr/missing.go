package expr

import (
	"encoding/json"
	"fmt"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"countersign/internal/canon"
)

// missing finds the first path in e that does not exist in vars and says what
// lacks: "steps.a.output.why: no such key". Paths through loop variables or
// calls are not followed; then it is "".
func missing(e ast.Expr, vars map[string]any, bound map[string]bool) string {
	if _, path, lack, ok := resolve(e, vars, bound); ok {
		if lack != "" {
			return path + ": " + lack
		}
		return ""
	}
	for _, x := range children(e) {
		if e.Kind() == ast.ComprehensionKind {
			bound = map[string]bool{e.AsComprehension().IterVar(): true, e.AsComprehension().AccuVar(): true}
		}
		if found := missing(x, vars, bound); found != "" {
			return found
		}
	}
	return ""
}

// resolve follows a path of names, fields and constant indexes; ok is false for
// anything else. has(x.y) is a path to x only.
func resolve(e ast.Expr, vars map[string]any, bound map[string]bool) (v any, path, lack string, ok bool) {
	switch e.Kind() {
	case ast.IdentKind:
		name := e.AsIdent()
		v, has := vars[name]
		if bound[name] {
			return nil, "", "", false
		}
		if !has {
			return nil, name, "there is no value of this name", true
		}
		return v, name, "", true
	case ast.SelectKind:
		s := e.AsSelect()
		v, path, lack, ok := resolve(s.Operand(), vars, bound)
		if !ok || lack != "" || s.IsTestOnly() {
			return v, path, lack, ok
		}
		return step(v, path, s.FieldName())
	case ast.CallKind:
		c := e.AsCall()
		if c.FunctionName() != operators.Index || len(c.Args()) != 2 || c.Args()[1].Kind() != ast.LiteralKind {
			return nil, "", "", false
		}
		v, path, lack, ok := resolve(c.Args()[0], vars, bound)
		if !ok || lack != "" {
			return v, path, lack, ok
		}
		switch i := c.Args()[1].AsLiteral().(type) {
		case types.String:
			return step(v, path, string(i))
		case types.Int:
			return item(v, path, int64(i))
		}
	}
	return nil, "", "", false
}

func step(v any, path, name string) (any, string, string, bool) {
	here := path + "." + name
	if raw, ok := v.(json.RawMessage); ok {
		v, _ = canon.Value(raw)
	}
	switch v := v.(type) {
	case map[string]any:
		if x, ok := v[name]; ok {
			return x, here, "", true
		}
		return nil, here, "no such key", true
	case nil:
		return nil, here, fmt.Sprintf("%s is null", path), true
	}
	return nil, here, fmt.Sprintf("%s is %s, not an object", path, kind(v)), true
}

func item(v any, path string, i int64) (any, string, string, bool) {
	here := fmt.Sprintf("%s[%d]", path, i)
	list, ok := v.([]any)
	switch {
	case v == nil:
		return nil, here, fmt.Sprintf("%s is null", path), true
	case !ok:
		return nil, "", "", false
	case i < 0 || i >= int64(len(list)):
		return nil, here, fmt.Sprintf("the list has %d items, counted from 0", len(list)), true
	}
	return list[i], here, "", true
}

func kind(v any) string {
	switch v.(type) {
	case string:
		return "text"
	case bool:
		return "true or false"
	case []any:
		return "a list"
	}
	return "a number"
}

func children(e ast.Expr) []ast.Expr {
	switch e.Kind() {
	case ast.SelectKind:
		return []ast.Expr{e.AsSelect().Operand()}
	case ast.CallKind:
		c := e.AsCall()
		if c.IsMemberFunction() {
			return append([]ast.Expr{c.Target()}, c.Args()...)
		}
		return c.Args()
	case ast.ListKind:
		return e.AsList().Elements()
	case ast.MapKind:
		var all []ast.Expr
		for _, x := range e.AsMap().Entries() {
			all = append(all, x.AsMapEntry().Key(), x.AsMapEntry().Value())
		}
		return all
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		return []ast.Expr{c.IterRange(), c.LoopStep()}
	}
	return nil
}
