package canon

import (
	"strconv"
	"strings"

	"countersign/internal/problem"
)

// Tokens splits a JSON Pointer (RFC 6901); ok is false when it is not one.
func Tokens(pointer string) (tokens []string, ok bool) {
	if pointer == "" {
		return nil, true
	}
	rest, ok := strings.CutPrefix(pointer, "/")
	if !ok {
		return nil, false
	}
	for t := range strings.SplitSeq(rest, "/") {
		plain := strings.ReplaceAll(strings.ReplaceAll(t, "~1", ""), "~0", "")
		if strings.Contains(plain, "~") {
			return nil, false
		}
		tokens = append(tokens, strings.ReplaceAll(strings.ReplaceAll(t, "~1", "/"), "~0", "~"))
	}
	return tokens, true
}

// Join appends tokens to a JSON Pointer, escaped.
func Join(pointer string, tokens ...string) string {
	for _, t := range tokens {
		pointer += "/" + strings.ReplaceAll(strings.ReplaceAll(t, "~", "~0"), "/", "~1")
	}
	return pointer
}

// Expand returns the places in v that a pointer names in which "-" stands for
// every item of a list: one pointer for each item. A pointer without "-" is
// returned as it is, whether or not v has it; what is no pointer names nothing.
func Expand(v any, pointer string) []string {
	tokens, ok := Tokens(pointer)
	if !ok {
		return nil
	}
	found := []string{""}
	for _, t := range tokens {
		var next []string
		for _, at := range found {
			x, _ := Get(v, at)
			list, isList := x.([]any)
			if t != "-" || !isList {
				next = append(next, Join(at, t))
				continue
			}
			for i := range list {
				next = append(next, Join(at, strconv.Itoa(i)))
			}
		}
		found = next
	}
	return found
}

// Index reads a pointer token as an index below n: digits, no leading zero.
func Index(token string, n int) (int, bool) {
	if token == "" || len(token) > 1 && token[0] == '0' || strings.Trim(token, "0123456789") != "" {
		return 0, false
	}
	i, err := strconv.Atoi(token)
	return i, err == nil && i < n
}

// Get returns what the pointer names inside a decoded value.
func Get(v any, pointer string) (any, bool) {
	tokens, ok := Tokens(pointer)
	if !ok {
		return nil, false
	}
	for _, t := range tokens {
		if v, ok = child(v, t); !ok {
			return nil, false
		}
	}
	return v, true
}

func child(v any, token string) (any, bool) {
	switch v := v.(type) {
	case map[string]any:
		x, ok := v[token]
		return x, ok
	case []any:
		if i, ok := Index(token, len(v)); ok {
			return v[i], true
		}
	}
	return nil, false
}

// Set returns a copy of v in which the pointer names x; v is not changed. It
// replaces what is there, or adds a member to an object that exists: whether
// the member is declared is for the caller's schema to say. The whole document,
// an element past the end of an array, and a parent that is missing or is not a
// container are refused as a *problem.Error Invalid with the pointer.
func Set(v any, pointer string, x any) (any, error) {
	tokens, ok := Tokens(pointer)
	if !ok {
		return nil, notSet(pointer, "this is not a JSON Pointer such as /amount")
	}
	if len(tokens) == 0 {
		return nil, notSet(pointer, "the whole document can't be replaced; name a field")
	}
	return set(v, tokens, pointer, x)
}

func set(v any, tokens []string, pointer string, x any) (any, error) {
	if len(tokens) == 0 {
		return x, nil
	}
	switch v := v.(type) {
	case map[string]any:
		old, has := v[tokens[0]]
		if !has && len(tokens) > 1 {
			return nil, notSet(pointer, "there is no %q to hold it", tokens[0])
		}
		inner, err := set(old, tokens[1:], pointer, x)
		if err != nil {
			return nil, err
		}
		c := make(map[string]any, len(v)+1)
		for k, old := range v {
			c[k] = old
		}
		c[tokens[0]] = inner
		return c, nil
	case []any:
		i, ok := Index(tokens[0], len(v))
		if !ok {
			return nil, notSet(pointer, "the list has no element %s", tokens[0])
		}
		inner, err := set(v[i], tokens[1:], pointer, x)
		if err != nil {
			return nil, err
		}
		c := append([]any(nil), v...)
		c[i] = inner
		return c, nil
	}
	return nil, notSet(pointer, "what should hold it is neither an object nor a list")
}

func notSet(pointer, format string, args ...any) error {
	return problem.New(problem.Invalid, "no_such_field", "The field %s can't be set.", pointer).At(pointer, format, args...)
}
