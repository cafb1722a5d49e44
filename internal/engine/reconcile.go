package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"countersign/internal/store"
	"countersign/internal/tools"
	"countersign/internal/workflow"
)

// reconcile finds out what became of an effect whose outcome is unknown, in
// this order: wait for a child that still runs; ask the target; send the same
// key again where that is declared safe and the key still lives; a person.
func (s *session) reconcile(ctx context.Context, t workflow.Task, act action, eff *Effect) (*wait, error) {
	byPerson := s.by.Kind != ActorEngine
	if !byPerson && s.now.Before(eff.ReconcileAt) {
		return s.askLater(t, eff), nil
	}
	if byPerson {
		eff.ReconcileCount = 0
	}
	tool, ok := s.tools[act.ToolDigest]
	if !ok {
		return s.askAPerson(t, eff, "The tool "+act.Tool+" is not the one that was sent with."), nil
	}
	switch running, err := s.e.o.World.StillRunning(string(eff.ID)); {
	case running:
		return s.unsettled(ctx, t, eff, "An earlier try of it still runs.", time.Time{})
	case err != nil && eff.ReconcileCount < ReconcileMax:
		s.e.effectLog(s.run, *eff).Error("look for a child that still runs", "error", err)
		eff.ReconcileCount++
		return s.unsettled(ctx, t, eff, "Whether an earlier try still runs could not be read.", time.Time{})
	case err != nil:
		return s.askAPerson(t, eff, "Whether an earlier try still runs could not be read."), nil
	}
	if tool.CanQuery() && eff.ReconcileCount < ReconcileMax {
		return s.query(ctx, t, tool, eff)
	}
	if !s.ending && s.mayResend(t, tool, eff) {
		w, err := s.resend(ctx, t, tool, act, eff)
		if !errors.Is(err, errNotAdmitted) {
			return w, err
		}
		return s.askAPerson(t, eff, "Sending it again is not admitted any more."), nil
	}
	return s.askAPerson(t, eff, ""), nil
}

// query asks the target whether it happened.
func (s *session) query(ctx context.Context, t workflow.Task, tool *tools.Tool, eff *Effect) (*wait, error) {
	log, q := s.e.effectLog(s.run, *eff), s.asking(eff)
	sending := s.sending(eff.Key, string(eff.ID), eff.Attempts, eff.params, traceparent(q.Trace, q.ID), log)
	sending.SentAt, sending.Pin = eff.SentAt, eff.pin
	ans := asked(func() tools.Answer { return s.e.o.World.Query(ctx, tool, eff.request, sending) })
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	log.Info("asked the target", "happened", ans.Happened, "did_not", ans.DidNot)
	s.asked(q, ans)
	evidence := ans.Evidence
	if evidence == nil {
		evidence = json.RawMessage("null")
	}
	switch {
	case ans.Happened:
		ans.Outcome.Status = tools.Confirmed
		return s.outcome(ctx, t, tool, eff, s.sealOutput(ctx, log, tool, ans.Outcome), evidence)
	case ans.DidNot:
		ans.Outcome.Status = tools.NotDone
		if ans.Outcome.Class == "" {
			ans.Outcome.Class = tools.ClassTransient
		}
		return s.outcome(ctx, t, tool, eff, ans.Outcome, evidence)
	}
	eff.ReconcileCount++
	return s.unsettled(ctx, t, eff, ans.Outcome.Message, ans.After)
}

func asked(ask func() tools.Answer) (ans tools.Answer) {
	defer func() {
		if v := recover(); v != nil {
			if c, ok := v.(Crashed); ok {
				panic(c)
			}
			ans = tools.Answer{Unknown: true, Outcome: tools.Outcome{Status: tools.Unknown, Class: tools.ClassBug, Message: fmt.Sprintf("The transport broke: %v.", v)}}
		}
	}()
	return ask()
}

// unsettled records that nothing was learned and when to look again.
func (s *session) unsettled(ctx context.Context, t workflow.Task, eff *Effect, message string, after time.Time) (*wait, error) {
	at := s.now.Add(backoff(eff.ReconcileCount))
	if after.After(at) {
		at = after
	}
	if message == "" {
		message = eff.Message
	}
	was := eff.ReconcileCount
	err := s.write(ctx, &commit{settles: true, with: func(ctx context.Context, tx *store.Tx) error {
		return s.e.settle(ctx, tx, s.run, eff, resolution{status: Unknown, message: message, by: engineActor, reconcile: at, count: was})
	}})
	if err != nil {
		return nil, err
	}
	s.by = engineActor // a person's wish counts once
	if was >= ReconcileMax {
		return nil, nil // the next round knows what follows
	}
	return s.askLater(t, eff), nil
}

func (s *session) askLater(t workflow.Task, eff *Effect) *wait {
	f := &workflow.Failure{Class: workflow.Unknown, Code: codeUnknown, Message: textOf("It is not known yet whether it happened.", eff.Message)}
	return waitRetry(t.Path, string(eff.ID), "the target is asked again", eff.ReconcileAt, f)
}

// askAPerson stops the run until somebody says what happened.
func (s *session) askAPerson(t workflow.Task, eff *Effect, why string) *wait {
	f := &workflow.Failure{Class: workflow.Unknown, Code: codeUnknown,
		Message: textOf("It was sent, and nobody but a person can find out whether it happened.", why, eff.Message)}
	return blockedBy(t.Path, string(eff.ID), f, "Find out at the target whether it happened, and say so here.")
}

// mayResend reports whether sending the same key again is declared safe, and
// early enough: the target must still know the key when the request arrives.
func (s *session) mayResend(t workflow.Task, tool *tools.Tool, eff *Effect) bool {
	if _, ok := tool.CanResend(); !ok || eff.KeyExpiresAt.IsZero() {
		return false
	}
	return s.now.Add(tool.Timeout).Before(eff.KeyExpiresAt) && eff.Attempts < max(t.Step.Retries.MaxAttempts, 2)
}

// resend is a new try under the same key: admitted again, and nothing but "go"
// will do.
func (s *session) resend(ctx context.Context, t workflow.Task, tool *tools.Tool, act action, eff *Effect) (*wait, error) {
	r, err := s.ruling(ctx, act.Approval)
	if err != nil {
		return nil, err
	}
	s.crash("before-sent", t.Path, t.Pass)
	// The precondition cannot be asked: it may differ because of this very effect.
	return s.send(ctx, t, tool, act, eff, r, Facts{Resend: true})
}

// backoff is the growing time between two questions: one second, doubled each
// time, at most two minutes.
func backoff(n int) time.Duration {
	return min(time.Second<<min(max(n-1, 0), 10), 2*time.Minute)
}
