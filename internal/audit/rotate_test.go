package audit_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"countersign/internal/audit"
	"countersign/internal/id"
	"countersign/internal/problem"
	"countersign/internal/store"
	"countersign/internal/testkit"
)

// faulty opens a log whose database fails where fault says.
func faulty(t *testing.T, fault func(point string) error) fixture {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "test.db")
	db := testkit.OpenWith(t, store.Options{Path: path, Lines: []store.Line{audit.Migrations}, Fault: fault})
	l, err := audit.Open(t.Context(), db, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return fixture{l, db, path, dir}
}

// reopened is the log as the next start of the program finds it.
func (f fixture) reopened(t *testing.T) fixture {
	t.Helper()
	f.Close()
	db := testkit.OpenAt(t, f.path, audit.Migrations)
	l, err := audit.Open(t.Context(), db, f.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return fixture{l, db, f.path, f.dir}
}

func (f fixture) file(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(f.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func (f fixture) proof(t *testing.T, tenant string, e id.Entry) (p audit.Proof, err error) {
	t.Helper()
	err = f.db.View(t.Context(), func(ctx context.Context, q store.Querier) error {
		p, err = f.Proof(ctx, q, tenant, e)
		return err
	})
	return p, err
}

var admin = audit.Actor{Kind: "person", ID: "usr_a", Name: "Ana", How: "password"}

func TestOpen_TheFirstEntryNamesTheKey(t *testing.T) {
	f := open(t)
	var first audit.Entry
	err := f.db.View(t.Context(), func(ctx context.Context, q store.Querier) error {
		page, _, err := f.Entries(ctx, q, audit.Filter{OldestFirst: true})
		first = page[0]
		return err
	})
	if err != nil || first.Action != "audit.opened" || first.Authority["key"] != f.Public() {
		t.Errorf("first entry = %+v, %v; want one that names %s", first, err, f.Public())
	}
}

func TestRotate_BothKeysSignTheChangeAndTheNewOneWhatFollows(t *testing.T) {
	f := open(t)
	before := f.add(t, "default", 3)
	old := f.Public()
	fresh, err := f.Rotate(t.Context(), admin, "console")
	if err != nil {
		t.Fatal(err)
	}
	after := f.add(t, "default", 2)
	f.add(t, "later", 1)
	if fresh == old || f.Public() != fresh || f.file(t, audit.PublicFile) != fresh+"\n"+old+"\n" {
		t.Errorf("keys: was %s, is %s, file\n%s", old, f.Public(), f.file(t, audit.PublicFile))
	}
	for _, e := range append(before, after...) {
		if _, err := f.proof(t, "default", e); err != nil {
			t.Errorf("entry %s is not proven: %v", e, err)
		}
	}
	if r := f.verify(t, nil); !r.OK {
		t.Errorf("findings = %+v", r.Findings)
	}
	again := f.reopened(t)
	again.add(t, "default", 1)
	if _, err := again.Rotate(t.Context(), admin, "console"); err != nil {
		t.Fatal(err)
	}
	again.add(t, "default", 1)
	if r := again.verify(t, nil); !r.OK {
		t.Errorf("after a second rotation: %+v", r.Findings)
	}
}

func TestRotate_OutcomeOfTheCommitUnheard_TheKeyThatCountsIsTheLogs(t *testing.T) {
	for point, want := range map[string]bool{store.FaultBeforeCommit: false, store.FaultAfterCommit: true} {
		t.Run(point, func(t *testing.T) {
			armed := false
			f := faulty(t, func(p string) error {
				if armed && p == point {
					armed = false
					return errors.New("cut")
				}
				return nil
			})
			f.add(t, "default", 2)
			old := f.Public()
			armed = true
			_, err := f.Rotate(t.Context(), admin, "console")
			if rotated := f.Public() != old; rotated != want || (err == nil) != want {
				t.Fatalf("rotated %v (%v), want %v", rotated, err, want)
			}
			f.add(t, "default", 1)
			again := f.reopened(t)
			again.add(t, "default", 1)
			if again.Public() != f.Public() {
				t.Errorf("the next start uses %s, not %s", again.Public(), f.Public())
			}
			if r := again.verify(t, nil); !r.OK {
				t.Errorf("findings = %+v", r.Findings)
			}
		})
	}
}

func TestRotate_CrashBetweenItsFiles_IsFinishedByTheNextStart(t *testing.T) {
	for name, half := range map[string]func(f fixture, oldKey, oldPublic string){
		"before both": func(f fixture, oldKey, oldPublic string) {
			_ = os.Rename(filepath.Join(f.dir, audit.KeyFile), filepath.Join(f.dir, audit.KeyFile+".next"))
			_ = os.WriteFile(filepath.Join(f.dir, audit.KeyFile), []byte(oldKey), 0o600)
			_ = os.WriteFile(filepath.Join(f.dir, audit.PublicFile), []byte(oldPublic), 0o644)
		},
		"before the second": func(f fixture, oldKey, _ string) {
			_ = os.Rename(filepath.Join(f.dir, audit.KeyFile), filepath.Join(f.dir, audit.KeyFile+".next"))
			_ = os.WriteFile(filepath.Join(f.dir, audit.KeyFile), []byte(oldKey), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t)
			f.add(t, "default", 2)
			oldKey, oldPublic := f.file(t, audit.KeyFile), f.file(t, audit.PublicFile)
			fresh, err := f.Rotate(t.Context(), admin, "console")
			if err != nil {
				t.Fatal(err)
			}
			half(f, oldKey, oldPublic)
			again := f.reopened(t)
			again.add(t, "default", 1)
			if again.Public() != fresh {
				t.Errorf("the next start uses %s, want the new key %s", again.Public(), fresh)
			}
			if r := again.verify(t, nil); !r.OK {
				t.Errorf("findings = %+v", r.Findings)
			}
		})
	}
}

func TestRotate_TheOldKeySignsNothingAnyMore(t *testing.T) {
	f := open(t)
	f.add(t, "default", 2)
	stale := f.reopened(t) // another process, with the old key in memory
	if _, err := f.Rotate(t.Context(), admin, "console"); err != nil {
		t.Fatal(err)
	}
	if err := stale.next(t); !errors.Is(err, audit.ErrBroken) {
		t.Errorf("an append with the old key: %v, want ErrBroken", err)
	}
	if r := f.verify(t, nil); !r.OK {
		t.Errorf("findings = %+v", r.Findings)
	}
}

func TestVerify_AKeyThatTheFilesDoNotKnowIsFound(t *testing.T) {
	f := open(t)
	f.add(t, "default", 2)
	if _, err := f.Rotate(t.Context(), admin, "console"); err != nil {
		t.Fatal(err)
	}
	current := strings.SplitAfter(f.file(t, audit.PublicFile), "\n")[0]
	if err := os.WriteFile(filepath.Join(f.dir, audit.PublicFile), []byte(current), 0o644); err != nil {
		t.Fatal(err)
	}
	if r := f.reopened(t).verify(t, nil); r.OK {
		t.Error("the log verifies although its former key is known nowhere")
	}
}

func TestOpen_RefusesAPublicFileOfAnotherKey(t *testing.T) {
	f, other := open(t), open(t)
	f.add(t, "default", 1)
	if err := os.WriteFile(filepath.Join(f.dir, audit.PublicFile), []byte(other.Public()+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := audit.Open(t.Context(), f.db, f.dir); !problem.HasCode(err, "audit_key_mismatch") {
		t.Errorf("Open = %v, want audit_key_mismatch", err)
	}
}

func TestErase_IsOnRecordAndTheLogStillVerifies(t *testing.T) {
	f := open(t)
	ids := f.add(t, "default", 3)
	err := f.db.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		_, err := f.Erase(ctx, tx, ids[1], audit.Entry{Tenant: "default", Actor: admin, Outcome: "ok"})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	err = f.db.View(t.Context(), func(ctx context.Context, q store.Querier) error {
		raw, err := f.Payload(ctx, q, "default", 1)
		if len(raw) > 0 {
			t.Errorf("the payload is still there: %s", raw)
		}
		return err
	})
	if r := f.verify(t, nil); err != nil || !r.OK {
		t.Errorf("findings = %+v, %v", r.Findings, err)
	}
}

func TestAppend_Limits(t *testing.T) {
	f := open(t)
	try := func(e audit.Entry) error {
		return f.db.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := f.Append(ctx, tx, e)
			return err
		})
	}
	many := map[string]string{}
	for i := range 33 {
		many[strings.Repeat("k", i+1)] = ""
	}
	for name, e := range map[string]audit.Entry{
		"payload too large":       {Tenant: "default", Payload: json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`)},
		"too much authority":      {Tenant: "default", Authority: many},
		"tenant of two parts":     {Tenant: "a/b"},
		"tenant of two lines":     {Tenant: "a\nb"},
		"tenant like the console": {Tenant: "instance"},
	} {
		if err := try(e); err == nil {
			t.Errorf("%s: appended", name)
		}
	}
	if err := try(audit.Entry{Tenant: "default", Subject: strings.Repeat("é", 4096), Outcome: "a\xffb\x00"}); err != nil {
		t.Errorf("hostile text keeps a record from being made: %v", err)
	}
	if r := f.verify(t, nil); !r.OK {
		t.Errorf("findings = %+v", r.Findings)
	}
}
