package engine

import (
	"context"
	"errors"
	"fmt"

	"countersign/internal/workflow"
)

// drive carries the run forward until it waits, ends or blocks: it asks the
// planner what to do, does it, records it, and asks again.
func (s *session) drive(ctx context.Context) error {
	for !s.left {
		if err := s.interrupted(ctx); err != nil {
			return err
		}
		tasks, err := s.plan(ctx)
		if err != nil {
			return err
		}
		if err := s.round(ctx, tasks); err != nil {
			return err
		}
	}
	return nil
}

// interrupted reports why the driver should not begin anything now.
func (s *session) interrupted(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if s.e.stopping() {
		return errStopping
	}
	if s.run.cancelled && !s.settled {
		return errCancelAsked
	}
	return nil
}

// plan gives the tasks at hand.
func (s *session) plan(ctx context.Context) ([]workflow.Task, error) {
	tasks := s.planned
	s.planned = nil
	if tasks != nil {
		return tasks, nil
	}
	return s.next(ctx, s.state)
}

// round does the first task that makes progress, which means planning anew;
// when all of them wait, so does the run.
func (s *session) round(ctx context.Context, tasks []workflow.Task) error {
	s.alone = len(tasks) == 1
	var waits []*wait
	for _, t := range tasks {
		w := s.rests(t)
		if w == nil {
			var err error
			if w, err = s.do(ctx, t); err != nil || s.left || w == nil {
				return err
			}
		}
		waits = append(waits, w)
	}
	if len(waits) == 0 {
		return &workflow.Failure{Class: workflow.Bug, Code: "no_task", Message: "The planner has nothing to do for a run that has not ended."}
	}
	return s.leave(ctx, joined(waits))
}

// do carries out one task. The wait it returns says what the task waits for;
// nil means that something was recorded.
func (s *session) do(ctx context.Context, t workflow.Task) (*wait, error) {
	switch t.Kind {
	case workflow.TaskCall:
		return s.call(ctx, t)
	case workflow.TaskPropose:
		return s.propose(ctx, t)
	case workflow.TaskApprove:
		return s.present(ctx, t)
	case workflow.TaskAsk:
		return s.question(ctx, t)
	case workflow.TaskWait:
		return s.await(ctx, t)
	case workflow.TaskSleep:
		return s.sleep(ctx, t)
	case workflow.TaskRecord:
		s.begun(t)
		return nil, s.write(ctx, &commit{events: t.Events})
	case workflow.TaskFinish:
		return s.end(ctx, t)
	}
	return nil, fmt.Errorf("engine: the planner asks for %q, which this program does not know", t.Kind)
}

// sleep fixes the end of a sleep, once, and waits for it.
func (s *session) sleep(ctx context.Context, t workflow.Task) (*wait, error) {
	if len(t.Events) > 0 {
		s.crash("before", t.Path, t.Pass)
		return nil, s.write(ctx, &commit{events: t.Events})
	}
	return &wait{status: Sleeping, wake: t.Until, list: []Waiting{{Kind: WaitTimer, Path: t.Path, Until: t.Until,
		ResumesWhen: "the timer fires", NextAction: "Nothing to do."}}}, nil
}

// await looks at a step that something outside decides about.
func (s *session) await(ctx context.Context, t workflow.Task) (*wait, error) {
	switch {
	case t.Wait == workflow.WaitPerson:
		return s.askPerson(ctx, t)
	case t.Wait == workflow.WaitAnswer:
		return s.awaitAnswer(ctx, t)
	case t.Step.Kind == workflow.Gate:
		return s.awaitDocument(ctx, t)
	}
	return s.awaitAction(ctx, t)
}

// askPerson stops at a failed step that its workflow wants a person to look
// at. A person's resume is the answer, to a failure that was there when they
// resumed: try it again.
func (s *session) askPerson(ctx context.Context, t workflow.Task) (*wait, error) {
	seen := s.found.Step(t.Path)
	if s.by.Kind != ActorEngine && seen.Status == workflow.Failed && seen.Pass == t.Pass {
		by := s.by
		s.by = engineActor // the answer holds for one step
		return nil, s.write(ctx, &commit{by: &by, events: []workflow.Event{{Kind: workflow.StepRetried, Path: t.Path, Pass: t.Pass}}})
	}
	fail := &workflow.Failure{Class: workflow.Permanent, Code: codeAsk, Message: "Step " + t.Path + " failed."}
	if t.Error != nil {
		fail = &workflow.Failure{Class: t.Error.Class, Code: codeAsk, Message: t.Error.Message}
	}
	return blockedBy(t.Path, "", fail, "Resume to try the step again, or cancel the run."), nil
}

// finish ends a drive: what stopped it decides what becomes of the run.
func (s *session) finish(ctx context.Context, err error) {
	fail, failed := errors.AsType[*workflow.Failure](err)
	switch {
	case err == nil:
		return
	case errors.Is(err, ErrFenced):
		s.fenced = true
		s.log.Warn("taken over", "fence", s.run.Lease.Fence)
		return
	case errors.Is(err, errCancelAsked):
		err = s.obeyCancel(ctx)
	case failed:
		err = s.block(ctx, fail, "")
	case errors.Is(err, errStopping), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		err = s.yield(ctx)
	default:
		s.log.Error("drive", "error", err)
		err = s.stumble(ctx, err)
	}
	if err != nil && !errors.Is(err, ErrFenced) {
		// The lease runs out by itself, and whoever takes it then counts it.
		s.log.Error("end of drive", "error", err)
	}
}
