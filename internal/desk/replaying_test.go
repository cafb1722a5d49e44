package desk_test

import (
	"encoding/json"
	"testing"

	"countersign/internal/desk"
	"countersign/internal/engine"
)

// Every kind of step of real runs is replayed without a difference.
func TestReplay_OfRealRuns_FindsNoDifference(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	refund := w.refund(12_500, engine.WaitingApproval)
	w.approve("ana", w.request("ana", refund))
	w.waitFor(refund, engine.Completed)
	plan, a := w.planned()
	w.approve("ana", a)
	w.waitAt(plan, "publish")
	moved, _ := w.noted()
	w.define("note.yaml", noteV2)
	_, err := w.migrate(moved, desk.Migrate{Expected: -1})
	w.must(err)
	w.waitAt(moved, "publish")
	asked, _, err := w.desk.StartRun(t.Context(), w.principal("dev"), desk.StartRun{Workflow: "goodwill", Input: json.RawMessage(`{"order_id":"4180"}`)})
	w.must(err)
	w.waitFor(asked, engine.WaitingInput)
	rejected := w.refund(12_500, engine.WaitingApproval)
	no := w.request("ana", rejected)
	_, err = w.desk.Decide(t.Context(), w.principal("ana"), no.ID, desk.Decide{Verdict: "reject", Digest: no.Digest, Comment: "No."})
	w.must(err)
	w.waitFor(rejected, engine.RunRejected)

	entries := len(w.entries("", ""))
	for name, run := range map[string]engine.Run{"refund": refund, "plan": plan, "moved": moved, "asked": asked, "rejected": rejected} {
		r, err := w.desk.Replay(t.Context(), w.principal("chloe"), string(run.ID))
		w.must(err)
		if len(r.Differences) != 0 || r.Walked == 0 {
			t.Errorf("%s: the replay finds %s", name, asJSON(t, r))
		}
	}
	if now := len(w.entries("", "")); now != entries {
		t.Errorf("the replays left %d audit entries", now-entries)
	}
}
