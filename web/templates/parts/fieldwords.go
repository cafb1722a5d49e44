package parts

import (
	"strconv"
	"strings"

	"github.com/a-h/templ"
)

// fieldID is the id of a field, made of its name if need be, which may be a JSON Pointer. The
// letters that an id or a selector would not like are written as numbers.
func fieldID(f Field) string {
	if f.ID != "" {
		return f.ID
	}
	var b strings.Builder
	b.WriteString("in")
	for _, r := range f.Name {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			b.WriteRune(r)
			continue
		}
		b.WriteString("-" + strconv.Itoa(int(r)) + "-")
	}
	return b.String()
}

func fieldAttributes(f Field) templ.Attributes {
	a := templ.Attributes{"id": fieldID(f), "name": f.Name}
	var described []string
	if f.Error != "" {
		a["aria-invalid"] = "true"
		described = append(described, fieldID(f)+"-error")
	}
	if f.Reading != "" {
		described = append(described, fieldID(f)+"-reading")
	}
	if f.Hint != "" {
		described = append(described, fieldID(f)+"-hint")
	}
	if len(described) > 0 {
		a["aria-describedby"] = strings.Join(described, " ")
	}
	if f.Required && f.Kind != "yesno" {
		a["aria-required"] = "true" // the server says what is missing, in its own words
	}
	if f.Complete != "" {
		a["autocomplete"] = f.Complete
	} else if f.Kind != "password" && f.Kind != "email" {
		a["autocomplete"] = "off"
	}
	if f.Max > 0 {
		a["maxlength"] = strconv.Itoa(f.Max)
	}
	if f.Kind == "integer" || f.Kind == "number" {
		a["inputmode"] = "decimal"
	}
	if f.Original != "" {
		a["data-original"] = f.Original
	}
	if f.Focus {
		a["autofocus"] = true
	}
	return a
}

// inputType keeps numbers in text fields: a number field would round what a
// double cannot hold and drop what it cannot read.
func inputType(kind string) string {
	switch kind {
	case "password", "email", "date":
		return kind
	}
	return "text"
}

func fieldRows(f Field) string {
	if f.Rows > 0 {
		return strconv.Itoa(f.Rows)
	}
	return "4"
}

func spelling(kind string) string {
	if kind == "json" || kind == "list" {
		return "false"
	}
	return "true"
}
