package engine_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"countersign/internal/engine"
	. "countersign/internal/engine/enginetest"
	"countersign/internal/id"
	"countersign/internal/problem"
	"countersign/internal/store"
	"countersign/internal/tools"
)

// offline is what a rig needs whose world is a script.
func offline(o *engine.Options) {
	o.Config = tools.Config{"target": "http://127.0.0.1:1", "program": "/bin/true", "ledger": "/tmp/ledger", "root": "/tmp"}
}

// standing is a rig with a run of ReadThenWrite that nobody has driven.
func standing(t *testing.T, tool string, change ...func(*engine.Options)) (*Rig, engine.Run) {
	t.Helper()
	r := NewRig(t, NewLibrary(t, AllTools...), append([]func(*engine.Options){offline}, change...)...)
	return r, r.Begin(r.Lib.Add(t, ReadThenWrite(tool)), `{}`, "k")
}

// approved is a rig with a run whose write is approved and not driven.
func approved(t *testing.T, tool string, change ...func(*engine.Options)) (*Rig, engine.Run) {
	t.Helper()
	r, run := standing(t, tool, change...)
	run = r.Drive(run.ID)
	r.Decide(run, engine.Approved, "fine")
	return r, run
}

func wantStatus(t *testing.T, run engine.Run, status string) {
	t.Helper()
	if run.Status != status {
		t.Fatalf("the run is %s (%+v, waiting for %+v), want %s", run.Status, run.Error, run.WaitingFor, status)
	}
}

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	if !problem.HasCode(err, code) {
		t.Fatalf("the error is %v, want the problem %s", err, code)
	}
}

func TestDrive_ReadsAsksSendsOnceAndFinishes(t *testing.T) {
	r, run := standing(t, "write.plain")
	run = r.Drive(run.ID)
	wantStatus(t, run, engine.WaitingApproval)
	if n := r.Script.Count("send", "write.plain"); n != 0 {
		t.Fatalf("sent %d times before anybody approved", n)
	}
	if len(run.WaitingFor) != 1 || run.WaitingFor[0].Kind != engine.WaitApproval || run.WaitingFor[0].Path != "write" || run.Lease.Owner != "" {
		t.Errorf("waits for %+v with lease %+v", run.WaitingFor, run.Lease)
	}
	r.Decide(run, engine.Approved, "fine")
	run = r.Drive(run.ID)
	wantStatus(t, run, engine.Completed)
	if n, m := r.Script.Count("send", "write.plain"), r.Script.Count("call", "docs.read"); n != 1 || m != 1 {
		t.Errorf("sent %d times, read %d times, want 1 and 1", n, m)
	}
	for _, s := range r.Steps(run.ID) {
		if s.Attempts != 1 || s.Status != "completed" || len(s.Output) == 0 {
			t.Errorf("step %s: %d attempts, %s, output %s", s.Path, s.Attempts, s.Status, s.Output)
		}
	}
	if string(run.Output) != `{"done":"completed"}` {
		t.Errorf("the output is %s", run.Output)
	}
	if e := r.Effects(run.ID)[0]; e.Status != engine.Confirmed || e.ExternalRef != "ext-1" || e.Key == "" || len(e.Receipt) == 0 {
		t.Errorf("the effect is %+v", e)
	}
	r.View(func(ctx context.Context, q store.Querier) error {
		settled, err := Settlement(ctx, q, r.Effects(run.ID)[0].Approval)
		if settled != engine.Confirmed {
			t.Errorf("the request was told %q", settled)
		}
		return err
	})
}

