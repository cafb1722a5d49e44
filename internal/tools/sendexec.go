package tools

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
)

func (w *World) carryExec(ctx context.Context, t *Tool, r *Request, s Sending, vars map[string]any) Outcome {
	m := s.mask
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
