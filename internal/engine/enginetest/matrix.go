package enginetest

import (
	"fmt"
	"testing"

	"countersign/internal/engine"
)

// Point is one window of one step at which a run is killed.
type Point struct {
	Kind   Kind
	Point  string // WINDOW:PATH
	Policy string // engine.Allowed or engine.Pending
}

func (p Point) String() string { return fmt.Sprintf("%s/%s/%s", p.Kind.Tool, p.Policy, p.Point) }

// Points lists every window that a run of ReadThenWrite passes, for every kind
// of tool, approved and allowed.
func Points() (all []Point) {
	for _, k := range Kinds {
		for _, policy := range []string{engine.Pending, engine.Allowed} {
			for _, w := range []string{"before", "before-commit", "after-commit"} {
				all = append(all, Point{k, w + ":look", policy}, Point{k, w + ":sum", policy})
			}
			for _, w := range engine.Windows {
				all = append(all, Point{k, w.Name + ":write", policy})
			}
		}
	}
	return all
}

// passes reports whether the point is one that the run comes to: an action
// that is allowed at once has its intent in the proposing transaction, and a
// file write never has, because of what it replaces.
func (p Point) passes() bool {
	return !(p.atOnce() && (p.Point == "before-sent:write" || p.Point == "before-sent-commit:write"))
}

// atOnce reports that proposal and intent are one commit.
func (p Point) atOnce() bool { return p.Policy == engine.Allowed && p.Kind.Tool != "write.file" }

// lost reports whether a kill there leaves an outcome that only the target
// knows.
func (p Point) lost() bool {
	switch p.Point {
	case "after-propose-commit:write":
		return p.atOnce()
	case "after-sent-commit:write", "after-effect:write", "before-outcome-commit:write", "before-commit:write":
		return true
	}
	return false
}

// sentBefore reports whether the target had done it when the kill came.
func (p Point) sentBefore() bool {
	return p.lost() && p.Point != "after-sent-commit:write" && p.Point != "after-propose-commit:write"
}

// Check judges a run that was killed at the point and driven to its end or to
// a person since.
func (p Point) Check(t testing.TB, run engine.Run, steps []engine.Step, effects []engine.Effect, happened int) {
	t.Helper()
	want, status, times := engine.Completed, engine.Confirmed, 1
	if p.lost() && p.Kind.Asks {
		want, status = engine.Blocked, engine.Unknown
		if !p.sentBefore() {
			times = 0
		}
	}
	if run.Status != want {
		t.Errorf("the run is %s (%+v), want %s", run.Status, run.Error, want)
	}
	if happened != times {
		t.Errorf("it happened %d times at the target, want %d", happened, times)
	}
	if len(effects) != 1 || effects[0].Status != status {
		t.Errorf("the ledger has %d effects, the first %+v; want one that is %s", len(effects), firstOf(effects).Status, status)
	}
	for _, s := range steps {
		if s.Path == "look" && s.Attempts != 1 {
			t.Errorf("the read has %d recorded attempts, want 1", s.Attempts)
		}
	}
}

// Survive kills a run at the point, restarts, and checks what is left.
func (p Point) Survive(t *testing.T, r *Rig, out *Outside) {
	t.Helper()
	run := r.Begin(r.Lib.Add(t, ReadThenWrite(p.Kind.Tool)), `{}`, "k")
	r.Gate.Policy = func(engine.Proposal) string { return p.Policy }
	hook := CrashAt(t, p.Point)
	r.Restart(func(o *engine.Options) { o.Crash = hook })
	crashed := r.CrashingDrive(run.ID)
	if now := r.Run(run.ID); !crashed && now.Status == engine.WaitingApproval {
		r.Decide(now, engine.Approved, "fine")
		crashed = r.CrashingDrive(run.ID)
	}
	if crashed != p.passes() {
		t.Fatalf("crashed: %t, want %t", crashed, p.passes())
	}
	r.Restart()
	got := r.Run(run.ID)
	if !engine.Final(got.Status) {
		got = r.Drive(run.ID)
	}
	if got.Status == engine.WaitingApproval {
		r.Decide(got, engine.Approved, "fine")
		got = r.Drive(run.ID)
	}
	p.Check(t, got, r.Steps(run.ID), r.Effects(run.ID), out.Count(p.Kind.Tool))
}

func firstOf(effects []engine.Effect) (e engine.Effect) {
	if len(effects) > 0 {
		e = effects[0]
	}
	return e
}
