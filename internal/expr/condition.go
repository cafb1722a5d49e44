package expr

import "context"

// Expr is a compiled bare expression (no ${ }) of any type, such as a pin.
type Expr struct{ program *program }

// CompileExpr compiles a bare expression. The error is Errors.
func CompileExpr(src string, names Names) (*Expr, error) {
	p, errs := compile(src, names)
	if len(errs) > 0 {
		return nil, errs
	}
	return &Expr{p}, nil
}

// Eval returns a new plain JSON value.
func (e *Expr) Eval(ctx context.Context, vars map[string]any) (any, error) {
	return e.program.eval(ctx, vars)
}

// Source is the expression as written.
func (e *Expr) Source() string { return e.program.source }

// Steps are the ids of steps referenced, sorted.
func (e *Expr) Steps() []string { return e.Members("steps") }

// Members are the names m referenced as root.m or root["m"], sorted.
func (e *Expr) Members(root string) []string { return e.program.list(root) }

// Condition is a compiled bare expression that must give true or false.
type Condition struct{ Expr }

// CompileCondition compiles a bare expression (no ${ }). The error is Errors.
func CompileCondition(src string, names Names) (*Condition, error) {
	e, err := CompileExpr(src, names)
	if err != nil {
		return nil, err
	}
	return &Condition{*e}, nil
}

// Eval returns the answer. Anything but true or false is an error: null, 1 and
// "true" are no answers.
func (c *Condition) Eval(ctx context.Context, vars map[string]any) (bool, error) {
	v, err := c.program.eval(ctx, vars)
	if err != nil {
		return false, err
	}
	if b, ok := v.(bool); ok {
		return b, nil
	}
	if v == nil {
		return false, failed(c.program.source, "it gives null, not true or false")
	}
	return false, failed(c.program.source, "it gives %s, not true or false", describe(v))
}

func describe(v any) string {
	if _, ok := v.(map[string]any); ok {
		return "an object"
	}
	return kind(v)
}
