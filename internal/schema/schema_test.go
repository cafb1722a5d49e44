package schema_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"countersign/internal/problem"
	"countersign/internal/schema"
	"countersign/internal/strictyaml"
	"countersign/internal/testkit"
)

// decode reads YAML, the form in which schemas are written.
func decode(t testing.TB, src string) any {
	t.Helper()
	n, err := strictyaml.Parse("s.yaml", []byte(src))
	if err != nil {
		t.Fatalf("%s: %v", src, err)
	}
	var p strictyaml.Problems
	v := n.JSON(&p)
	if len(p) > 0 {
		t.Fatalf("%s: %v", src, p)
	}
	return v
}

func compile(t testing.TB, src string) *schema.Schema {
	t.Helper()
	s, err := schema.Compile(decode(t, src), schema.Options{})
	if err != nil {
		t.Fatalf("Compile(%s): %v", src, err)
	}
	return s
}

// faults are the fields of the problem that err must be, "pointer: message".
func faults(t testing.TB, err error) []string {
	t.Helper()
	p, ok := errors.AsType[*problem.Error](err)
	if !ok || p.Kind != problem.Invalid && p.Kind != problem.Malformed {
		t.Fatalf("%T %v; want an invalid problem", err, err)
	}
	var all []string
	for _, f := range p.Fields {
		all = append(all, f.Pointer+": "+f.Message)
	}
	return all
}

const refund = `
type: object
additionalProperties: false
required: [order_id, amount]
properties:
  order_id: {type: string, pattern: "^[0-9]{4,10}$", title: Order}
  amount: {type: integer, minimum: 1, maximum: 1000000, description: In cents}
  currency: {enum: [EUR, USD]}
  note: {type: string, maxLength: 5, default: ""}
  ratio: {type: number, exclusiveMinimum: 0, exclusiveMaximum: 1, multipleOf: 0.01}
  when: {type: string, format: date-time}
  tags: {type: array, items: {type: string, minLength: 2}, uniqueItems: true, minItems: 1, maxItems: 2}
  to: {anyOf: [{type: string}, {type: object, required: [id]}]}
  mode: {const: fast}
  extra: {type: [object, "null"], maxProperties: 1, propertyNames: {pattern: "^[a-z]+$"}}
`

