package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"countersign/internal/canon"
)

// ReadingBytesMax bounds what a preview or a precondition keeps: it becomes
// part of what is approved.
const ReadingBytesMax = 64 << 10

// previewTextMax is how much of the present content the preview of a file
// write shows.
const previewTextMax = 48 << 10

// Preview asks the target what would happen. A tool without a preview gives an
// empty reading that is OK.
func (w *World) Preview(ctx context.Context, t *Tool, s Sending) Reading {
	if t.Write && t.Transport == File {
		return w.readFile(ctx, t, s, true)
	}
	return w.reading(ctx, t, t.code.preview, s)
}

// Precondition reads what must hold and its pin. A tool without a precondition
// gives an empty reading that is OK and Met.
func (w *World) Precondition(ctx context.Context, t *Tool, s Sending) Reading {
	if t.Write && t.Transport == File {
		return w.readFile(ctx, t, s, false)
	}
	return w.reading(ctx, t, t.code.precondition, s)
}

func (w *World) reading(ctx context.Context, t *Tool, c *readingCode, s Sending) Reading {
	if c == nil {
		return Reading{OK: true, Met: true, At: w.now()}
	}
	vars, err := inVars(orNull(s.Params), s.Config)
	if err != nil {
		return w.unread(err)
	}
	r, err := c.http.resolve(vars)
	if err != nil {
		return w.unread(err)
	}
	s = s.masked()
	if r, err = r.reveal(ctx, s.Open, s.mask); err != nil {
		return w.unread(err)
	}
	a, err := w.readHTTP(ctx, t, c.http, r, s, vars)
	switch {
	case err != nil:
		return w.unread(err)
	case a.broken != "":
		return w.unread(errors.New(a.broken))
	case a.cut:
		return w.unread(errors.New(a.what + ", but the answer is not all there"))
	}
	if v := t.judge(ctx, c.http.judge, a.vars); !v.ok {
		return w.unread(errors.New(v.explain(a.what)))
	}
	return w.judgeReading(ctx, c, a)
}

func (w *World) judgeReading(ctx context.Context, c *readingCode, a answer) Reading {
	out := Reading{OK: true, Met: true, At: w.now()}
	var err error
	if out.Value, err = bounded(a.natural); err != nil {
		return w.unread(err)
	}
	if c.pin != nil {
		pin, err := c.pin.Eval(ctx, a.vars)
		if err != nil {
			return w.unread(fmt.Errorf("pin could not be evaluated (%w)", err))
		}
		if out.Pin, err = bounded(pin); err != nil {
			return w.unread(err)
		}
	}
	if c.check != nil {
		if out.Met, err = c.check.Eval(ctx, a.vars); err != nil {
			return w.unread(fmt.Errorf("check could not be evaluated (%w)", err))
		}
		if !out.Met {
			out.Error = "it asks for " + c.check.Source()
		}
	}
	return out
}

func bounded(v any) (json.RawMessage, error) {
	b, err := canon.Marshal(v)
	if err != nil {
		return nil, err
	}
	if len(b) > ReadingBytesMax {
		return nil, fmt.Errorf("the answer is %d bytes long; the limit is %d", len(b), ReadingBytesMax)
	}
	return b, nil
}

func (w *World) unread(err error) Reading { return Reading{Error: sentence(err.Error()), At: w.now()} }

// readFile is what the file of a write tool holds now. Its pin is what the
// write will compare right before it replaces the file.
func (w *World) readFile(ctx context.Context, t *Tool, s Sending, text bool) Reading {
	vars, err := inVars(orNull(s.Params), s.Config)
	if err != nil {
		return w.unread(err)
	}
	req, err := t.code.file.resolve(vars)
	if err != nil {
		return w.unread(err)
	}
	s = s.masked()
	if req, err = req.reveal(ctx, s.Open, s.mask); err != nil {
		return w.unread(err)
	}
	r, err := openRoot(req.Root)
	if err != nil {
		return w.unread(err)
	}
	defer r.Close()
	now, err := holds(r, req.Path)
	if err != nil {
		return w.unread(err)
	}
	v := map[string]any{"path": req.Path, "exists": now.exists}
	if now.exists {
		v["digest"], v["size"] = now.digest, float64(len(now.content))
		if text && len(now.content) <= previewTextMax && utf8.Valid(now.content) {
			v["text"] = s.mask.text(string(now.content))
		}
	}
	out := Reading{OK: true, Met: true, At: w.now()}
	if out.Value, err = bounded(v); err != nil {
		delete(v, "text") // escapes made it too long
		if out.Value, err = bounded(v); err != nil {
			return w.unread(err)
		}
	}
	if out.Pin, err = canon.Marshal(now.pin()); err != nil {
		return w.unread(err)
	}
	return out
}
