// Package testkit opens real databases for tests and checks them at the end.
//
// It guarantees that every test which opened a database through it also
// checked its integrity, its foreign keys and whatever checks were added.
// Nothing of the product may import it.
package testkit

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"

	"countersign/internal/store"
)

// Check reads a database at the end of a test and reports what is
// inconsistent in it.
type Check func(ctx context.Context, q store.Querier) error

var (
	mu     sync.Mutex // protects checks
	checks = make(map[string]Check)
)

// Register adds a check that every database of this test binary gets at its
// end. Call it from an init function of a test file. A check must pass on a
// database that lacks its tables; HasTable tells.
func Register(name string, check Check) {
	mu.Lock()
	defer mu.Unlock()
	checks[name] = check
}

// HasTable reports whether the database has the table.
func HasTable(ctx context.Context, q store.Querier, table string) (bool, error) {
	var n int
	err := q.QueryRow(ctx, "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = $1", table).Scan(&n)
	return n > 0, err
}

// Open opens a new database file in the test's folder with the lines. It is
// checked and closed when the test ends; the test may close it earlier.
func Open(t testing.TB, lines ...store.Line) *store.DB {
	t.Helper()
	return OpenWith(t, store.Options{Lines: lines})
}

// OpenAt opens the database at path, new or not, like Open.
func OpenAt(t testing.TB, path string, lines ...store.Line) *store.DB {
	t.Helper()
	return OpenWith(t, store.Options{Path: path, Lines: lines})
}

// OpenWith opens a database with all options said; what is zero gets the
// test's defaults: a path in the test's folder, a log that goes to the test,
// and a fatal error that fails it.
func OpenWith(t testing.TB, o store.Options) *store.DB {
	t.Helper()
	if o.Path == "" {
		o.Path = filepath.Join(t.TempDir(), "test.db")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	if o.OnFatal == nil {
		o.OnFatal = func(err error) { t.Errorf("commit failed with unknown outcome: %v", err) }
	}
	db, err := store.Open(t.Context(), o)
	if err != nil {
		t.Fatalf("open database: %v", err)
	}
	t.Cleanup(func() { closeChecked(t, db, o) })
	return db
}

// AlsoCheck adds a check for this database alone.
func AlsoCheck(t testing.TB, db *store.DB, check Check) {
	t.Helper()
	t.Cleanup(func() {
		if err := db.View(context.Background(), check); err != nil {
			t.Errorf("consistency: %v", err)
		}
	})
}

// closeChecked closes the database, opens it anew without faults, as the next
// start would, and runs all checks on what is on disk.
func closeChecked(t testing.TB, db *store.DB, o store.Options) {
	if err := db.Close(); err != nil {
		t.Errorf("close database: %v", err)
	}
	o.Fault, o.Logger = nil, slog.New(slog.DiscardHandler)
	again, err := store.Open(context.Background(), o)
	if err != nil {
		t.Errorf("open the database again after the test: %v", err)
		return
	}
	defer again.Close()
	if err := again.CheckIntegrity(context.Background()); err != nil {
		t.Errorf("integrity: %v", err)
	}
	for name, check := range registered() {
		if err := again.View(context.Background(), check); err != nil {
			t.Errorf("consistency check %s: %v", name, err)
		}
	}
}

func registered() map[string]Check {
	mu.Lock()
	defer mu.Unlock()
	out := make(map[string]Check, len(checks))
	for name, c := range checks {
		out[name] = c
	}
	return out
}
