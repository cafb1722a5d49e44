// Package schema checks JSON values against JSON Schema 2020-12 and tells what
// a form needs to know about a field.
//
// It guarantees that compiling and validating never leave the process, that
// formats are asserted, that unknown keywords and formats are refused rather
// than ignored, and that faults are plain sentences with JSON Pointers and exact
// numbers. It must not know tools, workflows or forms.
//
// Narrower than the standard, so that a definition means what it says: $ref
// points into the same document (#/$defs/…); $id and $schema stand only at the
// top; anchors, dynamic references and vocabularies are not used; keywords of
// one's own start with x-. Strings are never taken for numbers; 1.0 and 1e2 are
// integers, as in canon.
package schema

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"countersign/internal/canon"
	"countersign/internal/problem"
)

// The limits of a schema and of its answers.
const (
	DepthMax  = 64     // nesting of a schema, and of a value with its defaults
	NodesMax  = 10_000 // values in a schema
	FaultsMax = 50     // faults told of one value; a last one counts the rest
)

// Options change how a schema is compiled.
type Options struct {
	Object bool // the schema must describe an object (type: object)
}

// Schema is a compiled schema; it is safe for concurrent use.
type Schema struct {
	source   any // as given
	root     any // the same with json.Number
	compiled *jsonschema.Schema
	lint     []string
	hidden   []string // pointers whose values no message repeats
}

// Hiding returns the same schema, whose messages never repeat a value at the
// pointers, nor what holds one or is inside one: for what is sensitive. "-" is
// every item of a list. The nil schema stays nil.
func (s *Schema) Hiding(pointers ...string) *Schema {
	if s == nil {
		return nil
	}
	c := *s
	c.hidden = append(slices.Clone(s.hidden), pointers...)
	return &c
}

func (s *Schema) hides(pointer string) bool {
	return s != nil && slices.ContainsFunc(s.hidden, func(h string) bool { return related(h, pointer) })
}

// related reports whether one of the pointers is the other, or inside it; "-"
// in hidden stands for any item.
func related(hidden, pointer string) bool {
	a, _ := canon.Tokens(hidden)
	b, _ := canon.Tokens(pointer)
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] && a[i] != "-" {
			return false
		}
	}
	return true
}

// home names the document inside the compiler; nothing is ever read from it.
const home = "mem:///schema"

// Compile compiles a decoded JSON Schema. The error is a *problem.Error Invalid
// whose fields are pointers into the schema.
func Compile(v any, o Options) (*Schema, error) {
	left := NodesMax
	root, err := numbers(v, 0, &left)
	if err != nil {
		return nil, invalid(problem.Field{Message: "the schema is not usable: " + err.Error()})
	}
	if o.Object {
		if m, ok := root.(map[string]any); !ok || m["type"] != "object" {
			return nil, invalid(problem.Field{Message: "the schema must describe an object; write type: object"})
		}
	}
	s := &Schema{source: v, root: root}
	c := checker{schema: s}
	c.check(root, "", true)
	if len(c.faults) > 0 {
		return nil, invalid(c.faults...)
	}
	compiler := jsonschema.NewCompiler()
	if s.compiled, err = build(compiler, root); err != nil {
		return nil, err
	}
	if err := s.checkDefaults(compiler, c.defaults); err != nil {
		return nil, err
	}
	s.lint = c.lint
	return s, nil
}

// nowhere is the loader of a compiler that must not load.
type nowhere struct{}

// Load implements jsonschema.URLLoader.
func (nowhere) Load(url string) (any, error) {
	return nil, errors.New("nothing is loaded from elsewhere")
}

