package canon_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"countersign/internal/canon"
	"countersign/internal/problem"
)

// vector is one row of testdata/vectors.tsv: made with an independent oracle
// (Node's number and string serialisation, UTF-16 key order, SHA-256).
type vector struct {
	id, input, canonical string
	bytes                int
	sha256               string
}

func vectors(t testing.TB) []vector {
	t.Helper()
	src, err := os.ReadFile("testdata/vectors.tsv")
	if err != nil {
		t.Fatal(err)
	}
	var all []vector
	for line := range strings.Lines(string(src)) {
		f := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if strings.HasPrefix(line, "#") {
			continue
		}
		n, err := strconv.Atoi(f[3])
		if len(f) != 5 || err != nil {
			t.Fatalf("bad row %q", line)
		}
		all = append(all, vector{f[0], f[1], ascii(f[2]), n, f[4]})
	}
	return all
}

// ascii undoes the table's view: outside what JSON must escape, \uXXXX stands
// for the character itself.
func ascii(s string) string {
	for _, r := range "\u2028\u2029\u20ac" {
		s = strings.ReplaceAll(s, strings.Trim(strconv.QuoteRuneToASCII(r), "'"), string(r))
	}
	return s
}

func TestCanonical_MatchesTheOracle(t *testing.T) {
	all := vectors(t)
	if len(all) != 15 {
		t.Fatalf("%d vectors; want 15", len(all))
	}
	digests := map[string]string{}
	for _, v := range all {
		got, err := canon.Canonical([]byte(v.input), canon.Limits{})
		if err != nil {
			t.Errorf("%s: Canonical(%s): %v", v.id, v.input, err)
			continue
		}
		if string(got) != v.canonical || len(got) != v.bytes {
			t.Errorf("%s: Canonical(%s) = %s (%d bytes); want %s (%d bytes)", v.id, v.input, got, len(got), v.canonical, v.bytes)
		}
		if d := canon.Digest(got); d != "sha256:"+v.sha256 {
			t.Errorf("%s: Digest(%s) = %s; want sha256:%s", v.id, got, d, v.sha256)
		}
		digests[v.id] = canon.Digest(got)
	}
	if digests["V01"] != digests["V02"] || digests["V02"] != digests["V03"] || digests["V04"] != digests["V05"] {
		t.Error("V01=V02=V03 and V04=V05 do not hold")
	}
	if digests["V19"] == digests["V20"] {
		t.Error("a number and a string share a digest")
	}
}

func TestCanonical_RefusesTheTable(t *testing.T) {
	for _, c := range []struct{ id, input, code, pointer string }{
		{"N01", `{"a":1,"a":1}`, "duplicate_key", "/a"},
		{"N02", `{"o":{"k":1,"k":2}}`, "duplicate_key", "/o/k"},
		{"N06", `{"n":1E400}`, "number_out_of_range", "/n"},
		{"N07", `{"n":NaN}`, "malformed_json", "/n"},
		{"N08", `{"n":01}`, "malformed_json", ""},
		{"N11", `{"a":1,}`, "malformed_json", ""},
		{"N16", `{"id":9007199254740993}`, "unsafe_integer", "/id"},
		{"in an array", `[{"a":[{"x":1,"x":2}]}]`, "duplicate_key", "/0/a/0/x"},
		{"same name by escape", `{"a":1,"\u0061":2}`, "duplicate_key", "/a"},
		{"negative", `[-9007199254740993]`, "unsafe_integer", "/0"},
		{"with an exponent", `[9007199254740993e0]`, "unsafe_integer", "/0"},
		{"with a fraction", `[9007199254740992.5]`, "unsafe_integer", "/0"},
		{"2^64, which prints as another number", `[18446744073709551616]`, "unsafe_integer", "/0"},
		{"underflow", `[1e-400]`, "number_out_of_range", "/0"},
		{"hex", `[0x10]`, "malformed_json", ""},
		{"plus", `[+1]`, "malformed_json", "/0"},
		{"two values", `1 2`, "malformed_json", ""},
		{"two objects", `{}{}`, "malformed_json", ""},
		{"empty", ``, "malformed_json", ""},
		{"blank", " \n", "malformed_json", ""},
		{"cut", `{"a":[1,`, "malformed_json", ""},
		{"comment", `{} // x`, "malformed_json", ""},
		{"single quotes", `{'a':1}`, "malformed_json", ""},
		{"byte order mark", "\xef\xbb\xbf{}", "malformed_json", ""},
		{"bad UTF-8", "[\"\xff\"]", "malformed_json", "/0"},
		{"overlong UTF-8", "[\"\xc0\xaf\"]", "malformed_json", "/0"},
		{"surrogate in UTF-8", "[\"\xed\xa0\x80\"]", "malformed_json", "/0"},
		{"lone high surrogate", `["\ud800"]`, "malformed_json", "/0"},
		{"lone low surrogate", `["\udc00x"]`, "malformed_json", "/0"},
		{"swapped surrogates", `["\udc00\ud800"]`, "malformed_json", "/0"},
		{"raw control character", "[\"a\nb\"]", "malformed_json", "/0"},
	} {
		got, err := canon.Canonical([]byte(c.input), canon.Limits{})
		p := problem.From(err)
		if err == nil || p.Code != c.code {
			t.Errorf("%s: Canonical(%q) = %s, %v; want code %s", c.id, c.input, got, err, c.code)
			continue
		}
		if len(p.Fields) != 1 || c.pointer != "" && p.Fields[0].Pointer != c.pointer {
			t.Errorf("%s: Canonical(%q) blames %+v; want %s", c.id, c.input, p.Fields, c.pointer)
		}
		if _, ok := p.Details["offset"]; p.Kind == problem.Malformed && !ok {
			t.Errorf("%s: a syntax error without byte offset: %v", c.id, err)
		}
	}
}

func TestCanonical_OrdersKeysByUTF16(t *testing.T) {
	// U+FB00 sorts before U+1F600 by code point, after it by UTF-16 (RFC 8785 3.2.3).
	got, err := canon.Canonical([]byte(`{"\ufb00":1,"\ud83d\ude00":2,"a":3,"A":4,"":5,"\u0080":6,"aa":7}`), canon.Limits{})
	want := "{\"\":5,\"A\":4,\"a\":3,\"aa\":7,\"\u0080\":6,\"\U0001F600\":2,\"\ufb00\":1}"
	if err != nil || string(got) != want {
		t.Errorf("Canonical = %s, %v; want %s", got, err, want)
	}
}
