package browser

import (
	"encoding/json"
	"fmt"
	"strings"

	"countersign/internal/desk"
	"countersign/web/templates/parts"

	"github.com/labstack/echo/v4"
)

// typed is what stands in a field: what was typed, or its default.
func typed(c echo.Context, f desk.FormField) string {
	params, err := c.FormParams()
	if err == nil && params.Has(f.Pointer) {
		return params.Get(f.Pointer)
	}
	return f.Default
}

// schemaField is a form field made from a JSON Schema.
func schemaField(f desk.FormField, value, fault string) parts.Field {
	if fault != "" && fraction(f, value) {
		fault = "write a whole number, without a decimal point"
	}
	field := parts.Field{Name: f.Pointer, Label: f.Label, Hint: f.Hint, Kind: "text", Value: value, Error: fault, Required: f.Required, Max: f.MaxLength}
	switch {
	case len(f.Choices) > 0:
		field.Kind = "choice"
		for _, o := range f.Choices {
			field.Options = append(field.Options, parts.Option{Value: o, Text: o, Selected: o == value})
		}
	case f.Type == "integer", f.Type == "number":
		field.Kind = f.Type
	case f.Type == "boolean":
		field.Kind = "yesno"
	case f.Type == "object", f.Type == "array":
		field.Kind = "json"
	case f.Multiline:
		field.Kind = "multiline"
	}
	return field
}

// value is what was typed into a field, as JSON of the field's type. What
// does not fit goes on as text, so that the schema says what is wrong with
// it. Nothing typed is nil where the field may be left out.
func value(f desk.FormField, s string) json.RawMessage {
	switch f.Type {
	case "string", "":
		if s == "" && !f.Required {
			return nil
		}
		return text(strings.ReplaceAll(s, "\r\n", "\n")) // browsers send CRLF (HTML standard)
	case "boolean":
		switch s {
		case "yes", "true", "on":
			return json.RawMessage("true")
		case "no", "false":
			return json.RawMessage("false")
		}
	}
	if s = strings.TrimSpace(s); s == "" {
		return nil
	}
	if json.Valid([]byte(s)) && !fraction(f, s) {
		return json.RawMessage(s)
	}
	return text(s)
}

// fraction reports whether a whole number was written with a point or an
// exponent: 30.00 in a field of cents is 30 to JSON, and not what was meant.
func fraction(f desk.FormField, s string) bool {
	return f.Type == "integer" && strings.ContainsAny(s, ".eE")
}

func text(s string) json.RawMessage {
	raw, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("browser: encode text: %v", err))
	}
	return raw
}
