package store_test

import (
	"context"
	"fmt"
	"io/fs"
	"testing"
	"testing/fstest"
	"time"

	"countersign/internal/store"
	"countersign/internal/testkit"
)

// notes is a line with one table per kind of thing the tests need.
var notes = line("notes", `
CREATE TABLE note (id INTEGER NOT NULL PRIMARY KEY, body TEXT NOT NULL) STRICT;
CREATE TABLE folder (id INTEGER NOT NULL PRIMARY KEY) STRICT;
CREATE TABLE page (id INTEGER NOT NULL PRIMARY KEY, folder INTEGER NOT NULL REFERENCES folder(id) DEFERRABLE INITIALLY DEFERRED) STRICT;
CREATE TABLE secret (id INTEGER NOT NULL PRIMARY KEY, note INTEGER) STRICT;
CREATE TABLE letter (id INTEGER NOT NULL PRIMARY KEY, secret INTEGER REFERENCES secret(id) ON DELETE CASCADE) STRICT;
CREATE TRIGGER letter_secret AFTER INSERT ON letter WHEN new.secret IS NULL BEGIN INSERT INTO secret (note) VALUES (new.id); END;
`)

func line(name string, files ...string) store.Line {
	m := fstest.MapFS{}
	for i, text := range files {
		m[fmt.Sprintf("%04d_step.sql", i+1)] = &fstest.MapFile{Data: []byte(text)}
	}
	return store.Line{Name: name, FS: fs.FS(m), Dir: ".", Guarded: []string{"secret"}}
}

// open opens a store whose groups end when nobody waits, however slow the
// machine is: who is in a group with whom is then the test's to say.
func open(t testing.TB, change ...func(*store.Options)) *store.DB {
	t.Helper()
	o := store.Options{Lines: []store.Line{notes}, MaxWork: time.Hour}
	for _, c := range change {
		c(&o)
	}
	return testkit.OpenWith(t, o)
}

func put(ctx context.Context, tx *store.Tx, body string) error {
	_, err := tx.Exec(ctx, "INSERT INTO note (body) VALUES ($1)", body)
	return err
}

// insert is an Update that writes one note.
func insert(ctx context.Context, db *store.DB, body string) error {
	return db.Update(ctx, func(ctx context.Context, tx *store.Tx) error { return put(ctx, tx, body) })
}

func count(t testing.TB, db *store.DB, query string, args ...any) (n int) {
	t.Helper()
	err := db.View(t.Context(), func(ctx context.Context, q store.Querier) error {
		return q.QueryRow(ctx, query, args...).Scan(&n)
	})
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

func wantNotes(t testing.TB, db *store.DB, want int) {
	t.Helper()
	if got := count(t, db, "SELECT count(*) FROM note"); got != want {
		t.Errorf("%d notes in the database, want %d", got, want)
	}
}

// hold occupies the writer until the returned function is called. What waits
// by then may or may not share its group.
func hold(t testing.TB, db *store.DB) (release func()) {
	t.Helper()
	started, end, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		_ = db.Update(context.Background(), func(context.Context, *store.Tx) error {
			close(started)
			<-end
			return nil
		})
	}()
	<-started
	return func() { close(end); <-done }
}

// eventually waits for a condition the clock or another goroutine brings about.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("it never came to be that %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// queued submits n updates in order behind a held writer and returns their results.
func queued(t testing.TB, db *store.DB, fns ...func(ctx context.Context, tx *store.Tx) error) func() []error {
	t.Helper()
	results := make([]chan error, len(fns))
	for i, fn := range fns {
		before := db.Stats().Queue
		results[i] = make(chan error, 1)
		go func() { results[i] <- db.Update(context.Background(), fn) }()
		eventually(t, "the update is queued", func() bool { return db.Stats().Queue == before+1 })
	}
	return func() (errs []error) {
		for _, r := range results {
			errs = append(errs, <-r)
		}
		return errs
	}
}

// firstOnly is a line as it was when it had one migration.
type firstOnly struct{ fs.FS }

// ReadDir lists the first file alone.
func (f firstOnly) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(f.FS, name)
	return entries[:min(1, len(entries))], err
}
