package sealed_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"countersign/internal/canon"
	"countersign/internal/sealed"

	"github.com/google/go-cmp/cmp"
)

var (
	one = sealed.Commitment(sealed.Prefix + strings.Repeat("1a", 32))
	two = sealed.Commitment(sealed.Prefix + strings.Repeat("2b", 32))
)

func decoded(t *testing.T, s string) any {
	t.Helper()
	v, err := canon.Value(json.RawMessage(s))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestOf_ReadsTheFormAndNothingElse(t *testing.T) {
	if c, ok := sealed.Of(one.Leaf()); !ok || c != one {
		t.Errorf("Of(its own leaf) = %q, %v", c, ok)
	}
	for _, s := range []string{`"x"`, `{}`, `{"$commit":1}`, `{"$commit":"hmac-sha256:1a"}`, `{"$commit":"` + string(one) + `","more":1}`, `null`, `[]`,
		`{"$commit":"` + strings.ToUpper(string(one)) + `"}`} {
		if _, ok := sealed.Of(decoded(t, s)); ok {
			t.Errorf("%s was read as a sealed leaf", s)
		}
	}
}

func TestReplace_LeavesAndTexts(t *testing.T) {
	doc := decoded(t, `{"a":{"$commit":"`+string(one)+`"},"b":["x",{"$commit":"`+string(two)+`"}],"c":"is {\"$commit\":\"`+string(two)+`\"}!","d":1}`)
	values := map[sealed.Commitment]any{one: "first", two: map[string]any{"n": float64(2)}}
	value := func(c sealed.Commitment) (any, error) { return values[c], nil }

	got, err := sealed.Replace(doc, value)
	if err != nil {
		t.Fatal(err)
	}
	want := decoded(t, `{"a":"first","b":["x",{"n":2}],"c":"is {\"$commit\":\"`+string(two)+`\"}!","d":1}`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Replace: %s", diff)
	}
	if got, err = sealed.ReplaceAll(doc, value); err != nil || got.(map[string]any)["c"] != `is {"n":2}!` {
		t.Errorf("ReplaceAll = %v, %v", got, err)
	}
	if p := sealed.Places(doc); len(p) != 2 || p[0] != (sealed.Place{Pointer: "/a", Commitment: one}) || p[1].Pointer != "/b/1" {
		t.Errorf("Places = %v", p)
	}
	if text, _ := canon.Marshal(sealed.Hide(doc)); strings.Contains(string(text), sealed.Mark) {
		t.Errorf("Hide left a commitment: %s", text)
	}
}

func TestReplace_FailsWhereAValueCannotBeHad(t *testing.T) {
	gone := errors.New("gone")
	for _, doc := range []any{one.Leaf(), []any{one.Leaf()}, map[string]any{"x": one.Leaf()}, `{"$commit":"` + string(one) + `"}`} {
		if _, err := sealed.ReplaceAll(doc, func(sealed.Commitment) (any, error) { return nil, gone }); !errors.Is(err, gone) {
			t.Errorf("%v: %v, want gone", doc, err)
		}
	}
}

func TestForged_FindsTheKeyAnywhere(t *testing.T) {
	for doc, want := range map[string]string{`{"a":[0,{"$commit":7}]}`: "/a/1", `{"$commit":"x","y":1}`: "",
		`{"a":["see {\"$commit\":\"` + string(one) + `\"}"]}`: "/a/0"} {
		if at, found := sealed.Forged(decoded(t, doc)); !found || at != want {
			t.Errorf("%s: %q, %v", doc, at, found)
		}
	}
	if _, found := sealed.Forged(decoded(t, `{"a":"$commit"}`)); found {
		t.Error("a text that says $commit was refused")
	}
}

func TestForeign_FindsWhatTheOwnDocumentDoesNotHave(t *testing.T) {
	own := json.RawMessage(`{"card":{"$commit":"` + string(one) + `"}}`)
	for doc, want := range map[string]string{`{"a":[0,{"$commit":"` + string(two) + `"}]}`: "/a/1", `{"a":"see {\"$commit\":\"` + string(two) + `\"}"}`: "/a"} {
		if at, found := sealed.Foreign(decoded(t, doc), own); !found || at != want {
			t.Errorf("%s: %q, %v", doc, at, found)
		}
	}
	if at, found := sealed.Foreign(decoded(t, `{"a":{"$commit":"`+string(one)+`"},"b":"of {\"$commit\":\"`+string(one)+`\"}","c":{"$commit":7}}`), own); found {
		t.Errorf("its own at %q was refused", at)
	}
}
