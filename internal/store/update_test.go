package store_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"countersign/internal/problem"
	"countersign/internal/store"
)

var errOwn = errors.New("the function's own error")

func TestUpdate_CommitsOnNilAndLeavesNothingOnError(t *testing.T) {
	db := open(t)
	if err := insert(t.Context(), db, "kept"); err != nil {
		t.Fatal(err)
	}
	err := db.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		return errors.Join(put(ctx, tx, "lost"), errOwn)
	})
	if !errors.Is(err, errOwn) {
		t.Errorf("Update = %v, want the function's error", err)
	}
	wantNotes(t, db, 1)
}

func TestUpdate_AFailureInAGroupTakesOnlyItselfBack(t *testing.T) {
	for failing := range 4 {
		t.Run(fmt.Sprint("number ", failing), func(t *testing.T) {
			db := open(t)
			release := hold(t, db)
			var fns []func(context.Context, *store.Tx) error
			for i := range 4 {
				fns = append(fns, func(ctx context.Context, tx *store.Tx) error {
					if err := put(ctx, tx, fmt.Sprint(i)); err != nil || i != failing {
						return err
					}
					return errOwn
				})
			}
			results := queued(t, db, fns...)
			release()
			for i, err := range results() {
				if want := map[bool]error{true: errOwn}[i == failing]; !errors.Is(err, want) {
					t.Errorf("result %d = %v, want %v", i, err, want)
				}
			}
			wantNotes(t, db, 3)
			if n := count(t, db, "SELECT count(*) FROM note WHERE body = $1", fmt.Sprint(failing)); n != 0 {
				t.Errorf("the failed transaction left %d rows", n)
			}
		})
	}
}

func TestUpdate_GroupsWhatWaitsIntoOneCommit(t *testing.T) {
	db := open(t, func(o *store.Options) { o.MaxBatch = 5 })
	release := hold(t, db)
	results := queued(t, db, repeat(9, func(ctx context.Context, tx *store.Tx) error { return put(ctx, tx, "n") })...)
	before := db.Stats()
	release()
	for _, err := range results() {
		if err != nil {
			t.Error(err)
		}
	}
	after := db.Stats()
	// The one that held the writer shares the first group or is alone in one that wrote nothing.
	if got := after.Commits - before.Commits; got != 2 {
		t.Errorf("9 transactions took %d commits at 5 a group, want 2", got)
	}
	wantNotes(t, db, 9)
}

func repeat(n int, fn func(ctx context.Context, tx *store.Tx) error) (fns []func(ctx context.Context, tx *store.Tx) error) {
	for range n {
		fns = append(fns, fn)
	}
	return fns
}

func TestUpdate_RefusesBeyondTheQueue(t *testing.T) {
	db := open(t, func(o *store.Options) { o.MaxQueue = 3 })
	release := hold(t, db)
	results := queued(t, db, repeat(3, func(ctx context.Context, tx *store.Tx) error { return put(ctx, tx, "n") })...)
	err := insert(t.Context(), db, "one too many")
	if !errors.Is(err, store.ErrBusyQueue) || problem.From(err).Kind != problem.Unavailable {
		t.Errorf("Update with a full queue = %v, want ErrBusyQueue, unavailable", err)
	}
	release()
	if err := errors.Join(results()...); err != nil {
		t.Error(err)
	}
	wantNotes(t, db, 3)
	if s := db.Stats(); s.Refused != 1 || s.QueueMax != 3 {
		t.Errorf("Stats: refused %d, queue max %d, want 1 and 3", s.Refused, s.QueueMax)
	}
}

func TestUpdate_ContextEndsTheWaitOnlyBeforeTheStart(t *testing.T) {
	db := open(t)
	release := hold(t, db)
	ctx, cancel := context.WithCancel(t.Context())
	abandoned := make(chan error, 1)
	go func() { abandoned <- insert(ctx, db, "abandoned") }()
	eventually(t, "the update is queued", func() bool { return db.Stats().Queue == 1 })
	cancel()
	if err := <-abandoned; !errors.Is(err, context.Canceled) {
		t.Errorf("Update abandoned in the queue = %v, want context.Canceled", err)
	}
	release()

	ctx, cancel = context.WithCancel(t.Context())
	err := db.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		cancel()
		if ctx.Err() != nil {
			t.Errorf("the transaction's context ended with the submitter's: %v", ctx.Err())
		}
		return put(ctx, tx, "finished")
	})
	if err != nil {
		t.Errorf("Update cancelled after its start = %v, want its true result nil", err)
	}
	wantNotes(t, db, 1)
	if err := insert(ctx, db, "never queued"); !errors.Is(err, context.Canceled) {
		t.Errorf("Update with an ended context = %v", err)
	}
}

type valueKey struct{}

