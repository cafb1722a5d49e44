package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"countersign/internal/id"
	"countersign/internal/problem"
	"countersign/internal/store"
)

// errStopping ends drives when the process stops.
var errStopping = problem.New(problem.Unavailable, "stopping", "The engine is stopping. Nothing was started; try again in a moment.")

// dueMax bounds how many due runs one look finds.
const dueMax = 256

// Start takes over what an earlier process left, then drives what is due until
// Stop. It may be called twice.
func (e *Engine) Start(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.started || e.stopped {
		return nil
	}
	if err := e.requeue(ctx); err != nil {
		return err
	}
	e.started = true
	e.drives.Go(e.loop)
	return nil
}

// requeue makes everything due that a process of an older epoch was driving,
// and whatever lacks a time at which it would be looked at. It all comes back
// through resume, each run by itself.
func (e *Engine) requeue(ctx context.Context) error {
	return e.update(ctx, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE run SET wake_at = $1 WHERE lease_owner IS NOT NULL AND epoch < $2
			OR lease_owner IS NULL AND wake_at IS NULL AND status IN ('queued','running','retrying','sleeping')`, store.Micros(tx.Now()), e.o.Epoch)
		if err != nil {
			return fmt.Errorf("requeue runs of older processes: %w", err)
		}
		return nil
	})
}

// Stop ends the loop and waits for the drives: each finishes what it is doing
// and goes back into the queue. When ctx ends first, reads and sendings are
// cut short; a cut sending is unknown. It may be called twice.
func (e *Engine) Stop(ctx context.Context) error {
	e.mu.Lock()
	if !e.stopped {
		e.stopped = true
		close(e.halt)
	}
	e.mu.Unlock()
	done := make(chan struct{})
	go func() { e.drives.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
		e.hardEnd()
		<-done
	}
	e.hardEnd()
	return nil
}

func (e *Engine) stopping() bool {
	select {
	case <-e.halt:
		return true
	default:
		return false
	}
}

// background runs fn so that Stop waits for it; false when it is too late.
func (e *Engine) background(fn func()) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped {
		return false
	}
	e.drives.Go(func() {
		defer e.survive()
		fn()
	})
	return true
}

// survive ends a goroutine whose drive was ended by a simulated crash.
func (e *Engine) survive() {
	switch v := recover().(type) {
	case nil:
	case Crashed:
		e.log.Warn("simulated crash", "window", v.Window, "step", v.Path)
	default:
		panic(v)
	}
}

// loop drives what is due. Hints only make it look sooner: what they announce
// is in the database.
func (e *Engine) loop() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-e.halt:
			return
		case <-e.hints:
		case <-timer.C:
		}
		next, err := e.driveDue()
		if err != nil && !e.stopping() {
			e.log.Error("look for due runs", "error", err)
		}
		timer.Reset(next)
	}
}

// driveDue begins to drive every due run and says when to look again.
func (e *Engine) driveDue() (time.Duration, error) {
	due, next, err := e.due(e.hard)
	if err != nil {
		return e.o.PollEvery, err
	}
	for _, run := range due {
		select {
		case e.slots <- struct{}{}:
		case <-e.halt:
			return e.o.PollEvery, nil
		}
		started := e.background(func() {
			defer func() { <-e.slots; e.hint() }()
			e.one(run)
		})
		if !started {
			<-e.slots
			return e.o.PollEvery, nil
		}
	}
	return next, nil
}

// one drives one due run. Whatever goes wrong with it concerns no other run.
func (e *Engine) one(run id.Run) {
	s, _, err := e.resume(e.hard, run, -1, engineActor)
	switch {
	case err == nil && s != nil:
		e.carry(e.hard, s)
	case err == nil, errors.Is(err, errHeld), errors.Is(err, errFinished), errors.Is(err, store.ErrConflict), e.stopping():
	default:
		e.log.Error("resume", "run", run, "error", err)
		e.pause()
	}
}

// pause keeps a run that could not even be claimed from being tried in a tight
// loop.
func (e *Engine) pause() {
	select {
	case <-time.After(e.o.PollEvery):
	case <-e.halt:
	}
}

// due finds the runs whose time has come and that this process is not driving
// already, and how long until the next one.
func (e *Engine) due(ctx context.Context) (due []id.Run, next time.Duration, err error) {
	now := e.o.Now()
	next = e.o.PollEvery
	err = e.o.DB.View(ctx, func(ctx context.Context, q store.Querier) error {
		rows, err := q.Query(ctx, "SELECT id, wake_at FROM run WHERE wake_at IS NOT NULL ORDER BY wake_at, id LIMIT $1", dueMax+len(e.slots))
		if err != nil {
			return fmt.Errorf("read due runs: %w", err)
		}
		defer rows.Close()
		for rows.Next() {
			var run id.Run
			var at int64
			if err := rows.Scan(&run, &at); err != nil {
				return err
			}
			if wake := store.FromMicros(at); wake.After(now) {
				next = min(next, wake.Sub(now))
				break
			}
			if !e.driving(run) {
				due = append(due, run)
			}
		}
		return rows.Err()
	})
	return due, next, err
}

// driving reports whether this process drives the run.
func (e *Engine) driving(run id.Run) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.active[run] != nil
}