func TestValidate_ExplainsEachFaultOnceInPlainWords(t *testing.T) {
	s := compile(t, refund)
	for input, want := range map[string][]string{
		`{"order_id":"12345","amount":50}`:                             nil,
		`{"order_id":"12345","amount":1e2}`:                            nil, // B22
		`{"order_id":"12345","amount":1.0}`:                            nil,
		`{}`:                                                           {"/amount: is required but missing", "/order_id: is required but missing"},
		`[]`:                                                           {": must be an object, not an array"},
		`{"order_id":"12345","amount":"50"}`:                           {"/amount: must be an integer, not a string"}, // B01, B15
		`{"order_id":"12345","amount":-1}`:                             {"/amount: must be at least 1; got -1"},
		`{"order_id":"12345","amount":1.5}`:                            {"/amount: must be an integer, not a number"},
		`{"order_id":"12345","amount":2000000}`:                        {"/amount: must be at most 1000000; got 2000000"},
		`{"order_id":"x","amount":1}`:                                  {`/order_id: "x" does not match the pattern ^[0-9]{4,10}$`},
		`{"order_id":"12345","amount":1,"amout":2,"zzz":3}`:            {`/amout: is not in the schema; did you mean "amount"?`, `/zzz: is not in the schema`},
		`{"order_id":"12345","amount":1,"currency":"GBP"}`:             {`/currency: must be one of "EUR", "USD"; got "GBP"`},
		`{"order_id":"12345","amount":1,"note":"123456"}`:              {"/note: must have at most 5 characters; has 6"},
		`{"order_id":"12345","amount":1,"ratio":0}`:                    {"/ratio: must be more than 0; got 0"},
		`{"order_id":"12345","amount":1,"ratio":0.015}`:                {"/ratio: must be a multiple of 0.01; got 0.015"},
		`{"order_id":"12345","amount":1,"ratio":1}`:                    {"/ratio: must be less than 1; got 1"},
		`{"order_id":"12345","amount":1,"when":"yesterday"}`:           {`/when: "yesterday" is not a valid date-time`},
		`{"order_id":"12345","amount":1,"tags":["a","bb"]}`:            {"/tags/0: must have at least 2 characters; has 1"},
		`{"order_id":"12345","amount":1,"tags":["bb","bb"]}`:           {"/tags: holds the same item twice: items 0 and 1"},
		`{"order_id":"12345","amount":1,"tags":[]}`:                    {"/tags: must have at least 1 item; has 0"},
		`{"order_id":"12345","amount":1,"to":7}`:                       {"/to: fits none of the allowed forms: must be a string, not a number; or must be an object, not a number"},
		`{"order_id":"12345","amount":1,"to":{}}`:                      {"/to: fits none of the allowed forms: must be a string, not an object; or /id is required but missing"},
		`{"order_id":"12345","amount":1,"mode":"slow"}`:                {`/mode: must be "fast"; got "slow"`},
		`{"order_id":"12345","amount":1,"extra":{"A":1}}`:              {`/extra/A: the name "A" is not allowed`},
		`{"order_id":"12345","amount":1,"extra":{"a":1,"b":2}}`:        {"/extra: must have at most 1 member; has 2"},
		`{"order_id":"12345","amount":null}`:                           {"/amount: must be an integer, not null"},
		`{"order_id":"12345","amount":1,"note":true,"mode":[1,2,"x"]}`: {`/mode: must be "fast"; got [1,2,"x"]`, "/note: must be a string, not true or false"},
	} {
		for _, v := range []any{json.RawMessage(input), decodeJSON(t, input)} {
			err := s.Validate(v)
			var got []string
			if err != nil {
				got = faults(t, err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("Validate(%T %s) (-want +got):\n%s", v, input, diff)
			}
		}
	}
}

func decodeJSON(t testing.TB, src string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(src), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestValidate_PrintsBigNumbersExactly(t *testing.T) { // B25
	s := compile(t, "{type: object, properties: {n: {maximum: 9007199254740992}, d: {minimum: 0.1}}}")
	err := s.Validate(json.RawMessage(`{"n":9007199254740993,"d":0.01}`))
	want := []string{"/d: must be at least 0.1; got 0.01", "/n: must be at most 9007199254740992; got 9007199254740993"}
	if diff := cmp.Diff(want, faults(t, err)); diff != "" {
		t.Error(diff)
	}
	if got := faults(t, s.Validate(json.RawMessage(`{"n":1e300}`))); got[0] != "/n: must be at most 9007199254740992; got 1e+300" {
		t.Errorf("a huge number prints as %q", got)
	}
	for _, n := range []string{"1e999999999", "1e-999999999", "1" + strings.Repeat("0", 900)} {
		var err error
		took := testkit.Allocated(func() { err = s.Validate(json.RawMessage(`{"n":` + n + `}`)) })
		if err == nil || took > 1<<20 { // written out it would have hundreds of megabytes
			t.Errorf("Validate(%.20s) = %v with %d bytes allocated", n, err, took)
		}
	}
}

func TestHiding_KeepsValuesOutOfMessages(t *testing.T) {
	open := compile(t, `{type: object, properties: {pin: {type: string, pattern: "^[0-9]+$"}, c: {properties: {n: {maximum: 5}, e: {enum: [a]}, x: {anyOf: [{const: 1}, {minLength: 9}]}}}}}`)
	s := open.Hiding("/pin", "/c")
	bad := json.RawMessage(`{"pin":"hunter2","c":{"n":1234,"e":"hunter2","x":"hunter2"}}`)
	text := s.Validate(bad).Error()
	if strings.Contains(text, "hunter2") || strings.Contains(text, "1234") || !strings.Contains(text, "/c/n: must be at most 5; got a value that is not shown") {
		t.Errorf("hidden values show: %s", text)
	}
	if !strings.Contains(open.Validate(bad).Error(), "hunter2") {
		t.Error("Hiding changed the schema it was called on")
	}
}

func TestHiding_ReachesItemsOfListsAndWhatHoldsThem(t *testing.T) {
	open := compile(t, `{type: object, properties: {cards: {items: {properties: {pin: {pattern: "^[0-9]+$"}}}}, one: {enum: [{pin: a}]}}}`)
	text := open.Hiding("/cards/-/pin", "/one/pin").Validate(json.RawMessage(`{"cards":[{"pin":"hunter2"}],"one":{"pin":"hunter2"}}`)).Error()
	if strings.Contains(text, "hunter2") || !strings.Contains(text, "/cards/0/pin") || !strings.Contains(text, "/one: ") {
		t.Errorf("hidden values show: %s", text)
	}
}

func TestValidate_CapsItsFaults(t *testing.T) {
	s := compile(t, "{type: array, items: {type: string}}")
	list := make([]any, 500)
	for i := range list {
		list[i] = float64(i)
	}
	got := faults(t, s.Validate(list))
	if len(got) != schema.FaultsMax+1 || !strings.Contains(got[schema.FaultsMax], "450 more faults") {
		t.Errorf("%d faults, the last %q", len(got), got[len(got)-1])
	}
}

func TestValidate_RefusesWhatIsNoJSON(t *testing.T) {
	s := compile(t, "{}")
	for _, v := range []any{json.RawMessage(`{`), json.RawMessage(`1 2`), json.RawMessage(``), struct{}{}, map[string]any{"a": make(chan int)}} {
		if err := s.Validate(v); err == nil {
			t.Errorf("Validate(%v) passes", v)
		}
	}
	deep := any(1.0)
	for range 70 {
		deep = []any{deep}
	}
	if err := s.Validate(deep); err == nil || !strings.Contains(err.Error(), "deeper than 64") {
		t.Errorf("70 levels: %v", err)
	}
}

func TestCompile_LoadsNothingFromElsewhere(t *testing.T) { // H11
	asked := 0
	stub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		fmt.Fprint(w, "{}")
	}))
	defer stub.Close()
	local := filepath.Join(t.TempDir(), "x.json")
	if err := os.WriteFile(local, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, ref := range []string{stub.URL + "/x", "file://" + local, local, "other.json", "https://json-schema.org/draft/2020-12/schema", "mem:///schema"} {
		v := map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"$ref": ref}}}
		_, err := schema.Compile(v, schema.Options{})
		if got := faults(t, err); len(got) != 1 || !strings.HasPrefix(got[0], "/properties/a/$ref: ") || !strings.Contains(got[0], "outside this document") {
			t.Errorf("$ref %s: %v", ref, got)
		}
		delete(v["properties"].(map[string]any), "a")
		v["$schema"] = ref
		if _, err := schema.Compile(v, schema.Options{}); (err == nil) != (ref == "https://json-schema.org/draft/2020-12/schema") {
			t.Errorf("$schema %s: %v", ref, err)
		}
	}
	if asked != 0 {
		t.Errorf("the stub was asked %d times", asked)
	}
	s := compile(t, `{$id: "https://example.com/x", type: object, properties: {a: {$ref: "#/$defs/n~1a%25"}}, $defs: {"n/a%": {type: integer}}}`)
	if got := faults(t, s.Validate(json.RawMessage(`{"a":"x"}`))); got[0] != "/a: must be an integer, not a string" {
		t.Errorf("an inner $ref: %v", got)
	}
	tree := compile(t, `{type: object, additionalProperties: false, properties: {kids: {type: array, items: {$ref: "#"}}}}`)
	if err := tree.Validate(json.RawMessage(`{"kids":[{"kids":[{"kids":[]}]}]}`)); err != nil {
		t.Errorf("a recursive schema: %v", err)
	}
	if got := faults(t, tree.Validate(json.RawMessage(`{"kids":[{"kid":[]}]}`))); got[0] != `/kids/0/kid: is not in the schema; did you mean "kids"?` {
		t.Errorf("a recursive schema: %v", got)
	}
	if err := compile(t, `{$ref: "#/$defs/a", $defs: {a: {$ref: "#/$defs/b"}, b: {$ref: "#/$defs/a"}}}`).Validate(1.0); err == nil {
		t.Error("a circle of $ref passes")
	}
}

