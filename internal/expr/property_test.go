package expr_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"countersign/internal/expr"
)

// data draws decoded JSON whose strings look like templates now and then.
func data(depth int) *rapid.Generator[any] {
	texts := rapid.OneOf(rapid.String(), rapid.StringMatching(`[$]?[$]\{[a-z.'}{"]{0,8}\}?`))
	return rapid.Custom(func(t *rapid.T) any {
		most := 5
		if depth == 0 {
			most = 3
		}
		switch rapid.IntRange(0, most).Draw(t, "kind") {
		case 0:
			return nil
		case 1:
			return rapid.Bool().Draw(t, "bool")
		case 2:
			return texts.Draw(t, "text")
		case 3:
			return float64(rapid.Int32().Draw(t, "number")) / 8
		case 4:
			return append([]any{}, rapid.SliceOfN(data(depth-1), 0, 4).Draw(t, "list")...)
		}
		return rapid.MapOfN(texts, data(depth-1), 0, 4).Draw(t, "object")
	})
}

func TestData_PassesThroughUnevaluated(t *testing.T) { // H08
	v, err := expr.CompileValue(map[string]any{"whole": "${input}", "list": []any{"${input.x}"}}, names)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		x := data(3).Draw(t, "data")
		got, err := v.Eval(context.Background(), map[string]any{"input": map[string]any{"x": x}})
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]any{"whole": map[string]any{"x": x}, "list": []any{x}}
		if diff := cmp.Diff(any(want), got); diff != "" {
			t.Fatalf("data changed (-want +got):\n%s", diff)
		}
	})
}

// escaped writes data as a template that means itself.
func escaped(v any) any {
	switch v := v.(type) {
	case string:
		return strings.ReplaceAll(v, "${", "$${")
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = escaped(x)
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for k, x := range v {
			out[k] = escaped(x)
		}
		return out
	}
	return v
}

// plainKeys drops what a key can't hold.
func plainKeys(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = plainKeys(x)
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for k, x := range v {
			for strings.Contains(k, "${") {
				k = strings.ReplaceAll(k, "${", "")
			}
			out[k] = plainKeys(x)
		}
		return out
	}
	return v
}

func TestEscapedTemplates_MeanThemselves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := plainKeys(data(3).Draw(t, "data"))
		v, err := expr.CompileValue(escaped(x), names)
		if err != nil {
			t.Fatalf("CompileValue(%#v): %v", escaped(x), err)
		}
		got, err := v.Eval(context.Background(), nil)
		if diff := cmp.Diff(x, got); err != nil || diff != "" {
			t.Fatalf("%v (-want +got):\n%s", err, diff)
		}
	})
}
