package strictyaml_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"countersign/internal/strictyaml"
	"countersign/internal/testkit"
)

func parse(t *testing.T, src string) *strictyaml.Node {
	t.Helper()
	n, err := strictyaml.Parse("f.yaml", []byte(src))
	if err != nil {
		t.Fatalf("Parse(%q): %v", src, err)
	}
	return n
}

// refused parses a file that must be refused and returns the message.
func refused(t *testing.T, src string) string {
	t.Helper()
	n, err := strictyaml.Parse("f.yaml", []byte(src))
	if err == nil {
		t.Fatalf("Parse(%.60q) = %+v; want an error", src, n)
	}
	if _, ok := errors.AsType[strictyaml.Problems](err); !ok {
		t.Fatalf("Parse(%.60q): %T %v; want Problems", src, err, err)
	}
	return err.Error()
}

func wantIn(t *testing.T, got string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(got, p) {
			t.Errorf("message %q does not say %q", got, p)
		}
	}
}

func TestParse_RefusesDuplicateKeysWithBothPlaces(t *testing.T) { // H01
	wantIn(t, refused(t, "steps: []\ntitle: x\nsteps: [1]\n"), "f.yaml:3:1", `duplicate key "steps"`, "line 1, column 1")
	wantIn(t, refused(t, "steps:\n  - id: a\n    timeout: 1s\n    timeout: 2s\n"), "f.yaml:4:5", "line 3, column 5")
	wantIn(t, refused(t, `{a: 1, "a": 2}`), `duplicate key "a"`)
}

func TestMap_NamesTheNearestKnownKey(t *testing.T) { // H02
	for written, meant := range map[string]string{
		"aprovers": "approvers", "time_out": "timeout", "Steps": "steps", "idempotency-key": "idempotency_key",
	} {
		var p strictyaml.Problems
		parse(t, "a: 1\n"+written+": 1\n").Map(&p, "a", "approvers", "timeout", "steps", "idempotency_key")
		if len(p) != 1 {
			t.Fatalf("%s: problems %v; want one", written, p)
		}
		wantIn(t, p.Error(), "f.yaml:2:1", fmt.Sprintf("%q", written), fmt.Sprintf("did you mean %q", meant))
	}
	var p strictyaml.Problems
	parse(t, "zzz: 1").Map(&p, "alpha", "beta")
	wantIn(t, p.Error(), `unknown key "zzz"; known: alpha, beta`)
}

func TestScalars_MeanWhatIsWritten(t *testing.T) { // H03
	for _, s := range []string{"no", "off", "yes", "on", "y", "1.10", "0644", "00501", "0x1F", "1_000", ".inf", "2026-12-01", "12:30", "True", "1e3"} {
		var p strictyaml.Problems
		if got := parse(t, "k: "+s).Map(&p).Get("k").String(&p); got != s || len(p) != 0 {
			t.Errorf("String(%s) = %q, %v; want it as written", s, got, p)
		}
	}
	for _, s := range []string{"", "~", "null", "[a]", "{a: b}"} {
		var p strictyaml.Problems
		parse(t, "k: "+s).Map(&p).Get("k").String(&p)
		if len(p) != 1 {
			t.Errorf("String(%s) reports %v; want one problem", s, p)
		}
	}
	for s, advice := range map[string]string{"yes": "write true", "On": "write true", "no": "write false", "off": "write false", "True": "write true", "FALSE": "write false", `"true"`: "text in quotes", "1": "got 1", "": "got nothing"} {
		var p strictyaml.Problems
		if got := parse(t, "k: "+s).Map(&p).Get("k").Bool(&p); got || len(p) != 1 {
			t.Errorf("Bool(%s) = %v, %v; want one problem", s, got, p)
			continue
		}
		wantIn(t, p.Error(), "f.yaml:1:", advice)
	}
	for s, want := range map[string]int{"3": 3, "-3": -3, "0": 0} {
		var p strictyaml.Problems
		if got := parse(t, "k: "+s).Map(&p).Get("k").Int(&p); got != want || len(p) != 0 {
			t.Errorf("Int(%s) = %d, %v", s, got, p)
		}
	}
	for _, s := range []string{"03", "0x3", "1_0", `"3"`, "3.0", "+3", "1e3", "", "[3]", "99999999999999999999"} {
		var p strictyaml.Problems
		if parse(t, "k: "+s).Map(&p).Get("k").Int(&p); len(p) != 1 {
			t.Errorf("Int(%s) reports %v; want one problem", s, p)
		}
	}
}

