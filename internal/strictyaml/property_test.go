package strictyaml_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"countersign/internal/strictyaml"
)

// value draws decoded JSON with printable ASCII text, which JSON and YAML write
// alike.
func value(depth int) *rapid.Generator[any] {
	texts := rapid.StringMatching(`[ -~]{0,12}`)
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
			return append([]any{}, rapid.SliceOfN(value(depth-1), 0, 4).Draw(t, "list")...)
		}
		return rapid.MapOfN(texts, value(depth-1), 0, 4).Draw(t, "object")
	})
}

func TestJSON_ReadsJSONAsItIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := value(3).Draw(t, "value")
		src, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		n, err := strictyaml.Parse("f", src)
		if err != nil {
			t.Fatalf("Parse(%s): %v", src, err)
		}
		var p strictyaml.Problems
		if diff := cmp.Diff(want, n.JSON(&p)); diff != "" || len(p) > 0 {
			t.Fatalf("%s: %v (-want +got):\n%s", src, p, diff)
		}
	})
}

func TestString_ReturnsPlainTextAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.StringMatching(`[A-Za-z0-9.+_][A-Za-z0-9.+_-]{0,10}`).Draw(t, "text")
		if strings.EqualFold(want, "null") {
			return
		}
		n, err := strictyaml.Parse("f", []byte("- "+want+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		var p strictyaml.Problems
		if got := n.Strings(&p); len(got) != 1 || got[0] != want || len(p) > 0 {
			t.Fatalf("%q reads as %q, %v", want, got, p)
		}
	})
}
