package engine

import (
	"context"
	"slices"
	"strings"
	"time"

	"countersign/internal/problem"
	"countersign/internal/store"
	"countersign/internal/workflow"
)

// wait is why a run is released: what it waits for and when to look again.
type wait struct {
	status string
	list   []Waiting
	wake   time.Time         // zero: not by itself
	fail   *workflow.Failure // of a blocked or retrying run
}

// urgency orders the statuses: a run with branches shows the one that needs a
// person most (DESIGN section 8).
var urgency = []string{Blocked, WaitingApproval, WaitingInput, Retrying, Sleeping}

// joined makes one wait of all.
func joined(waits []*wait) *wait {
	slices.SortStableFunc(waits, func(a, b *wait) int {
		return slices.Index(urgency, a.status) - slices.Index(urgency, b.status)
	})
	all := *waits[0]
	for _, w := range waits[1:] {
		all.list = append(slices.Clip(all.list), w.list...)
		if all.wake.IsZero() || !w.wake.IsZero() && w.wake.Before(all.wake) {
			all.wake = w.wake
		}
	}
	return &all
}

// leave releases the run to wait.
func (s *session) leave(ctx context.Context, w *wait) error {
	if len(w.list) > 0 {
		s.run.Step = w.list[0].Path
	}
	c := &commit{wait: w, leaves: true}
	if w.status == Blocked {
		c.also = s.recordBlock(w)
	}
	return s.write(ctx, c)
}

// recordBlock audits that a run was stopped.
func (s *session) recordBlock(w *wait) func(context.Context, *store.Tx, *commit) error {
	return func(ctx context.Context, tx *store.Tx, _ *commit) error {
		return s.e.recordBlocked(ctx, tx, s.run, w.fail)
	}
}

func (e *Engine) recordBlocked(ctx context.Context, tx *store.Tx, r Run, f *workflow.Failure) error {
	return e.record(ctx, tx, Record{Tenant: r.Tenant, Actor: engineActor, Action: "run.blocked", Subject: string(r.ID), Run: r.ID, Digest: r.head,
		Outcome: f.Code, Payload: map[string]any{"version": r.Version, "class": f.Class, "why": f.Message}})
}

// blockedBy is the wait for a person.
func blockedBy(path, subject string, f *workflow.Failure, next string) *wait {
	return &wait{status: Blocked, fail: f, list: []Waiting{{Kind: WaitPerson, Path: path, Subject: subject,
		ResumesWhen: "a person acts", NextAction: next, ErrorClass: f.Class}}}
}

// nextActions are what a person can do about a blocked run, by code.
var nextActions = map[string]string{
	codeRestored: "Compare with the targets what it did after the backup, then resume: every action is asked about before it is sent. Or cancel the run.",
	codeTampered: "Find out who changed the record. Cancel the run, or restore the record and resume.",
	codeVersion:  "Put the missing definition back and resume, or cancel the run.",
	codeClock:    "Put the clock right, or accept its time (console clock accept), and resume.",
	codePoison:   "Look at the log of its last drives, then resume or cancel the run.",
}

// block stops the run until a person acts, whatever a cancel says.
func (s *session) block(ctx context.Context, f *workflow.Failure, path string) error {
	next := nextActions[f.Code]
	if next == "" {
		next = "Resume to try again, or cancel the run."
	}
	if path == "" {
		path = s.run.Step
	}
	s.settled = true
	clear(s.dirty)
	s.logOf(path, s.state.Step(path).Pass).Warn("blocked", "class", f.Class, "code", f.Code)
	return s.leave(ctx, blockedBy(path, "", f, next))
}

// yield puts the run back into the queue because this process is stopping.
func (s *session) yield(ctx context.Context) error {
	s.settled = true
	return s.leave(ctx, &wait{status: Queued, wake: s.now, list: []Waiting{}})
}

const sqlStumble = `UPDATE run SET status = 'retrying', waiting_for = $1, error = $2, lease_owner = NULL, lease_until = NULL, wake_at = $3, crashes = $4,
	updated_at = $5 WHERE id = $6 AND lease_owner = $7 AND fence = $8`

