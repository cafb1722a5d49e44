package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"countersign/internal/problem"
	"countersign/internal/store"
	"countersign/internal/testkit"
)

func TestUpdate_AGroupEndsAfterItsShareOfWork(t *testing.T) {
	db := open(t, func(o *store.Options) { o.MaxWork = store.DefaultMaxWork })
	release := hold(t, db)
	slow := func(ctx context.Context, tx *store.Tx) error {
		for start := time.Now(); time.Since(start) <= store.DefaultMaxWork; {
		}
		return put(ctx, tx, "slow")
	}
	results := queued(t, db, slow, slow, slow)
	before := db.Stats().Commits
	release()
	if err := errors.Join(results()...); err != nil {
		t.Fatal(err)
	}
	if got := db.Stats().Commits - before; got != 3 {
		t.Errorf("3 transactions that each use up a group's time took %d commits, want 3", got)
	}
}

// Another process keeps the database for longer than the busy timeout: all
// who wait are told at once, and nothing is broken.
func TestUpdate_IsRefusedWhileAnotherProcessHoldsTheDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	db, other := testkit.OpenAt(t, path, notes), testkit.OpenAt(t, path, notes)
	if err := store.RunOnWriter(db, "PRAGMA busy_timeout(20)"); err != nil {
		t.Fatal(err)
	}
	release := hold(t, other)
	if err := insert(t.Context(), db, "n"); !errors.Is(err, store.ErrBusy) || problem.From(err).Kind != problem.Unavailable {
		t.Errorf("Update = %v, want ErrBusy, unavailable", err)
	}
	release()
	if err := insert(t.Context(), db, "n"); err != nil {
		t.Errorf("after the other ended: %v", err)
	}
}

func TestAfterCommit_DropsHintsBeyondTheLimit(t *testing.T) {
	db := open(t)
	started, end := make(chan struct{}), make(chan struct{})
	var ran atomic.Int64
	err := db.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		tx.AfterCommit(func() { close(started); <-end })
		return put(ctx, tx, "n")
	})
	if err != nil {
		t.Fatal(err)
	}
	<-started
	err = db.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		for range store.HintsMax + 7 {
			tx.AfterCommit(func() { ran.Add(1) })
		}
		return put(ctx, tx, "n")
	})
	if err != nil {
		t.Fatal(err)
	}
	close(end)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if n, dropped := ran.Load(), db.Stats().HintsDropped; n != store.HintsMax || dropped != 7 {
		t.Errorf("%d hints ran and %d were dropped, want %d and 7", n, dropped, store.HintsMax)
	}
}

func TestMigrate_RefusesToFillTheDiskWithCopies(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	if err := openThings(t, path, line("things", first)); err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= store.CopiesMax; n++ {
		name := path + ".before-things-0002"
		if n > 1 {
			name += fmt.Sprint(".", n)
		}
		if err := os.WriteFile(name, []byte("somebody's"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := openThings(t, path, line("things", first, second)); err == nil || !strings.Contains(err.Error(), "move them away") {
		t.Errorf("Open = %v, want it to say what to do", err)
	}
}

func TestOpen_RefusesANetworkFileSystem(t *testing.T) {
	defer store.OnFS(0x6969)()
	db, err := store.Open(t.Context(), store.Options{Path: filepath.Join(t.TempDir(), "x.db")})
	if err == nil {
		db.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "NFS") {
		t.Errorf("Open on NFS = %v, want it refused", err)
	}
}

// In a bubble of fake time the store works and leaves no goroutine behind;
// a view that finds no reader is refused after its limit.
func TestView_IsRefusedWhenNoReaderComesFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := open(t)
		if err := insert(t.Context(), db, "n"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) // a quiet time: the checkpoint runs
		end := make(chan struct{})
		for range store.ReaderCount {
			go func() {
				_ = db.View(context.Background(), func(context.Context, store.Querier) error { <-end; return nil })
			}()
		}
		synctest.Wait()
		start := time.Now()
		err := db.View(t.Context(), func(context.Context, store.Querier) error { return nil })
		if !problem.HasCode(err, "readers_busy") || time.Since(start) != store.ReaderWaitMax {
			t.Errorf("View = %v after %v, want readers_busy after %v", err, time.Since(start), store.ReaderWaitMax)
		}
		close(end)
	})
}

func TestStats_CountWhatHappened(t *testing.T) {
	db := open(t)
	_ = db.Update(t.Context(), func(context.Context, *store.Tx) error { return errOwn })
	for range 3 {
		if err := insert(t.Context(), db, "n"); err != nil {
			t.Fatal(err)
		}
	}
	s := db.Stats()
	if s.Transactions != 3 || s.Failed != 1 || s.Commits != 3 || s.CommitErrors != 0 {
		t.Errorf("transactions %d, failed %d, commits %d, commit errors %d, want 3, 1, 3, 0", s.Transactions, s.Failed, s.Commits, s.CommitErrors)
	}
	if s.Group.Count != 3 || s.Group.Sum != 3 || s.Commit.Count != 3 || s.Wait.Count != 4 || s.Commit.Sum <= 0 || s.WALBytes <= 0 {
		t.Errorf("histograms: %+v", s)
	}
	for _, h := range []store.Histogram{s.Group, s.Wait, s.Work, s.Commit} {
		var sum uint64
		for _, n := range h.Buckets {
			sum += n
		}
		if sum != h.Count || len(h.Buckets) != len(h.Bounds)+1 {
			t.Errorf("buckets %v do not add up to %d", h.Buckets, h.Count)
		}
	}
}
