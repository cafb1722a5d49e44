package store_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"countersign/internal/store"
	"countersign/internal/testkit"
)

// Settings hold per connection, so each is asked (case E02).
func TestSettings_AreTheSameOnEveryConnection(t *testing.T) {
	want := map[string]string{
		"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "busy_timeout": "5000", "temp_store": "2",
		"trusted_schema": "0", "cell_size_check": "1", "journal_size_limit": "67108864",
	}
	db := open(t)
	asked := map[string]int{}
	store.EveryConnection(db, func(who string, text func(string) (string, error)) {
		asked[who]++
		for name, value := range want {
			if got, err := text("PRAGMA " + name); err != nil || got != value {
				t.Errorf("%s: %s = %q, %v, want %q", who, name, got, err, value)
			}
		}
		if got, _ := text("PRAGMA query_only"); (got == "1") != (who == "reader") {
			t.Errorf("%s: query_only = %s", who, got)
		}
		if _, err := text(`SELECT "nothing"`); err == nil {
			t.Errorf("%s takes double-quoted text for a string", who)
		}
	})
	if asked["writer"] != 1 || asked["reader"] != store.ReaderCount {
		t.Errorf("asked %v, want the writer and %d readers", asked, store.ReaderCount)
	}
}

func TestSettings_ThatDoNotTakeHoldAreAnErrorAtOpen(t *testing.T) {
	worse := map[string]func(dsn string) string{
		"synchronous": func(dsn string) string { return strings.Replace(dsn, "synchronous%28FULL", "synchronous%28NORMAL", 1) },
		"journal":     func(dsn string) string { return strings.Replace(dsn, "journal_mode%28WAL", "journal_mode%28DELETE", 1) },
		"misspelled":  func(dsn string) string { return strings.Replace(dsn, "foreign_keys", "foreign_kees", 1) },
		"plain path":  func(dsn string) string { return strings.TrimPrefix(strings.Split(dsn, "?")[0], "file:") },
		"quirk":       func(dsn string) string { return strings.Replace(dsn, "_dqs=0", "_dqs=1", 1) },
		"defensive":   func(dsn string) string { return strings.Replace(dsn, "_defensive=1", "_defensive=0", 1) },
	}
	for name, w := range worse {
		if err := store.DialWith(filepath.Join(t.TempDir(), "x.db"), w); err == nil {
			t.Errorf("%s: a connection with a setting missing was accepted", name)
		}
	}
	if err := store.DialWith(filepath.Join(t.TempDir(), "x.db"), func(dsn string) string { return dsn }); err != nil {
		t.Errorf("unchanged: %v", err)
	}
}

func TestOpen_TakesAnyFileName(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a folder? with #odd %41 näme & mode=memory")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	db := testkit.OpenAt(t, filepath.Join(dir, "data?.db"), notes)
	if err := insert(t.Context(), db, "n"); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "data?.db"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the file's mode is %v, want only ours", info.Mode())
	}
}

func TestOpen_SaysWhatIsWrongWithTheFile(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text.db")
	if err := os.WriteFile(text, []byte(strings.Repeat("this is no database ", 400)), 0o600); err != nil {
		t.Fatal(err)
	}
	hurt := filepath.Join(dir, "hurt.db")
	damage(t, hurt)
	for name, c := range map[string]struct{ path, want string }{
		"no database": {text, "not a database"},
		"damaged":     {hurt, "damaged"},
		"no folder":   {filepath.Join(dir, "missing", "x.db"), "no such file"},
		"a folder":    {dir, "directory"},
	} {
		db, err := store.Open(t.Context(), store.Options{Path: c.path, Lines: []store.Line{notes}})
		if err == nil {
			db.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: Open = %v, want a message with %q", name, err, c.want)
		}
	}
}

// damage makes a database and overwrites the middle of it.
func damage(t *testing.T, path string) {
	t.Helper()
	db, err := store.Open(t.Context(), store.Options{Path: path, Lines: []store.Line{notes}})
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		if err := insert(t.Context(), db, strings.Repeat("n", 2000)); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := len(content) / 2; i < len(content)/2+8192; i++ {
		content[i] ^= 0x5a
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestStatements_AreKeptUpToALimit(t *testing.T) {
	db := open(t)
	one := func(ctx context.Context, q store.Querier, i int) error {
		var n int
		return q.QueryRow(ctx, fmt.Sprintf("SELECT %d", i)).Scan(&n)
	}
	for i := range store.StatementsMax + 50 {
		err := db.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error { return one(ctx, tx, i) })
		if err != nil {
			t.Fatal(err)
		}
	}
	err := db.View(t.Context(), func(ctx context.Context, q store.Querier) error {
		for i := range store.StatementsMax + 50 {
			if err := one(ctx, q, i); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n, m := store.Prepared(db), store.PreparedByReaders(db); n != store.StatementsMax || m != store.StatementsMax {
		t.Errorf("the writer keeps %d statements, a reader %d, want %d", n, m, store.StatementsMax)
	}
	if err := insert(t.Context(), db, "n"); err != nil {
		t.Error(err)
	}
}

func TestCheckIntegrity_FindsAMissingParent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	db, err := store.Open(t.Context(), store.Options{Path: path, Lines: []store.Line{notes}})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.CheckIntegrity(t.Context()); err != nil {
		t.Errorf("sound: %v", err)
	}
	if err := store.PutOrphan(db); err != nil {
		t.Fatal(err)
	}
	if err := db.CheckIntegrity(t.Context()); err == nil || !strings.Contains(err.Error(), "page row 1 points to a missing folder") {
		t.Errorf("CheckIntegrity = %v, want the row named", err)
	}
}