func TestDrive_CommitsAsFewTimesAsItMay(t *testing.T) {
	r, run := standing(t, "write.plain")
	commits := func() uint64 { return r.DB.Stats().Transactions }
	before := commits()
	run = r.Drive(run.ID) // claim, read, proposal with release
	if n := commits() - before; n != 3 {
		t.Errorf("up to the request it took %d transactions, want 3", n)
	}
	r.Decide(run, engine.Approved, "fine")
	before = commits()
	r.Drive(run.ID) // claim, sent, outcome, the end
	if n := commits() - before; n != 4 {
		t.Errorf("after the approval it took %d transactions, want 4", n)
	}

	r2, run2 := standing(t, "write.plain")
	r2.Gate.Policy = func(engine.Proposal) string { return engine.Allowed }
	before = r2.DB.Stats().Transactions
	wantStatus(t, r2.Drive(run2.ID), engine.Completed) // claim, read, proposal and sent, outcome, the end
	if n := r2.DB.Stats().Transactions - before; n != 5 {
		t.Errorf("an allowed action took %d transactions, want 5", n)
	}
}

const gated = `
format: 1
workflow: gated
version: 1
title: Gated
input: {type: object, additionalProperties: false}
steps:
  - id: look
    call: docs.read
  - id: gate
    approve:
      title: "Read this"
      document: {text: "${steps.look.output.text}"}
    on_reject: {goto: look, max_passes: 2}
  - id: rest
    sleep: 1h
output: "${steps.gate.output.verdict}"
`

func TestDrive_DocumentIsPresentedDecidedAndSleptOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { documentLife(t, NewRig(t, NewLibrary(t, AllTools...), offline)) })
}

func documentLife(t *testing.T, r *Rig) {
	run := r.Drive(r.Begin(r.Lib.Add(t, gated), `{}`, "").ID)
	wantStatus(t, run, engine.WaitingApproval)
	r.Decide(run, engine.Rejected, "again, please")
	run = r.Drive(run.ID)
	wantStatus(t, run, engine.WaitingApproval)
	if n := r.Script.Count("call", "docs.read"); n != 2 {
		t.Errorf("read %d times, want once a pass", n)
	}
	r.Decide(run, engine.Approved, "good")
	run = r.Drive(run.ID)
	wantStatus(t, run, engine.Sleeping)
	time.Sleep(time.Until(run.WakeAt))
	run = r.Drive(run.ID)
	wantStatus(t, run, engine.Completed)
	if string(run.Output) != `"approve"` {
		t.Errorf("the output is %s", run.Output)
	}
	passes := 0
	for _, s := range r.Steps(run.ID) {
		if s.Path == "gate" {
			passes++
		}
	}
	if passes != 2 {
		t.Errorf("the gate has %d passes on record, want 2", passes)
	}
}

func TestCreate_SameRunKey(t *testing.T) {
	r, run := standing(t, "write.plain")
	w := r.Lib.Add(t, ReadThenWrite("write.plain"))
	same, created, err := r.TryBegin(w, `{}`, "k")
	if err != nil || created || same.ID != run.ID {
		t.Errorf("same key, workflow and input: %s, %t, %v; want the first run", same.ID, created, err)
	}
	_, _, err = r.TryBegin(w, `{"text":"other"}`, "k")
	wantCode(t, err, "run_key_taken")
	_, _, err = r.TryBegin(r.Lib.Add(t, gated), `{}`, "k")
	wantCode(t, err, "run_key_taken")
	_, _, err = r.TryBegin(w, `{}`, strings.Repeat("k", 201))
	wantCode(t, err, "run_key")
}

func TestBusinessKey_IsDoneOnce(t *testing.T) {
	src := strings.Replace(ReadThenWrite("write.plain"), "    reason:", "    key: \"w49\"\n    reason:", 1)
	r := NewRig(t, NewLibrary(t, AllTools...), offline)
	w := r.Lib.Add(t, src)
	r.Gate.Policy = func(engine.Proposal) string { return engine.Allowed }
	first := r.Begin(w, `{}`, "a")
	wantStatus(t, r.Drive(first.ID), engine.Completed)
	second := r.Drive(r.Begin(w, `{}`, "b").ID)
	wantStatus(t, second, engine.Failed)
	if second.Error.Class != "refused" || !strings.Contains(second.Error.Message, string(first.ID)) {
		t.Errorf("the error is %+v, want one that names the first run", second.Error)
	}
	if n := r.Script.Count("send", "write.plain"); n != 1 {
		t.Errorf("sent %d times, want once", n)
	}
}

