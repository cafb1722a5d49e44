package engine

import (
	"context"
	"strings"

	"countersign/internal/canon"
	"countersign/internal/store"
	"countersign/internal/workflow"
)

// question puts what a step asks, and releases the run until it is answered,
// in one transaction.
func (s *session) question(ctx context.Context, t workflow.Task) (*wait, error) {
	s.crash("before", t.Path, t.Pass)
	s.crash("before-propose", t.Path, t.Pass)
	form, err := canon.DigestOf(t.Step.Form.Source())
	if err != nil {
		return nil, err
	}
	s.crash("before-propose-commit", t.Path, t.Pass)
	err = s.write(ctx, &commit{also: func(ctx context.Context, tx *store.Tx, c *commit) error {
		q := Question{Run: s.run.ID, Path: t.Path, Pass: t.Pass, Text: t.Question, Roles: t.Step.Roles, FormDigest: form, AnswerBy: t.Until, AskedAt: tx.Now()}
		asked := map[string]any{"question": q.Text, "roles": q.Roles, "form": q.FormDigest}
		if err := putQuestion(ctx, tx, s.run.Tenant, q); err != nil {
			return err
		}
		s.row(t.Path, t.Pass).InputDigest = digestOf([]byte(t.Question))
		c.events = append(c.events, workflow.Event{Kind: workflow.AskOpened, Path: t.Path, Pass: t.Pass, Until: t.Until, Data: data(asked)})
		if s.alone {
			c.wait = waitAnswer(t)
		}
		return s.e.recordQuestion(ctx, tx, s.run, q, engineActor, "run.ask")
	}})
	if err == nil {
		s.crash("after-propose-commit", t.Path, t.Pass)
	}
	return nil, err
}

// awaitAnswer waits for the answer, or closes a question whose time is over.
// The answer itself comes by Answer, which takes the run from its driver.
func (s *session) awaitAnswer(ctx context.Context, t workflow.Task) (*wait, error) {
	if t.Until.IsZero() || s.now.Before(t.Until) {
		return waitAnswer(t), nil
	}
	s.crash("before-commit", t.Path, t.Pass)
	return nil, s.write(ctx, &commit{also: func(ctx context.Context, tx *store.Tx, c *commit) error {
		if tx.ClockSuspect() {
			return errClock
		}
		q, err := s.e.Question(ctx, tx, s.run.Tenant, s.run.ID, t.Path, t.Pass)
		if err != nil {
			return err
		}
		q.Status = QuestionExpired
		if err := closeQuestion(ctx, tx, s.run.Tenant, &q); err != nil {
			return err
		}
		c.events = append(c.events, workflow.Event{Kind: workflow.AskExpired, Path: t.Path, Pass: t.Pass})
		return s.e.recordQuestion(ctx, tx, s.run, q, engineActor, "run.ask_expired")
	}})
}

// waitAnswer is the wait for an answer.
func waitAnswer(t workflow.Task) *wait {
	when := "somebody answers"
	if !t.Until.IsZero() {
		when = "somebody answers, or the time to answer passes"
	}
	return &wait{status: WaitingInput, wake: t.Until, list: []Waiting{{Kind: WaitInput, Path: t.Path, Who: strings.Join(t.Step.Roles, " or "),
		Until: t.Until, ResumesWhen: when, NextAction: "Answer."}}}
}

// recordQuestion audits what became of a question. The answer is in its
// checkpoint; the entry names it by digest.
func (e *Engine) recordQuestion(ctx context.Context, tx *store.Tx, r Run, q Question, by Actor, action string) error {
	payload := map[string]any{"path": q.Path, "pass": q.Pass, "question": q.Text, "roles": q.Roles, "form": q.FormDigest}
	if !q.AnswerBy.IsZero() {
		payload["answer_by"] = q.AnswerBy
	}
	return e.record(ctx, tx, Record{Tenant: r.Tenant, Actor: by, Action: action, Subject: string(r.ID), Run: r.ID,
		Digest: first(q.AnswerDigest, digestOf([]byte(q.Text))), Outcome: q.Status, Payload: payload})
}
