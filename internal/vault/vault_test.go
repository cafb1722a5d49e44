package vault_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"countersign/internal/canon"
	"countersign/internal/id"
	"countersign/internal/problem"
	"countersign/internal/sealed"
	"countersign/internal/store"
	"countersign/internal/testkit"
	"countersign/internal/vault"
)

const (
	tenant = "default"
	runA   = id.Run("run_a")
	runB   = id.Run("run_b")
	canary = "DE89-3704-0044-CANARY"
)

type fixture struct {
	t    *testing.T
	dir  string
	path string
	db   *store.DB
	v    *vault.Vault
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, dir: t.TempDir()}
	f.path = filepath.Join(f.dir, "v.db")
	f.db = testkit.OpenAt(t, f.path, vault.Migrations)
	f.v = f.open()
	return f
}

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) open() *vault.Vault {
	f.t.Helper()
	v, err := vault.Open(f.t.Context(), f.db, f.dir)
	f.must(err)
	return v
}

func (f *fixture) box(run id.Run) (b *vault.Box) {
	f.t.Helper()
	f.must(f.db.View(f.t.Context(), func(ctx context.Context, q store.Querier) (err error) {
		b, err = f.v.Box(ctx, q, tenant, run)
		return err
	}))
	return b
}

// keep seals a document of the run and saves it.
func (f *fixture) keep(run id.Run, doc string, pointers ...string) json.RawMessage {
	f.t.Helper()
	b := f.box(run)
	out, err := b.Seal(json.RawMessage(doc), pointers)
	f.must(err)
	f.must(f.db.Update(f.t.Context(), b.Save))
	b.Saved()
	return out
}

func (f *fixture) opened(run id.Run, doc json.RawMessage) (out json.RawMessage, err error) {
	b := f.box(run)
	err = f.db.View(f.t.Context(), func(ctx context.Context, q store.Querier) (err error) {
		out, err = b.Open(ctx, q, doc)
		return err
	})
	return out, err
}

func TestSeal_OpensAgainAfterARestartAndStaysOutOfTheDatabase(t *testing.T) {
	f := newFixture(t)
	given := `{"card":"` + canary + `","list":[{"pin":7},{"pin":8}],"name":"Ana","none":null}`
	doc := f.keep(runA, given, "/card", "/list/-/pin", "/none", "/missing")
	if strings.Contains(string(doc), canary) || strings.Count(string(doc), sealed.Mark) != 3 || !strings.Contains(string(doc), `"none":null`) {
		t.Fatalf("sealed: %s", doc)
	}
	if onDisk := testkit.Bytes(t, f.path); strings.Contains(onDisk, canary) {
		t.Error("the value stands in the database")
	}
	f.v = f.open()
	if got, err := f.opened(runA, doc); err != nil || string(got) != given {
		t.Errorf("opened: %s, %v", got, err)
	}
	again := f.keep(runA, string(doc), "/card")
	if string(again) != string(doc) {
		t.Errorf("sealing what is sealed changed it: %s", again)
	}
}

func TestSeal_EqualValuesAreEqualInOneRunOnly(t *testing.T) {
	f := newFixture(t)
	first, second := f.keep(runA, `{"x":"1234"}`, "/x"), f.keep(runA, `{"x":"1234"}`, "/x")
	other := f.keep(runB, `{"x":"1234"}`, "/x")
	if string(first) != string(second) || string(first) == string(other) {
		t.Errorf("commitments: %s, %s, other run %s", first, second, other)
	}
	if _, err := f.opened(runB, first); !errors.Is(err, vault.ErrGone) {
		t.Errorf("another run opened it: %v", err)
	}
}

func TestSave_AfterARollbackWritesAgain(t *testing.T) {
	f := newFixture(t)
	b := f.box(runA)
	doc, err := b.Seal(json.RawMessage(`{"x":"`+canary+`"}`), []string{"/x"})
	f.must(err)
	boom := errors.New("boom")
	err = f.db.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error { return errors.Join(b.Save(ctx, tx), boom) })
	if !errors.Is(err, boom) {
		t.Fatal(err)
	}
	f.must(f.db.Update(t.Context(), b.Save))
	if got, err := f.opened(runA, doc); err != nil || !strings.Contains(string(got), canary) {
		t.Errorf("opened: %s, %v", got, err)
	}
}

