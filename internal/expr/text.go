package expr

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"countersign/internal/problem"
)

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
	Text   string // the literal unescaped, the source of the expression, or the secret's name
	Offset int    // bytes from the start of the text, inside ${ for an expression

	program *program
}

// SecretRef is what a Secret part evaluates to: a name, never the value.
type SecretRef struct{ Name string }

// Text is a compiled string; it is safe for concurrent use.
type Text struct {
	Parts  []Part
	source string
}

var secretPart = regexp.MustCompile(`^\s*secret\.([A-Za-z_][A-Za-z0-9_]{0,63})\s*$`)

// CompileText compiles joined text: literals, ${ expressions } and, where names
// has "secret", ${secret.NAME}. $${ stands for a literal ${. The error is
// Errors.
func CompileText(s string, names Names) (*Text, error) {
	t, errs := compileText(s, names)
	return t, errs.err()
}

func compileText(s string, names Names) (*Text, Errors) {
	if len(s) > TextMax {
		return nil, Errors{{Message: fmt.Sprintf("the text is %d bytes long; at most %d are allowed", len(s), TextMax)}}
	}
	parts, errs := split(s)
	for i := range parts {
		p := &parts[i]
		if p.Kind != Expression {
			continue
		}
		if m := secretPart.FindStringSubmatch(p.Text); m != nil && names.secret {
			p.Kind, p.Text = Secret, m[1]
			continue
		}
		compiled, faults := compile(p.Text, names)
		p.program = compiled
		errs = append(errs, faults.shift(p.Offset)...)
	}
	if len(errs) > 0 {
		return nil, errs
	}
	return &Text{Parts: parts, source: s}, nil
}

// Values returns one value per part: the literal, the result, or a SecretRef.
func (t *Text) Values(ctx context.Context, vars map[string]any) ([]any, error) {
	out := make([]any, len(t.Parts))
	for i, p := range t.Parts {
		switch p.Kind {
		case Literal:
			out[i] = p.Text
		case Secret:
			out[i] = SecretRef{p.Text}
		default:
			v, err := p.program.eval(ctx, vars)
			if err != nil {
				return nil, err
			}
			out[i] = v
		}
	}
	return out, nil
}

// Eval joins the parts. escape turns the value of each Expression and Secret
// part (a SecretRef) into text; nil means Format, to which a secret is an error.
func (t *Text) Eval(ctx context.Context, vars map[string]any, escape func(part int, value any) (string, error)) (string, error) {
	values, err := t.Values(ctx, vars)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for i, p := range t.Parts {
		text := p.Text
		if p.Kind != Literal {
			if text, err = t.join(i, values[i], escape); err != nil {
				return "", err
			}
		}
		if b.WriteString(text); b.Len() > ResultMax {
			return "", failed(t.source, "the text is longer than %d bytes", ResultMax)
		}
	}
	return b.String(), nil
}

func (t *Text) join(part int, v any, escape func(int, any) (string, error)) (string, error) {
	if escape != nil {
		return escape(part, v)
	}
	if s, ok := v.(SecretRef); ok {
		return "", problem.New(problem.Internal, "internal", "The secret %s was asked for outside a transport.", s.Name)
	}
	text, err := Format(v)
	if err != nil {
		return "", failed(t.Parts[part].Text, "%v", err)
	}
	return text, nil
}

// Source is the string the text came from.
func (t *Text) Source() string { return t.source }

// Secrets are the names of secrets, sorted.
func (t *Text) Secrets() []string {
	var all []string
	for _, p := range t.Parts {
		if p.Kind == Secret {
			all = append(all, p.Text)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Steps are the ids of steps referenced, sorted.
func (t *Text) Steps() []string { return t.Members("steps") }

// Members are the names m referenced as root.m or root["m"], sorted.
func (t *Text) Members(root string) []string {
	all := map[string]bool{}
	t.collect(root, all)
	return slices.Sorted(maps.Keys(all))
}

func (t *Text) collect(root string, into map[string]bool) {
	for _, p := range t.Parts {
		if p.program != nil {
			maps.Copy(into, p.program.members[root])
		}
	}
}
