package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"countersign/internal/id"
	"countersign/internal/problem"
	"countersign/internal/store"
	"countersign/internal/workflow"
)

// Answer is what somebody answers to a question.
type Answer struct {
	Tenant string
	Run    id.Run
	Path   string
	Pass   int // 0: the last one
	Value  json.RawMessage
	// May is asked in the transaction of the answer whether the person may
	// give it; nil: anybody may.
	May func(ctx context.Context, q store.Querier, asked Question) error
}

// Answer records an answer, with the form's defaults and what is sensitive
// sealed, as the output of the step, and lets the run go on: the answer, the
// step's checkpoint, the audit entry and the wake-up are one transaction. The
// same answer by the same person once more changes nothing and gives the same
// result. Problems: what the form refuses; not_found; already_answered (with by
// and at), question_closed, already_finished, cancel_asked, run_blocked,
// run_busy, clock_suspect.
func (e *Engine) Answer(ctx context.Context, a Answer, by Actor) (Question, error) {
	var asked Question
	var step *workflow.Step
	err := e.o.DB.View(ctx, func(ctx context.Context, q store.Querier) (err error) {
		if asked, err = e.Question(ctx, q, a.Tenant, a.Run, a.Path, a.Pass); err != nil {
			return err
		}
		step, err = e.asking(ctx, q, a.Tenant, asked)
		return err
	})
	if err != nil {
		return Question{}, err
	}
	value, err := step.PrepareAnswer(a.Value)
	if err != nil {
		return Question{}, err
	}
	a.Pass = asked.Pass
	e.crash("before-answer-commit", a.Path, a.Pass)
	for tries := 0; ; tries++ {
		err = e.update(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			asked, err = e.answer(ctx, tx, a, step, value, by)
			return err
		})
		if !errors.Is(err, errSending) || tries == answerTries {
			break
		}
		select {
		case <-time.After(answerPause):
		case <-ctx.Done():
			return Question{}, ctx.Err()
		}
	}
	if err != nil {
		return Question{}, err
	}
	e.crash("after-answer-commit", a.Path, a.Pass)
	return asked, nil
}

// An answer takes the run from its driver. While that is sending in another
// branch, the answer waits for it, up to ten seconds: what is being sent must
// not become unknown because somebody answered.
const (
	answerTries = 200
	answerPause = 50 * time.Millisecond
)

var errSending = problem.New(problem.Unavailable, "run_busy", "Another branch of the run is sending something right now. Your answer was not recorded; give it again in a moment.")

// sending refuses while a living driver of the run has something under way.
func (e *Engine) sending(ctx context.Context, tx *store.Tx, run Run) error {
	if run.Lease.Owner == "" || run.epoch < e.o.Epoch || !run.Lease.Until.After(e.o.Now()) {
		return nil
	}
	sent, err := effectsWhere(ctx, tx, "tenant = $1 AND run = $2 AND status = 'sent'", run.Tenant, string(run.ID))
	if err == nil && len(sent) > 0 {
		err = errSending
	}
	return err
}

func (e *Engine) crash(window, path string, pass int) {
	if e.o.Crash != nil {
		e.o.Crash(window, path, pass)
	}
}

// asking finds the step that asks, in the definition the run was started with.
func (e *Engine) asking(ctx context.Context, q store.Querier, tenant string, asked Question) (*workflow.Step, error) {
	run, err := e.Run(ctx, q, tenant, asked.Run)
	if err != nil {
		return nil, err
	}
	wf, err := e.o.Library.Workflow(ctx, q, tenant, run.WorkflowDigest)
	if err != nil && missing(err) {
		return nil, problem.New(problem.Conflict, "run_blocked", "The run cannot continue: its workflow is not available any more.")
	}
	if err != nil {
		return nil, fmt.Errorf("load workflow of run %s: %w", run.ID, err)
	}
	step, ok := wf.Step(asked.Path)
	if !ok || step.Kind != workflow.Ask {
		return nil, errNoQuestion
	}
	return step, nil
}

