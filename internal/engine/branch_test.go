package engine_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"countersign/internal/engine"
	. "countersign/internal/engine/enginetest"
	"countersign/internal/id"
	"countersign/internal/store"
	"countersign/internal/tools"

	"github.com/google/go-cmp/cmp"
)

// branched is a rig with a run of two branches that nobody has driven.
func branched(t *testing.T, source string, change ...func(*engine.Options)) (*Rig, engine.Run) {
	t.Helper()
	r := NewRig(t, NewLibrary(t, AllTools...), append([]func(*engine.Options){offline}, change...)...)
	return r, r.Begin(r.Lib.Add(t, source), `{}`, "k")
}

func waits(run engine.Run) (all []string) {
	for _, w := range run.WaitingFor {
		all = append(all, w.Kind+" "+w.Path)
	}
	return all
}

func wantWaits(t *testing.T, run engine.Run, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, waits(run)); diff != "" {
		t.Fatalf("the run, %s, waits for (-want +got):\n%s", run.Status, diff)
	}
}

// decideAt rules on the request that the step waits for.
func decideAt(t *testing.T, r *Rig, run engine.Run, path, status string) {
	t.Helper()
	i := slices.IndexFunc(run.WaitingFor, func(w engine.Waiting) bool { return w.Kind == engine.WaitApproval && w.Path == path })
	if i < 0 {
		t.Fatalf("%s waits for no approval: %v", path, waits(run))
	}
	r.DecideRequest(run.ID, id.Approval(run.WaitingFor[i].Subject), status, "said")
}

func TestBranches_OneGoesOnWhileTheOtherWaits(t *testing.T) {
	r, run := branched(t, TwoBranches("write.plain", "write.query"))
	run = r.Drive(run.ID)
	wantStatus(t, run, engine.WaitingApproval)
	wantWaits(t, run, "approval both/left/write", "approval both/right/send")
	if run.WaitingFor[0].Subject == run.WaitingFor[1].Subject {
		t.Fatalf("both branches wait for %s", run.WaitingFor[0].Subject)
	}
	decideAt(t, r, run, "both/right/send", engine.Approved)
	run = r.Drive(run.ID)
	wantWaits(t, run, "approval both/left/write")
	if l, q := r.Script.Count("send", "write.plain"), r.Script.Count("send", "write.query"); l != 0 || q != 1 {
		t.Fatalf("sent %d left and %d right; only the right was approved", l, q)
	}
	decideAt(t, r, run, "both/left/write", engine.Approved)
	run = r.Drive(run.ID)
	wantStatus(t, run, engine.Completed)
	if want := `{"left":{"ok":true},"right":{"ok":true}}`; string(run.Output) != want {
		t.Errorf("the output is %s, want %s", run.Output, want)
	}
	keys := map[string]bool{}
	for _, e := range r.Effects(run.ID) {
		keys[e.Key] = true
	}
	if len(keys) != 2 {
		t.Errorf("two effects have %d keys", len(keys))
	}
}

func TestBranches_TheMostUrgentStatusShowsAndTheOtherBranchGoesOn(t *testing.T) {
	r, run := branched(t, strings.Replace(TwoBranches("write.plain", "write.query"), "with: {text: \"${steps.look.output.text} left\"}", "with: {text: \"${steps.look.output.text} left\"}\n          on_error: ask_person", 1))
	r.Script.OnSend = func(_ context.Context, t *tools.Tool, _ tools.Sending) tools.Outcome {
		if t.Name == "write.plain" {
			return tools.Outcome{Status: tools.Refused, Class: "refused", Message: "no"}
		}
		return Done(`1`)
	}
	run = r.Drive(run.ID)
	decideAt(t, r, run, "both/left/write", engine.Approved)
	run = r.Drive(run.ID)
	wantStatus(t, run, engine.Blocked)
	wantWaits(t, run, "person both/left/write", "approval both/right/send")
	decideAt(t, r, run, "both/right/send", engine.Approved)
	if run = r.Run(run.ID); run.WakeAt.IsZero() {
		t.Fatal("a decision in a branch does not wake a run whose other branch is blocked")
	}
	run = r.Drive(run.ID)
	wantWaits(t, run, "person both/left/write")
	if n := r.Script.Count("send", "write.query"); n != 1 {
		t.Errorf("the other branch was sent %d times, want once", n)
	}
}

