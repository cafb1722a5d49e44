package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"time"

	"countersign/internal/canon"
)

// Call carries out a read tool once. The outcome is Confirmed or Failed.
func (w *World) Call(ctx context.Context, t *Tool, f Frozen, s Sending) Outcome {
	if t.Write {
		return Outcome{}.as(NotDone, ClassBug, t.Name+" changes the world and cannot be called as a read")
	}
	o := w.once(ctx, t, f, s)
	if o.Status != Confirmed {
		o.Status = Failed
	} else if o.Class != "" { // a read whose output does not fit gave nothing
		o.Status, o.Output = Failed, nil
	}
	return o
}

// Send carries out a write tool: one try. What it cannot prove is Unknown, and
// it never tries again by itself.
func (w *World) Send(ctx context.Context, t *Tool, f Frozen, s Sending) Outcome {
	if !t.Write {
		return Outcome{}.as(NotDone, ClassBug, t.Name+" only reads and cannot be sent as a write")
	}
	return w.once(ctx, t, f, s)
}

func (w *World) once(ctx context.Context, t *Tool, f Frozen, s Sending) Outcome {
	begun := time.Now()
	o := w.carry(ctx, t, f, s)
	if o.Receipt.At.IsZero() {
		o.Receipt.At = w.now()
	}
	w.log("tool call", t, s, slog.String("status", string(o.Status)), slog.String("class", o.Class), slog.Int("answer", o.Receipt.Status), slog.Duration("took", time.Since(begun)))
	return o
}

// carry checks what it was given and hands over to the transport.
func (w *World) carry(ctx context.Context, t *Tool, f Frozen, s Sending) Outcome {
	r, err := ReadFrozen(f)
	if err != nil {
		return Outcome{}.as(NotDone, ClassBug, err.Error())
	}
	if r.Transport != t.Transport {
		return Outcome{}.as(NotDone, ClassBug, fmt.Sprintf("the request is for %s, the tool uses %s", r.Transport, t.Transport))
	}
	vars, err := inVars(orNull(s.Params), s.Config)
	if err != nil {
		return Outcome{}.as(NotDone, ClassBug, err.Error())
	}
	ctx, stop := context.WithTimeout(ctx, time.Duration(r.TimeoutMS)*time.Millisecond)
	defer stop()
	switch t.Transport {
	case HTTP:
		return w.carryHTTP(ctx, t, r, s, vars)
	case Exec:
		return w.carryExec(ctx, t, r, s, vars)
	}
	return w.carryFile(ctx, t, r, s, vars)
}

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
	m := &mask{}
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

func (w *World) carryExec(ctx context.Context, t *Tool, r *Request, s Sending, vars map[string]any) Outcome {
	m := &mask{}
	p, err := w.process(ctx, r, s, m)
	if err != nil {
		return unmade(err, m)
	}
	if t.Write {
		lock, err := w.lockEffect(s.Effect)
		if errors.Is(err, errLocked) {
			return Outcome{}.as(Unknown, ClassUnknown, err.Error()).coded(CodeStillRunning)
		}
		if err != nil {
			return Outcome{}.as(NotDone, ClassTransient, "nothing was started: "+err.Error())
		}
		defer lock.Close()
		p.lock = lock
	}
	e := w.run(ctx, p)
	if e.startErr != nil {
		return notStarted(e.startErr)
	}
	a := t.execAnswer(e, t.code.exec.spec.Stdout == "text", m, vars, w.now())
	return t.conclude(context.WithoutCancel(ctx), t.code.exec.judge, a)
}

// process fills a frozen command.
func (w *World) process(ctx context.Context, r *Request, s Sending, m *mask) (process, error) {
	p := process{argv: r.Argv, dir: r.Dir, stdin: r.Stdin}
	get := w.open(ctx, m)
	for name, x := range r.Env {
		v, err := x.fill(get)
		if err != nil {
			return p, err
		}
		if strings.ContainsRune(v, 0) {
			return p, fmt.Errorf("the variable %s holds a null character", name)
		}
		p.env = append(p.env, name+"="+v)
	}
	if s.Key != "" {
		p.env = append(p.env, "COUNTERSIGN_IDEMPOTENCY_KEY="+s.Key)
	}
	if traceForm.MatchString(s.Trace) {
		p.env = append(p.env, "TRACEPARENT="+s.Trace)
	}
	return p, nil
}

