package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"countersign/internal/store"
	"countersign/internal/workflow"
)

// errCancelAsked stops a driver at its next commit: a cancel wins over
// everything that has not been sent.
var errCancelAsked = errors.New("engine: the run is to be cancelled")

// ridesMax bounds the pure results that ride in one commit.
const ridesMax = 256

// commit is what one transaction of a driver writes: checkpoints, the rows of
// their steps, what belongs together with them, and the run's row.
type commit struct {
	events  []workflow.Event
	also    func(ctx context.Context, tx *store.Tx, c *commit) error // gate and ledger writes that decide which events and wait there are
	with    func(ctx context.Context, tx *store.Tx) error            // writes that only belong to the same transaction
	by      *Actor                                                   // a person made the checkpoints
	settles bool                                                     // recorded although a cancel was asked for
	wait    *wait                                                    // the run is released in the same transaction, unless another branch goes on
	leaves  bool                                                     // it is released whatever other branches do

	made  []step // the events as they are recorded
	rests *wait  // what the step waits for while the run goes on
}

// step is one event on its way into the record, with the states around it.
type step struct {
	entry
	before, after workflow.State
}

// write runs the commit. Either all of it is durable or nothing is; a driver
// that was taken over gets ErrFenced, one whose run is to be cancelled
// errCancelAsked.
func (s *session) write(ctx context.Context, c *commit) error {
	s.planned = nil
	if err := s.ride(ctx, c); err != nil {
		return err
	}
	s.around("before-commit", c.events)
	var next Run
	err := s.e.update(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		next, err = s.apply(ctx, tx, c)
		return err
	})
	if err != nil {
		s.planned = nil
		return err
	}
	if err := s.committed(next, c); err != nil {
		return err
	}
	s.observeCommit(c)
	s.around("after-commit", c.events)
	return nil
}

// opens are the events after which a step is still open: the checkpoint that
// the windows are around is the one that ends it.
var opens = map[workflow.EventKind]bool{workflow.ActionProposed: true, workflow.ActionRevised: true, workflow.ApproveOpened: true, workflow.AskOpened: true,
	workflow.SleepSet: true, workflow.Goto: true, workflow.StepRefreshed: true, workflow.StepRetried: true,
	workflow.BranchesOpened: true}

// around passes a window of the commit of steps that end.
func (s *session) around(window string, events []workflow.Event) {
	for _, ev := range events {
		if ev.Path != "" && !opens[ev.Kind] {
			s.crash(window, ev.Path, ev.Pass)
		}
	}
}

// ride makes the events ready and adds the pure results that follow from them,
// so that they need no commit of their own; what comes after them is
// remembered. The outcome of an effect takes nobody along: until it is durable
// it is unknown.
func (s *session) ride(ctx context.Context, c *commit) error {
	alone := c.also != nil || c.by != nil || c.settles || s.settled
	state := s.state
	for i := 0; i < len(c.events); i++ {
		c.events[i].At = s.now
		s.fitOutput(&c.events[i])
		made, err := s.make(state, c.events[i])
		if err != nil {
			return err
		}
		c.made = append(c.made, made)
		state = made.after
		if o := made.ev.Output; o != nil {
			s.kept[stepKey{made.ev.Path, made.ev.Pass}] = o
		}
		if i == len(c.events)-1 && !alone && !state.Over() && i < ridesMax {
			c.events = append(c.events, s.follows(ctx, state)...)
		}
	}
	return nil
}

// make applies an event and encodes it.
func (s *session) make(before workflow.State, ev workflow.Event) (step, error) {
	after, err := s.wf.Apply(before, ev)
	if err != nil {
		return step{}, s.illegal(err)
	}
	n, err := newEntry(ev)
	return step{n, before, after}, err
}

// follows gives the events of the next task if it is a pure one. Otherwise it
// keeps what was planned; what cannot be planned now fails by itself later.
func (s *session) follows(ctx context.Context, state workflow.State) []workflow.Event {
	tasks, err := s.next(ctx, state)
	switch {
	case err != nil:
		return nil
	case len(tasks) == 1 && tasks[0].Kind == workflow.TaskFinish && len(tasks[0].Open) == 0:
		return []workflow.Event{tasks[0].Finish.Event()}
	}
	for _, t := range tasks {
		if t.Kind == workflow.TaskRecord {
			s.begun(t)
			return t.Events
		}
	}
	s.planned = tasks
	return nil
}

