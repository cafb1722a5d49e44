package expr

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"countersign/internal/canon"
	"countersign/internal/problem"
)

// Value is a compiled JSON value whose strings may hold expressions; it is safe
// for concurrent use.
type Value struct {
	source any
	root   node
}

// node is one value of the template: exactly one of its fields, or a literal.
type node struct {
	literal any
	text    *Text
	list    []node
	object  map[string]node
}

// CompileValue compiles a decoded JSON value. A string that is exactly one
// ${expression} keeps the type of its result, other strings are joined text;
// keys of objects hold no expressions. The error is Errors, each with the
// pointer to its string.
func CompileValue(v any, names Names) (*Value, error) {
	names.secret = false
	c := valueCompiler{names: names}
	root := c.node(v, "", 0)
	if err := c.errors.err(); err != nil {
		return nil, err
	}
	return &Value{source: v, root: root}, nil
}

type valueCompiler struct {
	names  Names
	count  int
	errors Errors
}

func (c *valueCompiler) fault(pointer, format string, args ...any) {
	c.errors = append(c.errors, &Error{Pointer: pointer, Message: fmt.Sprintf(format, args...)})
}

func (c *valueCompiler) node(v any, pointer string, depth int) node {
	if c.count++; c.count == MembersMax+1 {
		c.fault(pointer, "the template holds more than %d values", MembersMax)
	}
	if c.count > MembersMax {
		return node{}
	}
	if depth > DepthMax {
		c.fault(pointer, "the template nests deeper than %d levels", DepthMax)
		return node{}
	}
	switch v := v.(type) {
	case string:
		return c.text(v, pointer)
	case []any:
		n := node{list: make([]node, len(v))}
		for i, x := range v {
			n.list[i] = c.node(x, canon.Join(pointer, strconv.Itoa(i)), depth+1)
		}
		return n
	case map[string]any:
		n := node{object: make(map[string]node, len(v))}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			at := canon.Join(pointer, k)
			if strings.Contains(k, "${") {
				c.fault(at, "a key can't hold an expression")
			}
			n.object[k] = c.node(v[k], at, depth+1)
		}
		return n
	case nil, bool, float64:
		return node{literal: v}
	}
	c.fault(pointer, "a %T is no JSON value", v)
	return node{}
}

func (c *valueCompiler) text(s, pointer string) node {
	t, errs := compileText(s, c.names)
	for _, e := range errs {
		e.Pointer = pointer
		c.errors = append(c.errors, e)
	}
	switch {
	case t == nil || len(t.Parts) == 0:
		return node{literal: ""}
	case len(t.Parts) == 1 && t.Parts[0].Kind == Literal:
		return node{literal: t.Parts[0].Text}
	}
	return node{text: t}
}

// Eval returns a new plain JSON value. The error is a *problem.Error Invalid
// "expression" whose field points into the template, or the context's.
func (t *Value) Eval(ctx context.Context, vars map[string]any) (any, error) {
	return t.root.eval(ctx, vars, "")
}

func (n node) eval(ctx context.Context, vars map[string]any, pointer string) (any, error) {
	switch {
	case n.text != nil:
		v, err := n.text.value(ctx, vars)
		return v, at(err, pointer)
	case n.list != nil:
		out := make([]any, len(n.list))
		for i, x := range n.list {
			v, err := x.eval(ctx, vars, canon.Join(pointer, strconv.Itoa(i)))
			if err != nil {
				return nil, err
			}
			out[i] = v
		}
		return out, nil
	case n.object != nil:
		out := make(map[string]any, len(n.object))
		for _, k := range slices.Sorted(maps.Keys(n.object)) {
			v, err := n.object[k].eval(ctx, vars, canon.Join(pointer, k))
			if err != nil {
				return nil, err
			}
			out[k] = v
		}
		return out, nil
	}
	return n.literal, nil
}

// value is the result of a lone expression with its type, or the joined text.
func (t *Text) value(ctx context.Context, vars map[string]any) (any, error) {
	if len(t.Parts) == 1 && t.Parts[0].Kind == Expression {
		return t.Parts[0].program.eval(ctx, vars)
	}
	return t.Eval(ctx, vars, nil)
}

func at(err error, pointer string) error {
	if p, ok := errors.AsType[*problem.Error](err); ok && pointer != "" {
		return p.At(pointer, "the expression can't be evaluated")
	}
	return err
}

// Source is the JSON the value came from; it must not be changed.
func (t *Value) Source() any { return t.source }

// Steps are the ids of steps referenced, sorted.
func (t *Value) Steps() []string { return t.Members("steps") }

// Members are the names m referenced as root.m or root["m"], sorted.
func (t *Value) Members(root string) []string {
	all := map[string]bool{}
	t.root.collect(root, all)
	return slices.Sorted(maps.Keys(all))
}

func (n node) collect(root string, into map[string]bool) {
	if n.text != nil {
		n.text.collect(root, into)
	}
	for _, x := range n.list {
		x.collect(root, into)
	}
	for _, x := range n.object {
		x.collect(root, into)
	}
}
