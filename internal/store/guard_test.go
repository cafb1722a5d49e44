package store_test

import (
	"context"
	"errors"
	"testing"

	"countersign/internal/store"
)

// The database itself says what a statement changes, so the guard cannot be
// passed by the shape of the text.
func TestGuard_RefusesEveryWayToChangeAGuardedTableUnaudited(t *testing.T) {
	ways := map[string]string{
		"insert":       "INSERT INTO secret (note) VALUES (1)",
		"update":       "UPDATE secret SET note = 2",
		"delete":       "DELETE FROM secret",
		"quoted":       `insert into "secret" (note) values (1)`,
		"schema":       "INSERT INTO main.secret (note) VALUES (1)",
		"comment":      "/* INSERT INTO note */ INSERT INTO secret (note) VALUES (1)",
		"with":         "WITH n AS (SELECT 1 AS x) INSERT INTO secret (note) SELECT x FROM n",
		"replace":      "REPLACE INTO secret (id, note) VALUES (1, 2)",
		"upsert":       "INSERT INTO secret (id, note) VALUES (1, 2) ON CONFLICT (id) DO UPDATE SET note = 3",
		"trigger":      "INSERT INTO letter (id) VALUES (9)",
		"two at once":  "INSERT INTO note (body) VALUES ('x'); INSERT INTO secret (note) VALUES (1)",
		"no row found": "UPDATE secret SET note = 2 WHERE id = -1",
	}
	db := open(t)
	for name, text := range ways {
		t.Run(name, func(t *testing.T) {
			change := func(ctx context.Context, tx *store.Tx) error { _, err := tx.Exec(ctx, text); return err }
			for range 2 { // the second time the statement comes from the cache
				if err := db.Update(t.Context(), change); !errors.Is(err, store.ErrUnaudited) {
					t.Errorf("unaudited: Update = %v, want ErrUnaudited", err)
				}
			}
			err := db.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				tx.Audited()
				return errors.Join(change(ctx, tx), errOwn)
			})
			if !errors.Is(err, errOwn) || errors.Is(err, store.ErrUnaudited) {
				t.Errorf("audited: Update = %v, want only the function's own error", err)
			}
		})
	}
	if n := count(t, db, "SELECT count(*) FROM secret"); n != 0 {
		t.Errorf("%d rows were written unaudited", n)
	}
	wantNotes(t, db, 0)
}

func TestGuard_SeesCascadesAndReturning(t *testing.T) {
	db := open(t)
	err := db.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		var id int
		return tx.QueryRow(ctx, "INSERT INTO secret (note) VALUES (1) RETURNING id").Scan(&id)
	})
	if !errors.Is(err, store.ErrUnaudited) {
		t.Errorf("RETURNING: Update = %v, want ErrUnaudited", err)
	}
	db = open(t, func(o *store.Options) { o.Lines = []store.Line{cascading} })
	err = db.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, "DELETE FROM parent")
		return err
	})
	if !errors.Is(err, store.ErrUnaudited) {
		t.Errorf("cascade: Update = %v, want ErrUnaudited", err)
	}
}

var cascading = line("cascading", `
CREATE TABLE parent (id INTEGER NOT NULL PRIMARY KEY) STRICT;
CREATE TABLE secret (id INTEGER NOT NULL PRIMARY KEY REFERENCES parent(id) ON DELETE CASCADE) STRICT;
INSERT INTO parent VALUES (1); INSERT INTO secret VALUES (1);`)

func TestGuard_LetsReadersAndUnguardedWritersPass(t *testing.T) {
	db := open(t)
	err := db.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		var n int
		return errors.Join(put(ctx, tx, "n"), tx.QueryRow(ctx, "SELECT count(*) FROM secret").Scan(&n))
	})
	if err != nil {
		t.Error(err)
	}
	err = db.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO secret (note) VALUES (1)")
		tx.Audited()
		return err
	})
	if err != nil {
		t.Errorf("audited: %v", err)
	}
}