func TestBusinessKey_IsFreeWhenNothingHappened(t *testing.T) {
	src := strings.Replace(ReadThenWrite("write.plain"), "    reason:", "    key: \"w49\"\n    reason:", 1)
	r := NewRig(t, NewLibrary(t, AllTools...), offline)
	w := r.Lib.Add(t, src)
	first := r.Drive(r.Begin(w, `{}`, "a").ID)
	if second := r.Drive(r.Begin(w, `{}`, "b").ID); second.Status != engine.Failed {
		t.Errorf("while the first waits, the second is %s", second.Status)
	}
	r.Decide(first, engine.Rejected, "no")
	wantStatus(t, r.Drive(first.ID), engine.RunRejected)
	third := r.Drive(r.Begin(w, `{}`, "c").ID)
	wantStatus(t, third, engine.WaitingApproval)
	a, b := r.Effects(first.ID)[0], r.Effects(third.ID)[0]
	if a.Key == b.Key || b.Generation != 2 {
		t.Errorf("the keys are %s and %s, generation %d; want the next generation", a.Key, b.Key, b.Generation)
	}
}

func TestOutput_LargerThanTheLimitFails(t *testing.T) {
	r, run := standing(t, "write.plain")
	r.Script.OnCall = func(context.Context, *tools.Tool, tools.Sending) tools.Outcome {
		return Done(`{"text":"` + strings.Repeat("x", engine.OutputBytesMax) + `"}`)
	}
	run = r.Drive(run.ID)
	wantStatus(t, run, engine.Failed)
	if run.Error.Class != "permanent" || run.Error.Code != "output_too_large" {
		t.Errorf("the error is %+v", run.Error)
	}
}

func TestCalls_AreRetriedByClass(t *testing.T) {
	for _, tt := range []struct {
		class    string
		attempts int
	}{
		{tools.ClassTransient, 3}, {tools.ClassPermanent, 1}, {tools.ClassDenied, 1}, {tools.ClassInvalid, 1}, {tools.ClassBug, 1},
	} {
		t.Run(tt.class, func(t *testing.T) {
			r, run := standing(t, "write.plain")
			r.Script.OnCall = func(context.Context, *tools.Tool, tools.Sending) tools.Outcome {
				return tools.Outcome{Status: tools.Failed, Class: tt.class, Message: "no"}
			}
			run = r.Drive(run.ID)
			wantStatus(t, run, engine.Failed)
			if s := r.Steps(run.ID)[0]; s.Attempts != tt.attempts || s.ErrorClass != tt.class {
				t.Errorf("%d attempts, class %s; want %d", s.Attempts, s.ErrorClass, tt.attempts)
			}
		})
	}
}

func TestPanic_InATransportIsABugOfThatStepAlone(t *testing.T) {
	r, run := standing(t, "write.plain")
	r.Script.OnCall = func(context.Context, *tools.Tool, tools.Sending) tools.Outcome { panic("nil map") }
	run = r.Drive(run.ID)
	wantStatus(t, run, engine.Failed)
	if run.Error.Class != "bug" {
		t.Errorf("the error is %+v", run.Error)
	}
	r, run = approved(t, "write.plain")
	r.Script.OnSend = func(context.Context, *tools.Tool, tools.Sending) tools.Outcome { panic("nil map") }
	run = r.Drive(run.ID)
	wantStatus(t, run, engine.Blocked)
	if e := r.Effects(run.ID)[0]; e.Status != engine.Unknown {
		t.Errorf("the effect of a broken sending is %s", e.Status)
	}
}

