package engine_test

import (
	"context"
	"strings"
	"testing"

	"countersign/internal/engine"
	. "countersign/internal/engine/enginetest"
	"countersign/internal/id"
	"countersign/internal/problem"
	"countersign/internal/store"
	"countersign/internal/tools"
)

type approvalID = id.Approval

func TestCancel_WhileWaitingForApproval(t *testing.T) {
	r, run := standing(t, "write.plain")
	run = r.Drive(run.ID)
	apr := approvalID(run.WaitingFor[0].Subject)
	got, err := r.Engine.Cancel(t.Context(), run.ID, "not needed", Person)
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, got, engine.Cancelled)
	if got.CancelReason != "not needed" || got.Version != run.Version+1 {
		t.Errorf("cancelled at version %d because of %q", got.Version, got.CancelReason)
	}
	r.View(func(ctx context.Context, q store.Querier) error {
		ruling, err := r.Gate.Ruling(ctx, q, apr)
		if ruling.Status != engine.Withdrawn {
			t.Errorf("the request is %s", ruling.Status)
		}
		return err
	})
	if e := r.Effects(run.ID)[0]; e.Status != engine.Abandoned {
		t.Errorf("the effect is %s", e.Status)
	}
	if s := r.Steps(run.ID)[1]; s.Status != "cancelled" {
		t.Errorf("the step is %s", s.Status)
	}
	_, err = r.Engine.Cancel(t.Context(), run.ID, "again", Person)
	wantCode(t, err, "already_finished")
	for _, bad := range []string{"", "  ", strings.Repeat("x", 5000)} {
		if _, err := r.Engine.Cancel(t.Context(), run.ID, bad, Person); problem.From(err).Kind != problem.Invalid {
			t.Errorf("reason of %d bytes: %v", len(bad), err)
		}
	}
}

func TestCancel_InterruptsARead(t *testing.T) {
	r, run := standing(t, "write.plain")
	began := make(chan struct{})
	r.Script.OnCall = func(ctx context.Context, _ *tools.Tool, _ tools.Sending) tools.Outcome {
		close(began)
		<-ctx.Done()
		return tools.Outcome{Status: tools.Failed, Class: tools.ClassTransient}
	}
	if err := r.Engine.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-began
	if _, err := r.Engine.Cancel(t.Context(), run.ID, "too slow", Person); err != nil {
		t.Fatal(err)
	}
	settle(t, r, run.ID, engine.Cancelled)
}

func TestCancel_AwaitsWhatIsBeingSent(t *testing.T) {
	r, run := approved(t, "write.plain")
	began, release := make(chan struct{}), make(chan struct{})
	r.Script.OnSend = func(ctx context.Context, _ *tools.Tool, _ tools.Sending) tools.Outcome {
		close(began)
		<-release
		if ctx.Err() != nil {
			t.Error("the sending was cut short")
		}
		return Done(`{}`)
	}
	if err := r.Engine.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-began
	got, err := r.Engine.Cancel(t.Context(), run.ID, "stop", Person)
	if err != nil || engine.Final(got.Status) {
		t.Fatalf("while it is being sent: %s, %v", got.Status, err)
	}
	if _, err := r.Engine.Cancel(t.Context(), run.ID, "stop", Person); err != nil {
		t.Errorf("a second cancel: %v", err)
	}
	close(release)
	settle(t, r, run.ID, engine.Cancelled)
	if e := r.Effects(run.ID)[0]; e.Status != engine.Confirmed {
		t.Errorf("the effect is %s", e.Status)
	}
}

func TestCancel_WithAnUnknownEffectListsIt(t *testing.T) {
	r, run := approved(t, "write.plain")
	losing(r, 1)
	wantStatus(t, r.Drive(run.ID), engine.Blocked)
	got, err := r.Engine.Cancel(t.Context(), run.ID, "enough", Person)
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, got, engine.Cancelled)
	eff := r.Effects(run.ID)[0]
	if len(got.WaitingFor) != 1 || got.WaitingFor[0].Subject != string(eff.ID) || eff.Status != engine.Unknown {
		t.Errorf("it lists %+v, the effect is %s", got.WaitingFor, eff.Status)
	}
	if list := attention(r); len(list) != 1 || list[0].Effect != eff.ID {
		t.Errorf("the attention list is %+v", list)
	}
	_, err = r.Engine.Resolve(t.Context(), eff.ID, engine.Resolution{Outcome: engine.DidNotSendAgain, Evidence: "x"}, Person)
	wantCode(t, err, "already_finished")
	if e, err := r.Engine.Resolve(t.Context(), eff.ID, engine.Resolution{Outcome: engine.DidNotStop, Evidence: "looked"}, Person); err != nil || e.Status != engine.NotDone {
		t.Errorf("resolving after the end: %s, %v", e.Status, err)
	}
	if list := attention(r); len(list) != 0 {
		t.Errorf("the attention list is %+v", list)
	}
}

