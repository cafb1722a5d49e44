package expr_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"countersign/internal/expr"
	"countersign/internal/problem"
)

func TestText_Splits(t *testing.T) {
	for s, want := range map[string]string{
		"":                            "",
		"plain $ { } $x":              "L:plain $ { } $x",
		"a${input.week}b":             "L:a E@3:input.week L:b",
		"$${input.week}":              "L:${input.week}",
		"$$${input.week}":             "L:$${input.week}",
		"${'}'}":                      "E@2:'}'",
		`${"}\"}"}`:                   `E@2:"}\"}"`,
		"${r'\\'}x":                   "E@2:r'\\' L:x",
		"${'''a'}b'''}":               "E@2:'''a'}b'''",
		"${{'a': {'b': 1}}.a.b}":      "E@2:{'a': {'b': 1}}.a.b",
		"${input.n}${input.n}":        "E@2:input.n E@12:input.n",
		"Bearer ${secret.SHOP_TOKEN}": "L:Bearer  S:SHOP_TOKEN",
		"${ secret.A }":               "S:A",
		"${1 // }\n}":                 "E@2:1 // }\n",
	} {
		text, err := expr.CompileText(s, expr.Vars("input", "secret"))
		if err != nil {
			t.Errorf("CompileText(%q): %v", s, err)
			continue
		}
		var got []string
		for _, p := range text.Parts {
			switch p.Kind {
			case expr.Literal:
				got = append(got, "L:"+p.Text)
			case expr.Secret:
				got = append(got, "S:"+p.Text)
			default:
				got = append(got, fmt.Sprintf("E@%d:%s", p.Offset, p.Text))
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("CompileText(%q) = %q; want %q", s, got, want)
		}
		if text.Source() != s {
			t.Errorf("Source() = %q; want %q", text.Source(), s)
		}
	}
	for s, c := range map[string]struct {
		offset int
		says   string
	}{
		"ab${input.week":           {2, "not closed"},
		"${":                       {0, "not closed"},
		"${'}":                     {0, "not closed"},
		"${{}":                     {0, "not closed"},
		"${}":                      {2, "empty"},
		"x ${inpt.week}":           {4, "did you mean"},
		"${'a' + secret.X}":        {8, "stands alone"},
		"${secret['X']}":           {2, "stands alone"},
		"${secret}":                {2, "stands alone"},
		"${1 // }":                 {0, "not closed"},
		strings.Repeat("x", 1<<19): {0, "at most 262144"},
	} {
		_, err := expr.CompileText(s, expr.Vars("input", "secret"))
		errs, ok := errors.AsType[expr.Errors](err)
		if !ok || !strings.Contains(errs[0].Message, c.says) || errs[0].Offset != c.offset {
			t.Errorf("CompileText(%.40q): %v; want %q at %d", s, err, c.says, c.offset)
		}
	}
}

func TestText_JoinsInCanonicalForm(t *testing.T) {
	for s, want := range map[string]string{
		"reports/${input.week}":                        "reports/2026-W49",
		"${params.amount} cents":                       "100 cents",
		"${params.big}|${params.half}|${1e-7}|${-0.0}": "1e+21|0.5|1e-7|0",
		"${input.tags} ${true} ${{'b':1,'a':2}}":       `["a","b"] true {"a":2,"b":1}`,
		"$${x} ${status}":                              "${x} 201",
	} {
		text, err := expr.CompileText(s, names)
		if err != nil {
			t.Fatalf("CompileText(%q): %v", s, err)
		}
		if got, err := text.Eval(context.Background(), vars(), nil); got != want || err != nil {
			t.Errorf("%q = %q, %v; want %q", s, got, err, want)
		}
	}
	text, err := expr.CompileText("x${params.note}", names)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := text.Eval(context.Background(), vars(), nil); err == nil || !strings.Contains(err.Error(), "params.note") || !strings.Contains(err.Error(), "null") {
		t.Errorf("null in text = %q, %v; want an error that names params.note", got, err)
	}
}

func TestText_EscapesByPart(t *testing.T) {
	text, err := expr.CompileText("a=${input.week}&k=${secret.K}", expr.Vars("input", "secret"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := text.Eval(context.Background(), vars(), func(part int, v any) (string, error) { return fmt.Sprintf("<%d %v>", part, v), nil })
	if want := "a=<1 2026-W49>&k=<3 {K}>"; got != want || err != nil {
		t.Errorf("Eval = %q, %v; want %q", got, err, want)
	}
	if _, err := text.Eval(context.Background(), vars(), nil); err == nil {
		t.Error("a secret became text")
	}
	if diff := cmp.Diff([]string{"K"}, text.Secrets()); diff != "" {
		t.Error(diff)
	}
	stop := errors.New("CR in a header")
	if _, err := text.Eval(context.Background(), vars(), func(int, any) (string, error) { return "", stop }); !errors.Is(err, stop) {
		t.Errorf("the error of escape is lost: %v", err)
	}
}

func TestValue_KeepsTypesAndNeverEvaluatesOutput(t *testing.T) { // H08
	template := map[string]any{
		"page": "reports/${input.week}", "n": "${input.n}", "tags": "${input.tags}", "plain": []any{1.0, true, nil, "x", "$${y}"},
		"deep": map[string]any{"v": "${params.data}", "joined": ">${params.data}"}, "empty": "", "none": []any{}, "o": map[string]any{},
	}
	v, err := expr.CompileValue(template, names)
	if err != nil {
		t.Fatal(err)
	}
	data := vars()
	data["params"] = map[string]any{"data": "${secret.X} ${input.week} $(id) {{ x }}"}
	got, err := v.Eval(context.Background(), data)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"page": "reports/2026-W49", "n": 3.0, "tags": []any{"a", "b"}, "plain": []any{1.0, true, nil, "x", "${y}"},
		"deep":  map[string]any{"v": "${secret.X} ${input.week} $(id) {{ x }}", "joined": ">${secret.X} ${input.week} $(id) {{ x }}"},
		"empty": "", "none": []any{}, "o": map[string]any{},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Eval (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(any(template), v.Source()); diff != "" {
		t.Errorf("Source changed:\n%s", diff)
	}
	got.(map[string]any)["tags"].([]any)[0] = "changed"
	if data["input"].(map[string]any)["tags"].([]any)[0] != "a" {
		t.Error("the result shares memory with the variables")
	}
}

func TestValue_ReportsEveryFaultWithItsPointer(t *testing.T) {
	_, err := expr.CompileValue(map[string]any{
		"a": "${inpt.x}", "b/c": []any{"ok", "x${1 +}", "${secret.X}"}, "k${input.x}": 1.0, "t": struct{}{},
	}, expr.Vars("input", "secret"))
	errs, ok := errors.AsType[expr.Errors](err)
	if !ok {
		t.Fatalf("%T %v; want Errors", err, err)
	}
	got := map[string]string{}
	for _, e := range errs {
		got[fmt.Sprintf("%s@%d", e.Pointer, e.Offset)] = e.Message
	}
	for _, at := range []string{"/a@2", "/b~1c/1@6", "/b~1c/2@2", "/k${input.x}@0", "/t@0"} {
		if _, ok := got[at]; !ok {
			t.Errorf("no fault at %s; got %v", at, slices.Sorted(maps.Keys(got)))
		}
	}
	deep := any("x")
	for range 70 {
		deep = []any{deep}
	}
	if _, err := expr.CompileValue(deep, names); err == nil || !strings.Contains(err.Error(), "deeper than 64") {
		t.Errorf("70 levels: %v", err)
	}
	many := make([]any, 10_001)
	if _, err := expr.CompileValue(many, names); err == nil || !strings.Contains(err.Error(), "more than 10000") {
		t.Errorf("10 001 values: %v", err)
	}
	v, err := expr.CompileValue(map[string]any{"a": []any{"${params.nope}"}}, names)
	if err != nil {
		t.Fatal(err)
	}
	_, err = v.Eval(context.Background(), vars())
	if p := problem.From(err); len(p.Fields) != 1 || p.Fields[0].Pointer != "/a/0" {
		t.Errorf("a fault at run time: %v; want a field /a/0", err)
	}
}

func TestSteps_ListsWhatIsReferenced(t *testing.T) {
	v, err := expr.CompileValue(map[string]any{
		"a": "${steps.plan.output.why} ${steps['collect-it'].output}", "b": []any{"${has(steps.maybe.output) ? 1 : 2}", "${[1].map(x, steps.inner.output)}"}, "c": "${run.id}",
	}, names)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"collect-it", "inner", "maybe", "plan"}, v.Steps()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"id"}, v.Members("run")); diff != "" {
		t.Error(diff)
	}
	c, err := expr.CompileCondition("size(steps.a.output) > 0 && steps.b.status == 'skipped'", names)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b"}, c.Steps()); diff != "" {
		t.Error(diff)
	}
	text, err := expr.CompileText("${steps.x.output}", names)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"x"}, text.Steps()); diff != "" {
		t.Error(diff)
	}
}

