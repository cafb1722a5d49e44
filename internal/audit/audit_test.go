package audit_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"countersign/internal/audit"
	"countersign/internal/id"
	"countersign/internal/problem"
	"countersign/internal/store"
	"countersign/internal/testkit"
)

type fixture struct {
	*audit.Log
	db   *store.DB
	path string
	dir  string
}

func open(t *testing.T) fixture {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "test.db")
	db := testkit.OpenAt(t, path, audit.Migrations)
	l, err := audit.Open(t.Context(), db, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return fixture{l, db, path, dir}
}

func (f fixture) add(t *testing.T, tenant string, n int) []id.Entry {
	t.Helper()
	var ids []id.Entry
	for i := range n {
		ids = append(ids, f.append(t, audit.Entry{Tenant: tenant, Action: "run.started", Subject: fmt.Sprint("s", i), Digest: "sha256:0", Payload: json.RawMessage(`{"n":1}`),
			Actor: audit.Actor{Kind: "person", ID: "usr_a", Name: "Ana"}}))
	}
	return ids
}

func (f fixture) append(t *testing.T, e audit.Entry) (out id.Entry) {
	t.Helper()
	err := f.db.Update(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		out, err = f.Append(ctx, tx, e)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// sql runs statements as somebody with the database file would.
func (f fixture) sql(t *testing.T, statements ...string) {
	t.Helper()
	testkit.Outsider(t, f.path, statements...)
}

func (f fixture) verify(t *testing.T, heads map[string]string) audit.Report {
	t.Helper()
	r, err := f.Verify(t.Context(), heads)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// entries returns how many entries the report found of a tenant.
func entries(r audit.Report, tenant string) int64 {
	for _, t := range r.Tenants {
		if t.Tenant == tenant {
			return t.Entries
		}
	}
	return 0
}

func TestAppend_HundredAtOnceAreOneLine(t *testing.T) {
	f := open(t)
	var wait sync.WaitGroup
	for range 100 {
		wait.Go(func() { f.add(t, "default", 1) })
	}
	wait.Wait()
	r := f.verify(t, nil)
	if !r.OK || entries(r, "default") != 100 {
		t.Errorf("report = %+v; want 100 entries in one good line", r)
	}
}

func TestAppend_RollsBackWithItsTransaction(t *testing.T) {
	f := open(t)
	f.add(t, "default", 1)
	want := errors.New("no")
	err := f.db.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		if _, err := f.Append(ctx, tx, audit.Entry{Tenant: "default", Action: "x"}); err != nil {
			return err
		}
		return want
	})
	if !errors.Is(err, want) {
		t.Fatalf("Update = %v, want %v", err, want)
	}
	f.add(t, "default", 1)
	if r := f.verify(t, nil); !r.OK || entries(r, "default") != 2 {
		t.Errorf("report = %+v; want two entries without a gap", r)
	}
}

func TestVerify_NoticesEveryTampering(t *testing.T) {
	cases := map[string][]string{
		"a byte of a body":     {`UPDATE audit_entry SET body = replace(body, 'Ana', 'Ann') WHERE seq = 3`},
		"a body and its leaf":  {`UPDATE audit_entry SET body = (SELECT body FROM audit_entry WHERE seq = 2), leaf = (SELECT leaf FROM audit_entry WHERE seq = 2) WHERE seq = 3`},
		"an entry is gone":     {`DELETE FROM audit_entry WHERE seq = 3`},
		"two are swapped":      {`UPDATE audit_entry SET seq = 99 WHERE seq = 2`, `UPDATE audit_entry SET seq = 2 WHERE seq = 3`, `UPDATE audit_entry SET seq = 3 WHERE seq = 99`},
		"the tail is cut":      {`DELETE FROM audit_entry WHERE seq >= 6`},
		"a node":               {`UPDATE audit_node SET hash = zeroblob(32) WHERE idx = 4`},
		"a node is gone":       {`DELETE FROM audit_node WHERE idx = (SELECT MAX(idx) FROM audit_node)`},
		"a head":               {`UPDATE audit_head SET note = replace(note, 'default', 'defaulT') WHERE size = 4`},
		"a head of elsewhere":  {`UPDATE audit_head SET note = (SELECT note FROM audit_head WHERE size = 5) WHERE size = 4`},
		"the last head":        {`DELETE FROM audit_head WHERE size = 8`},
		"the length":           {`UPDATE audit_log SET size = 9 WHERE tenant = 'default'`},
		"the row of the log":   {`DELETE FROM audit_log WHERE tenant = 'default'`},
		"a payload is gone":    {`DELETE FROM audit_payload WHERE seq = 1`},
		"a payload":            {`UPDATE audit_payload SET payload = '{"n":2}' WHERE seq = 1`},
		"an entry without one": {`INSERT INTO audit_entry SELECT tenant, 8, 'ent_x', body, leaf, at, actor, action, subject, run FROM audit_entry WHERE seq = 7`},
	}
	for name, statements := range cases {
		t.Run(name, func(t *testing.T) {
			f := open(t)
			f.add(t, "default", 8)
			if r := f.verify(t, nil); !r.OK {
				t.Fatalf("before: %+v", r)
			}
			f.sql(t, statements...)
			if r := f.verify(t, nil); r.OK || len(r.Findings) == 0 {
				t.Errorf("after %v: %+v; want a finding", statements, r)
			}
		})
	}
}

func TestVerify_ACutTailIsNoticedByTheCopiedHead(t *testing.T) {
	f := open(t)
	f.add(t, "default", 8)
	f.Close() // writes the copy
	f.sql(t, `DELETE FROM audit_entry WHERE seq >= 6`, `DELETE FROM audit_head WHERE size > 6`,
		`DELETE FROM audit_payload WHERE seq >= 6`, `UPDATE audit_log SET size = 6, sealed = 6 WHERE tenant = 'default'`,
		`DELETE FROM audit_node WHERE idx >= 10`) // a log of six entries has ten nodes
	if r := f.verify(t, nil); !r.OK {
		t.Fatalf("the cut itself is not clean: %+v", r.Findings)
	}
	for range 2 { // whoever opens and closes the log again does not wipe the evidence
		r, err := f.VerifyFolder(t.Context())
		if err != nil || r.OK || !strings.Contains(r.Findings[0].What, "cut off") {
			t.Errorf("VerifyFolder = %+v, %v; want the cut noticed", r, err)
		}
		again, err := audit.Open(t.Context(), f.db, f.dir)
		if err != nil {
			t.Fatal(err)
		}
		again.Close()
	}
}

func TestVerify_AWholeTenantCannotVanish(t *testing.T) {
	f := open(t)
	f.add(t, "default", 3)
	f.add(t, "", 2)
	f.Close()
	f.sql(t, `DELETE FROM audit_entry WHERE tenant = ''`, `DELETE FROM audit_head WHERE tenant = ''`, `DELETE FROM audit_node WHERE tenant = ''`,
		`DELETE FROM audit_payload WHERE tenant = ''`, `DELETE FROM audit_log WHERE tenant = ''`)
	if r, err := f.VerifyFolder(t.Context()); err != nil || r.OK {
		t.Errorf("VerifyFolder = %+v, %v; want the missing log noticed", r, err)
	}
}

func TestProven_RefusesWhatTheLogDoesNotHold(t *testing.T) {
	f := open(t)
	ids := f.add(t, "default", 5)
	proven := func(e id.Entry) (audit.Entry, error) {
		var out audit.Entry
		err := f.db.View(t.Context(), func(ctx context.Context, q store.Querier) (err error) {
			out, err = f.Proven(ctx, q, "default", e)
			return err
		})
		return out, err
	}
	if e, err := proven(ids[2]); err != nil || e.Subject != "s2" {
		t.Fatalf("Proven = %+v, %v", e, err)
	}
	if _, err := proven("ent_none"); !problem.HasCode(err, "not_found") {
		t.Errorf("unknown entry: %v, want not_found", err)
	}
	f.sql(t, `UPDATE audit_entry SET body = replace(body, 'Ana', 'Ben') WHERE seq = 2`)
	if e, err := proven(ids[2]); err == nil {
		t.Errorf("a changed entry is proven: %+v", e)
	}
	f.sql(t, `UPDATE audit_entry SET id = 'ent_swap' WHERE seq = 3`, fmt.Sprintf(`UPDATE audit_entry SET id = '%s' WHERE seq = 4`, ids[3]))
	if e, err := proven(ids[3]); err == nil {
		t.Errorf("an entry under another's id is proven: %+v", e)
	}
}

func TestProven_NeedsAHeadSignedByTheKeyFile(t *testing.T) {
	f := open(t)
	ids := f.add(t, "default", 2)
	other := open(t)
	other.add(t, "default", 2)
	var forged string
	if err := other.db.View(t.Context(), func(ctx context.Context, q store.Querier) (err error) {
		_, forged, err = other.Head(ctx, q, "default")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	f.sql(t, fmt.Sprintf(`UPDATE audit_head SET note = '%s' WHERE size = 2`, forged))
	err := f.db.View(t.Context(), func(ctx context.Context, q store.Querier) error {
		_, err := f.Proven(ctx, q, "default", ids[0])
		return err
	})
	if err == nil {
		t.Error("an entry is proven by a head of another key")
	}
}

func TestProven_AnEntryOfThisTransactionIsNotSealedYet(t *testing.T) {
	f := open(t)
	f.add(t, "default", 2)
	err := f.db.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		e, err := f.Append(ctx, tx, audit.Entry{Tenant: "default", Action: "x"})
		if err != nil {
			return err
		}
		if _, err := f.Proven(ctx, tx, "default", e); !errors.Is(err, audit.ErrNotYetSealed) {
			t.Errorf("Proven = %v, want ErrNotYetSealed", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestOpen_RefusesALogWithoutItsKey(t *testing.T) {
	f := open(t)
	f.add(t, "default", 1)
	if err := os.Remove(filepath.Join(f.dir, audit.KeyFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := audit.Open(t.Context(), f.db, f.dir); !problem.HasCode(err, "audit_key_missing") {
		t.Errorf("Open = %v, want audit_key_missing", err)
	}
	if _, err := os.Stat(filepath.Join(f.dir, audit.KeyFile)); err == nil {
		t.Error("a new key was made in place of the lost one")
	}
}

func TestOpen_TheKeyIsReadableByItsOwnerAlone(t *testing.T) {
	f := open(t)
	info, err := os.Stat(filepath.Join(f.dir, audit.KeyFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
}

func TestEntries_PagesAndFilters(t *testing.T) {
	f := open(t)
	f.add(t, "default", 7)
	f.append(t, audit.Entry{Tenant: "default", Action: "approval.approve", Subject: "apr_1", Run: "run_1", Actor: audit.Actor{ID: "usr_b", Name: "100% Ben"}})
	list := func(fl audit.Filter) (subjects []string) {
		fl.Tenant = "default"
		for {
			var page []audit.Entry
			if err := f.db.View(t.Context(), func(ctx context.Context, q store.Querier) (err error) {
				page, fl.Cursor, err = f.Entries(ctx, q, fl)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			for _, e := range page {
				subjects = append(subjects, e.Subject)
			}
			if fl.Cursor == "" {
				return subjects
			}
		}
	}
	if got := list(audit.Filter{Limit: 3}); strings.Join(got, " ") != "apr_1 s6 s5 s4 s3 s2 s1 s0" {
		t.Errorf("all, three at a time: %v", got)
	}
	if got := list(audit.Filter{Limit: 3, OldestFirst: true}); strings.Join(got, " ") != "s0 s1 s2 s3 s4 s5 s6 apr_1" {
		t.Errorf("oldest first: %v", got)
	}
	for name, fl := range map[string]audit.Filter{"actor": {Actor: "usr_b"}, "action": {Action: "approval.approve"}, "run": {Run: "run_1"}, "subject": {Subject: "apr_1"}, "text": {Text: "100% B"}} {
		if got := list(fl); len(got) != 1 || got[0] != "apr_1" {
			t.Errorf("by %s: %v, want apr_1", name, got)
		}
	}
	if got := list(audit.Filter{Text: "1_0"}); len(got) != 0 {
		t.Errorf("an underscore matches any character: %v", got)
	}
}

func TestExportCSV_IsSafeInASpreadsheet(t *testing.T) {
	f := open(t)
	for _, name := range []string{`=HYPERLINK("http://evil.example")`, "+1", "-1", "@x", "\tx", "a\"b\nc"} {
		f.append(t, audit.Entry{Tenant: "default", Action: "x", Actor: audit.Actor{Name: name}})
	}
	var csvOut, jsonOut bytes.Buffer
	if err := errors.Join(f.ExportCSV(t.Context(), "default", &csvOut), f.ExportJSON(t.Context(), "default", &jsonOut)); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&csvOut).ReadAll()
	if err != nil || len(rows) != 7 {
		t.Fatalf("%d rows, %v; want 7", len(rows), err)
	}
	for _, row := range rows {
		for _, cell := range row {
			if cell != "" && strings.ContainsRune("=+-@\t\r\n", rune(cell[0])) {
				t.Errorf("the cell %q would run", cell)
			}
		}
	}
	if !strings.Contains(jsonOut.String(), `=HYPERLINK(\"http://evil.example\")`) {
		t.Error("the JSON export changed a value")
	}
}