func TestCancel_AsksTheTargetOnceMore(t *testing.T) {
	r, run := approved(t, "write.query")
	losing(r, 1)
	answers := 0
	r.Script.OnQuery = func(context.Context, *tools.Tool, tools.Sending) tools.Answer {
		if answers++; answers == 1 {
			return tools.Answer{Unknown: true}
		}
		return tools.Answer{Happened: true, Outcome: Done(`{}`)}
	}
	wantStatus(t, once(t, r, run.ID), engine.Retrying)
	if got, err := r.Engine.Cancel(t.Context(), run.ID, "stop", Person); err != nil || engine.Final(got.Status) {
		t.Fatalf("before it is settled: %s, %v", got.Status, err)
	}
	got := r.Drive(run.ID)
	wantStatus(t, got, engine.Cancelled)
	if e := r.Effects(run.ID)[0]; e.Status != engine.Confirmed || len(got.WaitingFor) != 0 {
		t.Errorf("the effect is %s, listed %+v", e.Status, got.WaitingFor)
	}
}

func TestCancel_WinsOverWhatIsApprovedAndNotSent(t *testing.T) {
	r, run := approved(t, "write.plain")
	got, err := r.Engine.Cancel(t.Context(), run.ID, "changed my mind", Person)
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, got, engine.Cancelled)
	_, err = r.Engine.Drive(t.Context(), run.ID)
	wantCode(t, err, "already_finished")
	if n := r.Script.Count("send", "write.plain"); n != 0 {
		t.Errorf("sent %d times", n)
	}
}

// Every command on a run in every status: each either works or is a conflict
// that says why, and afterwards the engine still drives other runs.
func TestCommands_OnEveryStatus(t *testing.T) {
	bg := context.Background()
	statuses := []string{engine.Queued, engine.Running, engine.WaitingApproval, engine.WaitingInput, engine.Sleeping, engine.Retrying, engine.Blocked,
		engine.Completed, engine.RunRejected, engine.RunExpired, engine.Failed, engine.Cancelled}
	commands := map[string]func(r *Rig, run engine.Run) error{
		"resume": func(r *Rig, run engine.Run) error {
			_, err := r.Engine.Resume(t.Context(), run.ID, run.Version, Person)
			return err
		},
		"resume stale": func(r *Rig, run engine.Run) error {
			_, err := r.Engine.Resume(bg, run.ID, 999, Person)
			return err
		},
		"drive": func(r *Rig, run engine.Run) error { _, err := r.Engine.Drive(bg, run.ID); return err },
		"cancel": func(r *Rig, run engine.Run) error {
			_, err := r.Engine.Cancel(t.Context(), run.ID, "x", Person)
			return err
		},
		"wake": func(r *Rig, run engine.Run) error {
			return r.DB.Update(bg, func(ctx context.Context, tx *store.Tx) error { return r.Engine.Wake(ctx, tx, run.ID) })
		},
		"resolve": func(r *Rig, run engine.Run) error {
			_, err := r.Engine.Resolve(bg, r.Effects(run.ID)[0].ID, engine.Resolution{Outcome: engine.GiveUp, Evidence: "x"}, Person)
			return err
		},
	}
	for _, status := range statuses {
		for name, command := range commands {
			t.Run(status+"/"+name, func(t *testing.T) {
				t.Parallel()
				r, run := standing(t, "write.plain")
				run = r.Drive(run.ID)
				finished := any(nil)
				if engine.Final(status) {
					finished = int64(1)
				}
				r.Exec(`UPDATE run SET status = $1, finished_at = $2`, status, finished)
				err := command(r, r.Run(run.ID))
				if err != nil && problem.From(err).Kind != problem.Conflict {
					t.Errorf("%s on a run that is %s: %v", name, status, err)
				}
				if name != "resolve" && name != "wake" && engine.Final(status) && !problem.HasCode(err, "already_finished") {
					t.Errorf("%s on a run that is %s: %v, want already_finished", name, status, err)
				}
				other := r.Begin(r.Lib.Add(t, ReadThenWrite("write.plain")), `{}`, "other")
				if err := r.Engine.Start(t.Context()); err != nil {
					t.Fatal(err)
				}
				settle(t, r, other.ID, engine.WaitingApproval)
			})
		}
	}
}
