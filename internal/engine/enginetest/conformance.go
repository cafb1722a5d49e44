package enginetest

import (
	"context"
	"testing"

	"countersign/internal/engine"
	"countersign/internal/problem"
	"countersign/internal/store"
	"countersign/internal/tools"
)

// Conformance is what every engine does on every store that open opens: each
// call gives a new, empty database with Lines applied.
func Conformance(t *testing.T, open func(t testing.TB) *store.DB) {
	for name, test := range map[string]func(t *testing.T, r *Rig, run engine.Run){
		"an approved action is sent once":       sentOnce,
		"a rejected action is never sent":       neverSent,
		"an unknown outcome waits for a person": waitsForPerson,
		"a cancelled run sends nothing":         cancelled,
		"a late owner is fenced":                fenced,
		"a resume compares the version":         compared,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := NewRigOn(t, open(t), NewLibrary(t, AllTools...), offline)
			test(t, r, r.Begin(r.Lib.Add(t, ReadThenWrite("write.plain")), `{}`, "k"))
		})
	}
	for _, p := range AskPoints {
		t.Run("killed at/"+p, func(t *testing.T) {
			t.Parallel()
			r := NewRigOn(t, open(t), NewLibrary(t, AllTools...), offline)
			surviveAsking(t, r, p)
		})
	}
	for _, p := range Points() {
		t.Run("killed at/"+p.String(), func(t *testing.T) {
			t.Parallel()
			out := NewOutside(t)
			p.Survive(t, NewRigOn(t, open(t), NewLibrary(t, AllTools...), out.Use), out)
		})
	}
}

// offline is the configuration of a world that is a script.
func offline(o *engine.Options) {
	o.Config = tools.Config{"target": "http://127.0.0.1:1", "program": "/bin/true", "ledger": "ledger", "root": "/tmp"}
}

// is fails the test unless the run has the status and the write was sent so
// many times.
func is(t *testing.T, r *Rig, run engine.Run, status string, sent int) {
	t.Helper()
	if n := r.Script.Count("send", "write.plain"); run.Status != status || n != sent {
		t.Fatalf("the run is %s (%+v), sent %d times; want %s, %d", run.Status, run.Error, n, status, sent)
	}
}

func sentOnce(t *testing.T, r *Rig, run engine.Run) {
	run = r.Drive(run.ID)
	is(t, r, run, engine.WaitingApproval, 0)
	r.Decide(run, engine.Approved, "")
	is(t, r, r.Drive(run.ID), engine.Completed, 1)
}

func neverSent(t *testing.T, r *Rig, run engine.Run) {
	r.Decide(r.Drive(run.ID), engine.Rejected, "no")
	is(t, r, r.Drive(run.ID), engine.RunRejected, 0)
}

func waitsForPerson(t *testing.T, r *Rig, run engine.Run) {
	r.Script.OnSend = func(context.Context, *tools.Tool, tools.Sending) tools.Outcome {
		return tools.Outcome{Status: tools.Unknown, Class: tools.ClassUnknown}
	}
	r.Decide(r.Drive(run.ID), engine.Approved, "")
	is(t, r, r.Drive(run.ID), engine.Blocked, 1)
	_, err := r.Engine.Resolve(t.Context(), r.Effects(run.ID)[0].ID, engine.Resolution{Outcome: engine.Happened, Evidence: "I looked."}, Person)
	if err != nil {
		t.Fatal(err)
	}
	is(t, r, r.Drive(run.ID), engine.Completed, 1)
}

func cancelled(t *testing.T, r *Rig, run engine.Run) {
	r.Decide(r.Drive(run.ID), engine.Approved, "")
	got, err := r.Engine.Cancel(t.Context(), run.ID, "not needed", Person)
	if err != nil {
		t.Fatal(err)
	}
	is(t, r, got, engine.Cancelled, 0)
}

// fenced has a second engine take a run over while the first is sending.
func fenced(t *testing.T, r *Rig, run engine.Run) {
	r.Decide(r.Drive(run.ID), engine.Approved, "")
	began, release, gone := make(chan struct{}), make(chan struct{}), make(chan struct{})
	r.Script.OnSend = func(context.Context, *tools.Tool, tools.Sending) tools.Outcome {
		close(began)
		<-release
		return Done(`{}`)
	}
	first := r.Engine
	go func() { defer close(gone); _, _ = first.Drive(t.Context(), run.ID) }()
	<-began
	r.Restart(func(o *engine.Options) { o.Owner = "driver-2" })
	got := r.Drive(run.ID)
	is(t, r, got, engine.Blocked, 1)
	close(release)
	<-gone
	if after := r.Run(run.ID); after.Version != got.Version || after.Status != got.Status {
		t.Errorf("the late owner changed the run to %s at version %d", after.Status, after.Version)
	}
}

func compared(t *testing.T, r *Rig, run engine.Run) {
	r.Drive(run.ID)
	if _, err := r.Engine.Resume(t.Context(), run.ID, run.Version, Person); !problem.HasCode(err, "version_conflict") {
		t.Errorf("a resume of an old version: %v", err)
	}
}
