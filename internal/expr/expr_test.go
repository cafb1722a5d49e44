package expr_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"countersign/internal/expr"
	"countersign/internal/problem"
)

var names = expr.Vars("input", "steps", "run", "params", "body", "status")

func vars() map[string]any {
	return map[string]any{
		"input":  map[string]any{"week": "2026-W49", "n": 3.0, "tags": []any{"a", "b"}},
		"params": map[string]any{"amount": 100.0, "price": "12.50", "big": 1e21, "half": 0.5, "note": nil, "odd key": 1.0},
		"steps":  map[string]any{"plan": map[string]any{"output": map[string]any{"why": "because", "items": []any{1.0, 2.0}}}, "skipped": map[string]any{"output": nil}},
		"run":    map[string]any{"id": "run_1"},
		"body":   json.RawMessage(`{"items":[{"id":"x"}],"version":7,"refundable":100,"state":"paid"}`),
		"status": 201,
	}
}

func eval(t *testing.T, src string) (any, error) {
	t.Helper()
	e, err := expr.CompileExpr(src, names)
	if err != nil {
		t.Fatalf("CompileExpr(%s): %v", src, err)
	}
	return e.Eval(context.Background(), vars())
}

func TestNumbers_CompareAcrossKinds(t *testing.T) {
	for _, src := range []string{
		"params.amount <= 100", "params.amount < 100.5", "params.amount == 100", "100 == params.amount", "params.amount != 99",
		"params.amount > 99 && 101 > params.amount", "status == 201", "status in [200, 201]", "!(status in [400, 403])", "size(body.items) == 1",
		"body.state == 'paid' && params.amount <= body.refundable", "body.version == 7", "input.n in [1, 2, 3]", "params.half < 1",
		"params.amount != '100'", "params.note == null", "input.tags[input.n - 2] == 'b'", "size(input.tags) == params.amount / 50",
		"input.tags.exists(x, x == 'a')", "input.tags.all(x, size(x) == 1)", "has(params.amount) && !has(params.nothing)", "'odd key' in params",
		"input.week.matches('^[0-9]{4}-W[0-9]{2}$')", "input.week.split('-')[1] == 'W49'", "params['odd key'] == 1",
	} {
		c, err := expr.CompileCondition(src, names)
		if err != nil {
			t.Errorf("CompileCondition(%s): %v", src, err)
			continue
		}
		if ok, err := c.Eval(context.Background(), vars()); !ok || err != nil {
			t.Errorf("%s = %v, %v; want true", src, ok, err)
		}
	}
}

func TestResults_ArePlainJSON(t *testing.T) {
	for src, want := range map[string]any{
		"params.amount + 1":                       101.0,
		"1 + params.amount":                       101.0,
		"params.amount - 1 * 2":                   98.0,
		"params.amount / 8":                       12.5,
		"7 / 2":                                   3.0,
		"7 / 2.0":                                 3.5,
		"params.amount % 7":                       2.0,
		"-params.amount":                          -100.0,
		"0.0 * -1":                                0.0,
		"size(input.tags)":                        2.0,
		"input.tags + ['c']":                      []any{"a", "b", "c"},
		"input.tags.map(x, x + '!')":              []any{"a!", "b!"},
		"input.tags.filter(x, x == 'b')":          []any{"b"},
		"{'a': params.amount, 'b': [null, true]}": map[string]any{"a": 100.0, "b": []any{nil, true}},
		"steps.plan.output":                       map[string]any{"why": "because", "items": []any{1.0, 2.0}},
		"body.items[0]":                           map[string]any{"id": "x"},
		"string(params.amount)":                   "100",
		"string(params.big)":                      "1e+21",
		"string(1000000.0) + '/' + string(7)":     "1000000/7",
		"string(true)":                            "true",
		"string(decimal('12.50'))":                "12.50",
		"int(params.amount)":                      100.0,
		"double('2.5')":                           2.5,
		"params.note":                             nil,
		"params.amount > 5 ? 'much' : 'little'":   "much",
		"'é'.upperAscii()":                        "é",
		"'a-b'.replace('-', '+')":                 "a+b",
		"['b','a'].join(',')":                     "b,a",
		"has(steps.plan.output.x) ? 1 : 2":        2.0,
		"'}' + \"}{\"":                            "}}{",
		"9007199254740992":                        9007199254740992.0,
	} {
		got, err := eval(t, src)
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", src, diff)
		}
	}
}

