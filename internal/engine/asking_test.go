package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/internal/engine"
	. "countersign/internal/engine/enginetest"
	"countersign/internal/problem"
	"countersign/internal/store"
	"countersign/internal/testkit"
)

// askedRig is a run of AskThenWrite that waits for its answer, on a clock that
// the test sets.
func askedRig(t *testing.T) (*Rig, engine.Run, *time.Time) {
	t.Helper()
	now := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	r := NewRigClock(t, NewLibrary(t, AllTools...), func() time.Time { return now }, offline)
	run := r.Drive(r.Begin(r.Lib.Add(t, AskThenWrite("write.plain")), `{}`, "k").ID)
	if run.Status != engine.WaitingInput {
		t.Fatalf("the run is %s (%+v), want waiting_input", run.Status, run.Error)
	}
	return r, run, &now
}

// question reads what the run asks.
func question(t *testing.T, r *Rig, run engine.Run) (q engine.Question) {
	t.Helper()
	r.View(func(ctx context.Context, v store.Querier) (err error) {
		q, err = r.Engine.Question(ctx, v, Tenant, run.ID, "ask", 0)
		return err
	})
	return q
}

func TestAsk_WaitsAndSaysForWhomAndUntilWhen(t *testing.T) {
	r, run, now := askedRig(t)
	until := now.Add(72 * time.Hour)
	w := run.WaitingFor[0]
	if w.Kind != engine.WaitInput || w.Path != "ask" || w.Who != "editor or operator" || !w.Until.Equal(until) || !run.WakeAt.Equal(until) {
		t.Errorf("it waits for %+v, looked at again at %s", w, run.WakeAt)
	}
	if run.Lease.Owner != "" {
		t.Errorf("%s holds the run while people think", run.Lease.Owner)
	}
	q := question(t, r, run)
	if q.Status != engine.QuestionOpen || q.Text != "What should be written?" || !q.May([]string{"x", "editor"}) || q.May([]string{"auditor"}) || q.May(nil) {
		t.Errorf("it asks %+v", q)
	}
	if n := r.Recorded("run.ask"); n != 1 {
		t.Errorf("%d records of the question, want 1", n)
	}
}

func TestAnswer_IsTheOutputAndTheRunGoesOn(t *testing.T) {
	r, run, _ := askedRig(t)
	q, err := r.TryAnswer(run.ID, AskAnswer, Person)
	if err != nil || q.Status != engine.QuestionAnswered || q.AnsweredBy.Name != "Ana" {
		t.Fatalf("answered %+v, %v", q, err)
	}
	got := r.Run(run.ID)
	if got.Status != engine.Queued || got.Version != run.Version+1 || got.Lease.Fence != run.Lease.Fence+1 || got.WakeAt.IsZero() {
		t.Errorf("after the answer the run is %s, version %d, fence %d, to be looked at %s", got.Status, got.Version, got.Lease.Fence, got.WakeAt)
	}
	var last engine.Checkpoint
	r.View(func(ctx context.Context, v store.Querier) error {
		all, err := r.Engine.Checkpoints(ctx, v, Tenant, run.ID)
		if err == nil {
			last = all[len(all)-1]
		}
		return err
	})
	if last.Creator.Person == nil || last.Creator.Person.ID != Person.ID || string(last.Output) != AskOutput {
		t.Errorf("the checkpoint is by %+v with %s", last.Creator, last.Output)
	}
	again, err := r.TryAnswer(run.ID, `{"loud": false, "text": "hello"}`, Person)
	if err != nil || again.AnswerDigest != q.AnswerDigest || !again.ClosedAt.Equal(q.ClosedAt) {
		t.Errorf("the same answer once more gives %+v, %v", again, err)
	}
	if after := r.Run(run.ID); after.Version != got.Version || after.Lease.Fence != got.Lease.Fence {
		t.Errorf("the same answer once more changed the run to version %d, fence %d", after.Version, after.Lease.Fence)
	}
	r.Decide(r.Drive(run.ID), engine.Approved, "")
	CheckAsked(t, r.Drive(run.ID), r.Steps(run.ID))
}

