// Package expr is the expression language of definitions: CEL inside ${ }.
//
// It guarantees that expressions are checked when a definition is loaded, that
// they are pure (no clock, no randomness, no environment), bounded in size and
// cost, that values are plain JSON on both sides, and that what an expression
// returns is data and never evaluated again. It must not know what the names
// stand for.
package expr

import (
	"context"
	"strings"

	"countersign/internal/problem"
)

var errSoon = problem.New(problem.Internal, "internal", "not built yet")

// Names are the variables a place knows.
type Names struct {
	names []string
}

// Vars makes Names. The name "secret" is special: it is not a variable but
// allows the part ${secret.NAME} in CompileText.
func Vars(names ...string) Names { return Names{names: names} }

// Error is one fault found when compiling.
type Error struct {
	Pointer string // JSON Pointer to the string inside the value; "" for a lone text
	Offset  int    // bytes into that string
	Message string
}

// Error is the message.
func (e *Error) Error() string { return e.Message }

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

// Value is a compiled JSON value whose strings may hold expressions.
type Value struct{}

// CompileValue compiles any JSON value. The error is Errors.
func CompileValue(v any, names Names) (*Value, error) { return nil, errSoon }

// Eval returns a new plain JSON value.
func (t *Value) Eval(ctx context.Context, vars map[string]any) (any, error) { return nil, errSoon }

// Source is the JSON the value came from.
func (t *Value) Source() any { return nil }

// Steps are the ids of steps referenced, sorted.
func (t *Value) Steps() []string { return nil }

// Members are the names m referenced as root.m or root["m"], sorted.
func (t *Value) Members(root string) []string { return nil }

// PartKind says what a part of a text is.
type PartKind int

// The kinds of parts.
const (
	Literal    PartKind = iota
	Expression          // ${ … }
	Secret              // ${secret.NAME}
)

// Part is a piece of a text.
type Part struct {
	Kind   PartKind
	Text   string // the literal, the source of the expression, or the secret's name
	Offset int    // bytes from the start of the text
}

// SecretRef is what a Secret part evaluates to.
type SecretRef struct{ Name string }

// Text is a compiled string.
type Text struct {
	Parts []Part
}

// CompileText compiles joined text. The error is Errors.
func CompileText(s string, names Names) (*Text, error) { return nil, errSoon }

// Eval joins the parts. escape turns each Expression and Secret part into text;
// nil: strings as they are, numbers in RFC 8785 form, and a secret is an error.
func (t *Text) Eval(ctx context.Context, vars map[string]any, escape func(part int, value any) (string, error)) (string, error) {
	return "", errSoon
}

// Values returns one value per part: the literal, the result, or a SecretRef.
func (t *Text) Values(ctx context.Context, vars map[string]any) ([]any, error) { return nil, errSoon }

// Source is the string the text came from.
func (t *Text) Source() string { return "" }

// Secrets are the names of secrets, sorted.
func (t *Text) Secrets() []string { return nil }

// Steps are the ids of steps referenced, sorted.
func (t *Text) Steps() []string { return nil }

// Members are the names m referenced as root.m or root["m"], sorted.
func (t *Text) Members(root string) []string { return nil }

// Condition is a compiled expression that must give true or false.
type Condition struct{}

// CompileCondition compiles a bare expression (no ${ }). The error is Errors.
func CompileCondition(src string, names Names) (*Condition, error) { return nil, errSoon }

// Eval returns the answer; anything but true or false is an error.
func (c *Condition) Eval(ctx context.Context, vars map[string]any) (bool, error) {
	return false, errSoon
}

// Source is the expression the condition came from.
func (c *Condition) Source() string { return "" }

// Steps are the ids of steps referenced, sorted.
func (c *Condition) Steps() []string { return nil }

// Members are the names m referenced as root.m or root["m"], sorted.
func (c *Condition) Members(root string) []string { return nil }

// Format writes a JSON value as joined text does.
func Format(v any) (string, error) { return "", errSoon }

// Expr is a compiled bare expression (no ${ }) of any type, such as a pin.
type Expr struct{}

// CompileExpr compiles a bare expression. The error is Errors.
func CompileExpr(src string, names Names) (*Expr, error) { return nil, errSoon }

// Eval returns a plain JSON value.
func (e *Expr) Eval(ctx context.Context, vars map[string]any) (any, error) { return nil, errSoon }

// Source is the expression as written.
func (e *Expr) Source() string { return "" }

// Steps are the ids of steps referenced, sorted.
func (e *Expr) Steps() []string { return nil }

// Members are the names m referenced as root.m or root["m"], sorted.
func (e *Expr) Members(root string) []string { return nil }
