package browser

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"countersign/internal/approvals"
	"countersign/internal/canon"
	"countersign/internal/desk"
	"countersign/internal/sealed"
	"countersign/web/templates/parts"
)

// params are the parameters, or the document, leaf by leaf, with what changed
// against the revision before.
func params(a desk.Approval, unfold bool) parts.Values {
	v := parts.Values{Caption: fmt.Sprintf("Parameters of revision %d", a.Revision), Unfold: unfold, MustOpen: a.Risk == "high" || a.Risk == "critical"}
	whole := a.Params
	if a.Kind == approvals.KindDocument {
		v.Caption, whole = "What is presented", a.Document
	}
	v.Rows = leaves(whole, address("/approvals/", a.ID)+"/value")
	if a.Revision < 2 {
		v.Rows = labelled(v.Rows, a.ParamLabels)
		return v
	}
	v.Against = fmt.Sprintf("revision %d", a.Revision-1)
	for _, ch := range a.Changes {
		pointer, ok := strings.CutPrefix(ch.Pointer, "/params")
		if !ok {
			continue
		}
		i := slices.IndexFunc(v.Rows, func(r parts.Value) bool { return r.Pointer == pointer })
		switch {
		case i < 0 && ch.New == nil:
			v.Rows = append(v.Rows, parts.Value{Name: readable(pointer), Pointer: pointer, Change: "removed", Old: leafText(ch.Old)})
		case i >= 0 && ch.Old == nil:
			v.Rows[i].Change = "added"
		case i >= 0:
			v.Rows[i].Change, v.Rows[i].Old = "changed", leafText(ch.Old)
		}
	}
	v.Rows = labelled(v.Rows, a.ParamLabels)
	return v
}

func readable(pointer string) string {
	return strings.ReplaceAll(strings.NewReplacer("~1", "/", "~0", "~").Replace(strings.TrimPrefix(pointer, "/")), "/", " / ")
}

// leaves lists a document leaf by leaf, in the order of its keys. Sensitive
// ones show the beginning of their commitment.
func leaves(raw json.RawMessage, copyURL string) []parts.Value {
	if len(raw) == 0 {
		return nil
	}
	doc, err := canon.Value(raw)
	if err != nil {
		return []parts.Value{{Name: "value", Type: "unreadable", Text: string(raw)}}
	}
	var out []parts.Value
	walk("", doc, func(pointer string, v any) {
		if seal, ok := sealed.Of(v); ok {
			out = append(out, parts.Value{Name: readable(pointer), Pointer: pointer, Type: "sensitive", Masked: true, Fingerprint: fingerprint(seal)})
			return
		}
		row := parts.Value{Name: readable(pointer), Pointer: pointer, Type: typeWord(v), Text: plainLeaf(v)}
		if copyURL != "" {
			row.CopyURL = withQuery(copyURL, "path", pointer)
		}
		out = append(out, row)
	})
	return out
}

// fingerprint is enough of a commitment to tell two values of a run apart.
func fingerprint(c sealed.Commitment) string {
	return strings.TrimPrefix(string(c), sealed.Prefix)[:12]
}

func walk(pointer string, v any, leaf func(string, any)) {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	if _, ok := sealed.Of(v); ok {
		leaf(pointer, v)
		return
	}
	switch v := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			walk(pointer+"/"+escape.Replace(k), v[k], leaf)
		}
		if len(v) == 0 {
			leaf(pointer, v)
		}
	case []any:
		for i, x := range v {
			walk(fmt.Sprintf("%s/%d", pointer, i), x, leaf)
		}
		if len(v) == 0 {
			leaf(pointer, v)
		}
	default:
		leaf(pointer, v)
	}
}

func typeWord(v any) string {
	switch v := v.(type) {
	case nil:
		return "nothing"
	case bool:
		return "yes or no"
	case string:
		return "text"
	case float64:
		if v == float64(int64(v)) {
			return "whole number"
		}
		return "number"
	case []any:
		return "empty list"
	}
	return "empty object"
}

func plainLeaf(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	raw, err := canon.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(raw)
}

// diffValues is a table of differences.
func diffValues(caption, against string, changes []desk.Change, labels []desk.Label) *parts.Values {
	v := &parts.Values{Caption: caption, Against: against}
	for _, ch := range changes {
		row := parts.Value{Name: readable(strings.TrimPrefix(ch.Pointer, "/params")), Pointer: ch.Pointer, Text: leafText(ch.New), Old: leafText(ch.Old), Change: "changed"}
		switch {
		case ch.Old == nil:
			row.Change = "added"
		case ch.New == nil:
			row.Change, row.Text = "removed", ""
		}
		v.Rows = append(v.Rows, row)
	}
	if len(v.Rows) == 0 {
		return nil
	}
	v.Rows = labelled(v.Rows, labels)
	return v
}

// leafText is a leaf as it is read: a text without quotes, anything else as
// it is stored.
func leafText(raw []byte) string {
	v, err := canon.Value(raw)
	if err != nil {
		return string(raw)
	}
	if s, ok := v.(string); ok {
		return s
	}
	if seal, ok := sealed.Of(v); ok {
		return "hidden: sensitive, fingerprint " + fingerprint(seal)
	}
	return string(raw)
}
