package engine_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"countersign/internal/engine"
	. "countersign/internal/engine/enginetest"
	"countersign/internal/tools"
)

func TestDrive_DeniedRejectedExpiredWithdrawn(t *testing.T) {
	for _, tt := range []struct{ ruling, status, class string }{
		{engine.Rejected, engine.RunRejected, "denied"},
		{engine.Expired, engine.RunExpired, "denied"},
		{engine.Denied, engine.Failed, "denied"},
		{engine.Withdrawn, engine.Failed, "denied"},
	} {
		t.Run(tt.ruling, func(t *testing.T) {
			r, run := standing(t, "write.plain")
			run = r.Drive(run.ID)
			r.Decide(run, tt.ruling, "not like this")
			run = r.Drive(run.ID)
			wantStatus(t, run, tt.status)
			if run.Error == nil || run.Error.Class != tt.class {
				t.Errorf("the error is %+v", run.Error)
			}
			if e := r.Effects(run.ID)[0]; e.Status != engine.Abandoned || e.Attempts != 0 {
				t.Errorf("the effect is %s after %d attempts, want abandoned after none", e.Status, e.Attempts)
			}
			if n := r.Script.Count("send", "write.plain"); n != 0 {
				t.Errorf("sent %d times", n)
			}
		})
	}
}

func TestDrive_PolicyDeniesAtOnce(t *testing.T) {
	r, run := standing(t, "write.plain")
	r.Gate.Policy = func(engine.Proposal) string { return engine.Denied }
	run = r.Drive(run.ID)
	wantStatus(t, run, engine.Failed)
	if n := len(r.Effects(run.ID)); n != 0 {
		t.Errorf("the ledger has %d rows for what was never asked", n)
	}
}

func TestDrive_DeadlinesAreKept(t *testing.T) {
	r, run := standing(t, "write.plain")
	r.Gate.DecideWithin = time.Nanosecond
	run = r.Drive(run.ID)
	wantStatus(t, run, engine.RunExpired)

	r, run = standing(t, "write.plain")
	r.Gate.ExecuteWithin = time.Nanosecond
	run = r.Drive(run.ID)
	r.Decide(run, engine.Approved, "")
	wantStatus(t, r.Drive(run.ID), engine.RunExpired)
	if n := r.Script.Count("send", "write.plain"); n != 0 {
		t.Errorf("sent %d times after execute-by", n)
	}
}

func TestDrive_WhatChangedSinceApprovalGoesBack(t *testing.T) {
	for _, tt := range []struct {
		name string
		now  tools.Reading
	}{
		{"another pin", tools.Reading{OK: true, Met: true, Pin: json.RawMessage(`"v2"`)}},
		{"precondition not met", tools.Reading{OK: true, Pin: json.RawMessage(`"v1"`), Error: "it is closed"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, run := approved(t, "write.pinned")
			r.Script.OnPre = func(*tools.Tool) tools.Reading { return tt.now }
			run = r.Drive(run.ID)
			wantStatus(t, run, engine.WaitingApproval)
			if !strings.Contains(run.WaitingFor[0].NextAction, "Decide again") {
				t.Errorf("the page says %q", run.WaitingFor[0].NextAction)
			}
			if n := r.Script.Count("send", "write.pinned"); n != 0 {
				t.Fatalf("sent %d times", n)
			}
			r.Script.OnPre = func(*tools.Tool) tools.Reading { return tools.Reading{OK: true, Met: true, Pin: tt.now.Pin} }
			r.Decide(run, engine.Approved, "still fine")
			wantStatus(t, r.Drive(run.ID), engine.Completed)
		})
	}
}

func TestDrive_UnmetPreconditionOfAnAllowedActionFails(t *testing.T) {
	r, run := standing(t, "write.pinned")
	r.Gate.Policy = func(engine.Proposal) string { return engine.Allowed }
	met := true
	r.Script.OnPre = func(*tools.Tool) tools.Reading { return tools.Reading{OK: true, Met: met, Pin: json.RawMessage(`1`)} }
	r.Opts.Crash = CrashAt(t, "before-sent:write")
	r.Restart(func(o *engine.Options) { o.Crash = CrashAt(t, "before-sent:write") })
	if !r.CrashingDrive(run.ID) {
		t.Fatal("no crash")
	}
	met = false
	r.Restart()
	run = r.Drive(run.ID)
	wantStatus(t, run, engine.Failed)
	if run.Error.Class != "refused" || run.Error.Code != "precondition" {
		t.Errorf("the error is %+v", run.Error)
	}
}

func TestDrive_UnreadablePreconditionIsTriedAgain(t *testing.T) {
	r, run := approved(t, "write.pinned")
	left := 2
	r.Script.OnPre = func(*tools.Tool) tools.Reading {
		if left--; left >= 0 {
			return tools.Reading{Error: "connection refused"}
		}
		return tools.Reading{OK: true, Met: true, Pin: json.RawMessage(`"v1"`)}
	}
	wantStatus(t, r.Drive(run.ID), engine.Completed)
}

func TestDrive_BlockedVerdictSendsNothing(t *testing.T) {
	r, run := approved(t, "write.plain")
	r.Exec(`UPDATE fake_request SET params = '{"text":"other"}'`)
	run = r.Drive(run.ID)
	wantStatus(t, run, engine.Blocked)
	if run.Error.Code != "tampered" || r.Script.Count("send", "write.plain") != 0 || r.Recorded("run.blocked") != 1 {
		t.Errorf("error %+v, sent %d, recorded %d", run.Error, r.Script.Count("send", "write.plain"), r.Recorded("run.blocked"))
	}
}
