package instance_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"countersign/internal/audit"
	"countersign/internal/desk"
	"countersign/internal/identity"
	"countersign/internal/instance"
	"countersign/internal/problem"
	"countersign/internal/testkit"
	"countersign/internal/vault"
)

// kept is a folder with one person in its backup and two in its database.
type kept struct {
	t           *testing.T
	dir, backup string
}

func keptFolder(t *testing.T) kept {
	t.Helper()
	f := kept{t, filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "backup.db")}
	i := f.open(true)
	f.add(i, "one")
	f.must(i.DB.Backup(t.Context(), f.backup))
	f.add(i, "two")
	f.must(i.Close())
	return f
}

func (f kept) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f kept) open(drive bool) *instance.Instance {
	f.t.Helper()
	i, err := instance.Open(f.t.Context(), instance.Options{Dir: f.dir, Drive: drive, Holder: "a test"})
	f.must(err)
	return i
}

func (f kept) add(i *instance.Instance, name string) {
	f.t.Helper()
	_, err := i.Desk.AddPerson(f.t.Context(), desk.Terminal(), identity.NewPerson{Email: name + "@example.org", Name: name, Password: "a long pass phrase", Roles: []string{"admin"}})
	f.must(err)
}

func (f kept) restore(at func(string)) (instance.Restored, error) {
	return instance.Restore(f.t.Context(), instance.Restoring{Dir: f.dir, File: f.backup, At: at})
}

// people counts who is in the folder, after checking that it is whole and may
// be driven.
func (f kept) people() int {
	f.t.Helper()
	i := f.open(true)
	defer i.Close()
	f.must(i.DB.CheckIntegrity(f.t.Context()))
	if report, err := i.Log.VerifyFolder(f.t.Context()); err != nil || !report.OK {
		f.t.Errorf("the log: %v, %v", report.Findings, err)
	}
	all, err := i.Desk.People(f.t.Context(), desk.Terminal())
	f.must(err)
	return len(all)
}

func (f kept) gone(names ...string) {
	f.t.Helper()
	for _, name := range names {
		if _, err := os.Lstat(filepath.Join(f.dir, name)); !errors.Is(err, fs.ErrNotExist) {
			f.t.Errorf("%s is still there: %v", name, err)
		}
	}
}

type killed string

// dies restores and ends at the instant; it reports whether it came that far.
func (f kept) dies(instant string) (died bool) {
	defer func() {
		if k, ok := recover().(killed); ok {
			died = string(k) == instant
		}
	}()
	_, err := f.restore(func(at string) {
		if at == instant {
			panic(killed(at))
		}
	})
	f.must(err)
	return false
}

// Whenever the process ends, the folder is as it was or restored, whole, and
// what comes next finishes it.
func TestRestore_KilledAtAnyInstant_LeavesTheFolderAsItWasOrRestored(t *testing.T) {
	for instant, want := range map[string]int{"gathered": 2, "ready": 2, "kept": 2, "decided": 1, "cleared": 1, "swapped": 1, "headed": 1, "finished": 1} {
		t.Run(instant, func(t *testing.T) {
			f := keptFolder(t)
			if !f.dies(instant) {
				t.Fatalf("there is no instant %q", instant)
			}
			if got := f.people(); got != want {
				t.Errorf("%d people afterwards, want %d", got, want)
			}
			f.gone("restore.swap")
			_, err := f.restore(nil)
			f.must(err)
			if got := f.people(); got != 1 {
				t.Errorf("%d people after restoring again, want 1", got)
			}
			f.gone("restore.swap", "restoring")
		})
	}
}

func TestRestore_KeepsTheDatabaseThatWasThere(t *testing.T) {
	f := keptFolder(t)
	done, err := f.restore(nil)
	f.must(err)
	if got := f.people(); got != 1 {
		t.Errorf("%d people, want 1", got)
	}
	f.backup = done.Replaced
	_, err = f.restore(nil)
	f.must(err)
	if got := f.people(); got != 2 {
		t.Errorf("%d people in the database that was kept, want 2", got)
	}
}