func (e *Engine) answer(ctx context.Context, tx *store.Tx, a Answer, step *workflow.Step, value json.RawMessage, by Actor) (Question, error) {
	q, err := e.Question(ctx, tx, a.Tenant, a.Run, a.Path, a.Pass)
	if err != nil {
		return Question{}, err
	}
	if a.May != nil {
		if err := a.May(ctx, tx, q); err != nil {
			return Question{}, err
		}
	}
	run, err := e.Run(ctx, tx, a.Tenant, a.Run)
	if err != nil {
		return Question{}, err
	}
	value, save, err := e.sealAnswer(ctx, tx, run, step, value)
	if err != nil {
		return Question{}, err
	}
	if q.Status == QuestionAnswered && q.AnsweredBy.ID == by.ID && q.AnswerDigest == digestOf(value) {
		e.note(Fact{Kind: FactRepeat, Outcome: RepeatAnswer})
		return q, nil
	}
	if err := answerable(run, q, tx); err != nil {
		return Question{}, err
	}
	if err := e.sending(ctx, tx, run); err != nil {
		return Question{}, err
	}
	if err := save(ctx, tx); err != nil {
		return Question{}, err
	}
	q.Status, q.AnswerDigest, q.AnsweredBy = QuestionAnswered, digestOf(value), &by
	if err := closeQuestion(ctx, tx, run.Tenant, &q); err != nil {
		return Question{}, err
	}
	if err := e.recordQuestion(ctx, tx, run, q, by, "run.answer"); err != nil {
		return Question{}, err
	}
	return q, e.answered(ctx, tx, run, q, value, by)
}

// answerable refuses what cannot be answered, or not now.
func answerable(run Run, q Question, tx *store.Tx) error {
	switch {
	case q.Status == QuestionAnswered:
		return problem.New(problem.Conflict, "already_answered", "%s has answered this already. Your answer was not recorded.", q.AnsweredBy.Name).
			With("by", q.AnsweredBy.Name).With("at", q.ClosedAt)
	case q.Status == QuestionExpired, !q.AnswerBy.IsZero() && !tx.Now().Before(q.AnswerBy):
		return problem.New(problem.Conflict, "question_closed", "The time to answer has passed. Your answer was not recorded.").With("status", QuestionExpired)
	case q.Status != QuestionOpen:
		return problem.New(problem.Conflict, "question_closed", "The question was withdrawn. Your answer was not recorded.").With("status", q.Status)
	case Final(run.Status):
		return errFinished.With("status", run.Status)
	case run.cancelled:
		return problem.New(problem.Conflict, "cancel_asked", "The run is being cancelled. Your answer was not recorded.")
	case run.Blocks(q.Path):
		return problem.New(problem.Conflict, "run_blocked", "The run is blocked until somebody acts on it. Your answer was not recorded; give it again after that.")
	case tx.ClockSuspect():
		return problem.New(problem.Unavailable, "clock_suspect", "The clock went back by more than five minutes. Nothing can be answered until it is put right, or an operator accepts its time (console clock accept).")
	}
	return nil
}

// sealAnswer seals what the step says is sensitive; save makes it durable.
func (e *Engine) sealAnswer(ctx context.Context, tx *store.Tx, run Run, step *workflow.Step, value json.RawMessage) (out json.RawMessage, save func(context.Context, *store.Tx) error, err error) {
	save = func(context.Context, *store.Tx) error { return nil }
	if len(step.Sensitive) > 0 {
		box, err := e.box(ctx, tx, run.Tenant, run.ID)
		if err != nil {
			return nil, nil, err
		}
		if value, err = box.Seal(value, step.Sensitive); err != nil {
			return nil, nil, err
		}
		save = box.Save
	}
	if len(value) > OutputBytesMax {
		return nil, nil, problem.New(problem.Invalid, "invalid", "The answer has %d bytes; at most %d (1 MiB) can be recorded.", len(value), OutputBytesMax)
	}
	return value, save, nil
}

// answered records the answer as the step's output and queues the run. A
// driver that is looking at the run meanwhile is fenced out.
func (e *Engine) answered(ctx context.Context, tx *store.Tx, run Run, q Question, output json.RawMessage, by Actor) error {
	row, err := scanStep(tx.QueryRow(ctx, "SELECT "+stepColumns+" FROM step WHERE tenant = $1 AND run = $2 AND path = $3 AND pass = $4",
		run.Tenant, string(run.ID), q.Path, q.Pass))
	if err != nil {
		return fmt.Errorf("read step %s: %w", q.Path, err)
	}
	ev := workflow.Event{Kind: workflow.AskAnswered, Path: q.Path, Pass: q.Pass, Output: output, At: tx.Now()}
	version := run.Version + 1
	head, err := appendEvent(ctx, tx, run.Tenant, run.ID, version, run.head, Creator{Person: &by}, ev)
	if err != nil {
		return err
	}
	row.Status, row.outputAt, row.retryAt = string(workflow.Completed), version, fromMicros(0)
	row.Error, row.ErrorClass = nil, ""
	if err := putStep(ctx, tx, run.Tenant, run.ID, &row); err != nil {
		return err
	}
	if f, ok := stepEnded(run.Workflow, &row, ev, tx.Now()); ok {
		e.noteAfter(tx, f)
	}
	return e.queue(ctx, tx, run, version, head)
}
