package schema

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"countersign/internal/canon"
)

// Field describes one field of a form.
type Field struct {
	Pointer, Name      string
	Type               string // string, integer, number, boolean, object, array, null; "" when open
	Nullable           bool   // null is accepted beside Type
	Title, Description string
	Enum               []any
	Const              any
	HasConst           bool
	Minimum, Maximum   string // exact decimals; "" none
	ExclusiveMinimum   string
	ExclusiveMaximum   string
	MultipleOf         string
	MinLength          int // characters
	MaxLength          int // characters; 0 none
	MinItems, MaxItems int // MaxItems 0: none
	Pattern, Format    string
	Required           bool
	ReadOnly           bool
	WriteOnly          bool
	Money              string // x-money: a whole number in the smallest unit of a currency, a code ("EUR") or the pointer of one ("/currency")
	Examples           []any
	Default            any
	HasDefault         bool
	Multiline          bool // text of several lines: x-multiline, a text media type, or room for more than multilineFrom characters
}

// multilineFrom is the length from which free text gets several lines in a
// form.
const multilineFrom = 200

// Field describes the value that the JSON Pointer names, through properties,
// items and $ref ("-" or any index names an item of a list); pointer "" is the
// document. It is false when the schema declares no such value.
func (s *Schema) Field(pointer string) (Field, bool) {
	sub, name, required, ok := s.locate(pointer)
	if !ok {
		return Field{}, false
	}
	f := Field{Pointer: pointer, Name: name, Required: required}
	for _, m := range s.views(sub) {
		f.take(m)
	}
	f.infer()
	return f, true
}

// Admits reports whether a document that fits may have a value at the pointer:
// one the schema declares, or one below an object of which it says nothing.
func (s *Schema) Admits(pointer string) bool {
	tokens, ok := canon.Tokens(pointer)
	for n := len(tokens); ok && n >= 0; n-- {
		above := canon.Join("", tokens[:n]...)
		if f, known := s.Field(above); known {
			return n == len(tokens) || f.Type == "object" && len(s.Fields(above)) == 0
		}
	}
	return false
}

// OnlyNames are the names that an object of the schema may have, sorted; ok is
// false where others are admitted too.
func OnlyNames(source any) (names []string, ok bool) {
	m, _ := source.(map[string]any)
	if open, said := m["additionalProperties"].(bool); !said || open || m["patternProperties"] != nil {
		return nil, false
	}
	properties, _ := m["properties"].(map[string]any)
	return slices.Sorted(maps.Keys(properties)), true
}

func (s *Schema) locate(pointer string) (sub any, name string, required, ok bool) {
	tokens, ok := canon.Tokens(pointer)
	if !ok {
		return nil, "", false, false
	}
	sub, required = s.root, true
	for _, t := range tokens {
		if sub, required, ok = s.child(sub, t); !ok {
			return nil, "", false, false
		}
		name = t
	}
	return sub, name, required, true
}

// Fields are the declared properties of the object at the pointer: required
// ones first, in the order the schema requires them, then the others by name.
func (s *Schema) Fields(pointer string) []Field {
	sub, _, _, ok := s.locate(pointer)
	if !ok {
		return nil
	}
	var order []string
	declared := map[string]bool{}
	views := s.views(sub)
	for _, m := range views {
		properties, _ := m["properties"].(map[string]any)
		for name := range properties {
			declared[name] = true
		}
	}
	for _, m := range views {
		list, _ := m["required"].([]any)
		for _, r := range list {
			if name, _ := r.(string); declared[name] {
				order = append(order, name)
				delete(declared, name)
			}
		}
	}
	order = append(order, slices.Sorted(maps.Keys(declared))...)
	all := make([]Field, 0, len(order))
	for _, name := range order {
		if f, ok := s.Field(canon.Join(pointer, name)); ok {
			all = append(all, f)
		}
	}
	return all
}

// take fills what f does not know yet from one object schema: what stands
// beside a $ref goes before what it names.
func (f *Field) take(m map[string]any) {
	f.types(m["type"])
	for key, into := range map[string]*string{
		"title": &f.Title, "description": &f.Description, "pattern": &f.Pattern, "format": &f.Format, "x-money": &f.Money,
	} {
		if text, ok := m[key].(string); ok && *into == "" {
			*into = text
		}
	}
	for key, into := range map[string]*string{
		"minimum": &f.Minimum, "maximum": &f.Maximum, "exclusiveMinimum": &f.ExclusiveMinimum, "exclusiveMaximum": &f.ExclusiveMaximum, "multipleOf": &f.MultipleOf,
	} {
		if *into == "" {
			*into = number(m[key])
		}
	}
	for key, into := range map[string]*int{
		"minLength": &f.MinLength, "maxLength": &f.MaxLength, "minItems": &f.MinItems, "maxItems": &f.MaxItems,
	} {
		if n, ok := m[key].(json.Number); ok && *into == 0 {
			v, _ := n.Float64()
			*into = int(v)
		}
	}
	if list, ok := m["enum"].([]any); ok && f.Enum == nil {
		f.Enum = plain(list).([]any)
	}
	if list, ok := m["examples"].([]any); ok && f.Examples == nil {
		f.Examples = plain(list).([]any)
	}
	if v, ok := m["const"]; ok && !f.HasConst {
		f.Const, f.HasConst = plain(v), true
	}
	if v, ok := m["default"]; ok && !f.HasDefault {
		f.Default, f.HasDefault = plain(v), true
	}
	media, _ := m["contentMediaType"].(string)
	f.Multiline = f.Multiline || m["x-multiline"] == true || strings.HasPrefix(media, "text/")
	f.ReadOnly = f.ReadOnly || m["readOnly"] == true
	f.WriteOnly = f.WriteOnly || m["writeOnly"] == true
}

func (f *Field) types(v any) {
	if f.Type != "" {
		return
	}
	switch v := v.(type) {
	case string:
		f.Type = v
	case []any:
		var others []string
		for _, x := range v {
			if name, _ := x.(string); name == "null" {
				f.Nullable = true
			} else {
				others = append(others, name)
			}
		}
		if len(others) == 1 {
			f.Type = others[0]
		}
	}
}

// infer adds what follows from the rest.
func (f *Field) infer() {
	if f.Type == "" && len(f.Enum) > 0 {
		texts := 0
		for _, x := range f.Enum {
			if _, ok := x.(string); ok {
				texts++
			}
		}
		if texts == len(f.Enum) {
			f.Type = "string"
		}
	}
	free := f.Type == "string" && f.Enum == nil && !f.HasConst && f.Pattern == "" && f.Format == ""
	f.Multiline = f.Type == "string" && f.Multiline || free && f.MaxLength > multilineFrom
}
