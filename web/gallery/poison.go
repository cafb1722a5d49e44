package gallery

import (
	"reflect"
	"strings"
)

// Hostile is a text that tries everything at once: markup, a script address,
// Markdown, a reversal of reading direction, a zero-width space, an escape of
// a terminal, a look-alike word and host, a name in front of a host.
const Hostile = "<img src=x onerror=alert(1)>\"><script>alert(1)</script> ![x](https://t.example/?q=1) " +
	"pay \u202e0001\u202c to\u200b x \x1b[2Kcmd \u0430pple https://\u0430pple.test/ https://bank.example@evil.example/ javascript:alert(1)"

// told are the fields that hold what somebody else wrote, or could. All of
// them are poisoned, also where the real page has a text of ours: the
// components must not rely on that.
var told = map[string]bool{
	"Text": true, "Title": true, "Sentence": true, "Target": true, "Who": true, "OnBehalf": true, "Reason": true, "ReasonAuthor": true,
	"Impact": true, "Name": true, "By": true, "Note": true, "Old": true, "Origin": true, "Failed": true, "Why": true, "Amount": true,
	"Error": true, "Draft": true, "Email": true, "Where": true, "From": true, "Owner": true, "Problem": true, "Blocks": true, "Query": true,
	"Value": true, "Waits": true, "Step": true, "Receipt": true, "What": true, "Deputy": true, "Key": true, "WhyNot": true, "Lines": true,
	"WhoCan": true, "Can": true, "Faults": true, "Problems": true, "Original": true,
}

// kept are types whose fields of those names are no texts.
var kept = map[string]bool{
	"Hidden": true, "Option": true, "Choice": true, "RoleBox": true, "RailItem": true, "PostureItem": true, "Filter": true, "Rule": true,
	"PolicyRule": true, "Group": true, "DefinitionGroup": true, "Cause": true, "StartChoice.Name": true, "DefinitionRow.Name": true, "DefinitionView.Name": true, "Field.Name": true, "QueueGroup": true, "Queue": true,
}

// Poison returns a copy of a view whose texts are hostile. Empty texts stay
// empty, so that the page keeps its shape.
func Poison[V any](v V) V {
	out := reflect.New(reflect.TypeOf(v)).Elem()
	out.Set(copied(reflect.ValueOf(v), "", ""))
	return out.Interface().(V)
}

func copied(v reflect.Value, owner, field string) reflect.Value {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return v
		}
		p := reflect.New(v.Type().Elem())
		p.Elem().Set(copied(v.Elem(), owner, field))
		return p
	case reflect.Slice:
		s := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			s.Index(i).Set(copied(v.Index(i), owner, field))
		}
		return s
	case reflect.Struct:
		s := reflect.New(v.Type()).Elem()
		for i := range v.NumField() {
			s.Field(i).Set(copied(v.Field(i), v.Type().Name(), v.Type().Field(i).Name))
		}
		return s
	case reflect.String:
		if told[field] && !kept[owner] && !kept[owner+"."+field] && v.String() != "" && !strings.HasPrefix(v.String(), "sha256:") {
			return reflect.ValueOf(Hostile).Convert(v.Type())
		}
	}
	return v
}
