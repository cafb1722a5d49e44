package store_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"countersign/internal/store"
	"countersign/internal/testkit"
)

const (
	first  = "CREATE TABLE thing (id INTEGER NOT NULL PRIMARY KEY, name TEXT NOT NULL) STRICT;"
	second = "ALTER TABLE thing ADD COLUMN size INTEGER NOT NULL DEFAULT 0; INSERT INTO thing (id, name) VALUES (1, 'made by 2');"
	third  = "CREATE INDEX thing_name ON thing (name);"
)

func openThings(t *testing.T, path string, lines ...store.Line) error {
	t.Helper()
	db, err := store.Open(t.Context(), store.Options{Path: path, Lines: lines, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	return db.Close()
}

func TestMigrate_AppliesEachFileOnceAndRecordsIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	for _, files := range [][]string{{first}, {first, second}, {first, second, third}, {first, second, third}} {
		if err := openThings(t, path, line("things", files...)); err != nil {
			t.Fatalf("with %d files: %v", len(files), err)
		}
	}
	db := testkit.OpenAt(t, path, line("things", first, second, third))
	var got []string
	err := db.View(t.Context(), func(ctx context.Context, q store.Querier) error {
		rows, err := q.Query(ctx, "SELECT line, version, name, length(sha256), applied_at > 0 FROM migration ORDER BY line, version")
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var l, name string
			var version, sum int
			var at bool
			if err := rows.Scan(&l, &version, &name, &sum, &at); err != nil {
				return err
			}
			got = append(got, fmt.Sprintf("%s/%d_%s, %d digits, timed %v", l, version, name, sum, at))
		}
		return rows.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"store/1_clock, 64 digits, timed true",
		"things/1_step, 64 digits, timed true", "things/2_step, 64 digits, timed true", "things/3_step, 64 digits, timed true",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("migrations (-want +got):\n%s", diff)
	}
	if n := count(t, db, "SELECT count(*) FROM thing"); n != 1 {
		t.Errorf("the second file ran %d times", n)
	}
}

func TestMigrate_CopiesTheDatabaseBeforeChangingIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	if err := openThings(t, path, line("things", first)); err != nil {
		t.Fatal(err)
	}
	if copies := before(t, path); len(copies) != 0 {
		t.Errorf("a new database was copied: %v", copies)
	}
	if err := openThings(t, path, line("things", first, second)); err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Base(path) + ".before-things-0002"}
	if diff := cmp.Diff(want, before(t, path)); diff != "" {
		t.Fatalf("copies (-want +got):\n%s", diff)
	}
	copied := testkit.OpenAt(t, path+".before-things-0002", line("things", first))
	if n := count(t, copied, "SELECT count(*) FROM pragma_table_info('thing')"); n != 2 {
		t.Errorf("the copy's table has %d columns, want the 2 from before", n)
	}
}

func before(t *testing.T, path string) (names []string) {
	t.Helper()
	found, err := filepath.Glob(path + ".before-*")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		names = append(names, filepath.Base(f))
	}
	return names
}

func TestMigrate_RetriedUpgradesDoNotPileUpCopies(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	if err := openThings(t, path, line("things", first)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := openThings(t, path, line("things", first, "no statement at all")); err == nil || !strings.Contains(err.Error(), "things/0002_step") {
			t.Fatalf("a broken file: Open = %v, want it named", err)
		}
	}
	if n := len(before(t, path)); n != 1 {
		t.Errorf("3 attempts on the same state made %d copies", n)
	}
	db := testkit.OpenAt(t, path, line("things", first))
	if err := db.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO thing VALUES (5, 'since')")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := openThings(t, path, line("things", first, "no statement at all")); err == nil {
		t.Fatal("a broken file was applied")
	}
	if n := len(before(t, path)); n != 2 {
		t.Errorf("after new work there are %d copies, want another one", n)
	}
}

func TestMigrate_Refuses(t *testing.T) {
	cases := map[string]struct {
		had  []string
		line store.Line
		want string
	}{
		"a changed file":           {[]string{first}, line("things", first+" "), "was changed after it was applied"},
		"a gap":                    {nil, files("0001_a.sql", "0003_b.sql"), "where number 0002 belongs"},
		"two of one number":        {nil, files("0001_a.sql", "0001_b.sql"), "where number 0002 belongs"},
		"a start above one":        {nil, files("0002_a.sql"), "where number 0001 belongs"},
		"a strange name":           {nil, files("1_a.sql"), "NNNN_name.sql"},
		"an empty line":            {nil, files("readme.md"), "no migration"},
		"a line without a name":    {nil, store.Line{FS: fstest.MapFS{}, Dir: "."}, "no name"},
		"a name taken":             {nil, line("store", first), "that of another"},
		"its own commit":           {nil, line("things", first+" COMMIT; CREATE TABLE half (a);"), "not allowed here"},
		"its own savepoint":        {nil, line("things", "SAVEPOINT x; "+first), "not allowed here"},
		"a pragma":                 {nil, line("things", "PRAGMA journal_mode=DELETE;"), "not allowed here"},
		"another database":         {nil, line("things", "ATTACH ':memory:' AS x;"), "not allowed here"},
		"a foreign key to nothing": {nil, line("things", "CREATE TABLE p (id INTEGER PRIMARY KEY); CREATE TABLE c (p INTEGER REFERENCES p(id)); INSERT INTO c VALUES (3);"), "points to a missing p"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.db")
			if c.had != nil {
				if err := openThings(t, path, line("things", c.had...)); err != nil {
					t.Fatal(err)
				}
			}
			err := openThings(t, path, c.line)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Open = %v, want %q", err, c.want)
			}
			db := testkit.OpenAt(t, path, line("things", append(c.had, first)[:1]...))
			if n := count(t, db, "SELECT count(*) FROM sqlite_schema WHERE name IN ('half', 'p', 'c')"); n != 0 {
				t.Errorf("the refused file left %d tables", n)
			}
		})
	}
}

