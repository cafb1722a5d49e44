package engine_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"countersign/internal/engine"
	. "countersign/internal/engine/enginetest"
	"countersign/internal/store"
	"countersign/internal/tools"
)

// losing is a world that loses the first n answers.
func losing(r *Rig, n int) {
	r.Script.OnSend = func(context.Context, *tools.Tool, tools.Sending) tools.Outcome {
		if n--; n >= 0 {
			return tools.Outcome{Status: tools.Unknown, Class: tools.ClassUnknown, Code: tools.CodeNoAnswer, Message: "No answer came."}
		}
		return Done(`{"ok":true}`)
	}
}

func TestReconcile_AsksTheTargetFirst(t *testing.T) {
	r, run := approved(t, "write.keyquery")
	losing(r, 1)
	r.Script.OnQuery = func(_ context.Context, _ *tools.Tool, s tools.Sending) tools.Answer {
		if s.Key == "" || s.SentAt.IsZero() || len(s.Params) == 0 {
			t.Errorf("asked with %+v", s)
		}
		return tools.Answer{Happened: true, Outcome: Done(`{"found":1}`), Evidence: json.RawMessage(`{"items":1}`)}
	}
	wantStatus(t, r.Drive(run.ID), engine.Completed)
	if n, m := r.Script.Count("send", "write.keyquery"), r.Script.Count("query", "write.keyquery"); n != 1 || m != 1 {
		t.Errorf("sent %d times, asked %d times", n, m)
	}
	e := full(r, r.Effects(run.ID)[0])
	if e.Status != engine.Confirmed || len(e.Late) != 1 || e.Late[0].Kind != engine.EvidenceQuery || e.Evidence == "" {
		t.Errorf("the effect is %+v", e)
	}
	if out := r.Steps(run.ID)[1].Output; string(out) != `{"found":1}` {
		t.Errorf("the output is %s", out)
	}
}

func full(r *Rig, e engine.Effect) (got engine.Effect) {
	r.View(func(ctx context.Context, q store.Querier) (err error) {
		got, err = r.Engine.Effect(ctx, q, Tenant, e.ID)
		return err
	})
	return got
}

func TestReconcile_SendsAgainWhatDidNotHappen(t *testing.T) {
	r, run := approved(t, "write.query")
	losing(r, 1)
	r.Script.OnQuery = func(context.Context, *tools.Tool, tools.Sending) tools.Answer { return tools.Answer{DidNot: true} }
	wantStatus(t, r.Drive(run.ID), engine.Completed)
	if e := r.Effects(run.ID)[0]; e.Status != engine.Confirmed || e.Attempts != 2 || r.Script.Count("send", "write.query") != 2 {
		t.Errorf("the effect is %s after %d attempts", e.Status, e.Attempts)
	}
}

func TestReconcile_SendsTheSameKeyAgainWhereThatIsSafe(t *testing.T) {
	r, run := approved(t, "write.key")
	var keys []string
	losing(r, 1)
	inner := r.Script.OnSend
	r.Script.OnSend = func(ctx context.Context, tool *tools.Tool, s tools.Sending) tools.Outcome {
		keys = append(keys, s.Key)
		return inner(ctx, tool, s)
	}
	wantStatus(t, r.Drive(run.ID), engine.Completed)
	if len(keys) != 2 || keys[0] != keys[1] {
		t.Errorf("the keys were %v, want the same twice", keys)
	}
}

func TestReconcile_NeverPastTheKeysLife(t *testing.T) {
	r, run := approved(t, "write.key")
	hook := CrashAt(t, "after-effect:write")
	r.Restart(func(o *engine.Options) { o.Crash = hook })
	if !r.CrashingDrive(run.ID) {
		t.Fatal("no crash")
	}
	r.Exec(`UPDATE effect SET key_expires_at = sent_at + 1`)
	r.Restart()
	wantStatus(t, r.Drive(run.ID), engine.Blocked)
	if n := r.Script.Count("send", "write.key"); n != 1 {
		t.Errorf("sent %d times with a key that the target has forgotten", n)
	}
}

