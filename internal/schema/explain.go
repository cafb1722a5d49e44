package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"countersign/internal/canon"
	"countersign/internal/problem"
)

var english = message.NewPrinter(language.English)

// explain turns the validator's tree into one plain sentence per fault, sorted
// by place. s, the schema of the value, serves for suggestions; nil when the
// value is itself a schema.
func explain(e *jsonschema.ValidationError, s *Schema, value any) []problem.Field {
	x := explainer{schema: s, value: value}
	x.visit(e)
	slices.SortStableFunc(x.faults, func(a, b problem.Field) int { return strings.Compare(a.Pointer, b.Pointer) })
	return slices.Compact(x.faults)
}

// capped keeps FaultsMax faults and says how many more there are.
func capped(faults []problem.Field) []problem.Field {
	if len(faults) <= FaultsMax {
		return faults
	}
	more := len(faults) - FaultsMax
	return append(slices.Clone(faults[:FaultsMax]), problem.Field{Message: fmt.Sprintf("there are %d more faults; mend these first", more)})
}

type explainer struct {
	schema *Schema
	value  any
	faults []problem.Field
}

func (x *explainer) add(pointer, format string, args ...any) {
	x.faults = append(x.faults, problem.Field{Pointer: pointer, Message: fmt.Sprintf(format, args...)})
}

func (x *explainer) visit(e *jsonschema.ValidationError) {
	at := canon.Join("", e.InstanceLocation...)
	switch k := e.ErrorKind.(type) {
	case *kind.AnyOf:
		x.choice(at, e)
	case *kind.OneOf:
		if len(k.Subschemas) > 0 {
			x.add(at, "fits %d of the allowed forms, but must fit exactly one", len(k.Subschemas))
			return
		}
		x.choice(at, e)
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			x.extra(at, name)
		}
	case *kind.Required:
		for _, name := range k.Missing {
			x.add(canon.Join(at, name), "is required but missing")
		}
	case *kind.DependentRequired:
		for _, name := range k.Missing {
			x.add(canon.Join(at, name), "is required because %s is there", k.Prop)
		}
	case *kind.PropertyNames:
		x.name(len(e.InstanceLocation), k.Property)
	case *kind.FalseSchema:
		x.add(at, "is not allowed here")
	case *kind.Contains:
		x.add(at, "has no item of the kind it must contain")
	default:
		if len(e.Causes) == 0 {
			x.add(at, "%s", sentence(e.ErrorKind, x.schema.hides(at)))
		}
		for _, cause := range e.Causes {
			x.visit(cause)
		}
	}
}

func (x *explainer) extra(at, name string) {
	x.add(canon.Join(at, name), "is not in the schema%s", suggest(name, x.schema.names(at)))
}

// name reports a property name that propertyNames refuses. The validator gives
// its location in a slice that later siblings overwrite (v6.0.3), of which only
// the length can be trusted; so the place is looked up in the value.
func (x *explainer) name(depth int, property string) {
	var found string
	var look func(v any, at string, depth int) bool
	look = func(v any, at string, depth int) bool {
		m, _ := v.(map[string]any)
		if depth == 0 {
			_, has := m[property]
			found = canon.Join(at, property)
			return has && x.schema.limitsNames(at) && !slices.ContainsFunc(x.faults, func(f problem.Field) bool { return f.Pointer == found })
		}
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if look(m[k], canon.Join(at, k), depth-1) {
				return true
			}
		}
		list, _ := v.([]any)
		for i, item := range list {
			if look(item, canon.Join(at, strconv.Itoa(i)), depth-1) {
				return true
			}
		}
		return false
	}
	if !look(x.value, "", depth) {
		found = ""
	}
	x.add(found, "the name %s is not allowed", text(property))
}

// choice explains a value that fits none of several forms in one fault.
func (x *explainer) choice(at string, e *jsonschema.ValidationError) {
	var forms []string
	for _, cause := range e.Causes {
		inner := explainer{schema: x.schema, value: x.value}
		inner.visit(cause)
		if len(inner.faults) == 0 {
			continue
		}
		f := inner.faults[0]
		text := f.Message
		if rest := strings.TrimPrefix(f.Pointer, at); rest != "" {
			text = rest + " " + text
		}
		if !slices.Contains(forms, text) {
			forms = append(forms, text)
		}
	}
	if len(forms) > 4 {
		forms = append(forms[:4], "…")
	}
	x.add(at, "fits none of the allowed forms: %s", strings.Join(forms, "; or "))
}