func TestJSON_KeepsTypesAndRefusesWhatYAMLWouldConvert(t *testing.T) {
	src := `
a: no
b: "00501"
c: 1.10
d: -0
e: [1, 2.5e3, true, false, null]
f: 2026-12-01
g: 1.2.3
h: |
  text
i: '5'
j: {k: off}
k: v1
`
	var p strictyaml.Problems
	got := parse(t, src).JSON(&p)
	want := map[string]any{
		"a": "no", "b": "00501", "c": 1.1, "d": 0.0, "e": []any{1.0, 2500.0, true, false, nil},
		"f": "2026-12-01", "g": "1.2.3", "h": "text\n", "i": "5", "j": map[string]any{"k": "off"}, "k": "v1",
	}
	if diff := cmp.Diff(want, got); diff != "" || len(p) != 0 {
		t.Errorf("JSON: %v\n%s", p, diff)
	}
	for s, advice := range map[string]string{
		"0644": `("0644")`, "00501": "quotes", "0x1F": "quotes", "0o17": "quotes", "0b11": "quotes", "1_000": "quotes", ".inf": "quotes",
		"-.inf": "quotes", ".nan": "quotes", "+1": "quotes", ".5": "quotes", "1.": "quotes", "True": "write true", "~": "write null",
		"Null": "write null", "": `write null, ""`, "9007199254740993": "send it as a string", "1e400": "send it as a string", "<<": "quotes",
	} {
		var p strictyaml.Problems
		got := parse(t, "k: "+s).JSON(&p)
		if len(p) != 1 {
			t.Errorf("JSON(%s) = %v, %v; want one problem", s, got, p)
			continue
		}
		wantIn(t, p.Error(), "f.yaml:1:", advice)
	}
}

func TestParse_RefusesBombsWithoutUnpackingThem(t *testing.T) { // H06
	var bomb strings.Builder
	bomb.WriteString("l0: &l0 x\n")
	for i := 1; i <= 9; i++ {
		fmt.Fprintf(&bomb, "l%d: &l%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*l%d,", i-1), 10), ","))
	}
	for name, c := range map[string]struct{ src, says string }{
		"alias bomb":     {bomb.String(), "counting what aliases repeat"},
		"20 000 [":       {strings.Repeat("[", 20_000), "depth"},
		"65 levels":      {strings.Repeat("[", 65) + strings.Repeat("]", 65) + "\n", "deeper than 64"},
		"50 MB":          {strings.Repeat("a", 50<<20), "at most 1048576"},
		"1 MB of [":      {strings.Repeat("[", 1_000_000), "depth"},
		"1 MB of -":      {strings.Repeat("- ", 500_000), ""},
		"1 MB of {":      {strings.Repeat("{a: ", 250_000), ""},
		"1 MB of ?":      {strings.Repeat("? ", 500_000), ""},
		"cycle":          {"a: &a [*a]", "inside what it names"},
		"many values":    {"[" + strings.Repeat("1,", 60_000) + "]", "more than 50000 values"},
		"1 MB of quotes": {strings.Repeat(`"`, 999_999), ""},
	} {
		var got string
		if took := testkit.Allocated(func() { got = refused(t, c.src) }); took > 64<<20+128*min(len(c.src), 1<<20) {
			t.Errorf("%s: refused with %d bytes allocated for %d of input", name, took, len(c.src))
		}
		wantIn(t, got, c.says)
	}
	parse(t, "a: "+strings.Repeat("x", 1_000_000)) // one long line is a long text
	parse(t, strings.Repeat("[", 64)+strings.Repeat("]", 64))
}

