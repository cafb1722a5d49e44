package vault_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"countersign/internal/id"
	"countersign/internal/problem"
	"countersign/internal/store"
	"countersign/internal/testkit"
	"countersign/internal/vault"
)

func (f *fixture) rotate(record func() error) (int64, error) {
	return f.v.Rotate(f.t.Context(), f.db, []string{tenant}, func(context.Context, *store.Tx, string, string) error { return record() })
}

func recorded() error { return nil }

func (f *fixture) keyFile() string {
	f.t.Helper()
	raw, err := os.ReadFile(filepath.Join(f.dir, vault.KeyFile))
	f.must(err)
	return string(raw)
}

// wrapped reads every wrapped key, as it stands in the database.
func (f *fixture) wrapped() (all [][]byte) {
	f.t.Helper()
	f.must(f.db.View(f.t.Context(), func(ctx context.Context, q store.Querier) error {
		rows, err := q.Query(ctx, "SELECT wrapped FROM tenant_key UNION ALL SELECT wrapped FROM data_key")
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var b []byte
			if err := rows.Scan(&b); err != nil {
				return err
			}
			all = append(all, b)
		}
		return rows.Err()
	}))
	return all
}

func TestRotate_ValuesOpenWithTheNewFileAlone(t *testing.T) {
	f := newFixture(t)
	doc := f.keep(runA, `{"x":"`+canary+`"}`, "/x")
	old, before := f.keyFile(), f.wrapped()
	runs, err := f.rotate(recorded)
	f.must(err)
	if runs != 1 || f.keyFile() == old {
		t.Fatalf("%d runs moved, file changed %v; want 1 and true", runs, f.keyFile() != old)
	}
	for range 2 { // in this process, and after a restart
		if got, err := f.opened(runA, doc); err != nil || !strings.Contains(string(got), canary) {
			t.Errorf("opened: %s, %v", got, err)
		}
		f.v = f.open()
	}
	f.must(f.db.Shred(t.Context()))
	onDisk := testkit.Bytes(t, f.path)
	for i, b := range before {
		if strings.Contains(onDisk, string(b)) {
			t.Errorf("key %d is still on disk as the old key wrapped it", i)
		}
	}
	if strings.Contains(onDisk, canary) {
		t.Error("the value stands in the database")
	}
	f.must(os.WriteFile(filepath.Join(f.dir, vault.KeyFile), []byte(old), 0o600))
	if _, err := vault.Open(t.Context(), f.db, f.dir); !problem.HasCode(err, "vault_key_mismatch") {
		t.Errorf("with the old file: %v, want vault_key_mismatch", err)
	}
}

func TestRotate_WhatWasGivenBeforeIsStillKnown(t *testing.T) {
	f := newFixture(t)
	first := f.v.Equal(tenant, []byte("x"))
	_, err := f.rotate(recorded) // in a database without sensitive values
	f.must(err)
	second := f.v.Equal(tenant, []byte("x"))
	_, err = f.rotate(recorded)
	f.must(err)
	f.v = f.open()
	for _, hash := range []string{first, second, f.v.Equal(tenant, []byte("x"))} {
		if !f.v.Same(tenant, []byte("x"), hash) || f.v.Same(tenant, []byte("y"), hash) || f.v.Same("other", []byte("x"), hash) {
			t.Errorf("%s is not told apart", hash)
		}
	}
	if first == second {
		t.Error("the key of Equal was not replaced")
	}
}

func TestRotate_ThatIsNotRecorded_ChangesNothing(t *testing.T) {
	f := newFixture(t)
	doc := f.keep(runA, `{"x":"one"}`, "/x")
	old, boom := f.keyFile(), errors.New("boom")
	if _, err := f.rotate(func() error { return boom }); !errors.Is(err, boom) {
		t.Fatalf("Rotate = %v, want boom", err)
	}
	for range 2 {
		if got, err := f.opened(runA, doc); err != nil || string(got) != `{"x":"one"}` {
			t.Errorf("opened: %s, %v", got, err)
		}
		f.v = f.open()
	}
	if f.keyFile() != old {
		t.Error("the key file changed")
	}
	_, err := f.rotate(recorded) // over the file the first one left
	f.must(err)
}

// A process that dies at any instant leaves a folder whose values open, with
// one of the two keys, and a rotation that can be done again.
func TestRotate_KilledAtAnyInstant_LeavesOneKeyInForce(t *testing.T) {
	for instant, replaced := range map[string]bool{"written": false, "committed": true, "renamed": true, "batch": true} {
		t.Run(instant, func(t *testing.T) {
			f := newFixture(t)
			docs := map[id.Run]json.RawMessage{}
			for n := range vault.RewrapBatch + 3 {
				run := id.Run(fmt.Sprintf("run_%04d", n))
				docs[run] = f.keep(run, `{"x":"`+canary+`"}`, "/x")
			}
			old := f.keyFile()
			if !dies(f, instant) {
				t.Fatalf("there is no instant %q", instant)
			}
			f.v = f.open()
			if (f.keyFile() != old) != replaced {
				t.Errorf("the key file was replaced: %v, want %v", f.keyFile() != old, replaced)
			}
			check := func() {
				t.Helper()
				for run, doc := range docs {
					if got, err := f.opened(run, doc); err != nil || !strings.Contains(string(got), canary) {
						t.Fatalf("run %s: %s, %v", run, got, err)
					}
				}
			}
			check()
			_, err := f.v.Rewrap(t.Context(), f.db)
			f.must(err)
			check()
			_, err = f.rotate(recorded)
			f.must(err)
			check()
			if n := len(f.wrapped()); n != len(docs)+1 {
				t.Errorf("%d wrapped keys are left, want one a run and one of the tenant", n)
			}
		})
	}
}

type died string

func dies(f *fixture, instant string) (dead bool) {
	defer func() {
		if d, ok := recover().(died); ok {
			dead = string(d) == instant
		}
	}()
	f.v.CrashAt(func(at string) {
		if at == instant {
			panic(died(at))
		}
	})
	_, err := f.rotate(recorded)
	f.must(err)
	return false
}