// A refusal of the same key sent again says nothing of the first time: the
// target may refuse because of what that did. Found by simulation, seed 1214.
func TestReconcile_RefusedWhenSentAgain_StaysUnknown(t *testing.T) {
	r := NewRig(t, NewLibrary(t, AllTools...), offline)
	tries := 0
	r.Script.OnSend = func(context.Context, *tools.Tool, tools.Sending) tools.Outcome {
		tries++
		if tries == 1 {
			return tools.Outcome{Status: tools.Unknown, Class: tools.ClassUnknown, Message: "No answer came."}
		}
		return tools.Outcome{Status: tools.Refused, Class: tools.ClassRefused, Message: "The order is refunded already."}
	}
	run := r.Begin(r.Lib.Add(t, ReadThenWrite("write.key")), `{}`, "k")
	r.Gate.Policy = func(engine.Proposal) string { return engine.Allowed }
	got := r.Drive(run.ID)
	if e := r.Effects(run.ID)[0]; got.Status != engine.Blocked || e.Status != engine.Unknown || tries < 2 {
		t.Errorf("after %d tries the run is %s and its effect %s, want blocked for a person and unknown", tries, got.Status, e.Status)
	}
}

func TestReconcile_AgainOnlyWhenStillAdmitted(t *testing.T) {
	r, run := approved(t, "write.key")
	losing(r, 1)
	hook := CrashAt(t, "after-effect:write")
	r.Restart(func(o *engine.Options) { o.Crash = hook })
	r.CrashingDrive(run.ID)
	r.Restart()
	for verdict := range map[string]bool{engine.VerdictExpired: true, engine.VerdictDenied: true, engine.VerdictRenewed: true, engine.VerdictBlocked: true} {
		r.Gate.Verdict = func(id approvalID) (string, string) { return verdict, "not any more" }
		got, err := r.Engine.DriveFrom(t.Context(), run.ID, -1, Person)
		if err != nil || got.Status != engine.Blocked || got.Error.Code != "outcome_unknown" {
			t.Errorf("%s: %s, %+v, %v", verdict, got.Status, got.Error, err)
		}
	}
	if e := r.Effects(run.ID)[0]; e.Status != engine.Unknown || r.Script.Count("send", "write.key") != 1 {
		t.Errorf("the effect is %s, sent %d times", e.Status, r.Script.Count("send", "write.key"))
	}
	r.View(func(ctx context.Context, q store.Querier) error {
		ruling, err := r.Gate.Ruling(ctx, q, r.Effects(run.ID)[0].Approval)
		if ruling.Revision != 1 {
			t.Errorf("an unknown effect got revision %d", ruling.Revision)
		}
		return err
	})
}

func TestReconcile_ATryThatDidNotHappenSaysNothingOfTheOneBefore(t *testing.T) {
	r, run := approved(t, "write.key")
	sent := 0
	r.Script.OnSend = func(context.Context, *tools.Tool, tools.Sending) tools.Outcome {
		if sent++; sent == 1 {
			return tools.Outcome{Status: tools.Unknown, Class: tools.ClassUnknown}
		}
		return tools.Outcome{Status: tools.NotDone, Class: tools.ClassTransient, Message: "connection refused"}
	}
	got := once(t, r, run.ID)
	if e := r.Effects(run.ID)[0]; e.Status != engine.Unknown || sent < 2 {
		t.Errorf("after %d tries the effect is %s and the run %s; want unknown", sent, e.Status, got.Status)
	}
}

func TestReconcile_EndsWithAPerson(t *testing.T) {
	r, run := approved(t, "write.plain")
	losing(r, 1)
	run = r.Drive(run.ID)
	wantStatus(t, run, engine.Blocked)
	w := run.WaitingFor[0]
	if w.Kind != engine.WaitPerson || w.Subject != string(r.Effects(run.ID)[0].ID) || w.ErrorClass != "unknown" {
		t.Errorf("it waits for %+v", w)
	}
	if list := attention(r); len(list) != 1 || list[0].Cause != engine.CauseUnknown || list[0].Effect == "" || list[0].Next == "" {
		t.Errorf("the attention list is %+v", list)
	}
	// Retry, resume, a new drive: nothing sends it again.
	if _, err := r.Engine.DriveFrom(t.Context(), run.ID, run.Version, Person); err != nil {
		t.Fatal(err)
	}
	if n := r.Script.Count("send", "write.plain"); n != 1 {
		t.Errorf("sent %d times", n)
	}
}

func TestReconcile_WaitsForAChildThatStillRuns(t *testing.T) {
	r, run := approved(t, "write.query")
	losing(r, 1)
	left := 1
	r.Script.OnRunning = func(string) (bool, error) { left--; return left >= 0, nil }
	r.Script.OnQuery = func(context.Context, *tools.Tool, tools.Sending) tools.Answer {
		if left >= 0 {
			t.Error("asked while a child still runs")
		}
		return tools.Answer{Happened: true, Outcome: Done(`{}`)}
	}
	wantStatus(t, r.Drive(run.ID), engine.Completed)
}