func TestParse_RefusesKeysThatAreNotText(t *testing.T) { // H07
	for src, says := range map[string]string{
		"true: a":                            `write "true" in quotes`,
		"1: a":                               `write "1" in quotes`,
		"1: a\n\"1\": b":                     `write "1" in quotes`,
		"null: x":                            `write "null" in quotes`,
		"? [a,b]\n: c":                       "a key must be plain text",
		"a: &a b\n*a : c":                    "a key must be plain text",
		"base: &b {x: 1}\nk:\n  <<: *b\n":    "merge keys",
		"base: &b {x: 1}\nk: {<<: [*b, *b]}": "merge keys",
		"a: !!str 5":                         "tags such as !!str",
		"a: !secret x":                       "tags such as !secret",
		"a: !!binary aGk=":                   "tags such as !!binary",
		"!!str a: 1":                         "tags such as !!str",
		"a: *nope":                           "unknown anchor",
		"a: 1\n---\nb: 2\n":                  "second document",
		"":                                   "the file is empty",
		"# only a comment\n":                 "the file is empty",
		"a: 1\n b: 2\n":                      "not valid YAML",
		"a: \"\xff\"":                        "f.yaml:1:5: the file is not UTF-8",
		"a: [1, 2":                           "not valid YAML",
		"a:\n\t- b":                          "f.yaml:2",
		"k: \"\\ud800\"":                     "not valid YAML",
		"\xff\xfea\x00:\x00 \x00b\x00\n\x00": "not UTF-8",
	} {
		wantIn(t, refused(t, src), says)
	}
	n := parse(t, "on: 1\nno: 2\n2026-12-01: 3\n\"true\": 4\n")
	var p strictyaml.Problems
	if diff := cmp.Diff([]string{"on", "no", "2026-12-01", "true"}, n.Map(&p).Keys()); diff != "" || len(p) > 0 {
		t.Errorf("Keys: %v %s", p, diff)
	}
}

func TestParse_ExpandsAliases(t *testing.T) {
	var p strictyaml.Problems
	got := parse(t, "a: &x {n: [1]}\nb: *x\n").JSON(&p)
	x := map[string]any{"n": []any{1.0}}
	if diff := cmp.Diff(map[string]any{"a": x, "b": x}, got); diff != "" {
		t.Error(diff)
	}
}

func TestDuration_KnowsDaysAndWeeksAndWantsUnits(t *testing.T) { // H16
	for s, want := range map[string]time.Duration{
		"3d": 72 * time.Hour, "1w": 168 * time.Hour, "90m": 90 * time.Minute, "1.5h": 90 * time.Minute, "0s": 0,
		"1w2d12h": (168 + 48 + 12) * time.Hour, "1.5d": 36 * time.Hour, "250ms": 250 * time.Millisecond, "5µs": 5 * time.Microsecond,
	} {
		if got, err := strictyaml.ParseDuration(s); err != nil || got != want {
			t.Errorf("ParseDuration(%s) = %v, %v; want %v", s, got, err, want)
		}
	}
	for s, says := range map[string]string{
		"60": "has no unit", `"60"`: "has no unit", "0": "has no unit", "1h30": "not a duration", "-5m": "negative", "5 m": "not a duration", "d": "not a duration",
		"1y": "not a duration", "9999999w": "not a duration", "1..5h": "not a duration", "": "got nothing", "[5m]": "got a list", `""`: "got text", "106751d24h": "not a duration",
	} {
		var p strictyaml.Problems
		if parse(t, "k: "+s).Map(&p).Get("k").Duration(&p); len(p) != 1 {
			t.Errorf("Duration(%s) reports %v; want one problem", s, p)
			continue
		}
		wantIn(t, p.Error(), says)
	}
}