func TestCompile_RefusesWhatTheStandardIgnores(t *testing.T) {
	for src, want := range map[string]string{
		`{type: object, requried: [a]}`:                        `/requried: unknown keyword "requried"; did you mean "required"?`,
		`{type: object, properties: {a: {typ: string}}}`:       `/properties/a/typ: unknown keyword "typ"; did you mean "type"?`,
		`{type: object, properties: {a: {format: date_time}}}`: `/properties/a/format: unknown format "date_time"; did you mean "date-time"?`,
		`{type: object, definitions: {}}`:                      `/definitions: write $defs; definitions is the old name`,
		`{type: strin}`:                                        `/type: `,
		`{type: object, properties: []}`:                       `/properties: `,
		`{minimum: "1"}`:                                       `/minimum: must be a number, not a string`,
		`{maxLength: -1}`:                                      `/maxLength: must be at least 0; got -1`,
		`{$ref: "#/$defs/x"}`:                                  `/$ref: there is nothing at "#/$defs/x" in this schema`,
		`{$anchor: x}`:                                         `/$anchor: $anchor is not used here`,
		`{properties: {a: {$id: x}}}`:                          `/properties/a/$id: $id may stand only at the top`,
		`{type: object, additionalProperties: false, required: [amout], properties: {amount: {}}}`: `/required/0: "amout" is required but is not among the properties; did you mean "amount"?`,
		`{properties: {n: {type: integer, default: "x"}}}`:                                         `/properties/n/default: the default does not fit: must be an integer, not a string`,
		`{properties: {o: {default: {a: 1}, additionalProperties: false}}}`:                        `/properties/o/default/a: the default does not fit: is not in the schema`,
		`{properties: {n: {$ref: "#/$defs/n", default: 0}}, $defs: {n: {minimum: 1}}}`:             `/properties/n/default: the default does not fit: must be at least 1; got 0`,
		`{pattern: "^(?=.*\\d).+$"}`:                                                               `/pattern: the pattern ^(?=.*\d).+$ uses look-ahead or look-behind; patterns are RE2`, // H15
		`{pattern: "^(a)\\1$"}`:                                                                    `/pattern: the pattern ^(a)\1$ refers back to a group`,
		`{pattern: "^(?>a)$"}`:                                                                     `/pattern: the pattern ^(?>a)$ uses an atomic`,
		`{pattern: "["}`:                                                                           `/pattern: the pattern [ is not a regular expression (RE2)`,
		`{patternProperties: {"(": {}}}`:                                                           `/patternProperties/(: the pattern ( is not a regular expression`,
		`{items: {anyOf: [{nott: {}}]}}`:                                                           `/items/anyOf/0/nott: unknown keyword "nott"; did you mean "not"?`,
	} {
		_, err := schema.Compile(decode(t, src), schema.Options{})
		if got := faults(t, err); len(got) == 0 || !strings.HasPrefix(got[0], want) {
			t.Errorf("Compile(%s): %q; want %q", src, got, want)
		}
	}
	for _, v := range []any{"x", 1.0, nil, []any{}, struct{}{}} {
		if _, err := schema.Compile(v, schema.Options{}); err == nil {
			t.Errorf("Compile(%v) passes", v)
		}
	}
	for src, object := range map[string]bool{"{}": false, "{type: string}": false, "{type: object}": true, "{type: [object]}": false} {
		if _, err := schema.Compile(decode(t, src), schema.Options{Object: true}); (err == nil) != object {
			t.Errorf("Compile(%s, Object): %v", src, err)
		}
	}
	deep, wide := any(map[string]any{}), map[string]any{}
	for range 40 {
		deep = map[string]any{"items": map[string]any{"not": deep}}
	}
	for i := range 11_000 {
		wide[fmt.Sprint(i)] = true
	}
	for name, v := range map[string]any{"deep": deep, "wide": map[string]any{"properties": wide}} {
		if _, err := schema.Compile(v, schema.Options{}); err == nil {
			t.Errorf("a schema that is too %s passes", name)
		}
	}
	compile(t, "{x-anything: 1, title: t, examples: [1], deprecated: true, $comment: c}")
	compile(t, "true")
}

