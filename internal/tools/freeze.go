package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"countersign/internal/canon"
	"countersign/internal/expr"
	"countersign/internal/problem"
	"countersign/internal/schema"
	"countersign/internal/sealed"
)

// Params returns the schema of the parameters.
func (t *Tool) Params() *schema.Schema { return t.code.params }

// PreviewSchema returns the schema that names what a preview shows, or nil.
func (t *Tool) PreviewSchema() *schema.Schema {
	if t.code.preview == nil {
		return nil
	}
	return t.code.preview.shown
}

// OutputSchema returns the schema of the output, or nil.
func (t *Tool) OutputSchema() *schema.Schema { return t.code.output }

// Lint returns what the definition allows but rarely means.
func (t *Tool) Lint() []string { return t.code.params.Lint() }

// PrepareParams applies defaults, validates and returns the canonical form:
// what is hashed, shown and carried out. The error is a *problem.Error whose
// fields point into the parameters; it repeats no value that the tool calls
// sensitive, nor one at the pointers in hide.
func (t *Tool) PrepareParams(v json.RawMessage, hide ...string) (json.RawMessage, error) {
	c, err := canon.Canonical(v, canon.Limits{})
	if err != nil {
		return nil, err
	}
	x, err := canon.Value(c)
	if err != nil {
		return nil, err
	}
	if x, err = t.code.params.WithDefaults(x); err != nil {
		return nil, err
	}
	if err := t.code.params.Hiding(hide...).Validate(x); err != nil {
		return nil, err
	}
	return canon.Marshal(x)
}

// Describe computes summary, target and impact from the parameters. Sealed
// values are hidden in them.
func (t *Tool) Describe(params json.RawMessage, cfg Config) (Description, error) {
	vars, err := inVars(params, cfg)
	if err != nil {
		return Description{}, err
	}
	vars["params"] = sealed.Hide(vars["params"])
	var d Description
	for _, x := range []struct {
		name string
		text *expr.Text
		into *string
	}{{"summary", t.code.summary, &d.Summary}, {"target", t.code.target, &d.Target}, {"impact", t.code.impact, &d.Impact}} {
		if x.text == nil {
			continue
		}
		if *x.into, err = x.text.Eval(context.Background(), vars, nil); err != nil {
			return Description{}, t.cannot(x.name, err)
		}
	}
	return d, nil
}

// Freeze makes the request that will be sent, with everything resolved but
// secrets. params must come from PrepareParams. The same params and config
// give the same bytes.
func (t *Tool) Freeze(params json.RawMessage, cfg Config) (Frozen, error) {
	vars, err := inVars(params, cfg)
	if err != nil {
		return nil, err
	}
	r, err := t.request(params, vars)
	if err != nil {
		return nil, t.cannot("request", err)
	}
	return r.freeze()
}

// request resolves the tool's own template.
func (t *Tool) request(params json.RawMessage, vars map[string]any) (*Request, error) {
	switch t.Transport {
	case HTTP:
		r, err := t.code.http.resolve(vars)
		if err == nil && t.Write {
			r.KeyHeader = keyHeaderDefault
			if i := t.spec.Idempotency; i != nil {
				r.KeyHeader = i.Header
			}
		}
		return r, err
	case Exec:
		return t.code.exec.resolve(params, vars)
	case SMTP:
		return t.code.smtp.resolve(vars)
	default:
		return t.code.file.resolve(vars)
	}
}

func (t *Tool) cannot(what string, err error) error {
	return problem.New(problem.Invalid, "tool_"+what, "The %s of %s cannot be made from these parameters: %s.", what, t.Name, strings.TrimSuffix(err.Error(), ".")).Because(err)
}

func inVars(params json.RawMessage, cfg Config) (map[string]any, error) {
	p, err := canon.Value(params)
	if err != nil {
		return nil, fmt.Errorf("read params: %w", err)
	}
	c := make(map[string]any, len(cfg))
	for k, v := range cfg {
		c[k] = v
	}
	return map[string]any{"params": p, "config": c}, nil
}

// plain is a value as text where structure has no place: URLs, headers,
// arguments, variables, file names.
func plain(v any) (string, error) {
	switch v.(type) {
	case nil:
		return "", errors.New("is null")
	case map[string]any:
		if isSealed(v) {
			return "", errors.New("is a sensitive value, which has no place here")
		}
		return "", errors.New("is not a single value")
	case []any:
		return "", errors.New("is not a single value")
	}
	return expr.Format(v)
}

// parts resolves a text. escape sees the value of each expression.
func parts(t *expr.Text, vars map[string]any, escape func(part int, v any) (string, error)) (Parts, error) {
	if t == nil {
		return Parts{{}}, nil
	}
	values, err := t.Values(context.Background(), vars)
	if err != nil {
		return nil, err
	}
	var out Parts
	for i, p := range t.Parts {
		text := p.Text
		switch p.Kind {
		case expr.Secret:
			out = append(out, Part{Secret: p.Text})
			continue
		case expr.Expression:
			if c, ok := sealed.Of(values[i]); ok {
				out = append(out, Part{Sealed: c})
				continue
			}
			if text, err = escape(i, values[i]); err != nil {
				return nil, fmt.Errorf("${%s} %w", strings.TrimSpace(p.Text), err)
			}
		}
		if n := len(out); n > 0 && out[n-1].plain() {
			out[n-1].Text += text
		} else {
			out = append(out, Part{Text: text})
		}
	}
	return out, nil
}

// line resolves a text that must stay one line without control characters.
func line(t *expr.Text, vars map[string]any) (Parts, error) {
	p, err := parts(t, vars, func(_ int, v any) (string, error) { return plain(v) })
	if err != nil {
		return nil, err
	}
	if s := p.String(); hasControl(s) {
		return nil, errors.New("holds a line break or another control character")
	}
	return p, nil
}