func TestMap_ReadsAbsentKeysAsNothing(t *testing.T) {
	var p strictyaml.Problems
	m := parse(t, "a: {b: 1}").Map(&p, "a", "z")
	z := m.Get("z")
	if z.String(&p) != "" || z.Int(&p) != 0 || z.Bool(&p) || z.Duration(&p) != 0 || z.Strings(&p) != nil || z.JSON(&p) != nil || z.Map(&p, "x").Need("y") != nil || len(p) != 0 {
		t.Errorf("an absent key reports %v", p)
	}
	m.Need("z")
	wantIn(t, p.Error(), `f.yaml:1:1: the key "z" is missing`)
	if m.Has("z") || !m.Has("a") {
		t.Error("Has is wrong")
	}
}

func TestFind_PointsIntoTheFile(t *testing.T) {
	n := parse(t, "steps:\n  - id: a\n    with:\n      url: \"x/${params.a}\"\n      note: caf\u00e9 ${b}\n      body: |\n        first\n        then ${c}\n      \"a/b\": 1\n")
	for _, c := range []struct {
		pointer string
		offset  int
		want    string
	}{
		{"", -1, "f.yaml:1:1"},
		{"/steps/0/with/url", -1, "f.yaml:4:12"},
		{"/steps/0/with/url", 2, "f.yaml:4:15"},
		{"/steps/0/with/note", len("café "), "f.yaml:5:18"},
		{"/steps/0/with/body", len("first\nthen "), "f.yaml:8:14"},
		{"/steps/0/with/a~1b", -1, "f.yaml:9:14"},
		{"/steps/0/nothing/here", -1, "f.yaml:2:5"},
		{"/steps/7", -1, "f.yaml:2:3"},
	} {
		if got := n.FindOffset(c.pointer, c.offset).String(); got != c.want {
			t.Errorf("FindOffset(%s, %d) = %s; want %s", c.pointer, c.offset, got, c.want)
		}
	}
}

func TestProblems_AreSortedAndBounded(t *testing.T) {
	var p strictyaml.Problems
	if p.Err() != nil {
		t.Error("no problems are an error")
	}
	for i := 300; i > 0; i-- {
		p.Add(strictyaml.Pos{File: "f", Line: i, Col: 1}, "x%d", i)
	}
	lines := strings.Split(p.Err().Error(), "\n")
	if len(lines) != 101 || !strings.HasPrefix(lines[0], "f:201:1: ") || !strings.Contains(lines[100], "more faults") {
		t.Errorf("%d lines, first %q, last %q", len(lines), lines[0], lines[len(lines)-1])
	}
}

func TestParse_ReadsTheExamples(t *testing.T) {
	files, _ := filepath.Glob("../../examples/*/*.yaml")
	if len(files) == 0 {
		t.Fatal("no examples")
	}
	for _, f := range files {
		src, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		n, err := strictyaml.Parse(f, src)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		var p strictyaml.Problems
		n.JSON(&p)
		if len(p) > 0 {
			t.Errorf("%v", p)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"a: 1", "a: &x [1]\nb: *x", "? a\n: b", "a: |\n  x\n", "- - -", "{a: [1, {b: c}]}", "a: 'it''s'", "%YAML 1.2\n---\na: 1", "a: !!str 1", "<<: x", "a: \"\\u00e9\""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		n, err := strictyaml.Parse("f", src)
		if err != nil {
			if _, ok := errors.AsType[strictyaml.Problems](err); !ok {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		var p strictyaml.Problems
		n.JSON(&p)
		for i := range 20 {
			n.At(i)
		}
		n.String(&p)
		n.Int(&p)
		n.Bool(&p)
		n.Duration(&p)
	})
}
