package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"countersign/internal/canon"
)

// hopsMax bounds a chain of $ref, which may go in circles.
const hopsMax = 32

// find is canon.Get over a schema.
func find(root any, pointer string) (any, bool) { return canon.Get(root, pointer) }

// unescape undoes the URI escapes of a fragment.
func unescape(fragment string) string {
	if s, err := url.PathUnescape(fragment); err == nil {
		return s
	}
	return fragment
}

func escape(pointer string) string {
	return strings.ReplaceAll(url.PathEscape(pointer), "%2F", "/")
}

// views are the object schemas that all apply where v does: itself, what $ref
// names, and the members of allOf.
func (s *Schema) views(v any) []map[string]any {
	var all []map[string]any
	var add func(v any, hops int)
	add = func(v any, hops int) {
		m, ok := v.(map[string]any)
		if !ok || hops > hopsMax || len(all) > hopsMax {
			return
		}
		all = append(all, m)
		if ref, ok := m["$ref"].(string); ok {
			target, _ := find(s.root, unescape(strings.TrimPrefix(ref, "#")))
			add(target, hops+1)
		}
		if list, ok := m["allOf"].([]any); ok {
			for _, x := range list {
				add(x, hops+1)
			}
		}
	}
	add(v, 0)
	return all
}

// child is the subschema for a member or an item, and whether it is required.
func (s *Schema) child(v any, token string) (sub any, required, ok bool) {
	views := s.views(v)
	for _, m := range views {
		if list, isList := m["required"].([]any); isList && slices.Contains(list, any(token)) {
			required = true
		}
	}
	for _, m := range views {
		if properties, is := m["properties"].(map[string]any); is {
			if sub, ok := properties[token]; ok {
				return sub, required, true
			}
		}
	}
	for _, m := range views {
		if sub, ok := other(m, token); ok {
			return sub, required, true
		}
	}
	return nil, false, false
}

// other finds a subschema that is not declared under the name itself.
func other(m map[string]any, token string) (any, bool) {
	if patterns, ok := m["patternProperties"].(map[string]any); ok {
		for _, p := range slices.Sorted(maps.Keys(patterns)) {
			if re, err := regexp.Compile(p); err == nil && re.MatchString(token) {
				return patterns[p], true
			}
		}
	}
	if sub, ok := m["additionalProperties"].(map[string]any); ok {
		return sub, true
	}
	i, isIndex := canon.Index(token, 1<<31)
	if !isIndex && token != "-" {
		return nil, false
	}
	if list, ok := m["prefixItems"].([]any); ok && isIndex && i < len(list) {
		return list[i], true
	}
	sub, ok := m["items"].(map[string]any)
	return sub, ok
}

// fill is WithDefaults for one subschema; defaults come as json.Number.
func (s *Schema) fill(sub, v any, depth int) (any, error) {
	if depth > DepthMax {
		return nil, fmt.Errorf("with its defaults the value nests deeper than %d levels", DepthMax)
	}
	object, ok := v.(map[string]any)
	if !ok {
		return v, nil
	}
	out := maps.Clone(object)
	if out == nil {
		out = map[string]any{}
	}
	for _, m := range s.views(sub) {
		properties, _ := m["properties"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			if _, has := out[name]; !has {
				value, ok := s.defaultOf(properties[name])
				if !ok {
					continue
				}
				out[name] = value
			}
			filled, err := s.fill(properties[name], out[name], depth+1)
			if err != nil {
				return nil, err
			}
			out[name] = filled
		}
	}
	return out, nil
}

func (s *Schema) defaultOf(sub any) (any, bool) {
	for _, m := range s.views(sub) {
		if v, ok := m["default"]; ok {
			return v, true
		}
	}
	return nil, false
}

// number is a numeric keyword as exact text.
func number(v any) string {
	n, _ := v.(json.Number)
	return string(n)
}