// stumble releases the run after an error of ours, to try again later. It
// counts as a drive that died, unless the database was merely busy.
func (s *session) stumble(ctx context.Context, cause error) error {
	return s.e.update(ctx, func(ctx context.Context, tx *store.Tx) error {
		r, err := runByID(ctx, tx, s.run.ID)
		if err != nil {
			return err
		}
		f := &workflow.Failure{Class: workflow.Transient, Code: "drive", Message: problem.From(cause).Message}
		if problem.From(cause).Kind == problem.Unavailable {
			r.crashes--
		}
		wake := tx.Now().Add(s.e.o.PollEvery << max(0, min(r.crashes, 5)))
		list := []Waiting{{Kind: WaitRetry, Path: s.run.Step, Until: wake, ResumesWhen: "the time has come", NextAction: "Nothing to do.", ErrorClass: f.Class}}
		return tx.ExecOne(ctx, sqlStumble, encode(list), encodeFailure(f), store.Micros(wake), max(r.crashes, 0), store.Micros(tx.Now()),
			string(r.ID), s.e.o.Owner, s.run.Lease.Fence)
	})
}

// setAside blocks a run whose drivers died again and again without progress.
func (e *Engine) setAside(ctx context.Context, tx *store.Tx, r *Run) error {
	f := &workflow.Failure{Class: workflow.Bug, Code: codePoison,
		Message: "Its driver ended without progress several times in a row. It was set aside so that the other runs go on."}
	w := blockedBy(r.Step, "", f, nextActions[codePoison])
	err := tx.ExecOne(ctx, `UPDATE run SET status = 'blocked', waiting_for = $1, error = $2, lease_owner = NULL, lease_until = NULL, wake_at = NULL,
		fence = fence + 1, updated_at = $3 WHERE tenant = $4 AND id = $5 AND fence = $6`,
		encode(w.list), encodeFailure(f), store.Micros(tx.Now()), r.Tenant, string(r.ID), r.Lease.Fence)
	if err != nil {
		return err
	}
	if err := e.strand(ctx, tx, *r); err != nil {
		return err
	}
	e.lostDrive(tx, *r)
	e.noteAfter(tx, blockedFact(r.Workflow, f))
	r.Status, r.WaitingFor, r.Error = Blocked, w.list, f
	tx.AfterCommit(func() { e.notify("runs", string(r.ID)) })
	return e.recordBlocked(ctx, tx, *r, f)
}

// waitRetry is the wait for another try.
func waitRetry(path, subject, when string, until time.Time, f *workflow.Failure) *wait {
	return &wait{status: Retrying, wake: until, fail: f, list: []Waiting{{Kind: WaitRetry, Path: path, Subject: subject, Until: until,
		ResumesWhen: when, NextAction: "Nothing to do; resume to try at once.", ErrorClass: f.Class}}}
}

// retry decides what follows a failed try of a step: a wait for the next one,
// or nil when its tries are used up.
func (s *session) retry(t workflow.Task, f workflow.Failure, after time.Duration) *wait {
	row := s.row(t.Path, t.Pass)
	row.tries++
	if row.triedAt.IsZero() {
		row.triedAt = s.now
	}
	delay, again := t.Step.Retry(row.tries, s.now.Sub(row.triedAt), f, after, s.e.o.Jitter())
	if !again {
		return nil
	}
	s.e.note(Fact{Kind: FactRetry, Workflow: s.run.Workflow, Step: t.Path, Tool: row.Tool, Class: f.Class})
	s.by = engineActor // a person's wish to try at once counts once
	row.retryAt = s.now.Add(delay)
	row.Error, row.ErrorClass, row.Status = &f, f.Class, string(workflow.Waiting)
	s.touch(row)
	return waitRetry(t.Path, "", "the next try is due", row.retryAt, &f)
}

// notBefore is the wait of a step whose next try is not due; nil when it is,
// or when a person asks for it now.
func (s *session) notBefore(t workflow.Task) *wait {
	row := s.row(t.Path, t.Pass)
	if s.by.Kind != ActorEngine || !s.now.Before(row.retryAt) {
		return nil
	}
	f := row.Error
	if f == nil {
		f = &workflow.Failure{Class: workflow.Transient, Message: "The last try failed."}
	}
	return waitRetry(t.Path, "", "the next try is due", row.retryAt, f)
}

// textOf joins what is not empty.
func textOf(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), " ")
}
