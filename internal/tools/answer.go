package tools

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"countersign/internal/canon"
)

// httpAnswer reads what came over HTTP. Secrets are masked before anything
// else looks at it.
func (t *Tool) httpAnswer(w wireAnswer, m *mask, in map[string]any) answer {
	a := answer{retry: retryAfter(w.header, w.at), class: StatusClass(w.status), receipt: Receipt{At: w.at}}
	if w.err != nil {
		a.broken = "no answer came: " + m.text(w.err.Error())
		return a
	}
	body := m.bytes(w.body, w.cut)
	headers := map[string]any{}
	for name, v := range w.header {
		headers[strings.ToLower(name)] = m.text(strings.ToValidUTF8(strings.Join(v, ", "), "�"))
	}
	a.what = fmt.Sprintf("the target answered %d %s", w.status, http.StatusText(w.status))
	if to := w.header.Get("Location"); w.status >= 300 && w.status < 400 && to != "" {
		a.what += ", a redirect, which is never followed"
	}
	a.cut, a.over = w.cut, len(w.body) == ResponseBytesMax && w.cut
	a.receipt = receipt(w.status, w.body, body, w.cut, w.at, m)
	a.receipt.Headers = keptHeaders(w.header, m)
	a.vars = maps.Clone(in)
	a.vars["status"], a.vars["headers"] = float64(w.status), headers
	result := map[string]any{"status": float64(w.status), "headers": headers}
	if !w.cut {
		a.natural = parseBody(body, m)
		a.vars["body"], result["body"] = a.natural, a.natural
	}
	a.vars["result"] = result
	return a
}

// answerLimits are those of an answer that is read as JSON.
var answerLimits = canon.Limits{Bytes: ResponseBytesMax, Depth: 100, Keys: 100_000}

// parseBody is JSON if it reads strictly, text otherwise, and null if empty.
func parseBody(b []byte, m *mask) any {
	if len(strings.TrimSpace(string(b))) == 0 {
		return nil
	}
	if c, err := canon.Canonical(b, answerLimits); err == nil {
		if v, err := canon.Value(c); err == nil {
			return m.value(v) // a secret inside JSON inside a string
		}
	}
	return m.words(strings.ToValidUTF8(string(b), "�"))
}

// receipt keeps the beginning of a body and the digest of what came.
func receipt(status int, raw, shown []byte, cut bool, at time.Time, m *mask) Receipt {
	r := Receipt{Status: status, At: at, Incomplete: cut}
	if len(raw) == 0 {
		return r
	}
	if bytes.Equal(raw, shown) && len(m.alone) == 0 { // else the digest would help in guessing what is masked, or short
		r.BodyDigest = digestOf(raw)
	}
	if len(shown) <= ReceiptBytes && !cut {
		if c, err := canon.Marshal(parseBody(shown, m)); err == nil && len(c) <= ReceiptBytes {
			r.Body = c
			return r
		}
	}
	r.Incomplete = true
	for n := min(len(shown), ReceiptBytes-2); ; n /= 2 { // escapes can make text longer
		c, err := canon.Marshal(m.words(strings.ToValidUTF8(string(shown[:n]), "�")))
		if err != nil || len(c) <= ReceiptBytes {
			r.Body = c
			return r
		}
	}
}

// execAnswer reads how a program ended.
func (t *Tool) execAnswer(e ended, text bool, m *mask, in map[string]any, at time.Time) answer {
	out, errs := m.bytes(e.stdout, e.cut), m.bytes(e.stderr, e.cut)
	a := answer{class: ClassPermanent, cut: e.cut, over: e.cut, receipt: receipt(e.exit, e.stdout, out, e.cut, at, m)}
	if said := tail(errs); said != "" && len(t.SensitiveOutput) == 0 {
		a.receipt.Headers = map[string]string{"stderr": said}
		a.what = ": " + said
	}
	switch {
	case e.timedOut:
		a.broken = "the program did not end in time and was killed with all it started" + a.what
		return a
	case e.signal != "":
		a.broken = fmt.Sprintf("the program was ended by a signal (%s)%s", e.signal, a.what)
		return a
	}
	a.what = fmt.Sprintf("the program ended with exit code %d%s", e.exit, a.what)
	a.vars = maps.Clone(in)
	a.vars["exit"], a.vars["stderr"] = float64(e.exit), strings.ToValidUTF8(string(errs), "�")
	result := map[string]any{"exit": float64(e.exit)}
	if !e.cut {
		printed := strings.ToValidUTF8(string(out), "�")
		a.natural = any(printed)
		if !text {
			a.natural = parseBody(out, m)
		}
		a.vars["stdout"], a.vars["body"] = printed, a.natural
		result["stdout"], result["body"] = printed, a.natural
	}
	a.vars["result"] = result
	return a
}