func TestBranches_ARejectionTakesTheOthersBack(t *testing.T) {
	r, run := branched(t, TwoBranches("write.plain", "write.query"))
	run = r.Drive(run.ID)
	left := run.WaitingFor[0].Subject
	decideAt(t, r, run, "both/right/send", engine.Rejected)
	run = r.Drive(run.ID)
	wantStatus(t, run, engine.RunRejected)
	for _, e := range r.Effects(run.ID) {
		if e.Status != engine.Abandoned || e.Attempts != 0 {
			t.Errorf("effect of %s is %s after %d tries", e.Path, e.Status, e.Attempts)
		}
	}
	if got := r.Ruling(id.Approval(left)); got.Status != engine.Withdrawn {
		t.Errorf("the request of the other branch is %s, want withdrawn", got.Status)
	}
	for _, s := range r.Steps(run.ID) {
		if s.Status == "waiting" {
			t.Errorf("step %s still waits", s.Path)
		}
	}
}

func TestBranches_WhatWasSentIsKnownBeforeARejectionEndsTheRun(t *testing.T) {
	r, run := branched(t, TwoBranches("write.query", "write.plain"))
	happened := false
	r.Script.OnSend = func(context.Context, *tools.Tool, tools.Sending) tools.Outcome {
		return tools.Outcome{Status: tools.Unknown, Message: "no answer"}
	}
	r.Script.OnQuery = func(context.Context, *tools.Tool, tools.Sending) tools.Answer {
		if happened {
			return tools.Answer{Happened: true, Outcome: Done(`{"found":1}`)}
		}
		return tools.Answer{Unknown: true}
	}
	run = r.Drive(run.ID)
	decideAt(t, r, run, "both/left/write", engine.Approved)
	decideAt(t, r, run, "both/right/send", engine.Rejected)
	happened = true
	run = r.Drive(run.ID)
	wantStatus(t, run, engine.RunRejected)
	effects := r.Effects(run.ID)
	i := slices.IndexFunc(effects, func(e engine.Effect) bool { return e.Path == "both/left/write" })
	if effects[i].Status != engine.Confirmed {
		t.Errorf("the effect of the other branch is %s, want confirmed", effects[i].Status)
	}
	if n := r.Script.Count("send", "write.query"); n != 1 {
		t.Errorf("sent %d times", n)
	}
}

func TestBranches_AnUnknownEffectHoldsTheEndForAPerson(t *testing.T) {
	r, run := branched(t, TwoBranches("write.plain", "write.query"))
	r.Script.OnSend = func(context.Context, *tools.Tool, tools.Sending) tools.Outcome {
		return tools.Outcome{Status: tools.Unknown, Message: "no answer"}
	}
	run = r.Drive(run.ID)
	decideAt(t, r, run, "both/left/write", engine.Approved)
	decideAt(t, r, run, "both/right/send", engine.Rejected)
	run = r.Drive(run.ID)
	wantStatus(t, run, engine.Blocked)
	effects := r.Effects(run.ID)
	i := slices.IndexFunc(effects, func(e engine.Effect) bool { return e.Status == engine.Unknown })
	if i < 0 {
		t.Fatalf("no effect is unknown: %+v", effects)
	}
	if _, err := r.Engine.Resolve(t.Context(), effects[i].ID, engine.Resolution{Outcome: engine.Happened, Evidence: "seen"}, Person); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, r.Drive(run.ID), engine.RunRejected)
}

// TestBranches_AKillInAnyWindowSendsOnceAtMost kills the driver in each window
// of each step of both branches, with the other branch open.
func TestBranches_AKillInAnyWindowSendsOnceAtMost(t *testing.T) {
	kill := func(tool, policy, path, window string) {
		t.Run(strings.Join([]string{tool, policy, window, path}, " "), func(t *testing.T) { killed(t, tool, policy, window+":"+path) })
	}
	for _, policy := range []string{engine.Pending, engine.Allowed} {
		for _, w := range engine.Windows {
			if policy == engine.Allowed && w.Of == "intent" && w.Name != "after-sent-commit" {
				continue // what is allowed is sent by the commit of its proposal
			}
			for _, path := range []string{"both/left/write", "both/right/send"} {
				kill("write.keyquery", policy, path, w.Name)
				kill("write.plain", policy, path, w.Name)
			}
			for _, path := range []string{"both/left/look", "both/right/seek", "both", "sum"} {
				if w.Of == "checkpoint" {
					kill("write.plain", policy, path, w.Name)
				}
			}
		}
	}
}

