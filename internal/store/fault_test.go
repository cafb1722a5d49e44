package store_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"countersign/internal/problem"
	"countersign/internal/store"
)

var errFault = errors.New("fault of the test")

// faulty is a hook that fails at one point while it is armed.
type faulty struct {
	point string
	armed atomic.Bool
}

func (f *faulty) hook(point string) error {
	if f.armed.Load() && point == f.point {
		return errFault
	}
	return nil
}

func openFaulty(t *testing.T, point string) (*store.DB, *faulty) {
	f := &faulty{point: point}
	return open(t, func(o *store.Options) { o.Fault = f.hook }), f
}

// Each durable write has two faults: it failed, or it happened and nobody heard.
func TestFault_CommitFailedOrItsAnswerWasLost(t *testing.T) {
	for point, kept := range map[string]int{store.FaultBeforeCommit: 0, store.FaultAfterCommit: 2} {
		t.Run(point, func(t *testing.T) {
			db, f := openFaulty(t, point)
			release := hold(t, db)
			var hints atomic.Int32
			fn := func(ctx context.Context, tx *store.Tx) error {
				tx.AfterCommit(func() { hints.Add(1) })
				return put(ctx, tx, "n")
			}
			results := queued(t, db, fn, fn)
			f.armed.Store(true)
			release()
			for i, err := range results() {
				if !errors.Is(err, errFault) {
					t.Errorf("result %d = %v, want the fault", i, err)
				}
			}
			f.armed.Store(false)
			wantNotes(t, db, kept)
			if err := insert(t.Context(), db, "next"); err != nil {
				t.Errorf("the next transaction: %v", err)
			}
			if n := hints.Load(); n != 0 {
				t.Errorf("%d hints of transactions without an answer", n)
			}
		})
	}
}

func TestFault_AtAStatementFailsItsTransactionOnly(t *testing.T) {
	db, f := openFaulty(t, "exec:folder")
	f.armed.Store(true)
	err := db.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		if err := put(ctx, tx, "lost"); err != nil {
			t.Errorf("another table: %v", err)
		}
		_, err := tx.Exec(ctx, "INSERT INTO folder (id) VALUES (1)")
		return err
	})
	if !errors.Is(err, errFault) {
		t.Errorf("Update = %v, want the fault", err)
	}
	wantNotes(t, db, 0)
}

func TestBeforeCommit_RunsOncePerPhysicalCommitThatHasASuccess(t *testing.T) {
	db := open(t)
	var calls int
	db.BeforeCommit(func(ctx context.Context, tx *store.Tx) error {
		calls++
		_, err := tx.Exec(ctx, "INSERT INTO secret (note) SELECT count(*) FROM note") // hooks are not guarded
		return err
	})
	release := hold(t, db)
	results := queued(t, db, repeat(3, func(ctx context.Context, tx *store.Tx) error { return put(ctx, tx, "n") })...)
	release()
	if err := errors.Join(results()...); err != nil {
		t.Fatal(err)
	}
	if err := db.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error { return errors.Join(put(ctx, tx, "x"), errOwn) }); err == nil {
		t.Fatal("a failing function committed")
	}
	if calls != 1 {
		t.Errorf("the hook ran %d times for one commit and one roll-back, want 1", calls)
	}
	if n := count(t, db, "SELECT note FROM secret"); n != 3 {
		t.Errorf("the hook saw %d notes, want all 3 of its group", n)
	}
}

func TestBeforeCommit_AnErrorFailsTheWholeGroup(t *testing.T) {
	hooks := map[string]func(ctx context.Context, tx *store.Tx) error{
		"error": func(context.Context, *store.Tx) error { return errFault },
		"panic": func(context.Context, *store.Tx) error { panic(errFault) },
	}
	for name, hook := range hooks {
		t.Run(name, func(t *testing.T) {
			db := open(t)
			var armed atomic.Bool
			db.BeforeCommit(func(ctx context.Context, tx *store.Tx) error {
				if !armed.Load() {
					return nil
				}
				return hook(ctx, tx)
			})
			release := hold(t, db)
			results := queued(t, db,
				func(ctx context.Context, tx *store.Tx) error { return put(ctx, tx, "a") },
				func(ctx context.Context, tx *store.Tx) error { return put(ctx, tx, "b") })
			armed.Store(true)
			release()
			for _, err := range results() {
				if !errors.Is(err, errFault) {
					t.Errorf("result = %v, want the hook's error", err)
				}
			}
			wantNotes(t, db, 0)
			armed.Store(false)
			if err := insert(t.Context(), db, "next"); err != nil {
				t.Errorf("the next transaction: %v", err)
			}
		})
	}
}