func TestResults_ThatAreNoJSONAreRefused(t *testing.T) {
	for src, says := range map[string]string{
		"9007199254740993":                        "use string()",
		"decimal('1')":                            "only for comparing",
		"{1: 'a'}":                                "not text",
		"params.amount / 0":                       "division by zero",
		"1 / 0":                                   "division by zero",
		"params.big * 1e300":                      "too large for a number",
		"'a' + params.amount":                     "string(…)",
		"params.amount + params.note":             "not defined",
		"params.half % 2":                         "whole numbers",
		"int('x')":                                "",
		"9223372036854775807 + 1":                 "overflow",
		"[params].map(x, x.nothing)":              "no such key",
		"'x'.substring(5)":                        "",
		"input.tags.map(a, input.tags.map(b, c))": "",
	} {
		e, err := expr.CompileExpr(src, names)
		if err != nil {
			if !strings.Contains(src, ", c)") {
				t.Errorf("CompileExpr(%s): %v", src, err)
			}
			continue
		}
		got, err := e.Eval(context.Background(), vars())
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s = %v, %v; want an error that says %q", src, got, err, says)
			continue
		}
		if p := problem.From(err); p.Code != "expression" || p.Kind != problem.Invalid {
			t.Errorf("%s: problem %s %s; want invalid expression", src, p.Kind, p.Code)
		}
	}
}

