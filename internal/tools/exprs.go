package tools

import (
	"errors"
	"slices"
	"strings"

	"countersign/internal/expr"
	"countersign/internal/schema"
	"countersign/internal/strictyaml"
)

// text compiles joined text; an empty one is none.
func (b *builder) text(pointer, src string, names ...string) *expr.Text {
	if src == "" {
		return nil
	}
	return b.textAt(pointer, src, 0, names...)
}

// textAt compiles text that begins at an offset of the string in the file.
func (b *builder) textAt(pointer, src string, offset int, names ...string) *expr.Text {
	t, err := expr.CompileText(src, expr.Vars(names...))
	if err != nil {
		b.exprFaults(pointer, offset, err)
		return nil
	}
	b.note(pointer, offset, src, t)
	for _, name := range t.Secrets() {
		b.secrets[name] = true
	}
	return t
}

func (b *builder) value(pointer string, v any, names ...string) *expr.Value {
	if v == nil {
		return nil
	}
	c, err := expr.CompileValue(v, expr.Vars(names...))
	if err != nil {
		b.exprFaults(pointer, 0, err)
		return nil
	}
	b.note(pointer, 0, "", c)
	return c
}

func (b *builder) condition(pointer, src string, names ...string) *expr.Condition {
	if src == "" {
		return nil
	}
	c, err := expr.CompileCondition(src, expr.Vars(names...))
	if err != nil {
		b.exprFaults(pointer, 0, err)
		return nil
	}
	b.note(pointer, 0, src, c)
	return c
}

func (b *builder) expr(pointer, src string, names ...string) *expr.Expr {
	if src == "" {
		return nil
	}
	c, err := expr.CompileExpr(src, expr.Vars(names...))
	if err != nil {
		b.exprFaults(pointer, 0, err)
		return nil
	}
	b.note(pointer, 0, src, c)
	return c
}

// note keeps what the configuration must have, and checks that what is named
// of the parameters can be there. src is the expression's text where it stands
// alone.
func (b *builder) note(pointer string, offset int, src string, c interface{ Members(root string) []string }) {
	for _, name := range c.Members("config") {
		b.config[name] = true
	}
	known, only := schema.OnlyNames(b.s.Params)
	if !only || !b.fresh {
		return
	}
	for _, name := range c.Members("params") {
		if !slices.Contains(known, name) {
			b.fault(pointer, offset+max(0, strings.Index(src, "params."+name)), "params has no %q%s", name, nearestName(name, known))
		}
	}
}

func nearestName(name string, known []string) string {
	if near := strictyaml.Nearest(name, known); near != "" {
		return "; did you mean " + near + "?"
	}
	if len(known) > 0 && len(known) <= 12 {
		return "; there is " + strings.Join(known, ", ")
	}
	return ""
}

func (b *builder) exprFaults(pointer string, offset int, err error) {
	all, ok := errors.AsType[expr.Errors](err)
	if !ok {
		b.fault(pointer, offset, "%v", err)
		return
	}
	for _, e := range all {
		b.fault(pointer+e.Pointer, offset+e.Offset, "%s", e.Message)
	}
}

// escape writes a key as a reference token (RFC 6901 section 3).
func escape(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}
