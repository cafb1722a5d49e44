package audit_test

import (
	"context"
	"fmt"
	"testing"

	"countersign/internal/audit"
	"countersign/internal/store"

	"golang.org/x/mod/sumdb/tlog"
)

// next appends one entry as the program does and returns what came of it.
func (f fixture) next(t *testing.T) error {
	t.Helper()
	return f.db.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		_, err := f.Append(ctx, tx, audit.Entry{Tenant: "default", Action: "run.started"})
		return err
	})
}

// body returns the bytes of the entry at seq.
func (f fixture) body(t *testing.T, seq int) (body string) {
	t.Helper()
	err := f.db.View(t.Context(), func(ctx context.Context, q store.Querier) error {
		return q.QueryRow(ctx, `SELECT body FROM audit_entry WHERE tenant = 'default' AND seq = $1`, seq).Scan(&body)
	})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func TestSeal_NeverSignsAnEntryThatTheProgramDidNotAppend(t *testing.T) {
	f := open(t)
	f.add(t, "default", 2)
	forged := `{"action":"approval.approve","id":"ent_forged"}`
	leaf := tlog.RecordHash([]byte(forged))
	f.sql(t, fmt.Sprintf(`INSERT INTO audit_entry (tenant, seq, id, body, leaf, at, actor, action, subject, run) VALUES ('default', 2, 'ent_forged', '%s', x'%x', 0, '', '', '', '')`, forged, leaf[:]),
		`UPDATE audit_log SET size = 3`)
	if err := f.next(t); err == nil {
		t.Error("a head was signed over an entry that somebody else wrote into the database")
	}
}

func TestSeal_NeverSignsOnTopOfATreeThatWasRewritten(t *testing.T) {
	f := open(t)
	f.add(t, "default", 3)
	f.sql(t, `UPDATE audit_entry SET body = replace(body, 'Ana', 'Ben') WHERE seq = 2`)
	leaf := tlog.RecordHash([]byte(f.body(t, 2)))
	f.sql(t, fmt.Sprintf(`UPDATE audit_entry SET leaf = x'%x' WHERE seq = 2`, leaf[:]),
		fmt.Sprintf(`UPDATE audit_node SET hash = x'%x' WHERE idx = %d`, leaf[:], tlog.StoredHashIndex(0, 2)))
	if err := f.next(t); err == nil {
		t.Error("a head was signed over a past that was rewritten")
	}
}
