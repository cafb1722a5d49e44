package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// helperEnv makes the test binary play a part in a test about processes.
const helperEnv = "TOOLS_TEST_PART"

func TestMain(m *testing.M) {
	switch os.Getenv(helperEnv) {
	case "":
		os.Exit(m.Run())
	case "console": // starts a child under an effect lock and is then killed
		w := &World{LockDir: os.Getenv("LOCKS")}
		lock, err := w.lockEffect("eff_1")
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		w.run(context.Background(), process{argv: []string{"sh", "-c", "echo $$ > " + os.Getenv("PIDFILE") + "; exec sleep 30"}, dir: "/", lock: lock})
	}
	os.Exit(0)
}

func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("waited in vain: %s", what)
}

func readPID(t *testing.T, path string) int {
	t.Helper()
	var pid int
	waitFor(t, "a pid in "+path, func() bool {
		b, err := os.ReadFile(path)
		if err != nil || !bytes.HasSuffix(b, []byte("\n")) {
			return false
		}
		pid, err = strconv.Atoi(strings.TrimSpace(string(b)))
		return err == nil
	})
	return pid
}

// D19: a time limit ends the whole group, grandchildren that hold the pipe
// included, and what was printed is kept.
func TestRun_TimeoutKillsTheWholeGroupAndKeepsOutput(t *testing.T) {
	pidFile := filepath.Join(t.TempDir(), "pid")
	w := &World{Grace: 100 * time.Millisecond}
	ctx, stop := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer stop()
	e := w.run(ctx, process{dir: "/", argv: []string{"sh", "-c", `echo early; sh -c 'trap "" TERM; echo $$ > "$1"; while :; do sleep 1; done' x "$1" & sleep 3600`, "x", pidFile}})
	if !e.timedOut || string(e.stdout) != "early\n" {
		t.Errorf("timedOut %v stdout %q startErr %v", e.timedOut, e.stdout, e.startErr)
	}
	grandchild := readPID(t, pidFile)
	waitFor(t, "the grandchild to be gone", func() bool { return !alive(grandchild) })
}

func TestRun_AGrandchildThatHoldsThePipeDoesNotHang(t *testing.T) {
	w := &World{Grace: 100 * time.Millisecond}
	e := w.run(context.Background(), process{dir: "/", argv: []string{"sh", "-c", "echo done; sleep 3600 & exit 0"}})
	if e.timedOut || e.exit != 0 || string(e.stdout) != "done\n" || !e.cut {
		t.Errorf("%+v", e)
	}
}

func TestRun_GivesOnlyTheDeclaredEnvironment(t *testing.T) {
	t.Setenv("CONSOLE_SECRET", "x")
	e := (&World{}).run(context.Background(), process{dir: "/", argv: []string{"env"}, env: []string{"A=b"}})
	want := "PATH=" + basePath + "\nLANG=" + baseLocale + "\nA=b\nPWD=/\n"
	got := string(e.stdout)
	if got != want && got != strings.Replace(want, "PWD=/\n", "", 1) {
		t.Errorf("environment\n%s\nwant\n%s", got, want)
	}
}

func TestRun_OutputIsCapped(t *testing.T) {
	e := (&World{}).run(context.Background(), process{dir: "/", argv: []string{"sh", "-c", "head -c 3000000 /dev/zero; echo oops >&2"}})
	if len(e.stdout) != OutputBytesMax || !e.cut || e.exit != 0 || tail(e.stderr) != "oops" {
		t.Errorf("%d bytes, cut %v, exit %d, stderr %q", len(e.stdout), e.cut, e.exit, e.stderr)
	}
}

func TestRun_WhatCannotStartNeverRan(t *testing.T) {
	notProgram := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(notProgram, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", t.TempDir()+":"+os.Getenv("PATH"))
	for name, want := range map[string]error{"/no/such/program": fs.ErrNotExist, "no-such-program": fs.ErrNotExist, notProgram: fs.ErrPermission} {
		e := (&World{}).run(context.Background(), process{dir: "/", argv: []string{name}})
		if !errors.Is(e.startErr, want) {
			t.Errorf("%s: %v", name, e.startErr)
		}
	}
}

func TestStillRunning_SeesAChildThatOutlivedItsConsole(t *testing.T) {
	dir := t.TempDir()
	w := &World{LockDir: filepath.Join(dir, "locks")}
	if running, err := w.StillRunning("eff_1"); running || err != nil {
		t.Fatalf("before: %v %v", running, err)
	}
	pidFile := filepath.Join(dir, "pid")
	console := exec.Command(os.Args[0])
	console.Env = append(os.Environ(), helperEnv+"=console", "LOCKS="+w.LockDir, "PIDFILE="+pidFile)
	out, err := console.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := console.Start(); err != nil {
		t.Fatal(err)
	}
	child := readPID(t, pidFile)
	if err := console.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if b, _ := io.ReadAll(out); len(b) > 0 {
		t.Errorf("console said %s", b)
	}
	_ = console.Wait() // killed
	if running, err := w.StillRunning("eff_1"); !running || err != nil {
		t.Fatalf("the child outlived its console: %v %v", running, err)
	}
	if _, err := w.lockEffect("eff_1"); !errors.Is(err, errLocked) {
		t.Errorf("a second try got the lock: %v", err)
	}
	if err := syscall.Kill(child, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the lock to be free", func() bool { running, err := w.StillRunning("eff_1"); return !running && err == nil })
	if err := w.Forget("eff_1"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(w.LockDir, "effect-eff_1.lock")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("lock file is still there: %v", err)
	}
}

func TestLockPath_RefusesWhatIsNoEffectID(t *testing.T) {
	w := &World{LockDir: t.TempDir()}
	for _, bad := range []string{"", "../x", "a/b", "a b", "a\x00"} {
		if _, err := w.lockPath(bad); err == nil {
			t.Errorf("lockPath(%q) allowed it", bad)
		}
	}
}
