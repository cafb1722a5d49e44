package schema_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"countersign/internal/schema"
)

func TestWithDefaults_FillsPropertiesToAnyDepth(t *testing.T) { // B15
	s := compile(t, `
type: object
properties:
  dry_run: {type: boolean, default: true}
  n: {default: 1.50}
  o: {$ref: "#/$defs/o"}
  p: {type: object, default: {}, properties: {q: {default: [1]}}}
  l: {type: array, items: {properties: {x: {default: 1}}}}
  none: {type: string}
allOf: [{properties: {all: {default: null}}}]
$defs: {o: {properties: {deep: {default: yes}}}}
`)
	for input, want := range map[string]string{
		`{}`:                                 `{"all":null,"dry_run":true,"n":1.5,"p":{"q":[1]}}`,
		`{"dry_run":false,"o":{},"n":null}`:  `{"all":null,"dry_run":false,"n":null,"o":{"deep":"yes"},"p":{"q":[1]}}`,
		`{"p":{"q":2,"z":3},"l":[{}],"o":1}`: `{"all":null,"dry_run":true,"l":[{}],"n":1.5,"o":1,"p":{"q":2,"z":3}}`,
		`[]`:                                 `[]`,
	} {
		for _, v := range []any{json.RawMessage(input), decodeJSON(t, input)} {
			before, _ := json.Marshal(v)
			got, err := s.WithDefaults(v)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := json.Marshal(got)
			if string(text) != want {
				t.Errorf("WithDefaults(%s) = %s; want %s", input, text, want)
			}
			if after, _ := json.Marshal(v); string(after) != string(before) {
				t.Errorf("WithDefaults changed its argument: %s", after)
			}
		}
	}
	one, _ := s.WithDefaults(map[string]any{})
	one.(map[string]any)["p"].(map[string]any)["q"].([]any)[0] = 99.0
	two, _ := s.WithDefaults(map[string]any{})
	if two.(map[string]any)["p"].(map[string]any)["q"].([]any)[0] != 1.0 {
		t.Error("a default is shared between results")
	}
	if _, err := schema.Compile(decode(t, `{properties: {a: {$ref: "#", default: {}}}}`), schema.Options{}); err == nil {
		t.Error("a default without end passes")
	}
}

func TestField_TellsWhatAFormNeeds(t *testing.T) {
	s := compile(t, refund)
	amount, ok := s.Field("/amount")
	want := schema.Field{Pointer: "/amount", Name: "amount", Type: "integer", Description: "In cents", Minimum: "1", Maximum: "1000000", Required: true}
	if diff := cmp.Diff(want, amount); diff != "" || !ok {
		t.Errorf("Field(/amount): %v\n%s", ok, diff)
	}
	currency, _ := s.Field("/currency")
	if diff := cmp.Diff(schema.Field{Pointer: "/currency", Name: "currency", Type: "string", Enum: []any{"EUR", "USD"}}, currency); diff != "" {
		t.Error(diff)
	}
	note, _ := s.Field("/note")
	if diff := cmp.Diff(schema.Field{Pointer: "/note", Name: "note", Type: "string", MaxLength: 5, Default: "", HasDefault: true}, note); diff != "" {
		t.Error(diff)
	}
	item, ok := s.Field("/tags/7")
	if !ok || item.Type != "string" || item.MinLength != 2 {
		t.Errorf("Field(/tags/7) = %+v, %v", item, ok)
	}
	extra, _ := s.Field("/extra")
	if extra.Type != "object" || !extra.Nullable {
		t.Errorf("Field(/extra) = %+v", extra)
	}
	for _, p := range []string{"/nothing", "/amount/x", "amount", "/extra/a", "/tags/x", "/to/id"} {
		if f, ok := s.Field(p); ok {
			t.Errorf("Field(%s) = %+v; want none", p, f)
		}
	}
	root, ok := s.Field("")
	if !ok || root.Type != "object" {
		t.Errorf("Field(\"\") = %+v, %v", root, ok)
	}
	var names []string
	for _, f := range s.Fields("") {
		names = append(names, f.Name)
	}
	if got := strings.Join(names, " "); got != "order_id amount currency extra mode note ratio tags to when" {
		t.Errorf("Fields = %s", got)
	}
}

func TestField_TakesMoneyAndExamples(t *testing.T) {
	s := compile(t, "{properties: {a: {type: integer, x-money: /currency, examples: [125, 5]}, b: {$ref: \"#/$defs/m\", x-money: USD}}, $defs: {m: {type: integer, x-money: EUR}}}")
	a, _ := s.Field("/a")
	b, _ := s.Field("/b")
	if got := fmt.Sprint(a.Money, a.Examples, b.Money); got != "/currency[125 5]USD" {
		t.Errorf("money and examples are %s", got)
	}
}

func TestField_FollowsRefsAndHints(t *testing.T) {
	s := compile(t, `
properties:
  a: {$ref: "#/$defs/money", title: Mine}
  b: {type: object, additionalProperties: {type: number}}
  c: {type: object, patternProperties: {"^x": {type: boolean}}}
  d: {allOf: [{type: string}, {maxLength: 9}]}
  e: {type: string, maxLength: 2000}
  f: {type: string, x-multiline: true}
  g: {type: string, contentMediaType: text/markdown}
  h: {type: string, maxLength: 2000, format: uri}
  i: {type: array, prefixItems: [{const: 1}], items: {type: string}}
$defs: {money: {type: string, title: Money, format: semver}}
`)
	for pointer, want := range map[string]string{
		"/a": "string Mine semver false", "/b/any": "number   false", "/c/xy": "boolean   false", "/d": "string   false", "/e": "string   true",
		"/f": "string   true", "/g": "string   true", "/h": "string  uri false", "/i/0": "   false", "/i/1": "string   false", "/i/-": "string   false",
	} {
		f, ok := s.Field(pointer)
		if got := fmt.Sprintf("%s %s %s %v", f.Type, f.Title, f.Format, f.Multiline); got != want || !ok {
			t.Errorf("Field(%s) = %q, %v; want %q", pointer, got, ok, want)
		}
	}
	if f, _ := s.Field("/i/0"); f.Const != 1.0 || !f.HasConst {
		t.Errorf("Field(/i/0) = %+v", f)
	}
	if f, _ := s.Field("/d"); f.MaxLength != 9 {
		t.Errorf("Field(/d) = %+v", f)
	}
	if _, ok := s.Field("/c/ay"); ok {
		t.Error("a name that matches no pattern is declared")
	}
}
