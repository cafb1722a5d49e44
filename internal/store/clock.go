package store

import (
	"context"
	"database/sql/driver"
	"fmt"
	"time"
)

// ClockStepMax is how far the machine's clock may be behind the stored mark
// and still be taken for a small correction (DESIGN section 8).
const ClockStepMax = 5 * time.Minute

// The mark is raised when a group opens, which also learns what another
// process stored, and once more before its commit if later instants were
// given out: at most two small statements a commit, one when it holds a
// single transaction.
const (
	sqlOpenClock   = "UPDATE store_clock SET mark_us = max(mark_us, $1) WHERE id = 1 RETURNING mark_us"
	sqlStoreClock  = "UPDATE store_clock SET mark_us = max(mark_us, $1) WHERE id = 1"
	sqlAcceptClock = "UPDATE store_clock SET mark_us = $1 WHERE id = 1"
)

// clock is the time inside one group, in microseconds.
type clock struct {
	mark   int64 // latest instant given out, or the opening one
	stored int64 // the mark as the database has it
	fresh  bool  // the opening instant still serves: for the group's first transaction
	behind int64 // how far the machine is behind the mark
}

func (w *writer) wall() int64 { return Micros(w.opts.Now()) }

// openClock starts a group's time at the stored mark or now, whichever is later.
func (w *writer) openClock() error {
	wall := w.wall()
	mark, err := w.conn.integer(sqlOpenClock, driver.NamedValue{Ordinal: 1, Value: wall})
	if err != nil {
		return fmt.Errorf("read the clock mark: %w", err)
	}
	w.clock = clock{mark: mark, stored: mark, fresh: true, behind: mark - wall}
	w.stats.behind.Store(w.clock.behind)
	w.given.Store(mark)
	return nil
}

// learnClock reads the stored mark when the database is opened.
func (w *writer) learnClock() error {
	mark, err := w.conn.integer("SELECT mark_us FROM store_clock WHERE id = 1")
	if err != nil {
		return fmt.Errorf("read the clock mark: %w", err)
	}
	w.given.Store(mark)
	return nil
}

// Now is the time for whoever reads without a transaction: UTC, and never
// before an instant that a transaction of this process was given, or that was
// stored when the database was opened.
func (db *DB) Now() time.Time {
	return FromMicros(max(db.writer.wall(), db.writer.given.Load()))
}

// tick gives out the next instant and whether the clock is suspect.
func (w *writer) tick(hook bool) (time.Time, bool) {
	c := &w.clock
	if !c.fresh && !hook {
		c.mark = max(c.mark, w.wall())
		w.given.Store(c.mark)
	}
	c.fresh = false
	return FromMicros(c.mark), c.behind > ClockStepMax.Microseconds()
}

// storeClock raises the stored mark to the latest instant given out.
func (w *writer) storeClock() error {
	if w.clock.mark <= w.clock.stored {
		return nil
	}
	if _, err := w.conn.exec(sqlStoreClock, []any{w.clock.mark}); err != nil {
		return fmt.Errorf("store the clock mark: %w", err)
	}
	return nil
}

// Now is the instant of the transaction: UTC, whole microseconds, the same
// at every call and never before that of any transaction committed earlier,
// by this process or another.
func (tx *Tx) Now() time.Time {
	tx.readClock()
	return tx.now
}

// ClockSuspect reports that the clock of the machine is more than
// ClockStepMax behind an instant already given out: nothing may be decided or
// sent until an operator accepts the clock (DB.AcceptClock).
func (tx *Tx) ClockSuspect() bool {
	tx.readClock()
	return tx.suspect
}

func (tx *Tx) readClock() {
	if !tx.timed && !tx.done {
		tx.now, tx.suspect = tx.w.tick(tx.hook)
		tx.timed = true
	}
}

// AcceptClock makes the machine's present time the mark, even though it is
// earlier, in one transaction with fn, which records who accepted it.
func (db *DB) AcceptClock(ctx context.Context, fn func(ctx context.Context, tx *Tx) error) error {
	return db.Update(ctx, func(ctx context.Context, tx *Tx) error {
		if err := tx.acceptClock(); err != nil {
			return err
		}
		return fn(ctx, tx)
	})
}

func (tx *Tx) acceptClock() error {
	w := tx.w
	before, wall := w.clock, w.wall()
	w.conn.rules.mode = modeOwn
	_, err := w.conn.exec(sqlAcceptClock, []any{wall})
	w.conn.rules.mode = modeTx
	if err != nil {
		return tx.failed(fmt.Errorf("accept the clock: %w", err))
	}
	tx.undoClock, tx.wrote = &before, true
	w.clock = clock{mark: wall, stored: wall}
	w.given.Store(wall)
	tx.now, tx.suspect, tx.timed = FromMicros(wall), false, true
	return nil
}
