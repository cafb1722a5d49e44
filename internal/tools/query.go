package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"time"

	"countersign/internal/canon"
)

// Query asks whether a call happened. What the target says only counts where
// its answer is ok and exactly one of happened and did_not holds; did_not is
// believed only after the last try's time limit and settle have passed.
func (w *World) Query(ctx context.Context, t *Tool, f Frozen, s Sending) Answer {
	a := w.ask(ctx, t, f, s)
	w.log("tool query", t, s, slog.Bool("happened", a.Happened), slog.Bool("did_not", a.DidNot), slog.Int("answer", a.Outcome.Receipt.Status))
	return a
}

func (w *World) ask(ctx context.Context, t *Tool, f Frozen, s Sending) Answer {
	if running, err := w.busy(t, s); err != nil || running {
		why := errLocked.Error()
		if err != nil {
			why = err.Error()
		}
		return w.unknown(question{}, Outcome{Code: CodeStillRunning}, why)
	}
	switch {
	case t.Write && t.Transport == File:
		return w.queryFile(ctx, t, f, s)
	case t.code.reconcile == nil:
		return w.unknown(question{}, Outcome{}, "this tool cannot be asked what happened")
	}
	return w.queryTarget(ctx, t, s)
}

// busy reports whether a try of the effect still runs here.
func (w *World) busy(t *Tool, s Sending) (bool, error) {
	if t.Transport == HTTP || t.Transport == SMTP || w.LockDir == "" {
		return false, nil
	}
	return w.StillRunning(s.Effect)
}

// question is what was asked, as evidence shows it: without secrets.
type question struct {
	Method string   `json:"method,omitzero"`
	URL    string   `json:"url,omitzero"`
	Argv   []string `json:"argv,omitzero"`
	File   string   `json:"file,omitzero"`
	Pin    string   `json:"pin,omitzero"`
	Holds  string   `json:"holds,omitzero"`
}

func (w *World) queryTarget(ctx context.Context, t *Tool, s Sending) Answer {
	c := t.code.reconcile
	vars, err := inVars(orNull(s.Params), s.Config)
	if err != nil {
		return w.unknown(question{}, Outcome{}, err.Error())
	}
	vars["idempotency_key"] = s.Key
	s = s.masked()
	var a answer
	var q question
	var j judgeCode
	if c.http != nil {
		q, a, err = w.questionHTTP(ctx, t, c.http, s, vars)
		j = c.http.judge
	} else {
		q, a, err = w.questionExec(ctx, t, c.exec, s, vars)
		j = c.exec.judge
	}
	if err != nil {
		return w.unknown(q, Outcome{}, err.Error())
	}
	o := Outcome{Receipt: t.withheld(a.receipt), RetryAfter: a.retry}
	if a.broken != "" {
		return w.unknown(q, o, a.broken)
	}
	if v := t.judge(ctx, j, a.vars); !v.ok {
		return w.unknown(q, o, v.explain(a.what+", which is not an answer to the question"))
	}
	return w.weigh(ctx, t, s, q, a)
}

// weigh decides by happened and did_not.
func (w *World) weigh(ctx context.Context, t *Tool, s Sending, q question, a answer) Answer {
	c, o := t.code.reconcile, Outcome{Receipt: t.withheld(a.receipt)}
	happened, err1 := c.happened.Eval(ctx, a.vars)
	didNot, err2 := c.didNot.Eval(ctx, a.vars)
	switch {
	case err1 != nil || err2 != nil:
		return w.unknown(q, o, t.unread("the answer", errors.Join(err1, err2)))
	case happened && didNot:
		return w.unknown(q, o, "the answer says both that it happened and that it did not")
	case happened:
		returns := c.returns
		if returns == nil {
			returns = t.code.returns
		}
		a.what = "the target says that it happened"
		o = t.confirm(ctx, o, returns, a)
		t.hideOutput(&o)
		return Answer{Happened: true, Outcome: o, Evidence: evidence(q, o, "happened", a.what, w.now())}
	case !didNot:
		return w.unknown(q, o, "the answer says neither that it happened nor that it did not")
	}
	settled := s.SentAt.Add(t.Timeout + t.spec.Reconcile.Settle.Duration())
	if s.SentAt.IsZero() || !w.now().After(settled) {
		ans := w.unknown(q, o, "the target says that it did not happen, but it may still be on its way")
		if !s.SentAt.IsZero() {
			ans.After = settled.Add(time.Millisecond)
		}
		return ans
	}
	return w.didNot(q, o, "the target says that it did not happen")
}

func (w *World) unknown(q question, o Outcome, why string) Answer {
	o = o.as(Unknown, ClassUnknown, why)
	return Answer{Unknown: true, Outcome: o, Evidence: evidence(q, o, "unknown", why, w.now())}
}

func (w *World) didNot(q question, o Outcome, why string) Answer {
	o = o.as(NotDone, ClassTransient, why)
	return Answer{DidNot: true, Outcome: o, Evidence: evidence(q, o, "did_not", why, w.now())}
}

