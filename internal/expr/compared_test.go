package expr_test

import (
	"slices"
	"testing"

	"countersign/internal/expr"
)

func TestCompared_FindsTheTextsAVariableIsHeldAgainst(t *testing.T) {
	names := expr.Vars("tool", "risk", "params")
	for src, want := range map[string][]string{
		`tool == 'a.b'`:                   {"a.b"},
		`'a.b' != tool || risk == 'high'`: {"a.b"},
		`tool in ['c', "b"] && (params.x == 'y' ? tool == 'a' : false)`: {"a", "b", "c"},
		`params.list.exists(x, x == 'no' && tool == 'yes')`:             {"yes"},
		`params.tool == 'no' || tool.startsWith('no')`:                  nil,
		`tool == risk`:            nil,
		`risk in ['low', 'high']`: nil,
	} {
		c, err := expr.CompileCondition(src, names)
		if err != nil {
			t.Fatalf("%s: %v", src, err)
		}
		if got := c.Compared("tool"); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", src, got, want)
		}
	}
}