func TestUpdate_KeepsTheValuesOfTheContext(t *testing.T) {
	db := open(t)
	ctx := context.WithValue(t.Context(), valueKey{}, "trace")
	err := db.Update(ctx, func(ctx context.Context, _ *store.Tx) error {
		if got := ctx.Value(valueKey{}); got != "trace" {
			t.Errorf("value in the transaction = %v", got)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestUpdate_RefusesNesting(t *testing.T) {
	db := open(t)
	other := open(t)
	view := func(ctx context.Context, db *store.DB) error {
		return db.View(ctx, func(context.Context, store.Querier) error { return nil })
	}
	err := db.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		if err := insert(ctx, db, "inner"); !errors.Is(err, store.ErrNested) {
			t.Errorf("Update in Update = %v", err)
		}
		if err := view(ctx, db); !errors.Is(err, store.ErrNested) {
			t.Errorf("View in Update = %v", err)
		}
		return insert(ctx, other, "another database")
	})
	if err != nil {
		t.Error(err)
	}
	err = db.View(t.Context(), func(ctx context.Context, _ store.Querier) error {
		if err := insert(ctx, db, "inner"); !errors.Is(err, store.ErrNested) {
			t.Errorf("Update in View = %v", err)
		}
		return view(ctx, db)
	})
	if !errors.Is(err, store.ErrNested) {
		t.Errorf("View in View = %v", err)
	}
}

func TestUpdate_SurvivesAPanic(t *testing.T) {
	db := open(t)
	err := db.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		_ = put(ctx, tx, "lost")
		panic(errOwn)
	})
	p, ok := errors.AsType[*store.PanicError](err)
	if !ok || !errors.Is(err, errOwn) || !strings.Contains(string(p.Stack), "TestUpdate_SurvivesAPanic") {
		t.Errorf("Update that panicked = %v, want a PanicError with value and stack", err)
	}
	if err := insert(t.Context(), db, "next"); err != nil {
		t.Errorf("the writer did not survive: %v", err)
	}
	wantNotes(t, db, 1)
}

func TestUpdate_SurvivesTheEndOfItsGoroutine(t *testing.T) {
	db := open(t)
	release := hold(t, db)
	results := queued(t, db,
		func(ctx context.Context, tx *store.Tx) error { return put(ctx, tx, "same group") },
		func(ctx context.Context, tx *store.Tx) error { runtime.Goexit(); return nil })
	release()
	for i, err := range results() {
		if err == nil {
			t.Errorf("result %d is nil although the group was rolled back", i)
		}
	}
	if err := insert(t.Context(), db, "next"); err != nil {
		t.Errorf("the writer did not survive: %v", err)
	}
	wantNotes(t, db, 1)
}

func TestUpdate_NothingOfItWorksAfterItsEnd(t *testing.T) {
	db := open(t)
	var kept *store.Tx
	if err := db.Update(t.Context(), func(_ context.Context, tx *store.Tx) error { kept = tx; return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := kept.Exec(t.Context(), "DELETE FROM note"); !errors.Is(err, store.ErrTxDone) {
		t.Errorf("Exec = %v", err)
	}
	if _, err := kept.Query(t.Context(), "SELECT 1"); !errors.Is(err, store.ErrTxDone) {
		t.Errorf("Query = %v", err)
	}
	var n int
	if err := kept.QueryRow(t.Context(), "SELECT 1").Scan(&n); !errors.Is(err, store.ErrTxDone) {
		t.Errorf("QueryRow = %v", err)
	}
}

func TestUpdate_RefusesResultsLeftOpen(t *testing.T) {
	db := open(t)
	leaks := map[string]func(ctx context.Context, tx *store.Tx){
		"a row never scanned": func(ctx context.Context, tx *store.Tx) { tx.QueryRow(ctx, "SELECT 1") },
		"a result not closed": func(ctx context.Context, tx *store.Tx) { _, _ = tx.Query(ctx, "SELECT 1") },
	}
	for name, leak := range leaks {
		t.Run(name, func(t *testing.T) {
			err := db.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				leak(ctx, tx)
				return put(ctx, tx, "lost")
			})
			if !errors.Is(err, store.ErrLeakedRows) {
				t.Errorf("Update = %v, want ErrLeakedRows", err)
			}
		})
	}
	wantNotes(t, db, 0)
}

func TestUpdate_ReadsWhileAResultOfTheSameTextIsOpen(t *testing.T) {
	db := open(t)
	err := db.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		for _, body := range []string{"a", "b", "c"} {
			if err := put(ctx, tx, body); err != nil {
				return err
			}
		}
		return walk(ctx, tx, 2)
	})
	if err != nil {
		t.Error(err)
	}
}

