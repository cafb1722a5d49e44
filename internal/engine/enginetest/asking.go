package enginetest

import (
	"encoding/json"
	"testing"

	"countersign/internal/engine"
	"countersign/internal/id"
)

// AskPoints are the windows that a run of AskThenWrite passes around its
// question and the answer.
var AskPoints = []string{"before:ask", "before-propose:ask", "before-propose-commit:ask", "after-propose-commit:ask",
	"before-answer-commit:ask", "after-answer-commit:ask"}

// AskAnswer is the answer that the suites give, AskOutput what is recorded.
const (
	AskAnswer = `{"text": "hello"}`
	AskOutput = `{"loud":false,"text":"hello"}`
)

// TryAnswer answers what the run asks at its step ask.
func (r *Rig) TryAnswer(run id.Run, value string, by engine.Actor) (engine.Question, error) {
	r.T.Helper()
	return r.Engine.Answer(r.T.Context(), engine.Answer{Tenant: Tenant, Run: run, Path: "ask", Value: json.RawMessage(value)}, by)
}

// crashingAnswer answers until a simulated crash; it reports whether one came.
func (r *Rig) crashingAnswer(run id.Run) (crashed bool) {
	r.T.Helper()
	defer func() {
		if v := recover(); v != nil {
			if _, ok := v.(engine.Crashed); !ok {
				panic(v)
			}
			crashed = true
		}
	}()
	if _, err := r.TryAnswer(run, AskAnswer, Person); err != nil {
		r.T.Fatalf("answer: %v", err)
	}
	return false
}

// surviveAsking kills a run at the point, restarts, and has it end: it asked
// once, one answer is recorded, and that is what was written.
func surviveAsking(t *testing.T, r *Rig, point string) {
	t.Helper()
	run := r.Begin(r.Lib.Add(t, AskThenWrite("write.plain")), `{}`, "k")
	hook := CrashAt(t, point)
	r.Restart(func(o *engine.Options) { o.Crash = hook })
	crashed := r.CrashingDrive(run.ID)
	if !crashed {
		crashed = r.crashingAnswer(run.ID)
	}
	if !crashed {
		t.Fatal("the run does not pass the window")
	}
	r.Restart()
	got := r.Drive(run.ID)
	if got.Status == engine.WaitingInput {
		if point == "after-answer-commit:ask" {
			t.Error("an answer that was durable is asked for again")
		}
		if _, err := r.TryAnswer(run.ID, AskAnswer, Person); err != nil {
			t.Fatal(err)
		}
		got = r.Drive(run.ID)
	}
	if _, err := r.TryAnswer(run.ID, AskAnswer, Person); err != nil {
		t.Errorf("the same answer once more: %v", err)
	}
	r.Decide(got, engine.Approved, "fine")
	CheckAsked(t, r.Drive(run.ID), r.Steps(run.ID))
	if n := r.Script.Count("send", "write.plain"); n != 1 {
		t.Errorf("sent %d times, want once", n)
	}
	if asked, answered := r.Recorded("run.ask"), r.Recorded("run.answer"); asked != 1 || answered != 1 {
		t.Errorf("recorded %d questions and %d answers, want one of each", asked, answered)
	}
}

// CheckAsked judges a run of AskThenWrite at its end.
func CheckAsked(t testing.TB, run engine.Run, steps []engine.Step) {
	t.Helper()
	if run.Status != engine.Completed || string(run.Output) != AskOutput {
		t.Errorf("the run is %s (%+v) with %s, want completed with %s", run.Status, run.Error, run.Output, AskOutput)
	}
	if len(steps) != 2 || steps[0].Status != "completed" || string(steps[0].Output) != AskOutput {
		t.Errorf("steps %+v, want the answer once", steps)
	}
}

// KillAsking runs a child to the point, where SIGKILL ends it, then another one
// to the end, and checks what is left.
func KillAsking(t *testing.T, point string) {
	t.Helper()
	dir := t.TempDir()
	out := OutsideAt(t, NewTarget(t), dir)
	o := orders{Dir: dir, Tool: "write.plain", Policy: engine.Pending, Point: point, Target: out.URL, Ledger: out.Ledger, Ask: true}
	if _, err := o.run(t); !killed(err) {
		t.Fatalf("the first child was not killed at %s: %v", point, err)
	}
	o.Point = ""
	rep, err := o.run(t)
	if err != nil {
		t.Fatalf("the second child: %v", err)
	}
	CheckAsked(t, rep.Run, rep.Steps)
	if n := out.Count("write.plain"); n != 1 {
		t.Errorf("it happened %d times at the target, want once", n)
	}
}
