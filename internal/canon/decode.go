package canon

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"countersign/internal/nearest"
	"countersign/internal/problem"
)

// Decode reads src as strictly as Canonical and then into the Go value v points
// to. A field that v does not have is refused, names match in exact case, a
// wrong type is refused; 1.0 and 1e2 are integers as JSON Schema says. A
// json.RawMessage inside v receives canonical bytes. The error is a
// *problem.Error whose fields are JSON Pointers into src.
func Decode(src []byte, l Limits, v any) error {
	canonical, err := Canonical(src, l)
	if err != nil {
		return err
	}
	if err := jsonv2.Unmarshal(canonical, v, jsonv2.RejectUnknownMembers(true)); err != nil {
		return misfit(err, v)
	}
	return nil
}

func misfit(err error, v any) error {
	if p, ok := errors.AsType[*problem.Error](err); ok {
		return p // an UnmarshalJSON that already speaks to people
	}
	semantic, ok := errors.AsType[*jsonv2.SemanticError](err)
	if !ok {
		return problem.New(problem.Invalid, "invalid", "The JSON does not have the expected form.").Because(err)
	}
	where := short(semantic.JSONPointer)
	what := explain(semantic, v)
	return problem.New(problem.Invalid, "invalid", "The JSON does not have the expected form at %s: %s.", orRoot(where), what).
		At(where, "%s", what).Because(err)
}

func orRoot(pointer string) string {
	if pointer == "" {
		return "the top"
	}
	return pointer
}

func explain(e *jsonv2.SemanticError, v any) string {
	if errors.Is(e.Err, jsonv2.ErrUnknownName) {
		name := e.JSONPointer.LastToken()
		if known := nearest.Word(name, names(e.GoType)); known != "" {
			return fmt.Sprintf("unknown field; did you mean %q?", known)
		}
		return "unknown field"
	}
	if e.GoType == nil || e.JSONKind == 0 {
		return "the value is not accepted here"
	}
	if e.Err != nil && e.JSONKind == '0' {
		return fmt.Sprintf("%s is not a number accepted here", e.JSONValue)
	}
	return fmt.Sprintf("expected %s, got %s", wanted(e.GoType), kindName(e.JSONKind))
}

// names are the JSON names of a struct's fields.
func names(t reflect.Type) []string {
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	var all []string
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.IsExported() && name != "-" && !f.Anonymous {
			if name == "" {
				name = f.Name
			}
			all = append(all, name)
		}
	}
	return all
}

func wanted(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "an integer"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Map, reflect.Struct:
		return "an object"
	}
	return "another value"
}

func kindName(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 'f', 't':
		return "true or false"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '[':
		return "an array"
	case '{':
		return "an object"
	}
	return "something else"
}
