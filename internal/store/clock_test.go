package store_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"countersign/internal/store"
	"countersign/internal/testkit"

	"pgregory.net/rapid"
)

// wallClock is a clock the test sets.
type wallClock struct{ micros atomic.Int64 }

func (c *wallClock) now() time.Time          { return store.FromMicros(c.micros.Load()) }
func (c *wallClock) set(t time.Time)         { c.micros.Store(store.Micros(t)) }
func (c *wallClock) add(d time.Duration)     { c.micros.Add(d.Microseconds()) }
func (c *wallClock) option(o *store.Options) { o.Now = c.now }

var noon = time.Date(2026, 12, 1, 12, 0, 0, 123_000, time.UTC)

// stamp writes in a transaction and returns its time.
func stamp(t testing.TB, db *store.DB) (at time.Time, suspect bool) {
	t.Helper()
	err := db.Update(context.Background(), func(ctx context.Context, tx *store.Tx) error {
		at, suspect = tx.Now(), tx.ClockSuspect()
		if again := tx.Now(); again != at {
			return fmt.Errorf("Now was %v, then %v", at, again)
		}
		return put(ctx, tx, "n")
	})
	if err != nil {
		t.Fatal(err)
	}
	return at, suspect
}

func TestNow_NeverGoesBackAcrossRestarts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "clock.db")
	wall := &wallClock{}
	wall.set(noon)
	reopen := func() *store.DB {
		return testkit.OpenWith(t, store.Options{Path: path, Lines: []store.Line{notes}, Now: wall.now})
	}
	db := reopen()
	if got, _ := stamp(t, db); !got.Equal(noon) || got.Location() != time.UTC {
		t.Errorf("Now = %v, want %v in UTC", got, noon)
	}
	wall.add(-time.Minute)
	if got, suspect := stamp(t, db); !got.Equal(noon) || suspect {
		t.Errorf("a minute back: Now = %v, suspect %v; want the mark %v, not suspect", got, suspect, noon)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = reopen()
	if got, suspect := stamp(t, db); !got.Equal(noon) || suspect {
		t.Errorf("after a restart: Now = %v, suspect %v; want the mark %v", got, suspect, noon)
	}
	wall.add(2 * time.Minute)
	if got, _ := stamp(t, db); !got.Equal(noon.Add(time.Minute)) {
		t.Errorf("ahead again: Now = %v", got)
	}
}

func TestNow_IsNotOlderThanWhatTheSubmitterSaw(t *testing.T) {
	wall := &wallClock{}
	wall.set(noon)
	db := open(t, wall.option)
	release := hold(t, db)
	var at []time.Time
	read := func(_ context.Context, tx *store.Tx) error {
		at = append(at, tx.Now())
		wall.add(time.Second)
		return nil
	}
	results := queued(t, db, read, read, read)
	wall.add(time.Hour)
	release()
	if err := errors.Join(results()...); err != nil {
		t.Fatal(err)
	}
	for i, got := range at {
		if want := noon.Add(time.Hour + time.Duration(i)*time.Second); !got.Equal(want) {
			t.Errorf("transaction %d: Now = %v, want %v", i, got, want)
		}
	}
}

// Whoever reads without a transaction sees the time that transactions see: a
// session does not live longer, and what is due is found, when the machine's
// clock goes back.
func TestNow_OfReadingsNeverGoesBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "clock.db")
	var clock wallClock
	clock.set(noon)
	db := testkit.OpenWith(t, store.Options{Path: path, Lines: []store.Line{notes}, Now: clock.now})
	if got := db.Now(); !got.Equal(noon) {
		t.Errorf("before any transaction Now is %v, want the machine's %v", got, noon)
	}
	at, _ := stamp(t, db)
	clock.add(-4 * time.Minute)
	if got := db.Now(); !got.Equal(at) {
		t.Errorf("4 minutes back Now is %v, want the mark %v", got, at)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = testkit.OpenWith(t, store.Options{Path: path, Lines: []store.Line{notes}, Now: clock.now})
	if got := db.Now(); !got.Equal(at) {
		t.Errorf("after a restart Now is %v, want the mark %v", got, at)
	}
	clock.add(5 * time.Minute)
	if got := db.Now(); !got.Equal(noon.Add(time.Minute)) {
		t.Errorf("ahead of the mark Now is %v, want the machine's", got)
	}
	clock.add(-time.Hour)
	if err := db.AcceptClock(t.Context(), func(ctx context.Context, tx *store.Tx) error { return put(ctx, tx, "accepted") }); err != nil {
		t.Fatal(err)
	}
	if got := db.Now(); !got.Equal(noon.Add(-59 * time.Minute)) {
		t.Errorf("after the earlier time was accepted Now is %v", got)
	}
}