func TestAnswer_AnotherOneIsToldWhoWasFirst(t *testing.T) {
	r, run, _ := askedRig(t)
	if _, err := r.TryAnswer(run.ID, AskAnswer, Person); err != nil {
		t.Fatal(err)
	}
	ben := engine.Actor{Kind: engine.ActorPerson, ID: "usr_ben", Name: "Ben"}
	for who, err := range map[string]error{
		"another answer by the same person": second(r.TryAnswer(run.ID, `{"text":"else"}`, Person)),
		"the same answer by another person": second(r.TryAnswer(run.ID, AskAnswer, ben)),
	} {
		p := problem.From(err)
		if p.Code != "already_answered" || p.Kind != problem.Conflict || p.Details["by"] != "Ana" {
			t.Errorf("%s: %v, details %v", who, err, p.Details)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestAnswer_OfManyAtOnceOneWins(t *testing.T) {
	r, run, _ := askedRig(t)
	const people = 50
	errs := make([]error, people)
	var wg sync.WaitGroup
	for i := range people {
		wg.Go(func() {
			_, errs[i] = r.Engine.Answer(context.Background(), engine.Answer{Tenant: Tenant, Run: run.ID, Path: "ask",
				Value: fmt.Appendf(nil, `{"text":"from %d"}`, i)}, engine.Actor{Kind: engine.ActorPerson, ID: fmt.Sprint("usr_", i), Name: fmt.Sprint(i)})
		})
	}
	wg.Wait()
	winner := -1
	for i, err := range errs {
		switch {
		case err == nil && winner < 0:
			winner = i
		case !problem.HasCode(err, "already_answered"):
			t.Errorf("answer %d: %v", i, err)
		}
	}
	if winner < 0 {
		t.Fatal("nobody's answer was recorded")
	}
	if q := question(t, r, run); q.AnsweredBy.Name != fmt.Sprint(winner) || r.Recorded("run.answer") != 1 || r.Run(run.ID).Version != run.Version+1 {
		t.Errorf("%d was told it won; recorded are %d answers, by %s, version %d", winner, r.Recorded("run.answer"), q.AnsweredBy.Name, r.Run(run.ID).Version)
	}
}

func TestAnswer_ThatDoesNotFitChangesNothing(t *testing.T) {
	r, run, _ := askedRig(t)
	for _, bad := range []string{``, `{}`, `{"text":7}`, `{"text":"x","more":1}`, `{"text":"x","text":"y"}`, `{`, `{"text":"` + strings.Repeat("x", 51) + `"}`} {
		if _, err := r.TryAnswer(run.ID, bad, Person); err == nil || problem.From(err).Kind != problem.Invalid && problem.From(err).Kind != problem.Malformed {
			t.Errorf("%s: %v", bad, err)
		}
	}
	_, err := r.Engine.Answer(t.Context(), engine.Answer{Tenant: Tenant, Run: run.ID, Path: "ask", Value: []byte(AskAnswer),
		May: func(context.Context, store.Querier, engine.Question) error { return errors.New("not you") }}, Person)
	if err == nil || err.Error() != "not you" {
		t.Errorf("somebody who may not: %v", err)
	}
	for name, a := range map[string]engine.Answer{
		"another step": {Tenant: Tenant, Run: run.ID, Path: "write"}, "a later pass": {Tenant: Tenant, Run: run.ID, Path: "ask", Pass: 2},
		"another tenant": {Tenant: "other", Run: run.ID, Path: "ask"},
	} {
		a.Value = []byte(AskAnswer)
		if _, err := r.Engine.Answer(t.Context(), a, Person); !problem.HasCode(err, "not_found") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := r.Run(run.ID); got.Version != run.Version || got.Status != run.Status || question(t, r, run).Status != engine.QuestionOpen {
		t.Errorf("the run went on to version %d, %s", got.Version, got.Status)
	}
}

func TestAsk_ExpiresOnceItsTimeIsOver(t *testing.T) {
	r, run, now := askedRig(t)
	*now = now.Add(72*time.Hour - time.Second)
	if got := r.Drive(run.ID); got.Status != engine.WaitingInput {
		t.Fatalf("a second early the run is %s", got.Status)
	}
	*now = now.Add(time.Second)
	if _, err := r.TryAnswer(run.ID, AskAnswer, Person); !problem.HasCode(err, "question_closed") {
		t.Errorf("an answer at the deadline: %v", err)
	}
	got := r.Drive(run.ID)
	if got.Status != engine.RunExpired || got.Error.Message != "The time to answer passed." {
		t.Errorf("the run is %s (%+v), want expired", got.Status, got.Error)
	}
	if q := question(t, r, run); q.Status != engine.QuestionExpired || r.Recorded("run.ask_expired") != 1 {
		t.Errorf("the question is %s, recorded %d times", q.Status, r.Recorded("run.ask_expired"))
	}
	if _, err := r.TryAnswer(run.ID, AskAnswer, Person); !problem.HasCode(err, "question_closed") {
		t.Errorf("an answer after it: %v", err)
	}
}

func TestAsk_KilledWhileItExpiresItExpiresOnce(t *testing.T) {
	for _, window := range []string{"before-commit:ask", "after-commit:ask"} {
		r, run, now := askedRig(t)
		*now = now.Add(72 * time.Hour)
		hook := CrashAt(t, window)
		r.Restart(func(o *engine.Options) { o.Crash = hook })
		if !r.CrashingDrive(run.ID) {
			t.Fatalf("the run does not pass %s", window)
		}
		r.Restart()
		if got := r.Drive(run.ID); got.Status != engine.RunExpired || r.Recorded("run.ask_expired") != 1 {
			t.Errorf("%s: the run is %s (%+v), expired %d times", window, got.Status, got.Error, r.Recorded("run.ask_expired"))
		}
	}
}

func TestAsk_CancelledWhileItIsOpen(t *testing.T) {
	r, run, _ := askedRig(t)
	if got, err := r.Engine.Cancel(t.Context(), run.ID, "not needed", Person); err != nil || got.Status != engine.Cancelled {
		t.Fatalf("cancelled: %s, %v", got.Status, err)
	}
	if q := question(t, r, run); q.Status != engine.QuestionWithdrawn {
		t.Errorf("the question is %s", q.Status)
	}
	if _, err := r.TryAnswer(run.ID, AskAnswer, Person); !problem.HasCode(err, "question_closed") {
		t.Errorf("an answer after it: %v", err)
	}
	r.View(func(ctx context.Context, q store.Querier) error {
		open, err := r.Engine.OpenQuestions(ctx, q, Tenant)
		if len(open) != 0 {
			t.Errorf("still open: %+v", open)
		}
		return err
	})
}

// A driver that looks at the run while somebody answers is fenced out: nothing
// it would write is kept.
func TestAnswer_TakesTheRunFromItsDriver(t *testing.T) {
	r, run, now := askedRig(t)
	r.Exec("UPDATE run SET lease_owner = 'driver-9', lease_until = $1, fence = 9, status = 'running' WHERE id = $2",
		store.Micros(now.Add(time.Minute)), string(run.ID))
	if _, err := r.TryAnswer(run.ID, AskAnswer, Person); err != nil {
		t.Fatal(err)
	}
	if got := r.Run(run.ID); got.Lease.Owner != "" || got.Lease.Fence != 10 || got.Status != engine.Queued {
		t.Errorf("after the answer the run is %s, led by %q with fence %d", got.Status, got.Lease.Owner, got.Lease.Fence)
	}
}

func TestAnswer_ABlockedRunTakesNone(t *testing.T) {
	r, run, _ := askedRig(t)
	r.Exec("UPDATE run SET input = '{\"x\":1}' WHERE id = $1", string(run.ID))
	if got := r.Drive(run.ID); got.Status != engine.Blocked {
		t.Fatalf("the run is %s", got.Status)
	}
	if _, err := r.TryAnswer(run.ID, AskAnswer, Person); !problem.HasCode(err, "run_blocked") {
		t.Errorf("answer: %v", err)
	}
}

// What was asked, and that it was answered, cannot be written over.
func TestQuestion_IsClosedOnceAndKept(t *testing.T) {
	r, run, _ := askedRig(t)
	refused := func(query string) {
		t.Helper()
		err := r.DB.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			tx.Audited()
			_, err := tx.Exec(ctx, query)
			return err
		})
		if err == nil {
			t.Errorf("done: %s", query)
		}
	}
	refused("UPDATE question SET text = 'other'")
	refused("UPDATE question SET roles = '[\"everybody\"]'")
	refused("DELETE FROM question")
	if _, err := r.TryAnswer(run.ID, AskAnswer, Person); err != nil {
		t.Fatal(err)
	}
	refused("UPDATE question SET status = 'open', closed_at = NULL, answered_by = NULL, answer_digest = ''")
	refused("UPDATE question SET answered_by = '{}'")
	err := r.DB.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO question SELECT tenant, run, path, 9, 'open', text, roles, form_digest, NULL, asked_at, '', NULL, NULL FROM question")
		return err
	})
	if err == nil {
		t.Error("a question without an audit entry")
	}
}

