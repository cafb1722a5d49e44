package engine

import (
	"log/slog"

	"countersign/internal/store"
	"countersign/internal/tools"
)

// try is one attempt of a step as logs, metrics and traces name it.
type try struct {
	e       *Engine
	log     *slog.Logger
	attempt Span
	work    Span // the tool's part of it
}

// newTry begins an attempt; kind says what the tool does for it.
func (s *session) newTry(kind string, attempt Span, fence int64) *try {
	now := s.e.o.Now()
	if attempt.Start.IsZero() {
		attempt.Start = now
	}
	t := &try{e: s.e, attempt: attempt, work: attempt.below(kind, fence),
		log: s.log.With("step", attempt.Step, "pass", attempt.Pass, "attempt", attempt.Attempt, "idempotency_key", attempt.Key)}
	t.work.Start = now
	return t
}

// traceparent is what the tool is told.
func (t *try) traceparent() string { return traceparent(t.work.Trace, t.work.ID) }

// answered tells what the tool's answer proved.
func (t *try) answered(out tools.Outcome) {
	if t.e.o.Observer == nil {
		return
	}
	now := t.e.o.Now()
	t.e.note(Fact{Kind: FactTry, Workflow: t.work.Workflow, Step: t.work.Step, Tool: t.work.Tool, Outcome: string(out.Status), Class: out.Class, Took: now.Sub(t.work.Start)})
	t.e.o.Observer.Span(t.work.over(now, string(out.Status), out.Class))
	t.attempt.Outcome, t.attempt.Class = string(out.Status), out.Class
}

// recorded ends the attempt: its outcome is durable, or somebody else's to
// settle.
func (t *try) recorded() {
	if t.e.o.Observer != nil {
		t.e.o.Observer.Span(t.attempt.over(t.e.o.Now(), t.attempt.Outcome, t.attempt.Class))
	}
}

// logOf is the logger for a pass of a step.
func (s *session) logOf(path string, pass int) *slog.Logger {
	row := s.steps[stepKey{path, pass}]
	if row == nil {
		row = &Step{}
	}
	return s.log.With("step", path, "pass", pass, "attempt", row.Attempts, "idempotency_key", row.IdempotencyKey)
}

// effectLog is the logger for what is done about an effect.
func (e *Engine) effectLog(r Run, eff Effect) *slog.Logger {
	return e.log.With("run", r.ID, "workflow", r.Workflow, "trace_id", r.TraceID, "step", eff.Path, "pass", eff.Pass,
		"attempt", eff.Attempts, "idempotency_key", eff.Key, "effect", eff.ID)
}

// lostAttempt tells of an attempt whose driver ended before an answer was
// recorded, once that is durable.
func (e *Engine) lostAttempt(tx *store.Tx, r Run, eff Effect) {
	if e.o.Observer == nil {
		return
	}
	at := tx.Now()
	attempt := attemptOf(r, eff)
	send := attempt.below(SpanSend, eff.fence)
	tx.AfterCommit(func() {
		e.o.Observer.Span(send.over(at, OutcomeLost, ""))
		e.o.Observer.Span(attempt.over(at, OutcomeLost, ""))
	})
}

// lostDrive tells of a driver that had not given its run up, once that is
// durable. When it began is not stored: its last commit stands for it.
func (e *Engine) lostDrive(tx *store.Tx, before Run) {
	if e.o.Observer == nil || before.Lease.Owner == "" {
		return
	}
	drive := driveOf(before, before.Lease.Fence)
	drive.Start = before.UpdatedAt
	drive = drive.over(tx.Now(), OutcomeLost, "")
	tx.AfterCommit(func() { e.o.Observer.Span(drive) })
}

// ended tells that this driver gave its run up, or lost it.
func (s *session) ended() {
	if s.e.o.Observer == nil {
		return
	}
	drive := driveOf(s.run, s.fence)
	drive.Start = s.began
	outcome := s.run.Status
	if s.fenced {
		outcome = FactFenced
		s.e.note(Fact{Kind: FactFenced, Workflow: s.run.Workflow})
	}
	s.e.o.Observer.Span(drive.over(s.e.o.Now(), outcome, ""))
}

// asking begins a question to the target about an unknown effect.
func (s *session) asking(eff *Effect) (q Span) {
	q = attemptOf(s.run, *eff)
	q.Kind, q.Parent, q.Start = SpanQuery, driveSpan(s.run.TraceID, s.fence), s.e.o.Now()
	q.ID = spanID(q.Trace, SpanQuery, string(eff.ID), int64(eff.Attempts), int64(eff.ReconcileCount), s.fence)
	return q
}

// asked tells what came of it.
func (s *session) asked(q Span, ans tools.Answer) {
	if s.e.o.Observer == nil {
		return
	}
	outcome := "unknown"
	switch {
	case ans.Happened:
		outcome = "happened"
	case ans.DidNot:
		outcome = "did_not"
	}
	s.e.note(Fact{Kind: FactQuery, Workflow: q.Workflow, Step: q.Step, Tool: q.Tool, Outcome: outcome})
	s.e.o.Observer.Span(q.over(s.e.o.Now(), outcome, ""))
}