func TestMissingField_IsNamedWithItsPath(t *testing.T) {
	for src, says := range map[string]string{
		"steps.plan.output.reason":       "steps.plan.output.reason: no such key",
		"steps.plan.output.why.x":        "steps.plan.output.why is text, not an object",
		"steps.skipped.output.x":         "steps.skipped.output.x: steps.skipped.output is null",
		"steps['plan'].output.nope == 1": "steps.plan.output.nope: no such key",
		"steps.plan.output.items[2]":     "steps.plan.output.items[2]: the list has 2 items",
		"body.items[0].nope":             "body.items[0].nope: no such key",
		"steps.gone.output":              "steps.gone: no such key",
		"params.nope + 1":                "params.nope: no such key",
		"[1].map(x, params.nope)":        "params.nope: no such key",
		"has(params.nope.x)":             "params.nope: no such key",
		"{'k': params.nope}":             "params.nope: no such key",
		"params.nope.matches('x')":       "params.nope: no such key",
	} {
		got, err := eval(t, src)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s = %v, %v; want an error that says %q", src, got, err, says)
		}
	}
	e, err := expr.CompileExpr("body.x", expr.Vars("body"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Eval(context.Background(), nil); err == nil || !strings.Contains(err.Error(), "body: there is no value of this name") {
		t.Errorf("a variable that is not set: %v", err)
	}
}

func TestDecimal_ComparesExactly(t *testing.T) {
	for _, src := range []string{
		`decimal(params.price) == decimal("12.5")`, `decimal("0.1") < decimal("0.10000000000000000001")`, `decimal("100.10") <= decimal("100.1")`,
		`decimal("-1") < decimal("0")`, `decimal("9007199254740993") > decimal("9007199254740992")`, `decimal(0.1) == decimal("0.1")`,
		`decimal("12.50") > 12`, `decimal("12.50") == 12.5`, `decimal(params.amount) >= decimal("100")`, `decimal("1") != decimal("2")`, `decimal("1") in [decimal("1.0")]`,
	} {
		if got, err := eval(t, src); got != true || err != nil {
			t.Errorf("%s = %v, %v; want true", src, got, err)
		}
	}
	for _, src := range []string{
		`decimal("1e3") > 0`, `decimal("1,5") > 0`, `decimal("") > 0`, `decimal(".5") > 0`, `decimal("+1") > 0`, `decimal(" 1") > 0`, `decimal(true) > 0`,
		`decimal("` + strings.Repeat("1", 65) + `") > 0`, `decimal("1") + decimal("2") > 0`, `decimal("1") > "0"`, `decimal(1e300) > 0`, `decimal(params.note) > 0`,
	} {
		if got, err := eval(t, src); err == nil {
			t.Errorf("%s = %v; want an error", src, got)
		}
	}
}

func TestCompile_NamesTheNearestNameAndItsPlace(t *testing.T) {
	for _, c := range []struct {
		src    string
		offset int
		says   string
	}{
		{"inptu.week", 0, `unknown name "inptu"; did you mean "input"?`},
		{"'é' + parms.x", 7, `did you mean "params"`},
		{"zzzzzz", 0, "known here: body, input"},
		{"sise(input)", 4, `unknown function "sise"; did you mean "size"?`},
		{"input.week.mathces('x')", 18, `did you mean "matches"`},
		{"now()", 3, "unknown function"},
		{"timestamp('2026-01-01T00:00:00Z')", 9, "unknown function"},
		{"duration('1s')", 8, "unknown function"},
		{"input.week.getFullYear()", 22, "unknown function"},
		{"type(input)", 4, "unknown function"},
		{"uint(1)", 4, "unknown function"},
		{"b'x' == b'x' && bytes('x') == b'x'", 21, "unknown function"},
		{"1 +", 3, "ends too early"},
		{"a b", 2, "not an expression"},
		{"", 0, "empty"},
		{"  ", 0, "empty"},
		{"1 + 'a'", 2, "can't go together"},
		{"size(1)", 4, "can't go together"},
		{"steps", 0, "name the step"},
		{"steps[input.week]", 0, "name the step"},
		{"size(steps)", 5, "name the step"},
		{"steps.map(s, s)", 0, "name the step"},
		{"[1].map(steps, steps)", 7, "already a name"},
		{"secret.X", 0, "only a tool's request"},
		{"string", 0, "unknown name"},
		{"Foo{x: 1}", 3, "can't be built"},
		{strings.Repeat("1+", 2048) + "11", 0, "at most 4096"},
		{strings.Repeat("(", 60) + "1" + strings.Repeat(")", 60), 0, ""},
		{"[" + strings.Repeat("1,", 1500) + "1]", 0, ""},
		{"input\xff", 0, "UTF-8"},
	} {
		_, err := expr.CompileExpr(c.src, names)
		errs, ok := errors.AsType[expr.Errors](err)
		if !ok || len(errs) == 0 {
			t.Errorf("CompileExpr(%.40s): %T %v; want Errors", c.src, err, err)
			continue
		}
		if !strings.Contains(errs[0].Message, c.says) {
			t.Errorf("CompileExpr(%.40s): %q; want it to say %q", c.src, errs[0].Message, c.says)
		}
		if c.says != "" && errs[0].Offset != c.offset {
			t.Errorf("CompileExpr(%.40s): offset %d; want %d (%v)", c.src, errs[0].Offset, c.offset, err)
		}
	}
}

func TestCondition_WantsTrueOrFalse(t *testing.T) {
	for _, src := range []string{"1", "'true'", "null", "params.note", "params.amount", "input.tags", "body"} {
		c, err := expr.CompileCondition(src, names)
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := c.Eval(context.Background(), vars()); ok || err == nil || !strings.Contains(err.Error(), "not true or false") {
			t.Errorf("%s = %v, %v; want an error", src, ok, err)
		}
	}
}

func TestEval_IsBounded(t *testing.T) {
	big := make([]any, 2000)
	for i := range big {
		big[i] = float64(i)
	}
	v := map[string]any{"input": map[string]any{"l": big, "s": strings.Repeat("a", 64<<10)}}
	for src, says := range map[string]string{
		"input.l.map(a, input.l.map(b, input.l.map(c, a + b + c)))": "costs more",
		"input.l.all(a, input.l.all(b, input.l.all(c, true)))":      "costs more",
		"input.l.map(a, input.s + input.s)":                         "costs more",
		"input.s.replace('a', input.s)":                             "longer than",
		"input.s.replace('', input.s)":                              "longer than",
		"input.l.map(a, 'x').join(input.s)":                         "longer than",
		"input.l.map(a, input.s.replace('a', 'b'))":                 "costs more",
		"input.l.map(a, input.s)":                                   "larger than",
	} {
		e, err := expr.CompileExpr(src, names)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := e.Eval(context.Background(), v); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %.30v, %.200v; want a refusal", src, got, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	e, err := expr.CompileExpr("input.l.map(a, input.l.map(b, a + b))", names)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Eval(ctx, v); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled evaluation: %v", err)
	}
}