func TestSave_OfTwoThatMakeARunsKeyOneConflicts(t *testing.T) {
	f := newFixture(t)
	a, b := f.box(runA), f.box(runA)
	for _, x := range []*vault.Box{a, b} {
		_, err := x.Seal(json.RawMessage(`{"x":1}`), []string{"/x"})
		f.must(err)
	}
	f.must(f.db.Update(t.Context(), a.Save))
	if err := f.db.Update(t.Context(), b.Save); !errors.Is(err, store.ErrConflict) {
		t.Errorf("the second Save = %v, want a conflict", err)
	}
}

func TestValue_AlteredInTheDatabase_IsNeverBelieved(t *testing.T) {
	for name, change := range map[string]string{
		"a byte of the value": `UPDATE sealed_value SET ciphertext = ` + testkit.OtherByte("ciphertext", 21),
		"another's value":     `UPDATE sealed_value SET ciphertext = (SELECT ciphertext FROM sealed_value o WHERE o.commitment <> sealed_value.commitment)`,
		"cut":                 `UPDATE sealed_value SET ciphertext = x'00'`,
		"the run's key":       `UPDATE data_key SET wrapped = ` + testkit.OtherByte("wrapped", 21),
		"the tenant's key":    `UPDATE tenant_key SET wrapped = ` + testkit.OtherByte("wrapped", 21),
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			doc := f.keep(runA, `{"x":"one","y":"two"}`, "/x", "/y")
			f.must(f.db.Close())
			testkit.Outsider(t, f.path, change)
			f.db = testkit.OpenAt(t, f.path, vault.Migrations)
			f.v = f.open()
			err := f.db.View(t.Context(), func(ctx context.Context, q store.Querier) error {
				b, err := f.v.Box(ctx, q, tenant, runA)
				if err == nil {
					_, err = b.Open(ctx, q, doc)
				}
				return err
			})
			if !errors.Is(err, vault.ErrAltered) {
				t.Errorf("Open = %v, want altered", err)
			}
		})
	}
}

func TestValue_OnceItsRunsKeyIsGone_IsGone(t *testing.T) {
	f := newFixture(t)
	doc := f.keep(runA, `{"x":"one"}`, "/x")
	f.must(f.db.Close())
	testkit.Outsider(t, f.path, "DELETE FROM sealed_value", "DELETE FROM data_key")
	f.db = testkit.OpenAt(t, f.path, vault.Migrations)
	f.v = f.open()
	if _, err := f.opened(runA, doc); !errors.Is(err, vault.ErrGone) {
		t.Errorf("Open = %v, want gone", err)
	}
	if v, _ := canon.Value(doc); len(sealed.Places(v)) != 1 {
		t.Errorf("the document no longer says that there was a value: %s", doc)
	}
}

func TestOpen_WithoutTheRightKeyFile_IsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(path string) error
		code  string
	}{
		"gone":    {os.Remove, "vault_key_missing"},
		"damaged": {func(p string) error { return os.WriteFile(p, []byte("short\n"), 0o600) }, "vault_key_damaged"},
		"another": {func(p string) error { return os.WriteFile(p, []byte(strings.Repeat("ab", 32)+"\n"), 0o600) }, "vault_key_mismatch"},
	} {
		f := newFixture(t)
		f.keep(runA, `{"x":"one"}`, "/x")
		f.must(c.spoil(filepath.Join(f.dir, vault.KeyFile)))
		if _, err := vault.Open(t.Context(), f.db, f.dir); !problem.HasCode(err, c.code) {
			t.Errorf("%s: Open = %v, want %s", name, err, c.code)
		}
	}
}

