package engine

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"countersign/internal/store"
	"countersign/internal/tools"
	"countersign/internal/workflow"
)

// dispatch sends what the durable intent says and records the answer. Between
// the two commits the process may die: then the effect is unknown.
func (s *session) dispatch(ctx context.Context, t workflow.Task, tool *tools.Tool, act action, eff *Effect) (*wait, error) {
	one := s.newTry(SpanSend, attemptOf(s.run, *eff), s.fence)
	one.log = one.log.With("effect", eff.ID)
	w, err := s.tell(ctx, t, tool, eff, one)
	one.recorded()
	return w, err
}

// tell sends and records the answer.
func (s *session) tell(ctx context.Context, t workflow.Task, tool *tools.Tool, eff *Effect, one *try) (*wait, error) {
	if !s.lease.safe() {
		one.attempt.Outcome = NotDone
		one.log.Warn("not sent: the lease is about to end")
		return s.outcome(ctx, t, tool, eff, tools.Outcome{Status: tools.NotDone, Class: tools.ClassTransient, Code: "lease",
			Message: "Nothing was sent, because this driver's lease was about to end."}, nil)
	}
	ctx, done := s.e.untilHardStop(ctx)
	defer done()
	out := safely(tools.Unknown, func() tools.Outcome {
		sending := s.sending(eff.Key, string(eff.ID), eff.Attempts, eff.params, one.traceparent(), one.log)
		sending.SentAt, sending.Pin = eff.SentAt, eff.pin
		return s.e.o.World.Send(ctx, tool, eff.request, sending)
	})
	s.crash("after-effect", t.Path, t.Pass)
	out = s.sealOutput(ctx, one.log, tool, out)
	one.answered(out)
	one.log.Info("sent", "outcome", out.Status, "class", out.Class, "code", out.Code)
	return s.outcome(ctx, t, tool, eff, out, nil)
}

// outcome records what came of a try, or what a query found out about one: the
// ledger row, the step, its checkpoint and the run, in one transaction. A
// driver that was taken over meanwhile leaves the answer as evidence.
func (s *session) outcome(ctx context.Context, t workflow.Task, tool *tools.Tool, eff *Effect, out tools.Outcome, found json.RawMessage) (*wait, error) {
	if eff.again && out.Status != tools.Confirmed {
		out.Status = tools.Unknown // this try did not happen; the one before may have
	}
	s.crash("before-outcome-commit", t.Path, t.Pass)
	was := *eff
	events, w := s.judged(t, eff, out)
	c := &commit{events: events, settles: true, wait: w, with: func(ctx context.Context, tx *store.Tx) error {
		if found != nil {
			if err := s.e.addEvidence(ctx, tx, *eff, EvidenceQuery, engineActor, found); err != nil {
				return err
			}
		}
		return s.e.settle(ctx, tx, s.run, eff, resolutionOf(eff, out, tx.Now(), found != nil))
	}}
	if w != nil && !s.alone {
		c.wait = nil
	}
	err := s.write(ctx, c)
	if errors.Is(err, ErrFenced) || errors.Is(err, errLate) {
		return nil, errors.Join(ErrFenced, s.late(ctx, was, out))
	}
	if err != nil || c.wait != nil {
		return nil, err
	}
	return w, nil
}

// judged gives the events that an outcome means for the step, and the wait for
// the next try of one that did not happen.
func (s *session) judged(t workflow.Task, eff *Effect, out tools.Outcome) ([]workflow.Event, *wait) {
	ev := workflow.Event{Path: t.Path, Pass: t.Pass, Attempt: s.row(t.Path, t.Pass).Attempts}
	switch out.Status {
	case tools.Confirmed:
		switch {
		case out.Class != "": // it happened, but its output cannot be used
			return []workflow.Event{failure(t, ev.Attempt, failureOf(out))}, nil
		case len(out.Output) > OutputBytesMax:
			return []workflow.Event{failure(t, ev.Attempt, *tooLarge(len(out.Output)))}, nil
		}
		ev.Kind, ev.Output = workflow.EffectConfirmed, orNull(out.Output)
	case tools.Refused:
		if out.Class == "" {
			out.Class = workflow.Refused
		}
		f := failureOf(out)
		ev.Kind, ev.Error = workflow.EffectRefused, &f
	case tools.NotDone:
		if askedOnly(eff) { // no try was used up
			s.row(t.Path, t.Pass).tries--
		}
		f := failureOf(out)
		if out.Code == tools.CodePinChanged {
			f.Class = workflow.Transient // the next revalidation finds the new pin and asks again
		}
		if w := s.retry(t, f, out.RetryAfter); w != nil {
			return nil, w
		}
		return []workflow.Event{failure(t, ev.Attempt, f)}, nil
	default:
		return nil, nil // unknown: the next round asks
	}
	return []workflow.Event{ev}, nil
}

// orNull is the output of a tool that has none.
func orNull(output json.RawMessage) json.RawMessage {
	if len(output) == 0 {
		return json.RawMessage("null")
	}
	return output
}

// resolutionOf is what an outcome means for the ledger row.
func resolutionOf(eff *Effect, out tools.Outcome, now time.Time, queried bool) resolution {
	res := resolution{status: statusOf(out.Status), ref: first(out.ExternalRef, out.Receipt.ExternalRef), receipt: json.RawMessage(encode(out.Receipt)),
		message: out.Message, by: engineActor, count: eff.ReconcileCount}
	if res.status == Unknown {
		res.reconcile = now
		if eff.again {
			res.reconcile = now.Add(backoff(eff.Attempts))
		}
	}
	if queried {
		res.evidence = "The target was asked."
	}
	return res
}

// statusOf is the ledger's word for what a try proved. What proves nothing is
// unknown.
func statusOf(s tools.Status) string {
	switch s {
	case tools.Confirmed:
		return Confirmed
	case tools.Refused:
		return Refused
	case tools.NotDone:
		return NotDone
	}
	return Unknown
}

// late keeps the answer of a try whose driver was taken over: nothing of the
// run changes, but nothing is thrown away.
func (s *session) late(ctx context.Context, eff Effect, out tools.Outcome) error {
	s.e.effectLog(s.run, eff).Warn("late answer kept as evidence", "outcome", out.Status)
	return s.e.update(ctx, func(ctx context.Context, tx *store.Tx) error {
		return s.e.addEvidence(ctx, tx, eff, EvidenceLate, engineActor, map[string]any{"outcome": out.Status, "message": out.Message,
			"attempt": eff.Attempts, "fence": eff.fence, "external_ref": out.ExternalRef, "receipt": out.Receipt, "output": digestOf(out.Output)})
	})
}
