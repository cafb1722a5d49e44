package tools

import (
	"context"
	"fmt"
	"log/slog"
	"time"
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
	t.hideOutput(&o)
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
	s = s.masked()
	if r, err = r.reveal(ctx, s.Open, s.mask); err != nil {
		return Outcome{}.as(NotDone, ClassPermanent, "nothing was sent: "+err.Error()).coded(CodeSensitive)
	}
	ctx, stop := context.WithTimeout(ctx, time.Duration(r.TimeoutMS)*time.Millisecond)
	defer stop()
	switch t.Transport {
	case HTTP:
		return w.carryHTTP(ctx, t, r, s, vars)
	case Exec:
		return w.carryExec(ctx, t, r, s, vars)
	case SMTP:
		return w.carrySMTP(ctx, t, r, s, vars)
	}
	return w.carryFile(ctx, t, r, s, vars)
}

func (w *World) log(what string, t *Tool, s Sending, attrs ...slog.Attr) {
	log := s.Logger
	if log == nil && w.Logger != nil {
		log = w.Logger.With("effect", s.Effect, "attempt", s.Attempt, "idempotency_key", s.Key)
	}
	if log == nil {
		return
	}
	log.LogAttrs(context.Background(), slog.LevelInfo, what, append([]slog.Attr{
		slog.String("tool", t.Name), slog.Int("tool_version", t.Version), slog.String("transport", t.Transport), slog.String("traceparent", s.Trace),
	}, attrs...)...)
}