func TestAskPerson_ResumeTriesAgain(t *testing.T) {
	src := strings.Replace(ReadThenWrite("write.plain"), `    retry: {max_attempts: 3`, "    on_error: ask_person\n    retry: {max_attempts: 3", 1)
	r := NewRig(t, NewLibrary(t, AllTools...), offline)
	fails := true
	r.Script.OnCall = func(context.Context, *tools.Tool, tools.Sending) tools.Outcome {
		if fails {
			return tools.Outcome{Status: tools.Failed, Class: tools.ClassPermanent, Message: "gone"}
		}
		return Done(`{"text":"x"}`)
	}
	run := r.Drive(r.Begin(r.Lib.Add(t, src), `{}`, "").ID)
	wantStatus(t, run, engine.Blocked)
	fails = false
	run, err := r.Engine.DriveFrom(t.Context(), run.ID, run.Version, Person)
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, run, engine.WaitingApproval)
	if r.Recorded("run.resume") != 1 {
		t.Errorf("the person's resume is not on record")
	}
}

// A person's resume answers for the failure that they saw, and for no later one:
// nobody asked for another try of that.
func TestAskPerson_ResumeDoesNotAnswerForALaterFailure(t *testing.T) {
	src := strings.Replace(ReadThenWrite("write.plain"), `    retry: {max_attempts: 3`, "    on_error: ask_person\n    retry: {max_attempts: 3", 1)
	r := NewRig(t, NewLibrary(t, AllTools...), offline)
	tries := 0
	r.Script.OnCall = func(context.Context, *tools.Tool, tools.Sending) tools.Outcome {
		tries++
		return tools.Outcome{Status: tools.Failed, Class: tools.ClassPermanent, Message: "gone"}
	}
	run := r.Begin(r.Lib.Add(t, src), `{}`, "")
	for _, c := range []struct {
		by    engine.Actor
		tries int
	}{{Person, 1}, {Person, 2}, {engine.Actor{Kind: engine.ActorEngine}, 2}, {Person, 3}} {
		run, err := r.Engine.DriveFrom(t.Context(), run.ID, -1, c.by)
		if err != nil {
			t.Fatal(err)
		}
		wantStatus(t, run, engine.Blocked)
		if tries != c.tries {
			t.Fatalf("after a resume by %s there were %d tries, want %d", c.by.Kind, tries, c.tries)
		}
	}
}

func TestRuns_ArePagedAndFiltered(t *testing.T) {
	r := NewRig(t, NewLibrary(t, AllTools...), offline)
	w := r.Lib.Add(t, ReadThenWrite("write.plain"))
	var made []id.Run
	for i := range 7 {
		made = append(made, r.Begin(w, `{}`, "key-"+string(rune('a'+i))).ID)
		time.Sleep(time.Millisecond)
	}
	r.View(func(ctx context.Context, q store.Querier) error {
		var got []id.Run
		cursor := ""
		for {
			page, next, err := r.Engine.Runs(ctx, q, engine.Filter{Tenant: Tenant, Limit: 3, Cursor: cursor})
			if err != nil {
				return err
			}
			for _, run := range page {
				got = append(got, run.ID)
			}
			if cursor = next; next == "" {
				break
			}
		}
		if len(got) != len(made) || got[0] != made[6] || got[6] != made[0] {
			t.Errorf("pages give %v, want %v backwards", got, made)
		}
		page, _, err := r.Engine.Runs(ctx, q, engine.Filter{Tenant: Tenant, Q: "KEY-C", Status: engine.Queued, Workflow: w.Name, Initiator: "usr_ben"})
		if err != nil || len(page) != 1 || page[0].ID != made[2] {
			t.Errorf("filtered: %v, %v", page, err)
		}
		if page, _, err = r.Engine.Runs(ctx, q, engine.Filter{Tenant: "other"}); err != nil || len(page) != 0 {
			t.Errorf("another tenant sees %v, %v", page, err)
		}
		_, err = r.Engine.Run(ctx, q, "other", made[0])
		wantCode(t, err, "not_found")
		_, _, err = r.Engine.Runs(ctx, q, engine.Filter{Tenant: Tenant, Limit: 201})
		wantCode(t, err, "limit")
		_, _, err = r.Engine.Runs(ctx, q, engine.Filter{Tenant: Tenant, Cursor: "x"})
		wantCode(t, err, "cursor")
		return nil
	})
}