func killed(t *testing.T, tool, policy, point string) {
	r, run := branched(t, TwoBranches(tool, tool))
	r.Gate.Policy = func(engine.Proposal) string { return policy }
	sent := map[string]int{}
	r.Script.OnSend = func(_ context.Context, _ *tools.Tool, s tools.Sending) tools.Outcome {
		sent[s.Key]++
		return Done(`{"ok":true}`)
	}
	r.Script.OnQuery = func(_ context.Context, _ *tools.Tool, s tools.Sending) tools.Answer {
		if sent[s.Key] > 0 {
			return tools.Answer{Happened: true, Outcome: Done(`{"ok":true}`)}
		}
		return tools.Answer{DidNot: true}
	}
	hook := CrashAt(t, point)
	r.Restart(func(o *engine.Options) { o.Crash = hook })
	crashed := false
	for range 6 {
		if r.CrashingDrive(run.ID) {
			crashed = true
			r.Restart()
		}
		now := r.Run(run.ID)
		if engine.Final(now.Status) {
			break
		}
		for _, w := range now.WaitingFor {
			if w.Kind == engine.WaitApproval {
				r.DecideRequest(run.ID, id.Approval(w.Subject), engine.Approved, "fine")
			}
		}
	}
	if !crashed {
		t.Errorf("the run does not pass %s", point)
	}
	now := r.Run(run.ID)
	unknown := 0
	for _, e := range r.Effects(run.ID) {
		if e.Status == engine.Unknown {
			unknown++
		}
	}
	if now.Status != engine.Completed && !(tool == "write.plain" && now.Status == engine.Blocked && unknown > 0) {
		t.Errorf("the run is %s, waiting for %v (%+v)", now.Status, waits(now), now.Error)
	}
	for key, n := range sent {
		if n > 1 {
			t.Errorf("%s was sent %d times", key, n)
		}
	}
	if now.Status == engine.Completed && len(sent) != 2 {
		t.Errorf("%d effects happened, want 2", len(sent))
	}
}

func TestBranches_ACancelTakesBackBoth(t *testing.T) {
	r, run := branched(t, TwoBranches("write.plain", "write.query"))
	run = r.Drive(run.ID)
	run, err := r.Engine.Cancel(t.Context(), run.ID, "not needed", Person)
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, run, engine.Cancelled)
	for _, e := range r.Effects(run.ID) {
		if e.Status != engine.Abandoned {
			t.Errorf("effect of %s is %s", e.Path, e.Status)
		}
	}
}

func TestBranches_AQuestionOfAnotherBranchIsWithdrawnAtTheEnd(t *testing.T) {
	source := strings.Replace(TwoBranches("write.plain", "write.query"), "- {id: seek, call: docs.read, with: {q: \"r\"}, retry: {max_attempts: 3, base: 10ms, max_delay: 50ms, budget: 1m}}",
		"- {id: seek, ask: \"What?\", form: {type: object, required: [text], properties: {text: {type: string}}}}", 1)
	r, run := branched(t, source)
	run = r.Drive(run.ID)
	wantStatus(t, run, engine.WaitingApproval)
	wantWaits(t, run, "approval both/left/write", "input both/right/seek")
	decideAt(t, r, run, "both/left/write", engine.Rejected)
	wantStatus(t, r.Drive(run.ID), engine.RunRejected)
	r.View(func(ctx context.Context, q store.Querier) error {
		asked, err := r.Engine.Question(ctx, q, Tenant, run.ID, "both/right/seek", 1)
		if err == nil && asked.Status != engine.QuestionWithdrawn {
			t.Errorf("the question is %s, want withdrawn", asked.Status)
		}
		return err
	})
	_, err := r.Engine.Answer(t.Context(), engine.Answer{Tenant: Tenant, Run: run.ID, Path: "both/right/seek", Value: []byte(`{"text":"x"}`)}, Person)
	wantCode(t, err, "question_closed")
}