func files(names ...string) store.Line {
	m := fstest.MapFS{}
	for _, n := range names {
		m[n] = &fstest.MapFile{Data: []byte("SELECT 1;")}
	}
	return store.Line{Name: "things", FS: m, Dir: "."}
}

func TestMigrate_RefusesADatabaseOfANewerProgramAndSaysWhatToDo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	for _, l := range []store.Line{line("things", first), line("things", first, second)} {
		if err := openThings(t, path, l); err != nil {
			t.Fatal(err)
		}
	}
	err := openThings(t, path, line("things", first))
	if !errors.Is(err, store.ErrNewer) {
		t.Fatalf("Open = %v, want ErrNewer", err)
	}
	for _, want := range []string{"things/0002_step", path + ".before-things-0002", "newer program"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the message lacks %q: %v", want, err)
		}
	}
	if err := openThings(t, path); !errors.Is(err, store.ErrNewer) {
		t.Errorf("Open without the line = %v, want ErrNewer", err)
	}
}

// A table is rebuilt as SQLite advises, although others point to it.
func TestMigrate_MayRebuildATableOthersPointTo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	base := `CREATE TABLE p (id INTEGER NOT NULL PRIMARY KEY) STRICT; CREATE TABLE c (p INTEGER NOT NULL REFERENCES p(id)) STRICT;
		INSERT INTO p VALUES (1); INSERT INTO c VALUES (1);`
	rebuild := `CREATE TABLE p2 (id INTEGER NOT NULL PRIMARY KEY, name TEXT) STRICT; INSERT INTO p2 (id) SELECT id FROM p; DROP TABLE p; ALTER TABLE p2 RENAME TO p;`
	for _, l := range []store.Line{line("x", base), line("x", base, rebuild)} {
		if err := openThings(t, path, l); err != nil {
			t.Fatal(err)
		}
	}
	db := testkit.OpenAt(t, path, line("x", base, rebuild))
	err := db.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO c VALUES (2)")
		return err
	})
	if err == nil {
		t.Error("foreign keys are off after the migration")
	}
}

// Both halves of every stage: it failed, and it was done but nobody heard.
func TestMigrate_AFaultAtAnyStageLeavesWholeMigrations(t *testing.T) {
	for _, stage := range []string{"begin", "applied", "recorded", "committed"} {
		t.Run(stage, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.db")
			if err := openThings(t, path, line("things", first)); err != nil {
				t.Fatal(err)
			}
			all := []store.Line{line("things", first, second, third)}
			_, err := store.Open(t.Context(), store.Options{Path: path, Lines: all, Logger: slog.New(slog.DiscardHandler), Fault: func(point string) error {
				if point == "migrate:things:0002:"+stage {
					return errFault
				}
				return nil
			}})
			if !errors.Is(err, errFault) {
				t.Fatalf("Open = %v, want the fault", err)
			}
			db := testkit.OpenAt(t, path, all...)
			if n := count(t, db, "SELECT count(*) FROM thing"); n != 1 {
				t.Errorf("the second migration ran %d times", n)
			}
		})
	}
}

func TestMigrate_KeepsACopyOnlyUnderItsName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	if err := openThings(t, path, line("things", first)); err != nil {
		t.Fatal(err)
	}
	_, err := store.Open(t.Context(), store.Options{Path: path, Lines: []store.Line{line("things", first, second)}, Logger: slog.New(slog.DiscardHandler), Fault: func(point string) error {
		if point == store.FaultBackup {
			return errFault
		}
		return nil
	}})
	if !errors.Is(err, errFault) {
		t.Fatalf("Open = %v, want the fault", err)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.Contains(e.Name(), "before") {
			t.Errorf("an unfinished copy is left: %s", e.Name())
		}
	}
	db := testkit.OpenAt(t, path, line("things", first))
	if n := count(t, db, "SELECT count(*) FROM thing"); n != 0 {
		t.Error("the database was migrated although the copy failed")
	}
}
