package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"countersign/internal/engine"
	. "countersign/internal/engine/enginetest"
	"countersign/internal/tools"
	"countersign/internal/workflow"
)

// heard keeps what an observer is told.
type heard struct {
	mu    sync.Mutex // protects what follows
	facts []engine.Fact
	spans []engine.Span
}

func (h *heard) Note(f engine.Fact) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.facts = append(h.facts, f)
}

func (h *heard) Span(s engine.Span) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.spans = append(h.spans, s)
}

// count counts the facts of a kind with the outcome; "" is any.
func (h *heard) count(kind, outcome string) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.facts {
		if f.Kind == kind && (outcome == "" || f.Outcome == outcome) {
			n++
		}
	}
	return n
}

// Every line about a step says whose it is, and none says what was sent, what
// came back or why it failed: that is in the record, for who may read it.
func TestLogs_LinesAboutAStepSayWhose(t *testing.T) {
	const private = "the private text"
	var log bytes.Buffer
	r := NewRig(t, NewLibrary(t, AllTools...), offline, func(o *engine.Options) {
		o.Logger = slog.New(slog.NewJSONHandler(&log, nil))
		o.Crash = CrashAt(t, "after-effect:write")
	})
	calls, questions := 0, 0
	r.Script.OnCall = func(context.Context, *tools.Tool, tools.Sending) tools.Outcome {
		if calls++; calls == 1 {
			return tools.Outcome{Status: tools.Failed, Class: tools.ClassTransient, Message: "The target said: " + private}
		}
		return Done(`{"text":"` + private + `"}`)
	}
	r.Script.OnQuery = func(_ context.Context, _ *tools.Tool, s tools.Sending) tools.Answer {
		if questions++; questions == 1 {
			return tools.Answer{DidNot: true, Outcome: tools.Outcome{Message: private}}
		}
		return tools.Answer{Unknown: true, Outcome: tools.Outcome{Message: private}}
	}
	r.Script.OnSend = func(_ context.Context, _ *tools.Tool, s tools.Sending) tools.Outcome {
		s.Logger.Info("tool call", "tool", "write.query") // as the world does
		if s.Attempt == 1 {
			return Done(`{"ok":true}`)
		}
		return tools.Outcome{Status: tools.Refused, Class: tools.ClassRefused, Message: private}
	}
	run := r.Begin(r.Lib.Add(t, ReadThenWrite("write.query")), `{"text":"`+private+`"}`, "")
	r.Decide(r.Drive(run.ID), engine.Approved, "")
	if !r.CrashingDrive(run.ID) {
		t.Fatal("the drive did not crash")
	}
	r.Restart()
	wantStatus(t, r.Drive(run.ID), engine.Failed)

	if strings.Contains(log.String(), private) {
		t.Errorf("the log tells what was sent or received:\n%s", log.String())
	}
	about := map[string]bool{}
	for line := range strings.Lines(log.String()) {
		var l map[string]any
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		if l["step"] == nil {
			continue
		}
		about[l["msg"].(string)] = true
		if l["run"] != string(run.ID) || l["trace_id"] != run.TraceID || l["workflow"] != run.Workflow {
			t.Errorf("the line does not say whose run: %s", line)
		}
		if key, _ := l["idempotency_key"].(string); key == "" || l["pass"] == nil || l["attempt"] == nil || l["attempt"] == float64(0) {
			t.Errorf("the line does not say whose try: %s", line)
		}
	}
	for _, msg := range []string{"try failed", "step completed", "sent", "asked the target", "tool call"} {
		if !about[msg] {
			t.Errorf("no line %q about a step; there are %v", msg, about)
		}
	}
}

