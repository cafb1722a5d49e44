package store_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"countersign/internal/store"
)

type named string

func TestExec_StoresJSONAsTextAndTypesByTheirKind(t *testing.T) {
	db := open(t)
	want := []string{"text", "integer", "integer", "real", "text", "text", "null", "null", "blob"}
	args := []any{"a", 7, true, 1.5, named("id"), json.RawMessage(`{"a":1}`), json.RawMessage(nil), nil, []byte{0}}
	var fromExec, fromQuery []string
	err := db.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		for _, a := range args {
			var kind string
			if err := tx.QueryRow(ctx, "SELECT typeof($1)", a).Scan(&kind); err != nil {
				return err
			}
			fromQuery = append(fromQuery, kind)
			if _, err := tx.Exec(ctx, "INSERT INTO note (body) VALUES (typeof($1))", a); err != nil {
				return err
			}
		}
		rows, err := tx.Query(ctx, "SELECT body FROM note ORDER BY id")
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var kind string
			if err := rows.Scan(&kind); err != nil {
				return err
			}
			fromExec = append(fromExec, kind)
		}
		return rows.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, fromQuery); diff != "" {
		t.Errorf("Query binds (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, fromExec); diff != "" {
		t.Errorf("Exec binds (-want +got):\n%s", diff)
	}
}

func TestScan_JSONAndNamedTypesComeBack(t *testing.T) {
	db := open(t)
	err := db.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		var raw json.RawMessage
		var id named
		if err := tx.QueryRow(ctx, `SELECT $1, 'run_1'`, json.RawMessage(`{"a":1}`)).Scan(&raw, &id); err != nil {
			return err
		}
		if string(raw) != `{"a":1}` || id != "run_1" {
			t.Errorf("read %q and %q", raw, id)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
