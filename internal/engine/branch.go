package engine

import (
	"context"
	"fmt"

	"countersign/internal/store"
	"countersign/internal/workflow"
)

// rest keeps what an open step waits for while other branches of the run go
// on, so that nobody looks at it again before its time. A decision meanwhile
// raises the run's signals: the next driver looks.
func (s *session) rest(w *wait) {
	path := w.list[0].Path
	s.resting[stepKey{path, s.state.Step(path).Pass}] = w
}

// rests gives what a step of a waiting task was found to wait for.
func (s *session) rests(t workflow.Task) *wait {
	k := stepKey{t.Path, t.Pass}
	w := s.resting[k]
	if w == nil || t.Kind != workflow.TaskWait || !w.wake.IsZero() && !s.now.Before(w.wake) {
		delete(s.resting, k)
		return nil
	}
	return w
}

// end finishes the run. When a branch ends it by rule, what the others have
// sent is settled first: the outcome of every effect is known and recorded
// before the run is over. What is only asked for is then taken back, in the
// transaction of the end.
func (s *session) end(ctx context.Context, t workflow.Task) (*wait, error) {
	var waits []*wait
	for _, path := range t.Open {
		if w, err := s.settleBranch(ctx, path); err != nil || s.left || w == nil && s.state.Step(path).Status != workflow.Waiting {
			return nil, err
		} else if w != nil {
			waits = append(waits, w)
		}
	}
	if len(waits) > 0 {
		return joined(waits), nil
	}
	return nil, s.write(ctx, &commit{events: []workflow.Event{t.Finish.Event()}, with: func(ctx context.Context, tx *store.Tx) error {
		for _, path := range t.Open {
			if err := s.takenBack(ctx, tx, path, "The run ended "+t.Finish.Status+" in another branch."); err != nil {
				return err
			}
		}
		return nil
	}})
}

// settleBranch finds out about an effect of a branch that nobody will go on
// with. It is never sent again: the target is asked, else a person.
func (s *session) settleBranch(ctx context.Context, path string) (*wait, error) {
	st := s.state.Step(path)
	step, ok := s.wf.Step(path)
	if !ok || step.Kind != workflow.Action {
		return nil, nil
	}
	t := workflow.Task{Kind: workflow.TaskWait, Path: path, Pass: st.Pass, Step: step}
	act, eff, err := s.ledger(ctx, t)
	if err != nil || eff.Status != Unknown {
		return nil, err
	}
	s.ending = true
	defer func() { s.ending = false }()
	return s.reconcile(ctx, t, act, eff)
}

// takenBack closes what an open step has asked for and not sent.
func (s *session) takenBack(ctx context.Context, tx *store.Tx, path, why string) error {
	step, _ := s.wf.Step(path)
	pass := s.state.Step(path).Pass
	if step.Kind == workflow.Ask {
		q, err := s.e.Question(ctx, tx, s.run.Tenant, s.run.ID, path, pass)
		if err != nil {
			return err
		}
		q.Status = QuestionWithdrawn
		if err := closeQuestion(ctx, tx, s.run.Tenant, &q); err != nil {
			return err
		}
		return s.e.recordQuestion(ctx, tx, s.run, q, engineActor, "run.ask_withdrawn")
	}
	row := s.row(path, pass)
	if row.Approval != "" {
		if err := s.e.o.Gate.Withdraw(ctx, tx, row.Approval, why, engineActor); err != nil {
			return fmt.Errorf("withdraw request %s: %w", row.Approval, err)
		}
	}
	if step.Kind != workflow.Action {
		return nil
	}
	eff, err := lastEffect(ctx, tx, "tenant = $1 AND action = $2", s.run.Tenant, string(row.Action))
	if err != nil {
		return fmt.Errorf("ledger of step %s: %w", path, err)
	}
	return s.abandon(ctx, tx, &eff, why)
}