func build(c *jsonschema.Compiler, root any) (*jsonschema.Schema, error) {
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.UseLoader(nowhere{})
	if m, ok := root.(map[string]any); ok {
		bare := make(map[string]any, len(m))
		for k, x := range m {
			if k != "$id" && k != "$schema" {
				bare[k] = x
			}
		}
		root = bare
	}
	if err := c.AddResource(home, root); err != nil {
		return nil, invalid(problem.Field{Message: err.Error()})
	}
	compiled, err := c.Compile(home)
	if err == nil {
		return compiled, nil
	}
	if bad, ok := errors.AsType[*jsonschema.SchemaValidationError](err); ok {
		if shape, ok := errors.AsType[*jsonschema.ValidationError](bad.Err); ok {
			return nil, invalid(explain(shape, nil, root)...)
		}
	}
	return nil, invalid(problem.Field{Message: strings.ReplaceAll(err.Error(), home, "")}).Because(err)
}

func invalid(faults ...problem.Field) *problem.Error {
	p := problem.New(problem.Invalid, "invalid_schema", "The JSON Schema has faults.")
	p.Fields = capped(faults)
	return p
}

// checkDefaults refuses a default that its own schema refuses.
func (s *Schema) checkDefaults(c *jsonschema.Compiler, at []string) error {
	var faults []problem.Field
	for _, pointer := range at {
		sub, _ := find(s.root, pointer)
		compiled, err := c.Compile(home + "#" + escape(pointer))
		if err != nil {
			return invalid(problem.Field{Pointer: pointer, Message: err.Error()})
		}
		value, err := s.fill(sub, sub.(map[string]any)["default"], 0)
		if err != nil {
			return invalid(problem.Field{Pointer: pointer + "/default", Message: err.Error()})
		}
		if err := compiled.Validate(value); err != nil {
			bad, _ := errors.AsType[*jsonschema.ValidationError](err)
			for _, f := range explain(bad, nil, value) {
				faults = append(faults, problem.Field{Pointer: pointer + "/default" + f.Pointer, Message: "the default does not fit: " + f.Message})
			}
		}
	}
	if len(faults) > 0 {
		return invalid(faults...)
	}
	return nil
}

// Validate checks a decoded value or a json.RawMessage. The error is a
// *problem.Error Invalid "invalid" with one field per fault, at most FaultsMax.
func (s *Schema) Validate(v any) error {
	value, err := instance(v)
	if err != nil {
		return err
	}
	err = s.compiled.Validate(value)
	if err == nil {
		return nil
	}
	bad, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return problem.New(problem.Invalid, "invalid", "The data does not fit its schema.").Because(err)
	}
	p := problem.New(problem.Invalid, "invalid", "The data does not fit its schema.")
	p.Fields = capped(explain(bad, s, value))
	return p
}

// names are the properties declared for the object at a pointer.
func (s *Schema) names(pointer string) []string {
	if s == nil {
		return nil
	}
	var all []string
	for _, f := range s.Fields(pointer) {
		all = append(all, f.Name)
	}
	return all
}

// limitsNames reports whether the object at a pointer has propertyNames.
func (s *Schema) limitsNames(pointer string) bool {
	if s == nil {
		return true
	}
	sub, _, _, ok := s.locate(pointer)
	return !ok || slices.ContainsFunc(s.views(sub), func(m map[string]any) bool { return m["propertyNames"] != nil })
}

// Source is the schema as given; it must not be changed.
func (s *Schema) Source() any { return s.source }

// Lint returns warnings, "POINTER: what": what is allowed but rarely meant.
func (s *Schema) Lint() []string { return slices.Clone(s.lint) }

// WithDefaults returns a copy of v (a decoded value or a json.RawMessage) in
// which absent properties have their defaults, to any depth through properties,
// $ref and allOf. Defaults elsewhere (items, anyOf, conditions) are not applied;
// Lint says so.
func (s *Schema) WithDefaults(v any) (any, error) {
	if raw, ok := v.(json.RawMessage); ok {
		decoded, err := decoded(raw)
		if err != nil {
			return nil, err
		}
		v = decoded
	}
	filled, err := s.fill(s.root, v, 0)
	if err != nil {
		return nil, problem.New(problem.Invalid, "too_deep", "The data nests too deep: %v.", err)
	}
	return plain(filled), nil
}
