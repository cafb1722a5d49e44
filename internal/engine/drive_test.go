package engine_test

import (
	"testing"

	"countersign/internal/engine"
	. "countersign/internal/engine/enginetest"
)

func TestDrive_ReadsAsksSendsOnceAndFinishes(t *testing.T) {
	lib := NewLibrary(t, AllTools...)
	w := lib.Add(t, ReadThenWrite("write.plain"))
	r := NewRig(t, lib, func(o *engine.Options) {
		o.Config = map[string]string{"target": "http://127.0.0.1:1", "program": "/bin/true", "ledger": "/tmp/x", "root": "/tmp"}
	})
	run := r.Drive(r.Begin(w, `{}`, "k1").ID)
	if run.Status != engine.WaitingApproval || r.Script.Count("send", "write.plain") != 0 {
		t.Fatalf("got %+v", run)
	}
	r.Decide(run, engine.Approved, "fine")
	run = r.Drive(run.ID)
	if run.Status != engine.Completed || r.Script.Count("send", "write.plain") != 1 || r.Script.Count("call", "docs.read") != 1 {
		t.Fatalf("got %+v", run)
	}
	for _, s := range r.Steps(run.ID) {
		if s.Attempts != 1 || s.Status != "completed" {
			t.Errorf("step %s: %d attempts, %s", s.Path, s.Attempts, s.Status)
		}
	}
	t.Logf("%+v", run)
}