func TestPattern_RunsInLinearTime(t *testing.T) { // H15
	s := compile(t, `{pattern: "(a+)+$"}`)
	if err := s.Validate(strings.Repeat("a", 50<<10) + "b"); err == nil { // a backtracking engine would never come back
		t.Error("50 kB that do not match pass")
	}
}

func TestLint_WarnsOfWhatIsRarelyMeant(t *testing.T) { // H13
	s := compile(t, `
type: object
properties:
  a: {pattern: "[a-z]+"}
  b: {pattern: "^a|b$"}
  c: {pattern: "^(a|b)$"}
  d: {pattern: "^a$|^b$"}
  e: {type: object, additionalProperties: {type: string}}
  f: {type: array, items: {type: object, properties: {x: {default: 1}}}}
`)
	want := []string{
		"(top): extra keys are accepted; write additionalProperties: false unless that is meant",
		"/properties/a/pattern: the pattern [a-z]+ is not anchored, so it accepts any text that contains a match; write ^(?:[a-z]+)$",
		"/properties/b/pattern: the pattern ^a|b$ is not anchored, so it accepts any text that contains a match; write ^(?:^a|b$)$",
		"/properties/f/items: extra keys are accepted; write additionalProperties: false unless that is meant",
		"/properties/f/items/properties/x/default: this default is not applied: only those of properties are",
	}
	if diff := cmp.Diff(want, s.Lint()); diff != "" {
		t.Error(diff)
	}
	if err := s.Validate(json.RawMessage(`{"a":"123abc;rm"}`)); err != nil {
		t.Errorf("the warning is not about a real hole: %v", err)
	}
}