// notStarted is the outcome of a program that never ran.
func notStarted(err error) Outcome {
	class := ClassPermanent
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.ENOMEM) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		class = ClassTransient
	}
	return Outcome{}.as(NotDone, class, "the program was not started: "+err.Error())
}

func (w *World) carryFile(ctx context.Context, t *Tool, r *Request, s Sending, vars map[string]any) Outcome {
	if r.Collect != nil {
		return w.carryCollect(ctx, t, r, vars)
	}
	pin, err := pinText(s.Pin)
	if err != nil {
		return Outcome{}.as(NotDone, ClassBug, err.Error())
	}
	lock, err := w.lockEffect(s.Effect)
	if errors.Is(err, errLocked) {
		return Outcome{}.as(Unknown, ClassUnknown, err.Error()).coded(CodeStillRunning)
	}
	if err != nil {
		return Outcome{}.as(NotDone, ClassTransient, "nothing was written: "+err.Error())
	}
	defer lock.Close()
	g := r.target(s.Effect)
	touched, err := g.put(ctx, pin)
	switch {
	case errors.Is(err, errPinChanged):
		return Outcome{}.as(NotDone, ClassTransient, err.Error()).coded(CodePinChanged)
	case err != nil && !touched:
		return Outcome{}.as(NotDone, fileClass(err), "nothing was written: "+err.Error())
	case err != nil:
		return Outcome{}.as(Unknown, ClassUnknown, err.Error())
	}
	return t.confirm(ctx, Outcome{}, t.code.returns, g.answer(vars, w.now()))
}

func (r *Request) target(effect string) target {
	g := target{root: r.Root, path: r.Path, effect: effect}
	if r.Content != nil {
		g.content = []byte(*r.Content)
	}
	return g
}

// answer is the output of a file that is written.
func (t target) answer(vars map[string]any, at time.Time) answer {
	out := map[string]any{"path": t.path, "digest": t.digest(), "size": float64(len(t.content))}
	a := answer{what: "the file is written", natural: out, vars: map[string]any{"params": vars["params"], "config": vars["config"], "body": out, "result": map[string]any{"body": out}}}
	a.receipt = Receipt{At: at, ExternalRef: t.path[:min(len(t.path), referenceMax)], BodyDigest: t.digest()}
	a.receipt.Body, _ = canon.Marshal(out) // our own small object
	return a
}

func fileClass(err error) string {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.EROFS) {
		return ClassPermanent
	}
	if strings.Contains(err.Error(), "path escapes") { // os.Root has no sentinel for it
		return ClassPermanent
	}
	return ClassTransient
}

func (w *World) carryCollect(ctx context.Context, t *Tool, r *Request, vars map[string]any) Outcome {
	v, err := collect(ctx, r.Root, *r.Collect)
	if err != nil {
		class := fileClass(err)
		if _, ok := errors.AsType[*collectError](err); ok {
			class = ClassPermanent
		}
		return Outcome{}.as(Failed, class, err.Error())
	}
	a := answer{what: "the files were read", natural: v, receipt: Receipt{At: w.now()}}
	a.vars = map[string]any{"params": vars["params"], "config": vars["config"], "body": v, "result": map[string]any{"body": v}}
	if d, err := canon.DigestOf(v); err == nil {
		a.receipt.BodyDigest = d
	}
	return t.confirm(ctx, Outcome{}, t.code.returns, a)
}

func (w *World) log(what string, t *Tool, s Sending, attrs ...slog.Attr) {
	if w.Logger == nil {
		return
	}
	w.Logger.LogAttrs(context.Background(), slog.LevelInfo, what, append([]slog.Attr{
		slog.String("tool", t.Name), slog.Int("tool_version", t.Version), slog.String("transport", t.Transport),
		slog.String("effect", s.Effect), slog.Int("attempt", s.Attempt), slog.String("idempotency_key", s.Key), slog.String("trace", s.Trace),
	}, attrs...)...)
}
