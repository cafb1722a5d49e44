package enginetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"countersign/internal/engine"
	"countersign/internal/id"
	"countersign/internal/store"
	"countersign/internal/tools"
)

// childVar holds the orders of a child process, as JSON.
const childVar = "ENGINETEST_CHILD"

// orders are what a child process has to do: open the folder, make the run or
// find it, drive it, approve what it asks, and die at the point.
type orders struct {
	Dir, Tool, Policy, Point string
	Ask                      bool // the run asks a person before it writes
	Target, Ledger           string
}

// report is what a child that lived to the end saw.
type report struct {
	Run     engine.Run      `json:"run"`
	Effects []engine.Effect `json:"effects"`
	Steps   []engine.Step   `json:"steps"`
	Epoch   int64           `json:"epoch"`
}

// RunChild turns the process into a child if it was started as one: call it
// first in TestMain.
func RunChild() {
	given := os.Getenv(childVar)
	if given == "" {
		return
	}
	var o orders
	rep, err := report{}, json.Unmarshal([]byte(given), &o)
	if err == nil {
		rep, err = o.obey(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_ = json.NewEncoder(os.Stdout).Encode(rep)
	os.Exit(0)
}

func (o orders) obey(ctx context.Context) (rep report, err error) {
	lock, err := store.AcquireFolder(o.Dir, "child")
	if err != nil {
		return rep, err
	}
	defer lock.Release()
	db, err := store.Open(ctx, store.Options{Path: filepath.Join(o.Dir, "child.db"), Lines: Lines(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return rep, err
	}
	defer db.Close()
	t := &fatal{}
	lib := NewLibrary(t, AllTools...)
	w := lib.Add(t, ReadThenWrite(o.Tool))
	if o.Ask {
		w = lib.Add(t, AskThenWrite(o.Tool))
	}
	program, _ := os.Executable()
	e := engine.New(engine.Options{DB: db, Gate: &Gate{Policy: func(engine.Proposal) string { return o.Policy }}, Recorder: Recorder{}, Library: lib,
		World:  &tools.World{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, LockDir: filepath.Join(o.Dir, "locks")},
		Config: tools.Config{"target": o.Target, "program": program, "ledger": o.Ledger, "root": filepath.Join(o.Dir, "root")},
		Owner:  fmt.Sprintf("child-%d", os.Getpid()), Epoch: lock.Epoch(), Crash: o.crash(), Logger: slog.New(slog.DiscardHandler)})
	r := &Rig{T: t, DB: db, Lib: lib, Engine: e}
	run := r.Begin(w, `{}`, "k")
	for range 3 {
		if run = r.Run(run.ID); engine.Final(run.Status) {
			break
		}
		if run, err = e.Drive(ctx, run.ID); err != nil {
			return rep, err
		}
		if run.Status == engine.WaitingInput {
			if _, err := r.TryAnswer(run.ID, AskAnswer, Person); err != nil {
				return rep, err
			}
			continue
		}
		if run.Status != engine.WaitingApproval {
			break
		}
		r.DecideRequest(run.ID, id.Approval(run.WaitingFor[0].Subject), engine.Approved, "fine")
	}
	return report{Run: r.Run(run.ID), Effects: r.Effects(run.ID), Steps: r.Steps(run.ID), Epoch: lock.Epoch()}, nil
}

// crash kills the process with SIGKILL at the point: nothing is cleaned up.
func (o orders) crash() func(window, path string, pass int) {
	if o.Point == "" {
		return nil
	}
	at, err := engine.ParseCrash(o.Point)
	if err != nil {
		panic(err)
	}
	return func(window, path string, pass int) {
		if at.Matches(window, path, pass) {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
}

// fatal is the testing.TB of a process that is not a test.
type fatal struct{ testing.TB }

func (*fatal) Helper()                  {}
func (*fatal) Context() context.Context { return context.Background() }
func (*fatal) Fatalf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	os.Exit(1)
}

// Kill runs a child to the point, where SIGKILL ends it, then another one to
// the end, and checks what is left.
func (p Point) Kill(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	out := OutsideAt(t, NewTarget(t), dir)
	o := orders{Dir: dir, Tool: p.Kind.Tool, Policy: p.Policy, Point: p.Point, Target: out.URL, Ledger: out.Ledger}
	if _, err := o.run(t); !killed(err) {
		t.Fatalf("the first child was not killed at %s: %v", p.Point, err)
	}
	o.Point = ""
	rep, err := o.run(t)
	if err != nil {
		t.Fatalf("the second child: %v", err)
	}
	if rep.Epoch != 2 {
		t.Errorf("the second child has epoch %d, want 2", rep.Epoch)
	}
	p.Check(t, rep.Run, rep.Steps, rep.Effects, out.Count(p.Kind.Tool))
}

func (o orders) run(t *testing.T) (rep report, err error) {
	t.Helper()
	given, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), childVar+"="+string(given))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return rep, fmt.Errorf("%w: %s", err, stderr.String())
	}
	return rep, json.Unmarshal(stdout.Bytes(), &rep)
}

// killed reports whether a child was ended by SIGKILL.
func killed(err error) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}
