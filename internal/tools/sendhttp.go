package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"

	"countersign/internal/canon"
)

func (w *World) carryHTTP(ctx context.Context, t *Tool, r *Request, s Sending, vars map[string]any) Outcome {
	a, m, fail := w.askHTTP(ctx, r, s)
	if fail != nil {
		return *fail
	}
	if a.err != nil && !a.left {
		return notLeft(a.err, m)
	}
	o := t.conclude(context.WithoutCancel(ctx), t.code.http.judge, t.httpAnswer(a, m, vars))
	if a.err != nil {
		o.Code = CodeNoAnswer
	}
	return o
}

// notLeft is the outcome of a request of which no byte left.
func notLeft(err error, m *mask) Outcome {
	if why, ok := errors.AsType[*addressError](err); ok {
		return Outcome{}.as(Refused, ClassDenied, "nothing was sent: "+why.Error()).coded(CodeAddress)
	}
	return Outcome{}.as(NotDone, ClassTransient, "nothing was sent, no connection could be made: "+m.text(err.Error()))
}

// askHTTP puts the secrets in place and exchanges one request. fail is set
// when it could not be made, so that nothing was sent.
func (w *World) askHTTP(ctx context.Context, r *Request, s Sending) (wireAnswer, *mask, *Outcome) {
	req, m, err := w.httpRequest(ctx, r, s)
	if err != nil {
		o := unmade(err, m)
		return wireAnswer{}, m, &o
	}
	return w.exchange(ctx, req), m, nil
}

func unmade(err error, m *mask) Outcome {
	o := Outcome{}.as(NotDone, ClassPermanent, "nothing was sent: "+m.text(err.Error()))
	if _, ok := errors.AsType[*secretError](err); ok {
		o.Code = CodeSecret
	}
	return o
}

// secretError says that a secret cannot be had. It never holds the value.
type secretError struct{ text string }

func (e *secretError) Error() string { return e.text }

// open returns a function that fetches each secret once for this sending and
// remembers it for masking.
func (w *World) open(ctx context.Context, m *mask) func(name string) (string, error) {
	got := map[string]string{}
	return func(name string) (string, error) {
		if v, ok := got[name]; ok {
			return v, nil
		}
		if w.Secrets == nil {
			return "", &secretError{"no secrets are set up; " + name + " is needed"}
		}
		v, err := w.Secrets(ctx, name)
		if err != nil {
			return "", &secretError{"the secret " + name + " could not be fetched"}
		}
		if len(v) < secretBytesMin {
			return "", &secretError{fmt.Sprintf("the secret %s is not set or shorter than %d characters", name, secretBytesMin)}
		}
		got[name] = v
		m.add(v)
		return v, nil
	}
}

var traceForm = regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`) // W3C Trace Context

// httpRequest fills a frozen request.
func (w *World) httpRequest(ctx context.Context, r *Request, s Sending) (*http.Request, *mask, error) {
	m := s.mask
	get := w.open(ctx, m)
	query := func(name string) (string, error) {
		v, err := get(name)
		return queryText(v), err
	}
	url, err := r.URL.fill(query)
	if err != nil {
		return nil, m, err
	}
	var body io.Reader
	if r.Body != nil {
		b, err := r.fillBody(get)
		if err != nil {
			return nil, m, err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, url, body)
	if err != nil {
		return nil, m, fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("User-Agent", "Countersign/1")
	if r.Body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, p := range r.Headers {
		v, err := p.fill(get)
		if err != nil {
			return nil, m, err
		}
		if hasControl(v) {
			return nil, m, fmt.Errorf("the header %s holds a line break or another control character", name)
		}
		req.Header.Set(name, v)
	}
	if r.KeyHeader != "" {
		if s.Key == "" || hasControl(s.Key) {
			return nil, m, errors.New("there is no idempotency key for this request")
		}
		req.Header.Set(r.KeyHeader, s.Key)
	}
	if traceForm.MatchString(s.Trace) {
		req.Header.Set("Traceparent", s.Trace)
	}
	return req, m, nil
}

// fillBody puts secrets into the leaves that name them.
func (r *Request) fillBody(get func(string) (string, error)) ([]byte, error) {
	if len(r.BodySecrets) == 0 {
		return r.Body, nil
	}
	v, err := canon.Value(r.Body)
	if err != nil {
		return nil, err
	}
	for at, p := range r.BodySecrets {
		text, err := p.fill(get)
		if err != nil {
			return nil, err
		}
		if at == "" {
			return canon.Marshal(text)
		}
		if v, err = canon.Set(v, at, text); err != nil {
			return nil, fmt.Errorf("put secret in place: %w", err)
		}
	}
	return canon.Marshal(v)
}
