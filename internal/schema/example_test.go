package schema_test

import (
	"encoding/json"
	"testing"

	"countersign/internal/schema"
)

func TestExample_FitsItsSchema(t *testing.T) {
	for src, want := range map[string]string{
		`{"type":"object","required":["a"],"properties":{"a":{"type":"string"},"n":{"type":"integer","minimum":5},"l":{"type":"array","items":{"type":"object","properties":{"b":{"type":"boolean"}}}}},"additionalProperties":false}`: `{"a":"example","l":[{"b":true}],"n":5}`,
		`{"type":"object","properties":{"w":{"type":"string","pattern":"^\\d+$","examples":["47"]},"s":{"enum":["x","y"]},"d":{"type":"string","default":"z","maxLength":2}}}`:                                                         `{"d":"z","s":"x","w":"47"}`,
		`{"type":"object","properties":{"t":{"type":"string","minLength":9,"maxLength":10},"u":{"type":"string","maxLength":3},"m":{"type":"string","format":"email"}}}`:                                                               `{"m":"somebody@example.org","t":"examplexx","u":"exa"}`,
		`{"type":"object","properties":{"x":{"type":"number","exclusiveMinimum":1,"maximum":2},"y":{"type":"integer","maximum":-3},"z":{"type":"integer","multipleOf":7}}}`:                                                            `{"x":2,"y":-3,"z":7}`,
		`{"type":"object"}`: `{}`,
		`{"type":"object","required":["a","b"],"properties":{"b":{"type":"integer"}}}`: `{"a":"example","b":1}`,
	} {
		var source any
		if err := json.Unmarshal([]byte(src), &source); err != nil {
			t.Fatal(err)
		}
		s, err := schema.Compile(source, schema.Options{Object: true})
		if err != nil {
			t.Fatalf("%s: %v", src, err)
		}
		v, err := s.Example()
		got, _ := json.Marshal(v)
		if err != nil || string(got) != want {
			t.Errorf("%s: %s (%v), want %s", src, got, err, want)
		}
	}
}

func TestExample_SaysWhereItHasToBeTold(t *testing.T) {
	s, err := schema.Compile(map[string]any{"type": "object", "properties": map[string]any{"week": map[string]any{"type": "string", "pattern": `^\d{4}-W\d{2}$`}}}, schema.Options{Object: true})
	if err != nil {
		t.Fatal(err)
	}
	if v, err := s.Example(); err == nil {
		t.Errorf("a pattern is fitted by %v", v)
	}
}
