package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"countersign/internal/problem"
	"countersign/internal/store"
)

// Two holders of one folder (case E13).
func TestFolder_HasOneHolderAtATime(t *testing.T) {
	dir := t.TempDir()
	one, err := store.AcquireFolder(dir, "serve on :8080")
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.AcquireFolder(dir, "serve on :9090")
	held, ok := errors.AsType[*store.HeldError](err)
	if !ok || held.Holder != "serve on :8080" || held.PID != os.Getpid() || held.Since.IsZero() {
		t.Fatalf("second holder = %v, want a HeldError that names the first", err)
	}
	if p := problem.From(err); p.Code != "folder_held" || !strings.Contains(p.Message, "serve on :8080") {
		t.Errorf("as a problem: %v", p)
	}
	if err := errors.Join(one.Release(), one.Release()); err != nil {
		t.Errorf("Release twice = %v", err)
	}
	two, err := store.AcquireFolder(dir, "serve on :9090")
	if err != nil {
		t.Fatal(err)
	}
	defer two.Release()
	if one.Epoch() != 1 || two.Epoch() != 2 {
		t.Errorf("epochs %d and %d, want 1 and 2", one.Epoch(), two.Epoch())
	}
}

func TestFolder_RefusesADamagedEpoch(t *testing.T) {
	for _, content := range []string{"", "x", "0", "-3", "1.5"} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "epoch"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := store.AcquireFolder(dir, "x"); err == nil || !strings.Contains(err.Error(), "epoch") {
			t.Errorf("epoch %q: AcquireFolder = %v, want it refused", content, err)
		}
		if err := os.WriteFile(filepath.Join(dir, "epoch"), []byte("41\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := store.AcquireFolder(dir, "x")
		if err != nil || l.Epoch() != 42 {
			t.Fatalf("after repair: %v", err)
		}
		if err := l.Release(); err != nil {
			t.Error(err)
		}
	}
	if _, err := store.AcquireFolder(filepath.Join(t.TempDir(), "missing"), "x"); err == nil {
		t.Error("a missing folder was locked")
	}
}