// What is there may be beyond reading: that is what backups are for.
func TestRestore_OverADamagedDatabase(t *testing.T) {
	f := keptFolder(t)
	damaged := strings.Repeat("damaged ", 1000)
	f.must(os.WriteFile(filepath.Join(f.dir, instance.DatabaseFile), []byte(damaged), 0o600))
	f.must(os.WriteFile(filepath.Join(f.dir, instance.DatabaseFile+"-wal"), []byte(damaged), 0o600))
	done, err := f.restore(nil)
	f.must(err)
	if got := f.people(); got != 1 {
		t.Errorf("%d people, want 1", got)
	}
	for _, name := range []string{done.Replaced, done.Replaced + "-wal"} {
		if raw, err := os.ReadFile(name); err != nil || string(raw) != damaged {
			t.Errorf("%s was not kept as it was: %v", name, err)
		}
	}
}

func TestRestore_IntoANewFolder_NeedsTheKeys(t *testing.T) {
	f := keptFolder(t)
	old := f.dir
	f.dir = t.TempDir()
	if _, err := f.restore(nil); !problem.HasCode(err, "key_missing") {
		t.Fatalf("without keys: %v, want key_missing", err)
	}
	f.gone("restoring", instance.DatabaseFile)
	for _, name := range []string{audit.KeyFile, audit.PublicFile, vault.KeyFile} {
		raw, err := os.ReadFile(filepath.Join(old, name))
		f.must(err)
		f.must(os.WriteFile(filepath.Join(f.dir, name), raw, 0o600))
	}
	done, err := f.restore(nil)
	f.must(err)
	if got := f.people(); got != 1 || done.Replaced != "" {
		t.Errorf("%d people, replaced %q; want 1 and none", got, done.Replaced)
	}
}

func TestRestore_OfWhatIsNoBackup_ChangesNothing(t *testing.T) {
	for name, spoil := range map[string]func(f kept) error{
		"cut":                  func(f kept) error { return os.Truncate(f.backup, 40960) },
		"empty":                func(f kept) error { return os.Truncate(f.backup, 0) },
		"text":                 func(f kept) error { return os.WriteFile(f.backup, []byte(strings.Repeat("text ", 3000)), 0o600) },
		"missing":              func(f kept) error { return os.Remove(f.backup) },
		"a folder":             func(f kept) error { return errors.Join(os.Remove(f.backup), os.Mkdir(f.backup, 0o700)) },
		"a log that is edited": func(f kept) error { return edited(f) },
		"a live database":      func(f kept) error { return os.WriteFile(f.backup+"-wal", []byte("frames"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			f := keptFolder(t)
			f.must(spoil(f))
			if done, err := f.restore(nil); err == nil {
				t.Errorf("it was restored: %+v", done)
			}
			f.gone("restoring", "restore.swap")
			if got := f.people(); got != 2 {
				t.Errorf("%d people, want 2", got)
			}
		})
	}
}

func TestRestore_WithHeadsBeyondReading_SaysWhatToDo(t *testing.T) {
	f := keptFolder(t)
	heads := filepath.Join(f.dir, audit.HeadFile)
	f.must(os.WriteFile(heads, []byte("{"), 0o600))
	if _, err := f.restore(nil); !problem.HasCode(err, "heads_unreadable") {
		t.Fatalf("restore = %v, want heads_unreadable", err)
	}
	f.gone("restoring", "restore.swap")
	f.must(os.Remove(heads))
	_, err := f.restore(nil)
	f.must(err)
	if got := f.people(); got != 1 {
		t.Errorf("%d people, want 1", got)
	}
}

func edited(f kept) error {
	testkit.Outsider(f.t, f.backup, "UPDATE audit_entry SET actor = 'somebody' WHERE seq = 0")
	for _, side := range []string{"-wal", "-shm"} {
		if err := os.RemoveAll(f.backup + side); err != nil {
			return err
		}
	}
	return nil
}

// A database that was copied over by hand is noticed before anything is driven.
func TestOpen_OfADatabaseThatIsOlderThanItsHeads_RefusesToDrive(t *testing.T) {
	f := keptFolder(t)
	raw, err := os.ReadFile(f.backup)
	f.must(err)
	f.must(os.WriteFile(filepath.Join(f.dir, instance.DatabaseFile), raw, 0o600))
	if _, err := instance.Open(t.Context(), instance.Options{Dir: f.dir, Drive: true, Holder: "a test"}); !problem.HasCode(err, "rolled_back") {
		t.Fatalf("Open = %v, want rolled_back", err)
	}
	f.must(f.open(false).Close()) // to look at it is allowed
	_, err = f.restore(nil)
	f.must(err)
	if got := f.people(); got != 1 {
		t.Errorf("%d people, want 1", got)
	}
}