// What a crash left open is told by whoever takes over.
func TestObserver_HearsOfCrashAndTakeover(t *testing.T) {
	h := &heard{}
	r := NewRig(t, NewLibrary(t, AllTools...), offline, func(o *engine.Options) {
		o.Observer = h
		o.Crash = CrashAt(t, "after-effect:write")
	})
	run := r.Begin(r.Lib.Add(t, ReadThenWrite("write.plain")), `{"text":"x"}`, "")
	r.Decide(r.Drive(run.ID), engine.Approved, "")
	if !r.CrashingDrive(run.ID) {
		t.Fatal("the drive did not crash")
	}
	r.Restart()
	wantStatus(t, r.Drive(run.ID), engine.Blocked)
	eff := r.Effects(run.ID)[0]
	if _, err := r.Engine.Resolve(t.Context(), eff.ID, engine.Resolution{Outcome: engine.Happened, Evidence: "I looked."}, Person); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, r.Drive(run.ID), engine.Completed)
	r.DB.Close() // and with it what follows the commits
	for what, n := range map[[2]string]int{
		{engine.FactTakeover, engine.TakeoverRestart}: 1, {engine.FactResume, engine.ResumeStart}: 1, {engine.FactResume, engine.ResumeApproval}: 1,
		{engine.FactResume, engine.ResumeTakeover}: 1, {engine.FactResume, engine.ResumeQueue}: 1, {engine.FactBlocked, engine.CauseUnknown}: 1,
		{engine.FactEffect, engine.Unknown}: 1, {engine.FactEffect, engine.Confirmed}: 1, {engine.FactStep, "completed"}: 3, {engine.FactRun, engine.Completed}: 1,
		{engine.FactRepeat, ""}: 0, {engine.FactFenced, ""}: 0,
	} {
		if got := h.count(what[0], what[1]); got != n {
			t.Errorf("heard of %v %d times, want %d", what, got, n)
		}
	}
	lost := map[string]int{}
	for _, s := range h.spans {
		if s.Outcome == engine.OutcomeLost {
			lost[s.Kind]++
		}
	}
	if lost[engine.SpanDrive] != 1 || lost[engine.SpanAttempt] != 1 || lost[engine.SpanSend] != 1 {
		t.Errorf("what the crash left open: %v", lost)
	}
}

// A cancelled run has ended, too; one whose driver lost it is told as that.
func TestObserver_HearsOfCancelAndFence(t *testing.T) {
	h := &heard{}
	r := NewRig(t, NewLibrary(t, AllTools...), offline, func(o *engine.Options) { o.Observer = h })
	run := r.Begin(r.Lib.Add(t, ReadThenWrite("write.plain")), `{"text":"x"}`, "")
	r.Script.OnCall = func(context.Context, *tools.Tool, tools.Sending) tools.Outcome {
		r.Exec("UPDATE run SET fence = fence + 1, lease_owner = NULL, lease_until = NULL, status = 'queued' WHERE id = $1", string(run.ID))
		return Done(`{"text":"x"}`)
	}
	r.Drive(run.ID)
	if _, err := r.Engine.Cancel(t.Context(), run.ID, "No longer wanted.", Person); err != nil {
		t.Fatal(err)
	}
	r.DB.Close()
	if h.count(engine.FactFenced, "") != 1 || h.count(engine.FactRun, engine.Cancelled) != 1 {
		t.Errorf("heard %+v", h.facts)
	}
}

// An event ends a pass, leaves it open, or is the run's own: a new one must be
// put in its place, or the metrics would not count it.
func TestObserver_KnowsEveryEventThatEndsAStep(t *testing.T) {
	runs := map[workflow.EventKind]bool{workflow.Started: true, workflow.Migrated: true, workflow.Cancelled: true, workflow.Finished: true}
	for _, kind := range workflow.Kinds {
		n := 0
		for _, in := range []bool{engine.Ends(kind), engine.LeavesOpen(kind), runs[kind]} {
			if in {
				n++
			}
		}
		if n != 1 {
			t.Errorf("event %s is in %d of the three groups", kind, n)
		}
	}
}
