package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/internal/store"
)

func TestView_SeesOneSnapshot(t *testing.T) {
	db := open(t)
	err := db.View(t.Context(), func(ctx context.Context, q store.Querier) error {
		var before, after int
		if err := q.QueryRow(ctx, "SELECT count(*) FROM note").Scan(&before); err != nil {
			return err
		}
		if err := insert(context.Background(), db, "meanwhile"); err != nil {
			return err
		}
		if err := q.QueryRow(ctx, "SELECT count(*) FROM note").Scan(&after); err != nil {
			return err
		}
		if before != after {
			t.Errorf("the view saw %d notes, then %d", before, after)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	wantNotes(t, db, 1)
}

func TestView_CannotWrite(t *testing.T) {
	db := open(t)
	for _, text := range []string{"INSERT INTO note (body) VALUES ('x') RETURNING id", "CREATE TABLE x (a)", "PRAGMA user_version=3"} {
		err := db.View(t.Context(), func(ctx context.Context, q store.Querier) error {
			rows, err := q.Query(ctx, text)
			if err != nil {
				return err
			}
			defer rows.Close()
			rows.Next()
			return rows.Err()
		})
		if err == nil {
			t.Errorf("a view ran %s", text)
		}
	}
	wantNotes(t, db, 0)
}

func TestView_NeverOutlivesItsFunction(t *testing.T) {
	db := open(t)
	if err := insert(t.Context(), db, "n"); err != nil {
		t.Fatal(err)
	}
	var kept store.Querier
	err := db.View(t.Context(), func(ctx context.Context, q store.Querier) error {
		kept = q
		rows, err := q.Query(ctx, "SELECT id FROM note")
		if err == nil && !rows.Next() {
			err = errors.New("no row")
		}
		return err
	})
	if !errors.Is(err, store.ErrLeakedRows) {
		t.Errorf("View that left a result open = %v, want ErrLeakedRows", err)
	}
	if _, err := kept.Query(t.Context(), "SELECT 1"); !errors.Is(err, store.ErrTxDone) {
		t.Errorf("Query after the view = %v", err)
	}
	var n int
	if err := kept.QueryRow(t.Context(), "SELECT 1").Scan(&n); !errors.Is(err, store.ErrTxDone) {
		t.Errorf("QueryRow after the view = %v", err)
	}
	err = db.View(t.Context(), func(ctx context.Context, q store.Querier) error { q.QueryRow(ctx, "SELECT 1"); return nil })
	if !errors.Is(err, store.ErrLeakedRows) {
		t.Errorf("View that left a row unscanned = %v, want ErrLeakedRows", err)
	}
}

func TestView_ReadsWhileAResultOfTheSameTextIsOpen(t *testing.T) {
	db := open(t)
	for _, body := range []string{"a", "b", "c"} {
		if err := insert(t.Context(), db, body); err != nil {
			t.Fatal(err)
		}
	}
	err := db.View(t.Context(), func(ctx context.Context, q store.Querier) error { return walk(ctx, q, 2) })
	if err != nil {
		t.Error(err)
	}
}

// More views than readers, some that panic, some whose context ends: all
// readers come back.
func TestView_ReadersComeBackWhateverHappens(t *testing.T) {
	db := open(t)
	var all sync.WaitGroup
	for i := range 6 * store.ReaderCount {
		all.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			defer func() { _ = recover() }()
			_ = db.View(ctx, func(ctx context.Context, q store.Querier) error {
				switch i % 4 {
				case 0:
					panic("a fault of the page")
				case 1:
					cancel()
				case 2:
					q.QueryRow(ctx, "SELECT 1")
				}
				rows, err := q.Query(ctx, "SELECT id FROM note")
				if err == nil && i%8 < 4 {
					err = rows.Close()
				}
				return err
			})
		})
	}
	all.Wait()
	var together sync.WaitGroup
	together.Add(store.ReaderCount)
	for range store.ReaderCount {
		all.Go(func() {
			err := db.View(t.Context(), func(ctx context.Context, q store.Querier) error {
				together.Done()
				together.Wait()
				var n int
				return q.QueryRow(ctx, "SELECT count(*) FROM note").Scan(&n)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func TestView_ContextEndsTheWaitAndTheStatement(t *testing.T) {
	db := open(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := db.View(ctx, func(ctx context.Context, q store.Querier) error {
		var n int
		return q.QueryRow(ctx, "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT count(*) FROM c").Scan(&n)
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an endless statement = %v, want context.DeadlineExceeded", err)
	}
	end := make(chan struct{})
	var all sync.WaitGroup
	var taken sync.WaitGroup
	taken.Add(store.ReaderCount)
	for range store.ReaderCount {
		all.Go(func() {
			_ = db.View(t.Context(), func(context.Context, store.Querier) error { taken.Done(); <-end; return nil })
		})
	}
	taken.Wait()
	ctx, cancel = context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := db.View(ctx, func(context.Context, store.Querier) error { return nil }); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("View with all readers taken = %v, want context.DeadlineExceeded", err)
	}
	close(end)
	all.Wait()
}

func TestClose_RefusesNewWorkAndFinishesTheQueue(t *testing.T) {
	db := open(t)
	release := hold(t, db)
	results := queued(t, db, repeat(5, func(ctx context.Context, tx *store.Tx) error { return put(ctx, tx, "n") })...)
	closed := make(chan error)
	go func() { closed <- db.Close() }()
	eventually(t, "new work is refused", func() bool { return errors.Is(db.Backup(t.Context(), "/nonexistent/x"), store.ErrClosed) })
	if err := insert(t.Context(), db, "late"); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Update on a closing database = %v, want ErrClosed", err)
	}
	release()
	if err := errors.Join(append(results(), <-closed, db.Close())...); err != nil {
		t.Errorf("queued work or Close: %v", err)
	}
	if err := db.View(t.Context(), func(context.Context, store.Querier) error { return nil }); !errors.Is(err, store.ErrClosed) {
		t.Errorf("View on a closed database = %v, want ErrClosed", err)
	}
}

// A view that stays open keeps the log from being reused; once it ends, a
// quiet moment cuts the log (case E05).
func TestWAL_ShrinksOnceTheLastOldViewEnds(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 70 MiB")
	}
	var path string
	db := open(t, func(o *store.Options) { path = t.TempDir() + "/wal.db"; o.Path = path })
	big := strings.Repeat("x", 1<<20)
	err := db.View(t.Context(), func(ctx context.Context, q store.Querier) error {
		var n int
		if err := q.QueryRow(ctx, "SELECT count(*) FROM note").Scan(&n); err != nil {
			return err
		}
		for range store.WALMax>>20 + 6 {
			if err := insert(context.Background(), db, big); err != nil {
				return err
			}
		}
		if size := db.Stats().WALBytes; size <= store.WALMax {
			return fmt.Errorf("the log has only %d bytes under an open view; the test shows nothing", size)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := insert(t.Context(), db, "one more"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the log is cut", func() bool {
		info, err := os.Stat(path + "-wal")
		return err == nil && info.Size() <= store.WALMax && db.Stats().WALBytes == info.Size()
	})
}
