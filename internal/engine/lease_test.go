package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"countersign/internal/engine"
	. "countersign/internal/engine/enginetest"
	"countersign/internal/store"
	"countersign/internal/tools"
)

// Two engines on one store: the first stands still in the middle of a sending,
// the second takes over, the first wakes up with an answer.
func TestLease_ALateOwnerIsFencedAndItsAnswerKept(t *testing.T) {
	r, run := approved(t, "write.plain")
	began, release := make(chan struct{}), make(chan struct{})
	r.Script.OnSend = func(context.Context, *tools.Tool, tools.Sending) tools.Outcome {
		close(began)
		<-release
		return Done(`{"late":true}`)
	}
	first := r.Engine
	engine.StandStill(first)
	gone := make(chan engine.Run)
	go func() { got, _ := first.Drive(t.Context(), run.ID); gone <- got }()
	<-began

	r.Restart(func(o *engine.Options) { o.Owner = "driver-2" })
	got := r.Drive(run.ID)
	wantStatus(t, got, engine.Blocked)
	if e := r.Effects(run.ID)[0]; e.Status != engine.Unknown || r.Recorded("run.takeover") != 1 {
		t.Fatalf("after the takeover the effect is %s", e.Status)
	}
	close(release)
	<-gone
	after := r.Run(run.ID)
	if after.Version != got.Version || after.Status != engine.Blocked || after.Lease.Fence != got.Lease.Fence {
		t.Errorf("the late owner changed the run: %+v", after)
	}
	e := full(r, r.Effects(run.ID)[0])
	if e.Status != engine.Unknown || len(e.Late) != 1 || e.Late[0].Kind != engine.EvidenceLate {
		t.Errorf("the effect is %s with evidence %+v; want the late answer kept", e.Status, e.Late)
	}
	// Even after a person has resolved it, an answer that comes is kept.
	if n := r.Script.Count("send", "write.plain"); n != 1 {
		t.Errorf("sent %d times", n)
	}
}

func TestLease_OfALiveOwnerOfTheSameEpochIsRespected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, run := standing(t, "write.plain", func(o *engine.Options) { o.LeaseFor = 30 * time.Second })
		release := make(chan struct{})
		reads := 0
		r.Script.OnCall = func(context.Context, *tools.Tool, tools.Sending) tools.Outcome {
			reads++
			<-release
			return Done(`{"text":"x"}`)
		}
		first := r.Engine
		gone := make(chan struct{})
		go func() { defer close(gone); _, _ = first.Drive(t.Context(), run.ID) }()
		synctest.Wait()

		r.Opts.Owner = "driver-2"
		second := engine.New(r.Opts) // the same epoch: only time decides
		for range 10 {               // renewals keep a lease of 30 s for five minutes
			time.Sleep(30 * time.Second)
			_, err := second.Drive(t.Context(), run.ID)
			wantCode(t, err, "lease_held")
		}
		engine.StandStill(first)
		time.Sleep(31 * time.Second)
		r.Script.OnCall = nil
		got, err := second.Drive(t.Context(), run.ID)
		if err != nil {
			t.Fatal(err)
		}
		wantStatus(t, got, engine.WaitingApproval)
		close(release)
		<-gone
		after := r.Run(run.ID)
		if after.Version != got.Version || reads != 1 {
			t.Errorf("the late owner wrote: version %d, want %d", after.Version, got.Version)
		}
	})
}

func TestLease_NothingIsSentWhenItIsAboutToEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, run := approved(t, "write.plain")
		slow := true
		r.Restart(func(o *engine.Options) {
			o.LeaseFor = 30 * time.Second
			o.Crash = func(window, _ string, _ int) {
				if window == "after-sent-commit" && slow {
					slow = false
					time.Sleep(29 * time.Second) // the machine was busy
				}
			}
		})
		engine.StandStill(r.Engine)
		got := r.Drive(run.ID)
		wantStatus(t, got, engine.Completed)
		if e := r.Effects(run.ID)[0]; e.Attempts != 2 || r.Script.Count("send", "write.plain") != 1 {
			t.Errorf("%d attempts, sent %d times; want the first attempt not sent", e.Attempts, r.Script.Count("send", "write.plain"))
		}
	})
}