func TestAfterCommit_RunsInTheOrderOfCommitsAndSurvivesAPanic(t *testing.T) {
	db := open(t)
	got := make(chan int, 3)
	for i := range 3 {
		err := db.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			tx.AfterCommit(func() {
				got <- i
				if i == 0 {
					panic("a hint's own fault")
				}
			})
			return put(ctx, tx, "n")
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for want := range 3 {
		if n := <-got; n != want {
			t.Errorf("hint %d ran as number %d", n, want)
		}
	}
}

func TestAfterCommit_MayOpenTransactionsAndIsWaitedForByClose(t *testing.T) {
	db := open(t)
	ran := false
	err := db.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		tx.AfterCommit(func() {
			ran = db.View(context.Background(), func(context.Context, store.Querier) error { return nil }) == nil
		})
		return put(ctx, tx, "n")
	})
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	if !ran {
		t.Error("the hint had not run when Close returned")
	}
}

// A full disk fails the group and nothing else: the process lives, and works
// again once there is space.
func TestDiskFull_FailsTheGroupAndHealsWithSpace(t *testing.T) {
	db := open(t)
	if err := store.RunOnWriter(db, "PRAGMA max_page_count=60"); err != nil {
		t.Fatal(err)
	}
	release := hold(t, db)
	large := func(ctx context.Context, tx *store.Tx) error {
		_ = put(ctx, tx, strings.Repeat("x", 1<<20)) // swallowing the error must not help
		return nil
	}
	results := queued(t, db,
		func(ctx context.Context, tx *store.Tx) error { return put(ctx, tx, "same group") },
		large)
	release()
	errs := results()
	if !errors.Is(errs[1], store.ErrDiskFull) || problem.From(errs[1]).Kind != problem.Unavailable {
		t.Errorf("the large transaction = %v, want ErrDiskFull, unavailable", errs[1])
	}
	if !errors.Is(errs[0], store.ErrDiskFull) {
		t.Errorf("its group = %v, want ErrDiskFull", errs[0])
	}
	wantNotes(t, db, 0)
	if err := store.RunOnWriter(db, "PRAGMA max_page_count=100000"); err != nil {
		t.Fatal(err)
	}
	if err := db.Update(t.Context(), large); err != nil {
		t.Errorf("with space again: %v", err)
	}
	wantNotes(t, db, 1)
}

// After an I/O error at a commit nobody knows what is on disk.
func TestCommitIOError_IsFatalAndNothingIsWrittenAfterIt(t *testing.T) {
	const ioErrFsync = 10 | 4<<8
	var told error
	db := open(t, func(o *store.Options) { o.OnFatal = func(err error) { told = err } })
	store.FailCommit(db, ioErrFsync)
	if err := insert(t.Context(), db, "unknown"); err == nil || told == nil {
		t.Fatalf("Update = %v, OnFatal got %v; want both to get the error", err, told)
	}
	if err := insert(t.Context(), db, "refused"); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Update after it = %v, want ErrClosed", err)
	}
}

func TestCommit_KnownFailuresAreNotFatal(t *testing.T) {
	for name, c := range map[string]struct {
		code int
		want error
	}{"full": {13, store.ErrDiskFull}, "busy": {5, store.ErrBusy}} {
		t.Run(name, func(t *testing.T) {
			db := open(t)
			store.FailCommit(db, c.code)
			if err := insert(t.Context(), db, "n"); !errors.Is(err, c.want) {
				t.Errorf("Update = %v, want %v", err, c.want)
			}
			wantNotes(t, db, 0)
		})
	}
}

// Nothing was committed yet, so the outcome of an I/O error at a statement is known.
func TestStatementIOError_FailsTheGroupAndTheWriterLivesOn(t *testing.T) {
	const ioErrWrite = 10 | 3<<8
	db := open(t)
	store.FailStatement(db, "DELETE FROM note", ioErrWrite)
	release := hold(t, db)
	results := queued(t, db,
		func(ctx context.Context, tx *store.Tx) error { return put(ctx, tx, "same group") },
		func(ctx context.Context, tx *store.Tx) error { _, _ = tx.Exec(ctx, "DELETE FROM note"); return nil })
	release()
	for i, err := range results() {
		if err == nil {
			t.Errorf("result %d is nil although a statement of its group met an I/O error", i)
		}
	}
	if err := insert(t.Context(), db, "next"); err != nil {
		t.Errorf("the next transaction: %v", err)
	}
	wantNotes(t, db, 1)
}