func TestClockSuspect_MoreThanFiveMinutesBackUntilAccepted(t *testing.T) {
	wall := &wallClock{}
	wall.set(noon)
	db := open(t, wall.option)
	stamp(t, db)
	wall.add(-store.ClockStepMax)
	if _, suspect := stamp(t, db); suspect {
		t.Error("exactly five minutes back is suspect")
	}
	wall.add(-time.Microsecond)
	if at, suspect := stamp(t, db); !suspect || !at.Equal(noon) {
		t.Errorf("just beyond: Now = %v, suspect %v; want the mark, suspect", at, suspect)
	}
	if behind := db.Stats().ClockBehind; behind != store.ClockStepMax+time.Microsecond {
		t.Errorf("Stats.ClockBehind = %v", behind)
	}

	refused := db.AcceptClock(t.Context(), func(context.Context, *store.Tx) error { return errOwn })
	if _, suspect := stamp(t, db); !errors.Is(refused, errOwn) || !suspect {
		t.Errorf("acceptance that failed (%v) took effect: suspect %v", refused, suspect)
	}
	err := db.AcceptClock(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		if tx.ClockSuspect() || !tx.Now().Equal(wall.now()) {
			return fmt.Errorf("inside: Now = %v, suspect %v", tx.Now(), tx.ClockSuspect())
		}
		return put(ctx, tx, "accepted")
	})
	if err != nil {
		t.Fatal(err)
	}
	if at, suspect := stamp(t, db); suspect || !at.Equal(wall.now()) {
		t.Errorf("after acceptance: Now = %v, suspect %v; want %v", at, suspect, wall.now())
	}
}

func TestAcceptClock_ThatFailsInsideAGroupLeavesTheGroupsTime(t *testing.T) {
	wall := &wallClock{}
	wall.set(noon)
	db := open(t, wall.option)
	stamp(t, db)
	wall.add(-time.Hour)
	release := hold(t, db)
	accept := make(chan error, 1)
	results := queued(t, db, func(ctx context.Context, tx *store.Tx) error { return put(ctx, tx, "before") })
	go func() {
		accept <- db.AcceptClock(context.Background(), func(context.Context, *store.Tx) error { return errOwn })
	}()
	eventually(t, "the acceptance is queued", func() bool { return db.Stats().Queue == 2 })
	var at time.Time
	after := queued(t, db, func(_ context.Context, tx *store.Tx) error { at = tx.Now(); return nil })
	release()
	if err := errors.Join(append(results(), after()...)...); err != nil || !errors.Is(<-accept, errOwn) {
		t.Fatal(err)
	}
	if !at.Equal(noon) {
		t.Errorf("Now behind the failed acceptance = %v, want the mark %v", at, noon)
	}
}

// The order of the column is the order of time, whatever the fractions (case E03).
func TestMicros_OrderOfTheColumnIsOrderOfTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		micros := rapid.Int64Range(0, 253402300799_999999) // to the end of year 9999
		a, b := store.FromMicros(micros.Draw(t, "a")), store.FromMicros(micros.Draw(t, "b"))
		if got, want := store.Micros(a) < store.Micros(b), a.Before(b); got != want {
			t.Errorf("column order %v, time order %v of %v and %v", got, want, a, b)
		}
		if back := store.FromMicros(store.Micros(a)); back != a {
			t.Errorf("%v came back as %v", a, back)
		}
	})
}

func TestExec_RefusesATimeThatIsNotMicros(t *testing.T) {
	db := open(t)
	for _, arg := range []any{noon, &noon} {
		err := db.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, "INSERT INTO note (body) VALUES ($1)", arg)
			_, err2 := tx.Query(ctx, "SELECT $1", arg)
			if err == nil || err2 == nil {
				t.Errorf("%T: Exec = %v, Query = %v, want both refused", arg, err, err2)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}
