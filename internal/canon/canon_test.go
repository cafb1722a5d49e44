package canon_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"countersign/internal/canon"
	"countersign/internal/problem"
	"countersign/internal/testkit"
)

func code(err error) string {
	if err == nil {
		return ""
	}
	if p, ok := errors.AsType[*problem.Error](err); ok {
		return p.Code
	}
	return "no problem: " + err.Error()
}

func TestCanonical_HoldsItsLimits(t *testing.T) {
	l := canon.Limits{Bytes: 100, Depth: 3, Keys: 2}
	for _, c := range []struct{ src, code, says string }{
		{`"` + strings.Repeat("x", 98) + `"`, "", ""},
		{`"` + strings.Repeat("x", 99) + `"`, "too_large", "101 bytes long; at most 100"},
		{`[[[1]]]`, "", ""},
		{`[[[[1]]]]`, "too_deep", "deeper than 3 levels"},
		{`{"a":{"b":[]}}`, "", ""},
		{`{"a":{"b":[[]]}}`, "too_deep", "/a/b/0"},
		{`{"a":1,"b":2}`, "", ""},
		{`[{"a":1},{"a":2},{"a":3}]`, "too_many_keys", "more than 2 object members"},
		{`["a","b","c"]`, "", ""},
	} {
		_, err := canon.Canonical([]byte(c.src), l)
		if code(err) != c.code || err != nil && (!strings.Contains(err.Error(), c.says) || problem.From(err).Kind != problem.TooLarge) {
			t.Errorf("Canonical(%.40s) = %v; want %s %q", c.src, err, c.code, c.says)
		}
	}
	if _, err := canon.Canonical([]byte(strings.Repeat("[", 64)+strings.Repeat("]", 64)), canon.Limits{}); err != nil {
		t.Errorf("64 levels: %v", err)
	}
	for _, src := range []string{strings.Repeat("[", 1<<20), `[` + strings.Repeat("9", 1<<19) + `]`, `[0.` + strings.Repeat("3", 1<<19) + `]`, `[1e` + strings.Repeat("9", 1<<19) + `]`, `{"` + strings.Repeat("k", 1<<19) + `":{"a":1,"a":2}}`} {
		var err error
		took := testkit.Allocated(func() { _, err = canon.Canonical([]byte(src), canon.Limits{}) })
		if err != nil && len(err.Error()) > 1000 {
			t.Errorf("a message of %d bytes repeats its input", len(err.Error()))
		}
		if took > 32*len(src) {
			t.Errorf("%.20s…: %d bytes allocated for %d of input", src, took, len(src))
		}
	}
}

func TestCanonical_SaysWhere(t *testing.T) {
	_, err := canon.Canonical([]byte("{\n  \"é\": [1,\n  \"ü\", x]\n}"), canon.Limits{})
	p := problem.From(err)
	if !strings.Contains(p.Message, "line 3, column 8") || p.Details["line"] != 3 || p.Details["column"] != 8 {
		t.Errorf("%v %v; want line 3, column 8", err, p.Details)
	}
	if diff := cmp.Diff("/é/2", p.Fields[0].Pointer); diff != "" {
		t.Error(diff)
	}
}

func TestCanonical_KeepsNumbersApart(t *testing.T) {
	for src, want := range map[string]string{
		"-0.0": "0", "0e5": "0", "-0e-999": "0", "1e21": "1e+21", "100000000000000000000": "100000000000000000000", "123456789012345680000": "123456789012345680000",
		"9007199254740994": "9007199254740994", "9007199254740992.0": "9007199254740992", "1.7976931348623157e308": "1.7976931348623157e+308", "5e-324": "5e-324",
		"1e0000000000000000000000000001": "10", "1.50": "1.5", "0.1": "0.1", "-1e-7": "-1e-7", "18446744073709552000": "18446744073709552000",
	} {
		got, err := canon.Canonical([]byte(src), canon.Limits{})
		if err != nil || string(got) != want {
			t.Errorf("Canonical(%s) = %s, %v; want %s", src, got, err, want)
		}
	}
	for src, want := range map[string]string{
		"9007199254740995": "unsafe_integer", "123456789012345677877": "unsafe_integer", "123456789012345683968": "unsafe_integer", "18446744073709551615": "unsafe_integer",
		"1e309": "number_out_of_range", "-1e309": "number_out_of_range", "1e-400": "number_out_of_range", "1e99999999999999999999": "number_out_of_range",
	} {
		_, err := canon.Canonical([]byte(src), canon.Limits{})
		if code(err) != want || !strings.Contains(err.Error(), "send it as a string") {
			t.Errorf("Canonical(%s): %v; want %s and advice", src, err, want)
		}
	}
}

