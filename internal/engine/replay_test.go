package engine_test

import (
	"strings"
	"testing"

	"countersign/internal/engine"
	. "countersign/internal/engine/enginetest"
	"countersign/internal/testkit"
)

// What was recorded is what this program would do: over branches of a loop, a
// decision, an effect and the end. Nothing is called and nothing is written.
func TestReplay_FindsNoDifferenceAndTouchesNothing(t *testing.T) {
	r := NewRig(t, NewLibrary(t, AllTools...), offline)
	run := r.Drive(r.Begin(r.Lib.Add(t, ReadThenWrite("write.plain")), `{}`, "").ID)
	wantStatus(t, run, engine.WaitingApproval)
	r.Decide(run, engine.Approved, "yes")
	run = r.Drive(run.ID)
	wantStatus(t, run, engine.Completed)
	calls, sends, entries := r.Script.Count("call", "docs.read"), r.Script.Count("send", "write.plain"), r.Recorded("run.start")
	out, err := r.Engine.Replay(t.Context(), run.ID)
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Differences) != 0 || out.Walked < 4 || out.Version != run.Version {
		t.Errorf("the replay found %+v", out)
	}
	if r.Script.Count("call", "docs.read") != calls || r.Script.Count("send", "write.plain") != sends || r.Recorded("run.start") != entries || r.Run(run.ID).Version != run.Version {
		t.Error("the replay did something")
	}
}

func TestReplay_SaysWhereThisProgramWouldDoSomethingElse(t *testing.T) {
	r := NewRig(t, NewLibrary(t, AllTools...), offline)
	was := r.Lib.Add(t, ReadThenWrite("write.plain"))
	run := r.Drive(r.Begin(was, `{}`, "").ID)
	r.Decide(run, engine.Approved, "yes")
	run = r.Drive(run.ID)
	wantStatus(t, run, engine.Completed)
	other := *r.Lib.Add(t, strings.Replace(ReadThenWrite("write.plain"), `set: {done: "${steps.write.status}"}`, `set: {done: "otherwise"}`, 1))
	other.Digest = was.Digest // as if the language had come to mean something else
	r.Lib.Keep(&other)
	out, err := r.Engine.Replay(t.Context(), run.ID)
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Differences) == 0 || out.Differences[0].Path != "sum" || !strings.Contains(out.Differences[0].Now, "step_completed with sha256:") {
		t.Errorf("the replay found %+v", out)
	}
}

func TestReplay_AlteredRecord_IsRefused(t *testing.T) {
	r := NewRig(t, NewLibrary(t, AllTools...), offline)
	run := r.Drive(r.Begin(r.Lib.Add(t, ReadThenWrite("write.plain")), `{}`, "").ID)
	testkit.Outsider(t, r.Path, `UPDATE checkpoint SET output = '{"text":"forged"}' WHERE kind = 'step_completed'`)
	if _, err := r.Engine.Replay(t.Context(), run.ID); err == nil || !strings.Contains(err.Error(), "altered") {
		t.Errorf("error = %v, want that the record was altered", err)
	}
}
