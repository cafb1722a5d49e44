// Package schema checks JSON values against JSON Schema 2020-12 and tells what
// a form needs to know about a field.
//
// It guarantees that compiling and validating never leave the process, that
// formats are asserted, that unknown keywords and formats are refused rather
// than ignored, and that faults are plain sentences with JSON Pointers and exact
// numbers. It must not know tools, workflows or forms.
package schema

import "countersign/internal/problem"

var errSoon = problem.New(problem.Internal, "internal", "not built yet")

// Options change how a schema is compiled.
type Options struct {
	Object bool // the schema must describe an object (type: object)
}

// Schema is a compiled schema; it is safe for concurrent use.
type Schema struct{ source any }

// Compile compiles a decoded JSON Schema. The error is a *problem.Error whose
// fields are pointers into the schema.
func Compile(v any, o Options) (*Schema, error) { return nil, errSoon }

// Validate checks a decoded value or a json.RawMessage. The error is a
// *problem.Error Invalid with one field per fault.
func (s *Schema) Validate(v any) error { return errSoon }

// WithDefaults returns a copy of v with absent properties set to their
// defaults.
func (s *Schema) WithDefaults(v any) (any, error) { return nil, errSoon }

// Source is the schema as given.
func (s *Schema) Source() any { return s.source }

// Lint returns warnings: what is allowed but rarely meant.
func (s *Schema) Lint() []string { return nil }

// Field describes one field of a form.
type Field struct {
	Pointer, Name                 string
	Type                          string // string, integer, number, boolean, object, array, null; "" when open
	Nullable                      bool
	Title, Description            string
	Enum                          []any
	Const                         any
	HasConst                      bool
	Minimum, Maximum              string // exact decimals as in the schema; "" none
	ExclusiveMinimum              string
	ExclusiveMaximum              string
	MultipleOf                    string
	MinLength, MaxLength          int // MaxLength 0: none
	MinItems, MaxItems            int // MaxItems 0: none
	Pattern, Format               string
	Required, ReadOnly, WriteOnly bool
	Default                       any
	HasDefault                    bool
	Multiline                     bool
}

// Field resolves the JSON Pointer of a value through properties, items and $ref.
func (s *Schema) Field(pointer string) (Field, bool) { return Field{}, false }

// Fields are the properties of an object in the order required first, then by
// name; pointer "" is the document.
func (s *Schema) Fields(pointer string) []Field { return nil }
