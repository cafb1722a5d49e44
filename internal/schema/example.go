package schema

import (
	"encoding/json"
	"strings"

	"countersign/internal/canon"
)

// exampleDepth bounds the nesting of an example.
const exampleDepth = 16

// Example makes a value that fits the schema: of defaults, examples, constants
// and the first of listed values where the schema has them, else the simplest
// of its type. The error says where it has to be told: a pattern, for instance,
// needs `examples` or a default beside it.
func (s *Schema) Example() (any, error) {
	v := s.example("", 0)
	if err := s.Validate(v); err != nil {
		return nil, err
	}
	return v, nil
}

func (s *Schema) example(pointer string, depth int) any {
	f, ok := s.Field(pointer)
	if !ok || depth > exampleDepth {
		return nil
	}
	switch {
	case f.HasConst:
		return f.Const
	case f.HasDefault:
		return f.Default
	case len(f.Examples) > 0:
		return f.Examples[0]
	case len(f.Enum) > 0:
		return f.Enum[0]
	}
	switch f.Type {
	case "object":
		return s.exampleObject(pointer, depth)
	case "array":
		list := []any{}
		for range max(f.MinItems, 1) {
			if f.MaxItems > 0 && len(list) >= f.MaxItems {
				break
			}
			list = append(list, s.example(pointer+"/-", depth+1))
		}
		return list
	case "boolean":
		return true
	case "integer", "number":
		return exampleNumber(f)
	case "null":
		return nil
	case "":
		if len(s.Fields(pointer)) > 0 {
			return s.exampleObject(pointer, depth)
		}
		return "example"
	}
	return exampleText(f)
}

func (s *Schema) exampleObject(pointer string, depth int) any {
	object := map[string]any{}
	for _, name := range s.required(pointer) { // also where nothing else is said of it
		object[name] = "example"
	}
	for _, f := range s.Fields(pointer) {
		object[f.Name] = s.example(canon.Join(pointer, f.Name), depth+1)
	}
	return object
}

// required are the names an object must have.
func (s *Schema) required(pointer string) (names []string) {
	sub, _, _, ok := s.locate(pointer)
	if !ok {
		return nil
	}
	for _, m := range s.views(sub) {
		list, _ := m["required"].([]any)
		for _, r := range list {
			if name, ok := r.(string); ok {
				names = append(names, name)
			}
		}
	}
	return names
}

// exampleNumber is the smallest number from 1 on that the bounds allow, or the
// largest below it.
func exampleNumber(f Field) any {
	for _, candidate := range []string{f.MultipleOf, "1", f.Minimum, f.Maximum, "0", "2"} {
		n := json.Number(candidate)
		x, err := n.Float64()
		if candidate == "" || err != nil || !within(f, x) {
			continue
		}
		return x
	}
	return 1.0
}

func within(f Field, x float64) bool {
	bound := func(text string, fits func(b float64) bool) bool {
		b, err := json.Number(text).Float64()
		return text == "" || err != nil || fits(b)
	}
	return bound(f.Minimum, func(b float64) bool { return x >= b }) && bound(f.Maximum, func(b float64) bool { return x <= b }) &&
		bound(f.ExclusiveMinimum, func(b float64) bool { return x > b }) && bound(f.ExclusiveMaximum, func(b float64) bool { return x < b })
}

// exampleFormats are texts of the formats that JSON Schema names.
var exampleFormats = map[string]string{"date-time": "2026-01-02T03:04:05Z", "date": "2026-01-02", "time": "03:04:05Z", "email": "somebody@example.org",
	"uri": "https://example.org/", "hostname": "example.org", "ipv4": "192.0.2.1", "ipv6": "2001:db8::1", "uuid": "00000000-0000-4000-8000-000000000000"}

func exampleText(f Field) string {
	text := "example"
	if known, ok := exampleFormats[f.Format]; ok {
		text = known
	}
	if short := f.MinLength - len(text); short > 0 {
		text += strings.Repeat("x", short)
	}
	if f.MaxLength > 0 && len(text) > f.MaxLength {
		text = text[:f.MaxLength]
	}
	return text
}