func TestFormats_AreAllAsserted(t *testing.T) {
	for format, bad := range map[string]string{
		"date": "2026-13-01", "time": "25:00:00Z", "date-time": "2026-12-01", "duration": "3d", "period": "x", "email": "x", "hostname": "-", "ipv4": "1.2.3", "ipv6": "1::2::3",
		"uri": "x", "uri-reference": "\\", "iri": "x", "iri-reference": "\\", "uri-template": "{", "uuid": "x", "regex": "(", "json-pointer": "a", "relative-json-pointer": "/a", "semver": "1",
	} {
		s, err := schema.Compile(map[string]any{"format": format}, schema.Options{})
		if err != nil {
			t.Errorf("%s: %v", format, err)
			continue
		}
		if err := s.Validate(bad); err == nil {
			t.Errorf("format %s accepts %q", format, bad)
		}
	}
}

func FuzzCompile(f *testing.F) {
	for _, s := range []string{refund, "{$ref: '#'}", "{allOf: [{$ref: '#'}]}", "{pattern: '(?=a)'}", "{properties: {a: {default: {}}}}", "true", "{$ref: '#/$defs/a', $defs: {a: {type: integer}}}", "{properties: {a: {$ref: '#', default: {}}}}"} {
		f.Add([]byte(s), []byte(`{"a":{"a":[1,"x",null]}}`))
	}
	f.Fuzz(func(t *testing.T, src, value []byte) {
		n, err := strictyaml.Parse("f", src)
		if err != nil {
			return
		}
		var p strictyaml.Problems
		s, err := schema.Compile(n.JSON(&p), schema.Options{})
		if err != nil {
			faults(t, err)
			return
		}
		s.Lint()
		s.Fields("")
		s.Field("/a/0/b")
		if err := s.Validate(json.RawMessage(value)); err != nil {
			faults(t, err)
		}
		if v, err := s.WithDefaults(json.RawMessage(value)); err == nil {
			_ = s.Validate(v)
		}
	})
}