// begun passes the window in which a pure step has not begun.
func (s *session) begun(t workflow.Task) {
	if len(t.Events) > 0 && t.Events[0].Kind != workflow.SleepDone {
		s.around("before", t.Events)
	}
}

// fitOutput turns an output that is too large into the step's failure.
func (s *session) fitOutput(ev *workflow.Event) {
	if ev.Kind != workflow.StepCompleted || len(ev.Output) <= OutputBytesMax {
		return
	}
	*ev = workflow.Event{Kind: workflow.StepFailed, Path: ev.Path, Pass: ev.Pass, Attempt: ev.Attempt, At: ev.At, Error: tooLarge(len(ev.Output))}
}

func tooLarge(size int) *workflow.Failure {
	return &workflow.Failure{Class: workflow.Permanent, Code: "output_too_large",
		Message: fmt.Sprintf("The output has %d bytes; at most %d (1 MiB) can be recorded. Return less, or a reference.", size, OutputBytesMax)}
}

// apply is the transaction of a commit.
func (s *session) apply(ctx context.Context, tx *store.Tx, c *commit) (Run, error) {
	if err := s.box.Save(ctx, tx); err != nil { // first: the gate's policy judges the values
		return s.run, err
	}
	if c.with != nil {
		if err := c.with(ctx, tx); err != nil {
			return s.run, err
		}
	}
	if c.also != nil {
		if err := s.decide(ctx, tx, c); err != nil {
			return s.run, err
		}
	}
	if c.wait != nil && !c.leaves && !s.alone {
		c.rests, c.wait = c.wait, nil
	}
	r, state := s.run, s.state
	creator := Creator{Driver: s.e.o.Owner, Fence: r.Lease.Fence}
	if c.by != nil {
		creator = Creator{Person: c.by}
	}
	for _, m := range c.made {
		var err error
		if r.head, err = putCheckpoint(ctx, tx, r.Tenant, r.ID, r.Version+1, r.head, creator, m.entry); err != nil {
			return s.run, err
		}
		r.Version++
		state = m.after
		s.reflect(m.before, m.after, m.ev, r.Version)
	}
	for _, row := range s.dirty {
		if err := putStep(ctx, tx, r.Tenant, r.ID, row); err != nil {
			return s.run, fmt.Errorf("write step %s: %w", row.Path, err)
		}
	}
	s.settle(&r, state, c, tx.Now())
	if err := s.put(ctx, tx, r, c); err != nil {
		return s.run, err
	}
	tx.AfterCommit(func() { s.e.notify("runs", string(r.ID)) })
	return r, nil
}

// decide has the gate or the ledger say, inside the transaction, which events
// there are.
func (s *session) decide(ctx context.Context, tx *store.Tx, c *commit) error {
	c.events, c.made = nil, nil
	if err := c.also(ctx, tx, c); err != nil {
		return err
	}
	state := s.state
	for _, ev := range c.events {
		ev.At = tx.Now()
		made, err := s.make(state, ev)
		if err != nil {
			return err
		}
		c.made = append(c.made, made)
		state = made.after
	}
	return nil
}

// committed makes what is durable the session's own, with the time of the
// transaction.
func (s *session) committed(r Run, c *commit) error {
	version := s.run.Version
	for _, m := range c.made {
		version++
		if err := s.advance(m, r.UpdatedAt); err != nil {
			return err
		}
		if len(m.ev.Output) > 0 {
			k := stepKey{m.ev.Path, m.ev.Pass}
			s.outputs[k] = recorded{version, m.outputDigest}
			delete(s.kept, k)
			s.keep(k, m.ev.Output)
		}
	}
	if c.rests != nil {
		s.rest(c.rests)
	}
	s.run, s.now = r, r.UpdatedAt
	s.box.Saved()
	clear(s.dirty)
	s.left = r.Lease.Owner == ""
	return nil
}

// advance moves the state over a recorded event. Only where outputs age does
// the exact time matter, so that the event has to be applied again.
func (s *session) advance(m step, at time.Time) (err error) {
	if !s.ages {
		s.state = m.after
		return nil
	}
	m.ev.At = at
	if s.state, err = s.wf.Apply(s.state, m.ev); err != nil {
		return s.illegal(err)
	}
	return nil
}

// illegal is a broken invariant of ours: the planner refuses what the engine
// wants to record.
func (s *session) illegal(err error) error {
	return &workflow.Failure{Class: workflow.Bug, Code: "illegal_event", Message: "The engine came to a result that the workflow does not allow: " + err.Error() + "."}
}