// unshown stands for a value that must not be repeated.
const unshown = "a value that is not shown"

// sentence is what a single keyword found wrong, to be read after the pointer;
// with hide it does not repeat the value.
func sentence(k jsonschema.ErrorKind, hide bool) string {
	text, exact := text, exact
	if hide {
		text = func(any) string { return unshown }
		exact = func(*big.Rat) string { return unshown }
	}
	return worded(k, text, exact)
}

// worded says it with the given ways to write the value that was found.
func worded(k jsonschema.ErrorKind, got func(any) string, gotNumber func(*big.Rat) string) string {
	switch k := k.(type) {
	case *kind.Type:
		return fmt.Sprintf("must be %s, not %s", typeNames(k.Want), article(k.Got))
	case *kind.Enum:
		return fmt.Sprintf("must be one of %s; got %s", texts(k.Want), got(k.Got))
	case *kind.Const:
		return fmt.Sprintf("must be %s; got %s", text(k.Want), got(k.Got))
	case *kind.Minimum:
		return fmt.Sprintf("must be at least %s; got %s", exact(k.Want), gotNumber(k.Got))
	case *kind.Maximum:
		return fmt.Sprintf("must be at most %s; got %s", exact(k.Want), gotNumber(k.Got))
	case *kind.ExclusiveMinimum:
		return fmt.Sprintf("must be more than %s; got %s", exact(k.Want), gotNumber(k.Got))
	case *kind.ExclusiveMaximum:
		return fmt.Sprintf("must be less than %s; got %s", exact(k.Want), gotNumber(k.Got))
	case *kind.MultipleOf:
		return fmt.Sprintf("must be a multiple of %s; got %s", exact(k.Want), gotNumber(k.Got))
	case *kind.MinLength:
		return fmt.Sprintf("must have at least %s; has %d", count(k.Want, "character"), k.Got)
	case *kind.MaxLength:
		return fmt.Sprintf("must have at most %s; has %d", count(k.Want, "character"), k.Got)
	case *kind.MinItems:
		return fmt.Sprintf("must have at least %s; has %d", count(k.Want, "item"), k.Got)
	case *kind.MaxItems:
		return fmt.Sprintf("must have at most %s; has %d", count(k.Want, "item"), k.Got)
	case *kind.MinProperties:
		return fmt.Sprintf("must have at least %s; has %d", count(k.Want, "member"), k.Got)
	case *kind.MaxProperties:
		return fmt.Sprintf("must have at most %s; has %d", count(k.Want, "member"), k.Got)
	case *kind.UniqueItems:
		return fmt.Sprintf("holds the same item twice: items %d and %d", k.Duplicates[0], k.Duplicates[1])
	case *kind.Pattern:
		return fmt.Sprintf("%s does not match the pattern %s", got(k.Got), k.Want)
	case *kind.Format:
		return fmt.Sprintf("%s is not a valid %s", got(k.Got), k.Want)
	case *kind.Not:
		return "has a form that is not allowed"
	}
	return k.LocalizedString(english)
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func article(typ string) string {
	switch typ {
	case "null":
		return "null"
	case "boolean":
		return "true or false"
	case "integer", "object", "array":
		return "an " + typ
	}
	return "a " + typ
}

func typeNames(types []string) string {
	all := make([]string, len(types))
	for i, t := range types {
		all[i] = article(t)
	}
	return strings.Join(all, " or ")
}

// exact writes a number with all its digits; beyond forty of them in the RFC
// 8785 form.
func exact(r *big.Rat) string {
	digits, finite := r.FloatPrec()
	if s := r.FloatString(digits); finite && len(s) <= 40 {
		return s
	}
	f, _ := r.Float64()
	return canon.Number(f)
}

// text repeats a value in a message, short.
func text(v any) string {
	const most = 60
	b, err := json.Marshal(v)
	if err != nil {
		return "this value"
	}
	if r := []rune(string(b)); len(r) > most {
		return string(r[:most]) + "…"
	}
	return string(b)
}

func texts(values []any) string {
	var all []string
	for i, v := range values {
		if i == 10 {
			all = append(all, "…")
			break
		}
		all = append(all, text(v))
	}
	return strings.Join(all, ", ")
}