func TestWake_WhileTheDriverPutsTheRunToSleepIsNotLost(t *testing.T) {
	r, run := standing(t, "write.plain")
	// The decision comes right after the engine has looked and before it lets go.
	decided := false
	r.Restart(func(o *engine.Options) { o.Gate = &impatient{Gate: r.Gate, r: r, run: &run, decided: &decided} })
	run = r.Drive(run.ID)
	wantStatus(t, run, engine.WaitingApproval)
	if err := r.DB.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error { return r.Engine.Wake(ctx, tx, run.ID) }); err != nil {
		t.Fatal(err)
	}
	run = r.Drive(run.ID) // looks once, is overtaken by the decision, and must look again
	wantStatus(t, run, engine.Completed)
	if !decided {
		t.Error("the decision did not come in between")
	}
}

// impatient has somebody decide in the moment after the engine saw "pending".
type impatient struct {
	*Gate
	r       *Rig
	run     *engine.Run
	decided *bool
}

func (g *impatient) Ruling(ctx context.Context, q store.Querier, apr approvalID) (engine.Ruling, error) {
	r, err := g.Gate.Ruling(ctx, q, apr)
	if r.Status == engine.Pending && !*g.decided {
		*g.decided = true
		done := make(chan struct{})
		go func() { defer close(done); g.r.DecideRequest(g.run.ID, apr, engine.Approved, "now") }()
		<-done
	}
	return r, err
}

func TestTimers_FireOnceAndLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRig(t, NewLibrary(t, AllTools...), offline, func(o *engine.Options) { o.PollEvery = time.Second })
		run := r.Begin(r.Lib.Add(t, `
format: 1
workflow: nap
version: 1
title: Nap
input: {type: object, additionalProperties: false}
steps:
  - id: rest
    sleep: 8h
  - id: look
    call: docs.read
`), `{}`, "")
		if err := r.Engine.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		got := r.Run(run.ID)
		wantStatus(t, got, engine.Sleeping)
		if len(got.WaitingFor) != 1 || got.WaitingFor[0].Kind != engine.WaitTimer || got.WaitingFor[0].Until.IsZero() {
			t.Errorf("it waits for %+v", got.WaitingFor)
		}
		// The process is away when the timer is due, and comes back much later.
		if err := r.Engine.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Hour)
		if n := r.Script.Count("call", "docs.read"); n != 0 {
			t.Fatalf("read %d times while away", n)
		}
		r.Restart()
		if err := r.Engine.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		wantStatus(t, r.Run(run.ID), engine.Completed)
		if n := r.Script.Count("call", "docs.read"); n != 1 {
			t.Errorf("read %d times", n)
		}
		if err := r.Engine.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestRetries_ReleaseTheLeaseAndKeepTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, run := standing(t, "write.plain", func(o *engine.Options) { o.LeaseFor = 30 * time.Second; o.PollEvery = time.Second })
		var at []time.Time
		r.Script.OnCall = func(context.Context, *tools.Tool, tools.Sending) tools.Outcome {
			if at = append(at, time.Now()); len(at) == 1 {
				return tools.Outcome{Status: tools.Failed, Class: tools.ClassTransient, Message: "503", RetryAfter: 50 * time.Second}
			}
			return Done(`{"text":"x"}`)
		}
		if err := r.Engine.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		got := r.Run(run.ID)
		wantStatus(t, got, engine.Retrying)
		if got.Lease.Owner != "" || got.WaitingFor[0].Kind != engine.WaitRetry || got.Error == nil {
			t.Errorf("between tries: lease %+v, waits for %+v", got.Lease, got.WaitingFor)
		}
		if s := r.Steps(run.ID)[0]; s.Attempts != 1 || s.ErrorClass != "transient" {
			t.Errorf("the failed try is on record as %+v", s)
		}
		// A wake-up in between is not an attempt.
		if err := r.DB.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error { return r.Engine.Wake(ctx, tx, run.ID) }); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Second)
		synctest.Wait()
		wantStatus(t, r.Run(run.ID), engine.WaitingApproval)
		if len(at) != 2 || at[1].Sub(at[0]) < 50*time.Second {
			t.Errorf("tried at %v; want the second no earlier than Retry-After", at)
		}
		if err := r.Engine.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}