func TestReconcile_QuestionsAreBounded(t *testing.T) {
	r, run := approved(t, "write.query")
	losing(r, 1)
	r.Script.OnQuery = func(context.Context, *tools.Tool, tools.Sending) tools.Answer { return tools.Answer{Unknown: true} }
	for range 3 * engine.ReconcileMax {
		r.Exec(`UPDATE effect SET reconcile_at = 1 WHERE status = 'unknown'`)
		if run = once(t, r, run.ID); run.Status == engine.Blocked {
			break
		}
		if run.Status != engine.Retrying || run.WaitingFor[0].Kind != engine.WaitRetry || run.WaitingFor[0].Until.IsZero() {
			t.Fatalf("between questions the run is %s, waiting for %+v", run.Status, run.WaitingFor)
		}
	}
	wantStatus(t, run, engine.Blocked)
	if n := r.Script.Count("query", "write.query"); n != engine.ReconcileMax {
		t.Errorf("asked %d times, want %d", n, engine.ReconcileMax)
	}
}

func TestSend_RefusedAndNotDone(t *testing.T) {
	r, run := approved(t, "write.plain")
	r.Script.OnSend = func(context.Context, *tools.Tool, tools.Sending) tools.Outcome {
		return tools.Outcome{Status: tools.Refused, Class: tools.ClassRefused, Message: "409"}
	}
	run = r.Drive(run.ID)
	wantStatus(t, run, engine.Failed)
	if e := r.Effects(run.ID)[0]; e.Status != engine.Refused || run.Error.Class != "refused" {
		t.Errorf("the effect is %s, the error %+v", e.Status, run.Error)
	}

	r, run = approved(t, "write.plain")
	sent := 0
	r.Script.OnSend = func(context.Context, *tools.Tool, tools.Sending) tools.Outcome {
		if sent++; sent < 3 {
			return tools.Outcome{Status: tools.NotDone, Class: tools.ClassTransient, Message: "429"}
		}
		return Done(`{}`)
	}
	wantStatus(t, r.Drive(run.ID), engine.Completed)
	if s := r.Steps(run.ID)[1]; s.Attempts != 3 {
		t.Errorf("%d attempts on record, want 3", s.Attempts)
	}

	r, run = approved(t, "write.plain")
	r.Script.OnSend = func(context.Context, *tools.Tool, tools.Sending) tools.Outcome {
		return tools.Outcome{Status: tools.NotDone, Class: tools.ClassTransient, Message: "429"}
	}
	wantStatus(t, r.Drive(run.ID), engine.Failed)
	if e := r.Effects(run.ID)[0]; e.Status != engine.NotDone || e.Attempts != 4 {
		t.Errorf("the effect is %s after %d attempts, want not_done after the 4 that the step allows", e.Status, e.Attempts)
	}
}

func TestSend_ConfirmedWithAnOutputThatDoesNotFit(t *testing.T) {
	r, run := approved(t, "write.plain")
	r.Script.OnSend = func(context.Context, *tools.Tool, tools.Sending) tools.Outcome {
		out := Done(`{}`)
		out.Class, out.Code, out.Message = tools.ClassIncompatible, tools.CodeOutput, "the output does not fit"
		return out
	}
	run = r.Drive(run.ID)
	wantStatus(t, run, engine.Failed)
	if e := r.Effects(run.ID)[0]; e.Status != engine.Confirmed || run.Error.Class != "incompatible" {
		t.Errorf("the effect is %s, the error %+v; it did happen", e.Status, run.Error)
	}
}

