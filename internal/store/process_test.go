package store_test

import (
	"bufio"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"modernc.org/sqlite"

	"countersign/internal/store"
	"countersign/internal/testkit"
)

// The test binary run again plays the other processes.
const (
	childEnv = "STORE_TEST_CHILD"
	pathEnv  = "STORE_TEST_PATH"
	whenEnv  = "STORE_TEST_WHEN"
)

func TestMain(m *testing.M) {
	child, ok := children[os.Getenv(childEnv)]
	if !ok {
		os.Exit(m.Run())
	}
	if err := child(os.Getenv(pathEnv), os.Getenv(whenEnv)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

var children = map[string]func(path, when string) error{
	"write":   childWrites,
	"pairs":   childWritesPairs,
	"migrate": childMigrates,
	"folder":  childHoldsFolder,
	"ioerror": childMeetsIOError,
}

func child(t *testing.T, name, path, when string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+name, pathEnv+"="+path, whenEnv+"="+when)
	cmd.Stderr = t.Output()
	return cmd
}

func killed(err error) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	return ok && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
}

func die() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL); select {} }

func childOpen(path string, fault func(string) error, lines ...store.Line) (*store.DB, error) {
	return store.Open(context.Background(), store.Options{Path: path, Lines: lines, Fault: fault, Logger: slog.New(slog.DiscardHandler)})
}

const eachWrites = 300

func childWrites(path, _ string) error {
	db, err := childOpen(path, nil, notes)
	if err != nil {
		return err
	}
	for range eachWrites {
		if err := insert(context.Background(), db, "child"); err != nil {
			return err
		}
	}
	return db.Close()
}

// Administration beside a running server: two processes, and two handles in
// one, write the same file at once from its creation on.
func TestProcesses_WriteOneDatabaseTogether(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shared.db")
	var cmds []*exec.Cmd
	for range 2 {
		cmd := child(t, "write", path, "")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		cmds = append(cmds, cmd)
	}
	var all sync.WaitGroup
	dbs := []*store.DB{testkit.OpenAt(t, path, notes), testkit.OpenAt(t, path, notes)}
	for _, db := range dbs {
		all.Go(func() {
			last := int64(0)
			for range eachWrites {
				err := db.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
					var mark int64
					if err := tx.QueryRow(ctx, "SELECT mark_us FROM store_clock").Scan(&mark); err != nil {
						return err
					}
					if now := store.Micros(tx.Now()); now < mark || now < last {
						return fmt.Errorf("Now = %d, before %d or %d", now, mark, last)
					}
					last = store.Micros(tx.Now())
					return put(ctx, tx, "parent")
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	for _, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Errorf("the other process: %v", err)
		}
	}
	wantNotes(t, dbs[0], 4*eachWrites)
}

func childWritesPairs(path, _ string) error {
	db, err := childOpen(path, nil, notes)
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	var out sync.Mutex
	for range 8 {
		all.Go(func() {
			for i := 0; ; i++ {
				err := db.Update(context.Background(), func(ctx context.Context, tx *store.Tx) error {
					return errors.Join(put(ctx, tx, "pair"), put(ctx, tx, "pair"))
				})
				if err != nil {
					return
				}
				out.Lock()
				fmt.Println("done")
				out.Unlock()
			}
		})
	}
	all.Wait()
	return nil
}

// What was acknowledged before a SIGKILL is there after it, and no half of a
// transaction is.
func TestProcesses_AKillLosesNothingAcknowledged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "killed.db")
	acknowledged := 0
	for round := range 5 {
		cmd := child(t, "pairs", path, "")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); {
			acknowledged++
			if n++; n == 100+37*round {
				_ = cmd.Process.Kill()
			}
		}
		if err := cmd.Wait(); !killed(err) {
			t.Fatalf("the process ended by itself: %v", err)
		}
		db, err := store.Open(t.Context(), store.Options{Path: path, Lines: []store.Line{notes}})
		if err != nil {
			t.Fatal(err)
		}
		rows := count(t, db, "SELECT count(*) FROM note")
		if rows%2 != 0 || rows < 2*acknowledged {
			t.Errorf("round %d: %d rows, want an even number, at least %d", round, rows, 2*acknowledged)
		}
		if err := errors.Join(db.CheckIntegrity(t.Context()), db.Close()); err != nil {
			t.Error(err)
		}
	}
}

