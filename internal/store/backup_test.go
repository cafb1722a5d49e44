package store_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"countersign/internal/problem"
	"countersign/internal/store"
	"countersign/internal/testkit"
)

// The copy is one file that opens by itself, with what was committed before
// it began, while others write (case E06).
func TestBackup_WhileWritingIsOneRestorableFile(t *testing.T) {
	db := open(t)
	for range 100 {
		if err := insert(t.Context(), db, "before"); err != nil {
			t.Fatal(err)
		}
	}
	stop := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			err := db.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				return errors.Join(put(ctx, tx, "pair"), put(ctx, tx, "pair"))
			})
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	dir := t.TempDir()
	dst := filepath.Join(dir, "copy.db")
	if err := db.Backup(t.Context(), dst); err != nil {
		t.Fatal(err)
	}
	close(stop)
	all.Wait()

	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder holds %v, want the copy alone", entries)
	}
	if info, err := os.Stat(dst); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the copy: %v %v, want a file only we can read", info.Mode(), err)
	}
	restored := testkit.OpenAt(t, dst, notes)
	if n := count(t, restored, "SELECT count(*) FROM note WHERE body = 'before'"); n != 100 {
		t.Errorf("%d of 100 notes are in the copy", n)
	}
	if n := count(t, restored, "SELECT count(*) FROM note WHERE body = 'pair'"); n%2 != 0 {
		t.Errorf("the copy holds half a transaction (%d rows of pairs)", n)
	}
	if err := insert(t.Context(), restored, "goes on"); err != nil {
		t.Error(err)
	}
}

func TestBackup_RefusesToOverwrite(t *testing.T) {
	db := open(t)
	dst := filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(dst, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := db.Backup(t.Context(), dst); !problem.HasCode(err, "file_exists") {
		t.Errorf("Backup over a file = %v, want file_exists", err)
	}
	if got, _ := os.ReadFile(dst); string(got) != "precious" {
		t.Errorf("the file was changed to %.20q", got)
	}
}

func TestBackup_CutShortLeavesNothingUnderItsName(t *testing.T) {
	db, f := openFaulty(t, store.FaultBackup)
	dir := t.TempDir()
	f.armed.Store(true)
	if err := db.Backup(t.Context(), filepath.Join(dir, "copy.db")); !errors.Is(err, errFault) {
		t.Errorf("Backup = %v, want the fault", err)
	}
	f.armed.Store(false)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := db.Backup(ctx, filepath.Join(dir, "copy.db")); !errors.Is(err, context.Canceled) {
		t.Errorf("Backup with an ended context = %v", err)
	}
	if err := db.Backup(t.Context(), filepath.Join(dir, "missing", "copy.db")); err == nil {
		t.Error("Backup into a missing folder succeeded")
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("left behind: %v", entries)
	}
}