func TestResolve_TheFourOutcomes(t *testing.T) {
	for _, tt := range []struct {
		outcome, effect, run string
		sent                 int
	}{
		{engine.Happened, engine.Confirmed, engine.Completed, 1},
		{engine.DidNotSendAgain, engine.Confirmed, engine.Completed, 2},
		{engine.DidNotStop, engine.NotDone, engine.Failed, 1},
		{engine.GiveUp, engine.Abandoned, engine.Failed, 1},
	} {
		t.Run(tt.outcome, func(t *testing.T) {
			r, run := approved(t, "write.plain")
			losing(r, 1)
			wantStatus(t, r.Drive(run.ID), engine.Blocked)
			eff := r.Effects(run.ID)[0]
			res := engine.Resolution{Outcome: tt.outcome, Evidence: "I looked at the page."}
			if tt.outcome == engine.Happened {
				res.Receipt = json.RawMessage(`{"b":1,"a":2}`)
			}
			if _, err := r.Engine.Resolve(t.Context(), eff.ID, res, Person); err != nil {
				t.Fatal(err)
			}
			got := r.Drive(run.ID)
			wantStatus(t, got, tt.run)
			e := full(r, eff)
			if e.Status != tt.effect || r.Script.Count("send", "write.plain") != tt.sent {
				t.Errorf("the effect is %s, sent %d times; want %s, %d", e.Status, r.Script.Count("send", "write.plain"), tt.effect, tt.sent)
			}
			if len(e.Late) == 0 || e.Late[0].Kind != engine.EvidencePerson || e.Late[0].By != "Ana" || !strings.Contains(string(e.Late[0].Body), "looked at the page") {
				t.Errorf("the evidence is %+v", e.Late)
			}
			if out := r.Steps(run.ID)[1].Output; tt.outcome == engine.Happened && string(out) != `{"a":2,"b":1}` {
				t.Errorf("the output is %s", out)
			}
			_, err := r.Engine.Resolve(t.Context(), eff.ID, res, Person)
			wantCode(t, err, "not_unknown")
		})
	}
}

func TestResolve_RefusesWhatItCannotUse(t *testing.T) {
	r, run := approved(t, "write.plain")
	losing(r, 1)
	r.Drive(run.ID)
	eff := r.Effects(run.ID)[0].ID
	for _, tt := range []struct {
		res  engine.Resolution
		code string
	}{
		{engine.Resolution{Outcome: "maybe", Evidence: "x"}, "outcome"},
		{engine.Resolution{Outcome: engine.Happened, Evidence: "  "}, "evidence_needed"},
		{engine.Resolution{Outcome: engine.Happened, Evidence: strings.Repeat("x", 5000)}, "evidence_too_long"},
		{engine.Resolution{Outcome: engine.GiveUp, Evidence: "x", Receipt: json.RawMessage(`{}`)}, "receipt"},
	} {
		_, err := r.Engine.Resolve(t.Context(), eff, tt.res, Person)
		wantCode(t, err, tt.code)
	}
	if _, err := r.Engine.Resolve(t.Context(), eff, engine.Resolution{Outcome: engine.Happened, Evidence: "x", Receipt: json.RawMessage(`{"a":1,"a":2}`)}, Person); err == nil {
		t.Error("a receipt with a duplicate name was taken")
	}
	// The limit counts characters, as whoever types them does.
	_, err := r.Engine.Resolve(t.Context(), "eff_none", engine.Resolution{Outcome: engine.Happened, Evidence: strings.Repeat("ü", 4000)}, Person)
	wantCode(t, err, "not_found")
	_, err = r.Engine.Resolve(t.Context(), "eff_none", engine.Resolution{Outcome: engine.Happened, Evidence: "x"}, Person)
	wantCode(t, err, "not_found")
	if e := r.Effects(run.ID)[0]; e.Status != engine.Unknown {
		t.Errorf("the effect is %s", e.Status)
	}
}

// While the program of an earlier try lives, nobody can know that it did not
// happen: it may still do it.
func TestResolve_WhatStillRunsMayStillHappen(t *testing.T) {
	for _, tt := range []struct {
		outcome string
		refused bool
	}{{engine.DidNotSendAgain, true}, {engine.DidNotStop, true}, {engine.Happened, false}, {engine.GiveUp, false}} {
		t.Run(tt.outcome, func(t *testing.T) {
			r, run := approved(t, "write.plain")
			losing(r, 1)
			wantStatus(t, r.Drive(run.ID), engine.Blocked)
			alive := true
			r.Script.OnRunning = func(string) (bool, error) { return alive, nil }
			eff := r.Effects(run.ID)[0].ID
			res := engine.Resolution{Outcome: tt.outcome, Evidence: "I looked."}
			_, err := r.Engine.Resolve(t.Context(), eff, res, Person)
			if !tt.refused {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantCode(t, err, "still_running")
			if e := full(r, r.Effects(run.ID)[0]); e.Status != engine.Unknown || len(e.Late) != 0 {
				t.Errorf("a refused resolution left %+v", e)
			}
			alive = false
			if _, err := r.Engine.Resolve(t.Context(), eff, res, Person); err != nil {
				t.Errorf("when it has ended: %v", err)
			}
		})
	}
}