// evidence is what a person sees of a question and its answer.
func evidence(q question, o Outcome, finding, why string, at time.Time) json.RawMessage {
	b, err := canon.Marshal(struct {
		Question question `json:"question"`
		Answer   Receipt  `json:"answer"`
		Finding  string   `json:"finding"`
		Why      string   `json:"why"`
		At       string   `json:"at"`
	}{q, o.Receipt, finding, sentence(why), at.Format(time.RFC3339Nano)})
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return b
}

func (w *World) questionHTTP(ctx context.Context, t *Tool, c *httpCode, s Sending, vars map[string]any) (question, answer, error) {
	r, err := c.resolve(vars)
	if err != nil {
		return question{}, answer{}, err
	}
	q := question{Method: r.Method, URL: r.URL.String()}
	if r, err = r.reveal(ctx, s.Open, s.mask); err != nil {
		return q, answer{}, err
	}
	a, err := w.readHTTP(ctx, t, c, r, s, vars)
	return q, a, err
}

// readHTTP carries out a request that only reads.
func (w *World) readHTTP(ctx context.Context, t *Tool, c *httpCode, r *Request, s Sending, vars map[string]any) (answer, error) {
	ctx, stop := context.WithTimeout(ctx, c.spec.Timeout.Duration())
	defer stop()
	wire, m, fail := w.askHTTP(ctx, r, s)
	if fail != nil {
		return answer{}, errors.New(fail.Message)
	}
	if wire.err != nil && !wire.left {
		return answer{}, errors.New(notLeft(wire.err, m).Message)
	}
	return t.httpAnswer(wire, m, vars), nil
}

func (w *World) questionExec(ctx context.Context, t *Tool, c *execCode, s Sending, vars map[string]any) (question, answer, error) {
	r, err := c.resolve(orNull(s.Params), vars)
	if err != nil {
		return question{}, answer{}, err
	}
	q, m := question{Argv: r.Argv}, s.mask
	if r, err = r.reveal(ctx, s.Open, m); err != nil {
		return q, answer{}, err
	}
	p, err := w.process(ctx, r, s, m)
	if err != nil {
		return q, answer{}, err
	}
	ctx, stop := context.WithTimeout(ctx, c.spec.Timeout.Duration())
	defer stop()
	e := w.run(ctx, p)
	if e.startErr != nil {
		return q, answer{}, errors.New(notStarted(e.startErr).Message)
	}
	return q, t.execAnswer(e, c.spec.Stdout == "text", m, vars, w.now()), nil
}

// queryFile compares what the file holds with the old and the new content.
// Nobody is still writing: the effect's lock is free.
func (w *World) queryFile(ctx context.Context, t *Tool, f Frozen, s Sending) Answer {
	r, err := ReadFrozen(f)
	if err != nil {
		return w.unknown(question{}, Outcome{}, err.Error())
	}
	q := question{File: r.Path}
	s = s.masked()
	if r, err = r.reveal(ctx, s.Open, s.mask); err != nil {
		return w.unknown(q, Outcome{}, err.Error())
	}
	g := r.target(s.Effect)
	if q.Pin, err = pinText(s.Pin); err != nil {
		return w.unknown(q, Outcome{}, err.Error())
	}
	now, err := g.settle()
	if err != nil {
		return w.unknown(q, Outcome{}, err.Error())
	}
	q.Holds = now.pin()
	vars, err := inVars(orNull(s.Params), s.Config)
	if err != nil {
		return w.unknown(q, Outcome{}, err.Error())
	}
	switch q.Holds {
	case g.digest():
		o := t.confirm(ctx, Outcome{}, t.code.returns, g.answer(vars, w.now(), s.mask))
		return Answer{Happened: true, Outcome: o, Evidence: evidence(q, o, "happened", "the file holds the new content", w.now())}
	case q.Pin:
		return w.didNot(q, Outcome{}, "the file holds what it held before")
	}
	return w.unknown(q, Outcome{}, "the file holds neither the new content nor what it held before")
}

// settle removes what a crashed try left and makes what is there durable
// before anybody says so.
func (t target) settle() (held, error) {
	r, err := openRoot(t.root)
	if err != nil {
		return held{}, err
	}
	defer r.Close()
	if err := t.clean(r); err != nil {
		return held{}, err
	}
	now, err := holds(r, t.path)
	if err != nil || !now.exists {
		return now, err
	}
	f, err := r.Open(t.path)
	if err != nil {
		return held{}, fmt.Errorf("open file: %w", err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return held{}, fmt.Errorf("sync file: %w", err)
	}
	return now, syncFolder(r, path.Dir(t.path))
}

// pinText reads the pin of a file write: a digest or "absent".
func pinText(pin json.RawMessage) (string, error) {
	var text string
	if len(pin) == 0 || json.Unmarshal(pin, &text) != nil || text == "" {
		return "", errors.New("a file write needs the pin of its precondition: what it replaces")
	}
	return text, nil
}

func orNull(v json.RawMessage) json.RawMessage {
	if len(v) == 0 {
		return json.RawMessage("null")
	}
	return v
}
