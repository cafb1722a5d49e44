package schema

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"countersign/internal/canon"
	"countersign/internal/nearest"
	"countersign/internal/problem"
)

// keywords of JSON Schema 2020-12 that are used here.
var keywords = []string{
	"$schema", "$id", "$ref", "$defs", "$comment",
	"type", "const", "enum", "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly",
	"properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties", "maxProperties",
	"dependentRequired", "dependentSchemas", "unevaluatedProperties",
	"items", "prefixItems", "contains", "minContains", "maxContains", "minItems", "maxItems", "uniqueItems", "unevaluatedItems",
	"minLength", "maxLength", "pattern", "format", "contentEncoding", "contentMediaType", "contentSchema",
	"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
	"allOf", "anyOf", "oneOf", "not", "if", "then", "else",
}

// formats that the validator asserts.
var formats = []string{
	"date", "time", "date-time", "duration", "period", "email", "hostname", "ipv4", "ipv6", "uri", "uri-reference", "iri", "iri-reference",
	"uri-template", "uuid", "regex", "json-pointer", "relative-json-pointer", "semver",
}

// Where subschemas stand: alone, in a list, or under names.
var (
	single = []string{"additionalProperties", "propertyNames", "unevaluatedProperties", "items", "contains", "unevaluatedItems", "contentSchema", "not", "if", "then", "else"}
	listed = []string{"prefixItems", "allOf", "anyOf", "oneOf"}
	named  = []string{"$defs", "properties", "patternProperties", "dependentSchemas"}
)

// checker walks a schema for what the standard would ignore.
type checker struct {
	schema   *Schema
	faults   []problem.Field
	lint     []string
	defaults []string // pointers of subschemas with a default
	unused   int      // inside how many places where defaults are not applied
}

func (c *checker) fault(pointer, format string, args ...any) {
	c.faults = append(c.faults, problem.Field{Pointer: pointer, Message: fmt.Sprintf(format, args...)})
}

func (c *checker) warn(pointer, format string, args ...any) {
	if pointer == "" {
		pointer = "(top)"
	}
	c.lint = append(c.lint, pointer+": "+fmt.Sprintf(format, args...))
}

// check visits one subschema; what has the wrong shape is left to the
// compiler, which knows the metaschema.
func (c *checker) check(v any, pointer string, top bool) {
	m, ok := v.(map[string]any)
	if !ok {
		return
	}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		c.keyword(k, m[k], canon.Join(pointer, k), top)
	}
	c.object(m, pointer)
	if _, ok := m["default"]; ok {
		c.defaults = append(c.defaults, pointer)
		if c.unused > 0 {
			c.warn(canon.Join(pointer, "default"), "this default is not applied: only those of properties are")
		}
	}
	for _, k := range single {
		c.within(k, func() { c.check(m[k], canon.Join(pointer, k), false) })
	}
	for _, k := range listed {
		if list, ok := m[k].([]any); ok {
			for i, x := range list {
				c.within(k, func() { c.check(x, canon.Join(pointer, k, strconv.Itoa(i)), false) })
			}
		}
	}
	for _, k := range named {
		if sub, ok := m[k].(map[string]any); ok {
			for _, name := range slices.Sorted(maps.Keys(sub)) {
				c.within(k, func() { c.check(sub[name], canon.Join(pointer, k, name), false) })
			}
		}
	}
}

// within runs visit and notes whether defaults found in it are applied. A
// definition may be used anywhere, so its defaults are taken as applied.
func (c *checker) within(keyword string, visit func()) {
	if keyword != "properties" && keyword != "allOf" && keyword != "$defs" {
		c.unused++
		defer func() { c.unused-- }()
	}
	visit()
}

func (c *checker) keyword(k string, v any, at string, top bool) {
	text, isText := v.(string)
	switch {
	case strings.HasPrefix(k, "x-"):
	case k == "definitions":
		c.fault(at, "write $defs; definitions is the old name")
	case slices.Contains([]string{"$anchor", "$dynamicRef", "$dynamicAnchor", "$vocabulary", "$recursiveRef"}, k):
		c.fault(at, "%s is not used here; point with $ref: \"#/$defs/…\"", k)
	case !slices.Contains(keywords, k):
		c.fault(at, "unknown keyword %q%s", k, suggest(k, keywords))
	case (k == "$id" || k == "$schema") && !top:
		c.fault(at, "%s may stand only at the top", k)
	case k == "$schema" && strings.TrimSuffix(text, "#") != "https://json-schema.org/draft/2020-12/schema":
		c.fault(at, "only JSON Schema 2020-12 is read; leave $schema out")
	case k == "$ref" && isText:
		c.ref(text, at)
	case k == "format" && isText && !slices.Contains(formats, text):
		c.fault(at, "unknown format %q%s", text, suggest(text, formats))
	case k == "pattern" && isText:
		c.pattern(text, at)
	case k == "patternProperties":
		if m, ok := v.(map[string]any); ok {
			for _, p := range slices.Sorted(maps.Keys(m)) {
				c.pattern(p, canon.Join(at, p))
			}
		}
	}
}

func suggest(word string, known []string) string {
	if near := nearest.Word(word, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

func (c *checker) ref(target, at string) {
	pointer, ok := strings.CutPrefix(target, "#")
	if !ok {
		c.fault(at, "%q points outside this document; nothing is loaded from elsewhere. Copy the schema under $defs and write \"#/$defs/NAME\"", target)
		return
	}
	if _, ok := find(c.schema.root, unescape(pointer)); !ok {
		c.fault(at, "there is nothing at %q in this schema", target)
	}
}

// pattern checks a regular expression. Go's are RE2 (linear time, H15).
func (c *checker) pattern(p, at string) {
	if _, err := regexp.Compile(p); err != nil {
		c.fault(at, "%s", explainPattern(p, err))
		return
	}
	if !anchored(p) {
		c.warn(at, "the pattern %s is not anchored, so it accepts any text that contains a match; write ^(?:%s)$", p, p)
	}
}

func (c *checker) object(m map[string]any, pointer string) {
	properties, has := m["properties"].(map[string]any)
	extra, closed := m["additionalProperties"]
	_, unevaluated := m["unevaluatedProperties"]
	if (has || m["type"] == "object") && !closed && !unevaluated && m["$ref"] == nil && m["allOf"] == nil {
		c.warn(pointer, "extra keys are accepted; write additionalProperties: false unless that is meant")
	}
	required, _ := m["required"].([]any)
	if extra != false || !has || m["patternProperties"] != nil {
		return
	}
	for i, r := range required {
		name, _ := r.(string)
		if _, ok := properties[name]; !ok {
			c.fault(canon.Join(pointer, "required", strconv.Itoa(i)), "%q is required but is not among the properties%s", name, suggest(name, slices.Sorted(maps.Keys(properties))))
		}
	}
}
