package tools

import (
	"errors"
	"strings"

	"countersign/internal/expr"
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
	b.note(t)
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
	b.note(c)
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
	b.note(c)
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
	b.note(c)
	return c
}

func (b *builder) note(c interface{ Members(root string) []string }) {
	for _, name := range c.Members("config") {
		b.config[name] = true
	}
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