// The K-th commit fails, in both ways, for K = 1, 2, 3… until a whole run with
// its answer passes untouched: one answer, one sending.
func TestFaults_OfEveryCommitLeaveOneAnswer(t *testing.T) {
	for _, point := range []string{store.FaultBeforeCommit, store.FaultAfterCommit} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			for k := 1; ; k++ {
				if askedFaultAt(t, point, k) {
					if k < 6 { // claim, question, answer, claim, proposal, outcome
						t.Errorf("only %d commits were tried", k)
					}
					return
				}
			}
		})
	}
}

func askedFaultAt(t *testing.T, point string, k int) (clean bool) {
	t.Helper()
	armed, left := false, k
	fault := func(at string) error {
		if armed && at == point {
			if left--; left == 0 {
				return errors.New("the disk is in a mood")
			}
		}
		return nil
	}
	db := testkit.OpenWith(t, store.Options{Path: filepath.Join(t.TempDir(), "test.db"), Lines: Lines(), Fault: fault})
	r := NewRigOn(t, db, NewLibrary(t, AllTools...), offline, func(o *engine.Options) {
		o.PollEvery, o.MaxTakeovers, o.Logger = time.Millisecond, 10, slog.New(slog.DiscardHandler)
	})
	r.Gate.Policy = func(engine.Proposal) string { return engine.Allowed }
	run := r.Begin(r.Lib.Add(t, AskThenWrite("write.key")), `{}`, "k")
	armed = true
	for range 50 {
		_, err := r.Engine.Drive(context.Background(), run.ID)
		if run = r.Run(run.ID); engine.Final(run.Status) || run.Status == engine.Blocked {
			break
		}
		if run.Status == engine.WaitingInput {
			_, err = r.TryAnswer(run.ID, AskAnswer, Person)
		}
		if err != nil {
			r.Restart()
		}
	}
	CheckAsked(t, run, r.Steps(run.ID))
	if n := r.Recorded("run.answer"); n != 1 {
		t.Errorf("commit %d: %d answers are recorded", k, n)
	}
	return left > 0
}