func FuzzCompileText(f *testing.F) {
	for _, s := range []string{"${a}", "x${'}'}y", "$${", "${{'a':1}}", "${r'\\'}", "${\"\\\"}", "${[1].map(x, x)}", "${steps.a.output}", "${secret.X}", "${1 // c\n}", "${-9223372036854775808}", "${'\\u{1}'}"} {
		f.Add(s)
	}
	known := expr.Vars("input", "steps", "secret")
	data := map[string]any{"input": map[string]any{"a": "x", "n": 1.0}, "steps": map[string]any{"a": map[string]any{"output": nil}}}
	f.Fuzz(func(t *testing.T, s string) {
		text, err := expr.CompileText(s, known)
		if err != nil {
			errs, ok := errors.AsType[expr.Errors](err)
			if !ok {
				t.Fatalf("%T %v", err, err)
			}
			for _, e := range errs {
				if e.Offset < 0 || e.Offset > len(s) {
					t.Fatalf("offset %d outside %q", e.Offset, s)
				}
			}
			return
		}
		if !strings.Contains(s, "${") && (len(text.Parts) > 1 || len(text.Parts) == 1 && text.Parts[0].Text != s) {
			t.Fatalf("plain text %q became %+v", s, text.Parts)
		}
		values, err := text.Values(context.Background(), data)
		if err != nil {
			return
		}
		for _, v := range values {
			if _, secret := v.(expr.SecretRef); !secret && v != nil {
				if _, err := expr.Format(v); err != nil {
					t.Fatalf("%q gives %v, which is not JSON: %v", s, v, err)
				}
			}
		}
	})
}