func TestOpen_TheKeyIsReadableByItsOwnerAlone(t *testing.T) {
	f := newFixture(t)
	info, err := os.Stat(filepath.Join(f.dir, vault.KeyFile))
	f.must(err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode = %o, want 600", info.Mode().Perm())
	}
}

func TestEqual_IsTheSameForTheSameBytesOfOneTenant(t *testing.T) {
	f := newFixture(t)
	x := f.v.Equal(tenant, []byte("x"))
	if x != f.open().Equal(tenant, []byte("x")) || x == f.v.Equal(tenant, []byte("y")) || x == f.v.Equal("other", []byte("x")) {
		t.Error("Equal does not tell what is the same")
	}
}

func (f *fixture) erase(run id.Run) (n int64) {
	f.t.Helper()
	f.must(f.v.Intend(tenant, run))
	f.must(f.db.Update(f.t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		n, err = f.v.Erase(ctx, tx, tenant, run)
		return err
	}))
	f.must(f.db.Shred(f.t.Context()))
	return n
}

// Not even the ciphertext or the wrapped key is left on disk, in the file or
// in its log; another run's values are.
func TestErase_LeavesNothingOnDisk(t *testing.T) {
	f := newFixture(t)
	a, b := f.keep(runA, `{"x":"`+canary+`","y":"two"}`, "/x", "/y"), f.keep(runB, `{"x":"three"}`, "/x")
	var traces [][]byte
	f.must(f.db.View(t.Context(), func(ctx context.Context, q store.Querier) error {
		rows, err := q.Query(ctx, "SELECT ciphertext FROM sealed_value WHERE run = $1 UNION ALL SELECT wrapped FROM data_key WHERE run = $1", string(runA))
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var b []byte
			if err := rows.Scan(&b); err != nil {
				return err
			}
			traces = append(traces, b)
		}
		return rows.Err()
	}))
	if n := f.erase(runA); n != 2 || len(traces) != 3 {
		t.Fatalf("%d values erased, %d traces known; want 2 and 3", n, len(traces))
	}
	onDisk := testkit.Bytes(t, f.path)
	for i, b := range traces {
		if strings.Contains(onDisk, string(b[:16])) {
			t.Errorf("trace %d is still on disk", i)
		}
	}
	if _, err := f.opened(runA, a); !errors.Is(err, vault.ErrGone) {
		t.Errorf("the erased run: %v, want gone", err)
	}
	if got, err := f.opened(runB, b); err != nil || string(got) != `{"x":"three"}` {
		t.Errorf("the other run: %s, %v", got, err)
	}
}

func TestErase_IsDoneAgainOnADatabaseFromABackup(t *testing.T) {
	f := newFixture(t)
	doc := f.keep(runA, `{"x":"`+canary+`"}`, "/x")
	backup := filepath.Join(f.dir, "backup.db")
	f.must(f.db.Backup(t.Context(), backup))
	f.erase(runA)
	f.must(f.db.Close())
	f.must(os.Rename(backup, f.path))
	f.must(errors.Join(os.RemoveAll(f.path+"-wal"), os.RemoveAll(f.path+"-shm")))
	f.db = testkit.OpenAt(t, f.path, vault.Migrations)
	f.v = f.open()
	if _, err := f.opened(runA, doc); !errors.Is(err, vault.ErrGone) {
		t.Errorf("after putting the backup back: %v, want gone", err)
	}
}

func TestErase_CutOffBeforeItWasDone_IsDoneAtTheNextStart(t *testing.T) {
	f := newFixture(t)
	doc := f.keep(runA, `{"x":"`+canary+`"}`, "/x")
	f.must(f.v.Intend(tenant, runA))
	list := filepath.Join(f.dir, vault.ErasedFile)
	raw, err := os.ReadFile(list)
	f.must(err)
	f.must(os.WriteFile(list, append(raw, "defa"...), 0o600)) // a second one whose line was cut off
	f.v = f.open()
	if _, err := f.opened(runA, doc); !errors.Is(err, vault.ErrGone) {
		t.Errorf("at the next start: %v, want gone", err)
	}
}