// killable has a chance to die at every statement of its second and third file.
var killable = line("killable",
	"CREATE TABLE t (id INTEGER NOT NULL PRIMARY KEY, v TEXT NOT NULL) STRICT;",
	`SELECT die_at(1); ALTER TABLE t ADD COLUMN w INTEGER NOT NULL DEFAULT 0;
	 SELECT die_at(2); INSERT INTO t (id, v) VALUES (1, 'a');
	 SELECT die_at(3); CREATE TABLE u (id INTEGER NOT NULL PRIMARY KEY) STRICT; SELECT die_at(4);`,
	`SELECT die_at(5); INSERT INTO t (id, v) VALUES (2, 'b'); INSERT INTO u VALUES (1); SELECT die_at(6);`)

var points = []string{
	"1", "2", "3", "4", "5", "6", store.FaultBackup,
	"migrate:killable:0002:begin", "migrate:killable:0002:applied", "migrate:killable:0002:recorded", "migrate:killable:0002:committed",
	"migrate:killable:0003:begin", "migrate:killable:0003:applied", "migrate:killable:0003:recorded", "migrate:killable:0003:committed",
}

func dieAt(when string) error {
	return sqlite.RegisterScalarFunction("die_at", 1, func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
		if fmt.Sprint(args[0]) == when {
			die()
		}
		return nil, nil
	})
}

func childMigrates(path, when string) error {
	if err := dieAt(when); err != nil {
		return err
	}
	db, err := childOpen(path, func(point string) error {
		if point == when {
			die()
		}
		return nil
	}, killable)
	if err != nil {
		return err
	}
	return db.Close()
}

func TestProcesses_AKillAtAnyStatementOfAMigrationLeavesWholeOnes(t *testing.T) {
	if err := dieAt(""); err != nil {
		t.Fatal(err)
	}
	old := killable
	old.FS = firstOnly{killable.FS}
	for _, point := range points {
		t.Run(strings.ReplaceAll(point, ":", "_"), func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "x.db")
			if err := openThings(t, path, old); err != nil {
				t.Fatal(err)
			}
			if err := child(t, "migrate", path, point).Run(); !killed(err) {
				t.Fatalf("the process was not killed: %v", err)
			}
			db := testkit.OpenAt(t, path, killable)
			if n := count(t, db, "SELECT (SELECT count(*) FROM t) * 10 + (SELECT count(*) FROM u)"); n != 21 {
				t.Errorf("rows of both tables: %d, want 2 and 1", n)
			}
			copied := testkit.OpenAt(t, path+".before-killable-0002", old)
			if n := count(t, copied, "SELECT count(*) FROM t"); n != 0 {
				t.Errorf("the copy from before has %d rows, want none", n)
			}
		})
	}
}

func childHoldsFolder(path, when string) error {
	l, err := store.AcquireFolder(path, "child "+when)
	if err != nil {
		return err
	}
	fmt.Println(l.Epoch())
	die()
	return nil
}

// The lock of a killed process is free at once, and the epoch grows all the same.
func TestFolder_AKilledHolderLetsGoAndEpochsGrow(t *testing.T) {
	dir := t.TempDir()
	for want := int64(1); want <= 6; want += 2 {
		out, err := child(t, "folder", dir, strconv.FormatInt(want, 10)).Output()
		if !killed(err) {
			t.Fatalf("the holder was not killed: %v", err)
		}
		if got := strings.TrimSpace(string(out)); got != fmt.Sprint(want) {
			t.Errorf("the child's epoch is %s, want %d", got, want)
		}
		l, err := store.AcquireFolder(dir, "parent")
		if err != nil {
			t.Fatal(err)
		}
		if l.Epoch() != want+1 {
			t.Errorf("epoch %d, want %d", l.Epoch(), want+1)
		}
		if err := child(t, "folder", dir, "beside").Run(); err == nil || killed(err) {
			t.Errorf("a second process took the folder: %v", err)
		}
		if err := l.Release(); err != nil {
			t.Error(err)
		}
	}
}

// childMeetsIOError has the system refuse to let the log grow: the write at
// the next commit fails with a true I/O error.
func childMeetsIOError(path, _ string) error {
	signal.Ignore(syscall.SIGXFSZ)
	db, err := childOpen(path, nil, notes)
	if err != nil {
		return err
	}
	if err := insert(context.Background(), db, "kept"); err != nil {
		return err
	}
	info, err := os.Stat(path + "-wal")
	if err != nil {
		return err
	}
	size := uint64(info.Size())
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: size, Max: size}); err != nil {
		return err
	}
	return fmt.Errorf("the process lives on; Update = %w", insert(context.Background(), db, strings.Repeat("x", 10_000)))
}

func TestProcesses_ACommitIOErrorStopsTheProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	err := child(t, "ioerror", path, "").Run()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.ExitCode() != store.ExitFatal {
		t.Fatalf("the process ended with %v, want status %d", err, store.ExitFatal)
	}
	wantNotes(t, testkit.OpenAt(t, path, notes), 1)
}