// walk reads all notes, and at each of them all notes again.
func walk(ctx context.Context, q store.Querier, depth int) error {
	rows, err := q.Query(ctx, "SELECT body FROM note WHERE id > $1 ORDER BY id", 0)
	if err != nil {
		return err
	}
	defer rows.Close()
	var got string
	for rows.Next() {
		var body string
		if err := rows.Scan(&body); err != nil {
			return err
		}
		got += body
		if depth > 0 {
			if err := walk(ctx, q, depth-1); err != nil {
				return err
			}
		}
	}
	if got != "abc" {
		return fmt.Errorf("read %q at depth %d, want abc", got, depth)
	}
	return rows.Err()
}

func TestUpdate_TransactionsMayNotControlTheDatabase(t *testing.T) {
	db := open(t)
	for _, text := range []string{
		"COMMIT", "ROLLBACK", "SAVEPOINT x", "RELEASE logical", "PRAGMA synchronous=OFF", "PRAGMA foreign_keys",
		"ATTACH ':memory:' AS x", "CREATE TABLE x (a)", "DROP TABLE note", "ALTER TABLE note ADD COLUMN x", "CREATE TEMP TABLE x (a)",
	} {
		err := db.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, text)
			return err
		})
		if err == nil || !strings.Contains(err.Error(), "not allowed here") {
			t.Errorf("Exec(%q) = %v, want it refused", text, err)
		}
	}
	if err := insert(t.Context(), db, "next"); err != nil {
		t.Error(err)
	}
}

func TestExecOne_IsCompareAndSwap(t *testing.T) {
	db := open(t)
	if err := insert(t.Context(), db, "old"); err != nil {
		t.Fatal(err)
	}
	swap := func(ctx context.Context, tx *store.Tx) error {
		return tx.ExecOne(ctx, "UPDATE note SET body = $1 WHERE body = $2", "new", "old")
	}
	if err := db.Update(t.Context(), swap); err != nil {
		t.Errorf("first swap = %v", err)
	}
	err := db.Update(t.Context(), swap)
	if !errors.Is(err, store.ErrConflict) || problem.From(err).Kind != problem.Conflict {
		t.Errorf("second swap = %v, want ErrConflict", err)
	}
}

func TestUpdate_DeferredForeignKeyBlamesTheTransactionThatBrokeIt(t *testing.T) {
	db := open(t)
	release := hold(t, db)
	page := func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO page (folder) VALUES (7)")
		return err
	}
	results := queued(t, db,
		func(ctx context.Context, tx *store.Tx) error { return put(ctx, tx, "sound") },
		page,
		func(ctx context.Context, tx *store.Tx) error { return put(ctx, tx, "sound") })
	release()
	errs := results()
	if errs[0] != nil || errs[2] != nil || errs[1] == nil {
		t.Errorf("results = %v, want only the second to fail", errs)
	}
	wantNotes(t, db, 2)
}

func TestIsUnique_TellsAViolatedKey(t *testing.T) {
	db := open(t)
	twice := func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO folder (id) VALUES (1)")
		return err
	}
	if err := db.Update(t.Context(), twice); err != nil {
		t.Fatal(err)
	}
	if err := db.Update(t.Context(), twice); !store.IsUnique(err) {
		t.Errorf("IsUnique(%v) = false", err)
	}
	if store.IsUnique(errOwn) || store.IsUnique(nil) {
		t.Error("IsUnique is true of an error that is not the database's")
	}
}

// Read, check, then write, from fifty at once beside a long reader: with
// transactions that begin by reading, SQLite answers "locked" at once in
// spite of its busy timeout (case E01).
func TestUpdate_ReadThenWriteNeverFailsUnderContention(t *testing.T) {
	db := open(t)
	if err := insert(t.Context(), db, "0"); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var failed atomic.Int64
	reading, stop := make(chan struct{}), make(chan struct{})
	all.Go(func() {
		_ = db.View(t.Context(), func(ctx context.Context, q store.Querier) error {
			var n int
			err := q.QueryRow(ctx, "SELECT count(*) FROM note").Scan(&n)
			close(reading)
			<-stop
			return err
		})
	})
	<-reading
	var writers sync.WaitGroup
	for range 50 {
		writers.Go(func() {
			for range 20 {
				err := db.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
					var n int
					if err := tx.QueryRow(ctx, "SELECT CAST(body AS INTEGER) FROM note").Scan(&n); err != nil {
						return err
					}
					return tx.ExecOne(ctx, "UPDATE note SET body = $1 WHERE body = $2", fmt.Sprint(n+1), fmt.Sprint(n))
				})
				if err != nil {
					failed.Add(1)
				}
			}
		})
	}
	writers.Wait()
	close(stop)
	all.Wait()
	if n := failed.Load(); n != 0 {
		t.Errorf("%d of 1000 transactions failed", n)
	}
	if got := count(t, db, "SELECT CAST(body AS INTEGER) FROM note"); got != 1000 {
		t.Errorf("counter = %d, want 1000", got)
	}
}