type body struct {
	Amount int64             `json:"amount"`
	Note   string            `json:"note"`
	Params json.RawMessage   `json:"params"`
	Inner  *inner            `json:"inner"`
	List   []inner           `json:"list"`
	Map    map[string]string `json:"map"`
	On     bool              `json:"on"`
}

type inner struct {
	ID string `json:"id"`
}

func TestDecode_FillsStrictly(t *testing.T) {
	var got body
	src := `{"amount":1e2,"note":"x","params":{"b":1.0,"a":[ ]},"inner":{"id":"i"},"list":[{"id":"j"}],"map":{"k":"v"}}`
	if err := canon.Decode([]byte(src), canon.Limits{}, &got); err != nil {
		t.Fatal(err)
	}
	want := body{Amount: 100, Note: "x", Params: json.RawMessage(`{"a":[],"b":1}`), Inner: &inner{"i"}, List: []inner{{"j"}}, Map: map[string]string{"k": "v"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for src, want := range map[string]string{
		`{"amout":1}`:                        "/amout: unknown field; did you mean \"amount\"?",
		`{"Amount":1}`:                       "/Amount: unknown field; did you mean \"amount\"?",
		`{"zzz":1}`:                          "/zzz: unknown field",
		`{"inner":{"id":"x","x":1}}`:         "/inner/x: unknown field",
		`{"list":[{},{"id":1}]}`:             "/list/1/id: expected a string, got a number",
		`{"amount":"50"}`:                    "/amount: expected an integer, got a string",
		`{"amount":1.5}`:                     "/amount: 1.5 is not a number accepted here",
		`{"amount":1e20}`:                    "/amount: 100000000000000000000 is not a number accepted here",
		`{"note":{}}`:                        "/note: expected a string, got an object",
		`{"list":{}}`:                        "/list: expected an array, got an object",
		`{"map":{"a":null,"b":1}}`:           "/map/b: expected a string, got a number",
		`{"on":"true"}`:                      "/on: expected true or false, got a string",
		`[]`:                                 "(document): expected an object, got an array",
		`{"amount":1,"amount":1}`:            "/amount: appears twice",
		`{"params":{"x":[1,{"y":2,"y":3}]}}`: "/params/x/1/y: appears twice",
		`{"params":9007199254740993}`:        "/params: 9007199254740993 is outside",
	} {
		var got body
		err := canon.Decode([]byte(src), canon.Limits{}, &got)
		if _, ok := errors.AsType[*problem.Error](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("Decode(%s): %T %v; want %q", src, err, err, want)
		}
	}
}

func TestMarshal_IsCanonicalAndStrict(t *testing.T) {
	got, err := canon.Marshal(struct {
		B   any            `json:"b"`
		A   []string       `json:"a"`
		M   map[string]int `json:"m,omitempty"`
		D   time.Duration  `json:"d"`
		N   float64        `json:"n"`
		Raw json.RawMessage
		H   string `json:"h"`
	}{B: map[string]any{"y": 1, "x": []any{nil, true}}, D: time.Second, N: math.Copysign(0, -1), Raw: json.RawMessage(`{"z":1.0}`), H: "<&>\u2028"})
	want := `{"Raw":{"z":1},"a":null,"b":{"x":[null,true],"y":1},"d":1000000000,"h":"<&>` + "\u2028" + `","n":0}`
	if err != nil || string(got) != want {
		t.Errorf("Marshal = %s, %v; want %s", got, err, want)
	}
	for name, v := range map[string]any{
		"bad UTF-8": "a\xff", "bad UTF-8 in a key": map[string]any{"\xff": 1}, "infinity": math.Inf(1), "NaN": math.NaN(), "unsafe int": int64(1<<53 + 1),
		"raw duplicate": json.RawMessage(`{"a":1,"a":2}`), "raw garbage": json.RawMessage(`{`), "channel": make(chan int),
	} {
		if got, err := canon.Marshal(v); err == nil {
			t.Errorf("Marshal(%s) = %s; want an error", name, got)
		}
	}
	for _, v := range []any{int64(1 << 53), -int64(1 << 53), 1e300, uint8(3)} {
		if _, err := canon.Marshal(v); err != nil {
			t.Errorf("Marshal(%v): %v", v, err)
		}
	}
	if _, err := canon.DigestOf(make(chan int)); err == nil {
		t.Error("DigestOf(channel) has no error")
	}
	if d, err := canon.DigestOf(map[string]any{}); err != nil || d != "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a" {
		t.Errorf("DigestOf({}) = %s, %v", d, err)
	}
}

func TestValue_IsAsStrictAsCanonical(t *testing.T) {
	got, err := canon.Value(json.RawMessage(`{"a":[1,"x",null,true,{"b":1.5}]}`))
	want := map[string]any{"a": []any{1.0, "x", nil, true, map[string]any{"b": 1.5}}}
	if diff := cmp.Diff(any(want), got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	for _, src := range []string{``, `{"a":1,"a":1}`, `9007199254740993`, `1 2`, `"\ud800"`, `1e400`} {
		if got, err := canon.Value(json.RawMessage(src)); err == nil {
			t.Errorf("Value(%s) = %v; want an error", src, got)
		}
	}
	big := json.RawMessage(`"` + strings.Repeat("x", 2<<20) + `"`)
	if _, err := canon.Value(big); err != nil {
		t.Errorf("Value has a size limit: %v", err)
	}
}

func TestExpand_NamesEveryItemOfAList(t *testing.T) {
	v := map[string]any{"l": []any{map[string]any{"m": []any{1.0, 2.0}}, map[string]any{"m": []any{}}}, "-": "a member"}
	for pointer, want := range map[string][]string{
		"/l/-/m/-": {"/l/0/m/0", "/l/0/m/1"}, "/l/1": {"/l/1"}, "/-": {"/-"}, "/gone/-": {"/gone/-"}, "": {""}, "l": nil,
	} {
		if diff := cmp.Diff(want, canon.Expand(v, pointer)); diff != "" {
			t.Errorf("Expand(%q):\n%s", pointer, diff)
		}
	}
}

func TestPointer_GetsAndSets(t *testing.T) {
	v := func() any {
		return map[string]any{"a": map[string]any{"b/c": []any{1.0, map[string]any{"~": "x"}}}, "": "empty", "n": nil}
	}
	for pointer, want := range map[string]any{"": v(), "/a/b~1c/0": 1.0, "/a/b~1c/1/~0": "x", "/": "empty", "/n": nil} {
		if got, ok := canon.Get(v(), pointer); !ok || cmp.Diff(want, got) != "" {
			t.Errorf("Get(%q) = %v, %v; want %v", pointer, got, ok, want)
		}
	}
	for _, pointer := range []string{"a", "/b", "/a/b~1c/2", "/a/b~1c/-", "/a/b~1c/00", "/a/b~1c/-1", "/a/b~1c/x", "/n/x", "/a~", "/a~2", "//"} {
		if got, ok := canon.Get(v(), pointer); ok {
			t.Errorf("Get(%q) = %v; want nothing", pointer, got)
		}
	}
	for pointer, read := range map[string]string{"/a/b~1c/0": "/a/b~1c/0", "/new": "/new", "/a/new~0": "/a/new~0", "/n": "/n", "/a/b~1c/1/~0": "/a/b~1c/1/~0", "/a": "/a"} {
		old := v()
		got, err := canon.Set(old, pointer, 42.0)
		if err != nil {
			t.Errorf("Set(%q): %v", pointer, err)
			continue
		}
		if x, _ := canon.Get(got, read); x != 42.0 {
			t.Errorf("Set(%q) leaves %v", pointer, x)
		}
		if diff := cmp.Diff(v(), old); diff != "" {
			t.Errorf("Set(%q) changed its argument:\n%s", pointer, diff)
		}
	}
	for _, pointer := range []string{"", "a", "/x/y", "/a/b~1c/2", "/a/b~1c/-", "/n/x", "/a~2", "//x"} {
		_, err := canon.Set(v(), pointer, 1.0)
		if p := problem.From(err); code(err) != "no_such_field" || p.Fields[0].Pointer != pointer {
			t.Errorf("Set(%q): %v; want no_such_field", pointer, err)
		}
	}
	if p := canon.Join("/a", "b/c", "~"); p != "/a/b~1c/~0" {
		t.Errorf("Join = %s", p)
	}
}
