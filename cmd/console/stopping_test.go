package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"countersign/internal/engine"
)

// Whoever interrupts a stopping console once more does not wait for what is
// under way: it is cut off, and unknown until somebody says what happened.
func TestStop_ASecondInterruptCutsOffWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	write := func(name, text string) { f.ok(os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o600)) }
	write("tools/slow.yaml", "format: 1\ntool: test.slow\nversion: 1\nsemantic_version: 1\neffect: write\nrisk: low\nparams: {type: object, additionalProperties: false}\n"+
		"summary: \"Sleep\"\ntarget: \"nothing\"\nimpact: \"Nothing.\"\nexec: {argv: [/bin/sleep, \"600\"], timeout: 15m}\n")
	write("workflows/slow.yaml", "format: 1\nworkflow: slow\nversion: 1\nsteps:\n  - id: go\n    action: test.slow\n")
	f.replace("policies/default.yaml", "rules:\n", "rules:\n  - name: slow\n    when: \"tool == 'test.slow'\"\n    allow: true\n")
	if status, _, stderr := f.run("run", "start", "slow", "--key", "one", "--crash-at", "before-propose:go"); status != exitCrash {
		t.Fatalf("exit status %d: %s", status, stderr)
	}
	s := f.serve()
	s.ready()
	for begun := time.Now(); len(f.story().Effects) == 0 || f.story().Effects[0].Status != engine.Sent; time.Sleep(50 * time.Millisecond) {
		if time.Since(begun) > answerMax {
			t.Fatalf("nothing is under way: %s", s.logged())
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- s.cmd.Wait() }()
	for begun, done := time.Now(), false; !done; {
		f.ok(s.cmd.Process.Signal(syscall.SIGINT))
		select {
		case err := <-ended:
			f.ok(err)
			done = true
		case <-time.After(1500 * time.Millisecond): // so long that the one who waits is told
		}
		if time.Since(begun) > answerMax {
			t.Fatalf("it does not end: %s", s.logged())
		}
	}
	if log := s.logged(); !strings.Contains(log, "Ctrl-C once more cuts them off") {
		t.Errorf("whoever waited was not told: %s", log)
	}
	if e := f.story().Effects; len(e) != 1 || e[0].Status != engine.Unknown || e[0].Attempts != 1 {
		t.Errorf("what was under way is %+v, want one unknown effect", e)
	}
	if status, _, _ := f.run("run", "resume", "key:one"); status != exitBlocked {
		t.Errorf("the run resumes with exit status %d, want it blocked until a person says what happened", status)
	}
}
