package approvals

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"countersign/internal/canon"
)

// Hidden stands wherever a sensitive value is not shown.
const Hidden = "***"

// echoCharsMin is the shortest text that is looked for inside of others: a
// shorter one would hide ordinary text too.
const echoCharsMin = 4

// veil hides what is sensitive in one request, also where a document repeats
// it: a frozen request holds the parameters it is made of.
type veil struct {
	pointers []string // into params
	leaves   []string // what stands there, as text
}

// add learns what is sensitive in the parameters.
func (v *veil) add(params json.RawMessage, pointers []string) {
	doc, err := canon.Value(params)
	if err != nil {
		return // nothing of it is shown either: it cannot be read
	}
	for _, p := range pointers {
		if !slices.Contains(v.pointers, p) {
			v.pointers = append(v.pointers, p)
		}
		if x, ok := canon.Get(doc, p); ok {
			v.learn(x)
		}
	}
}

func (v *veil) learn(x any) {
	switch x := x.(type) {
	case map[string]any:
		for _, y := range x {
			v.learn(y)
		}
	case []any:
		for _, y := range x {
			v.learn(y)
		}
	default:
		text := leafWords(x)
		v.leaves = append(v.leaves, text, url.QueryEscape(text), url.PathEscape(text))
	}
}

// leafWords is a leaf as text: a string without its quotes.
func leafWords(x any) string {
	if s, ok := x.(string); ok {
		return s
	}
	raw, err := canon.Marshal(x)
	if err != nil {
		return ""
	}
	return string(raw)
}

// params returns the parameters with the sensitive ones hidden.
func (v *veil) params(raw json.RawMessage) json.RawMessage {
	doc, err := canon.Value(raw)
	if err != nil || len(v.pointers) == 0 {
		return raw
	}
	for _, p := range v.pointers {
		if _, ok := canon.Get(doc, p); !ok {
			continue
		}
		if doc, err = canon.Set(doc, p, Hidden); err != nil {
			return hidden
		}
	}
	return encoded(doc)
}

var hidden = json.RawMessage(`"` + Hidden + `"`)

// echo returns a document with every repetition of a sensitive value hidden.
func (v *veil) echo(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || len(v.leaves) == 0 {
		return raw
	}
	doc, err := canon.Value(raw)
	if err != nil {
		return hidden
	}
	return encoded(v.cover(doc))
}

func encoded(doc any) json.RawMessage {
	raw, err := canon.Marshal(doc)
	if err != nil {
		return hidden
	}
	return raw
}

func (v *veil) cover(x any) any {
	switch x := x.(type) {
	case map[string]any:
		out := make(map[string]any, len(x))
		for k, y := range x {
			out[k] = v.cover(y)
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i, y := range x {
			out[i] = v.cover(y)
		}
		return out
	case nil, bool:
		return x // says nothing by itself
	}
	text := leafWords(x)
	if slices.Contains(v.leaves, text) {
		return Hidden
	}
	s, ok := x.(string)
	if !ok {
		return x
	}
	for _, leaf := range v.leaves {
		if len([]rune(leaf)) >= echoCharsMin {
			s = strings.ReplaceAll(s, leaf, Hidden)
		}
	}
	return s
}

// change hides what is sensitive on both sides of a difference of subjects.
func (v *veil) change(c Change) Change {
	at, ok := strings.CutPrefix(c.Pointer, "/params")
	side := func(raw json.RawMessage) json.RawMessage {
		if len(raw) > 0 && ok && under(at, v.pointers) {
			return hidden
		}
		return v.echo(raw)
	}
	return Change{Pointer: c.Pointer, Old: side(c.Old), New: side(c.New)}
}

// Veiled is what of a request is shown where nobody asked for its sensitive
// values.
type Veiled struct {
	Params, FrozenRequest, Preview json.RawMessage
}

// Veiled returns the request's documents without its sensitive values.
func (r Request) Veiled() Veiled {
	var v veil
	v.add(r.Params, r.Sensitive)
	out := Veiled{Params: v.params(r.Params), FrozenRequest: v.echo(r.FrozenRequest)}
	if r.Preview != nil {
		out.Preview = v.echo(r.Preview.Value)
	}
	return out
}

// veilOf learns what is sensitive in either of two subjects.
func veilOf(subjects ...json.RawMessage) *veil {
	v := &veil{}
	for _, raw := range subjects {
		var s struct {
			Params    json.RawMessage `json:"params"`
			Sensitive []string        `json:"sensitive"`
		}
		if err := json.Unmarshal(raw, &s); err == nil && len(s.Params) > 0 {
			v.add(s.Params, s.Sensitive)
		}
	}
	return v
}
