package tools

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"

	"countersign/internal/canon"
	"countersign/internal/sealed"
)

// Opener gives the value behind a commitment. It is asked right before a
// request leaves, and never for anything that is kept.
type Opener func(ctx context.Context, c sealed.Commitment) (any, error)

// errNoOpener is told when a request has sealed values and nobody can open
// them.
var errNoOpener = errors.New("a sensitive value is needed, and nothing was given that opens it")

// reveal returns the request with every sealed value in place. Each is added
// to the mask, so that an answer that repeats it is not kept with it.
func (r *Request) reveal(ctx context.Context, open Opener, m *mask) (*Request, error) {
	value := func(c sealed.Commitment) (any, error) {
		if open == nil {
			return nil, errNoOpener
		}
		v, err := open(ctx, c)
		if err == nil {
			m.learn(v)
		}
		return v, err
	}
	out := *r
	var err error
	if out.URL, err = r.URL.reveal(value, byPosition); err != nil {
		return nil, err
	}
	asIs := func(_, s string) (string, error) { return s, nil }
	for _, texts := range []*map[string]Parts{&out.Headers, &out.Env, &out.BodySecrets} {
		if *texts, err = revealAll(*texts, value, asIs); err != nil {
			return nil, err
		}
	}
	for _, doc := range []*json.RawMessage{&out.Body, &out.Stdin} {
		if *doc, err = revealDoc(*doc, value); err != nil {
			return nil, err
		}
	}
	if r.Mail != nil {
		m := *r.Mail
		for _, text := range []*string{&m.Subject, &m.Text} {
			if *text, err = sealed.Text(*text, value); err != nil {
				return nil, err
			}
		}
		if hasControl(m.Subject) {
			return nil, errors.New("a sensitive value does not fit the subject: it holds a line break or another control character")
		}
		out.Mail = &m
	}
	if r.Content != nil {
		text, err := sealed.Text(*r.Content, value)
		if err != nil {
			return nil, err
		}
		out.Content = &text
	}
	return &out, nil
}

func revealDoc(doc json.RawMessage, value func(sealed.Commitment) (any, error)) (json.RawMessage, error) {
	if !sealed.In(doc) {
		return doc, nil
	}
	v, err := canon.Value(doc)
	if err != nil {
		return nil, err
	}
	if v, err = sealed.ReplaceAll(v, value); err != nil {
		return nil, err
	}
	return canon.Marshal(v)
}

func revealAll(texts map[string]Parts, value func(sealed.Commitment) (any, error), escape func(before, text string) (string, error)) (map[string]Parts, error) {
	out := maps.Clone(texts)
	var err error
	for name, p := range texts {
		if out[name], err = p.reveal(value, escape); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// byPosition escapes what stands in a URL: in its query anything, in its path
// what cannot climb.
func byPosition(before, text string) (string, error) {
	if strings.Contains(before, "?") {
		return queryText(text), nil
	}
	return pathText(text)
}

// reveal puts the values into a text; escape makes each fit after what stands
// before it.
func (p Parts) reveal(value func(sealed.Commitment) (any, error), escape func(before, text string) (string, error)) (Parts, error) {
	var out Parts
	before := ""
	for _, x := range p {
		if x.Sealed != "" {
			v, err := value(x.Sealed)
			if err != nil {
				return nil, err
			}
			text, err := sealed.Words(v)
			if err != nil {
				return nil, err
			}
			if text, err = escape(before, text); err != nil {
				return nil, errors.New("a sensitive value does not fit where it belongs: it " + err.Error())
			}
			x = Part{Text: text}
		}
		before += x.Text
		out = append(out, x)
	}
	return out, nil
}

// learn adds a sensitive value to what is masked: its leaves where they stand
// alone or as a word, and where they are long enough not to hide ordinary text,
// inside of others too.
func (m *mask) learn(v any) {
	switch v := v.(type) {
	case nil, bool: // say nothing by themselves
	case map[string]any:
		for _, x := range v {
			m.learn(x)
		}
	case []any:
		for _, x := range v {
			m.learn(x)
		}
	default:
		text, err := sealed.Words(v)
		if err != nil || text == "" {
			return
		}
		m.alone = append(m.alone, text)
		if len(text) >= secretBytesMin {
			m.add(text)
		}
	}
}

// withheld is a receipt without what the target said, where that may be
// sensitive and no output tells which part of it is.
func (t *Tool) withheld(r Receipt) Receipt {
	if len(t.SensitiveOutput) > 0 && len(r.Body) > 0 {
		r.Body, r.BodyDigest, r.Incomplete = nil, "", true
	}
	return r
}

// hideOutput masks in a receipt what the tool says is sensitive in its output.
func (t *Tool) hideOutput(o *Outcome) {
	if len(t.SensitiveOutput) == 0 {
		return
	}
	v, err := canon.Value(o.Output)
	if o.Status != Confirmed || o.Class != "" || err != nil {
		o.Receipt, o.ExternalRef = t.withheld(o.Receipt), ""
		o.Receipt.ExternalRef = ""
		return
	}
	m := &mask{}
	for _, p := range t.SensitiveOutput {
		for _, at := range canon.Expand(v, p) {
			if x, ok := canon.Get(v, at); ok {
				m.learn(x)
			}
		}
	}
	o.Receipt, o.Message, o.ExternalRef = o.Receipt.masked(m), m.text(o.Message), m.text(o.ExternalRef)
	o.Receipt.BodyDigest = "" // of a body with a short value in it, it can be guessed
}

func (r Receipt) masked(m *mask) Receipt {
	if v, err := canon.Value(r.Body); err == nil {
		if body, err := canon.Marshal(m.value(v)); err == nil {
			r.Body = body
		}
	}
	r.ExternalRef = m.text(r.ExternalRef)
	r.Headers = maps.Clone(r.Headers)
	for name, text := range r.Headers {
		r.Headers[name] = m.text(text)
	}
	return r
}
