package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"countersign/internal/engine"
	. "countersign/internal/engine/enginetest"
	"countersign/internal/store"
	"countersign/internal/tools"
)

// The database itself refuses every transition that DESIGN section 6 does not have.
func TestLedger_OnlyKnowsTheAllowedTransitions(t *testing.T) {
	allowed := map[string][]string{
		engine.Prepared: {engine.Sent, engine.Abandoned},
		engine.Sent:     {engine.Confirmed, engine.Refused, engine.NotDone, engine.Unknown},
		engine.NotDone:  {engine.Sent, engine.Abandoned},
		engine.Unknown:  {engine.Sent, engine.Confirmed, engine.Refused, engine.NotDone, engine.Abandoned},
	}
	all := []string{engine.Prepared, engine.Sent, engine.Confirmed, engine.Refused, engine.NotDone, engine.Unknown, engine.Abandoned}
	path := map[string][]string{ // how to get there from prepared
		engine.Prepared: {}, engine.Sent: {engine.Sent}, engine.Abandoned: {engine.Abandoned},
		engine.Confirmed: {engine.Sent, engine.Confirmed}, engine.Refused: {engine.Sent, engine.Refused},
		engine.NotDone: {engine.Sent, engine.NotDone}, engine.Unknown: {engine.Sent, engine.Unknown},
	}
	r, run := standing(t, "write.plain")
	r.Drive(run.ID)
	move := func(tx *store.Tx, to string) error {
		tx.Audited()
		_, err := tx.Exec(t.Context(), `UPDATE effect SET status = $1, request = '{}', attempts = 1, sent_at = 1`, to)
		return err
	}
	for _, from := range all {
		for _, to := range all {
			if from == to {
				continue
			}
			want := strings.Contains(fmt.Sprint(allowed[from]), to)
			var got error
			err := r.DB.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				for _, step := range path[from] {
					if err := move(tx, step); err != nil {
						t.Fatalf("prepare %s: %v", from, err)
					}
				}
				got = move(tx, to)
				return errRollback
			})
			if err != errRollback {
				t.Fatal(err)
			}
			if (got == nil) != want {
				t.Errorf("%s to %s: %v, want allowed: %t", from, to, got, want)
			}
		}
	}
	for _, change := range []string{`UPDATE effect SET key = 'x'`, `UPDATE effect SET action = 'x'`, `DELETE FROM effect`, `DELETE FROM checkpoint`, `UPDATE checkpoint SET pass = 2`} {
		err := r.DB.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			tx.Audited()
			_, err := tx.Exec(ctx, change)
			return err
		})
		if err == nil {
			t.Errorf("%s went through", change)
		}
	}
	err := r.DB.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE effect SET message = 'x'`)
		return err
	})
	if err == nil {
		t.Error("the ledger was changed without an audit entry")
	}
}

var errRollback = fmt.Errorf("undo")

func TestKey_GrowsOnlyWhenOtherBytesFollowWhatDidNotHappen(t *testing.T) {
	r, run := approved(t, "write.plain")
	sent := map[string]int{}
	r.Script.OnSend = func(_ context.Context, _ *tools.Tool, s tools.Sending) tools.Outcome {
		if sent[s.Key]++; len(sent) == 1 && sent[s.Key] == 1 {
			return tools.Outcome{Status: tools.NotDone, Class: tools.ClassTransient, Message: "429", RetryAfter: 2 * time.Minute}
		}
		return Done(`{}`)
	}
	got := r.Drive(run.ID)
	wantStatus(t, got, engine.Retrying)
	eff := r.Effects(run.ID)[0]
	other, key := json.RawMessage(`{"other":"bytes"}`), ""
	r.View(func(ctx context.Context, q store.Querier) error {
		same, err := r.Engine.KeyFor(ctx, q, Tenant, eff.Action, sentRequest(ctx, q, t))
		if err != nil || same != eff.Key {
			t.Errorf("the same request has key %s, %v; want %s", same, err, eff.Key)
		}
		next, err := r.Engine.KeyFor(ctx, q, Tenant, eff.Action, other)
		if err != nil || next == eff.Key {
			t.Errorf("another request has key %s, %v", next, err)
		}
		key = next
		return nil
	})
	edit(r, t, string(other), key)
	got, err := r.Engine.DriveFrom(t.Context(), run.ID, -1, Person)
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, got, engine.Completed)
	effects := r.Effects(run.ID)
	if len(effects) != 2 || effects[0].Status != engine.NotDone || effects[1].Status != engine.Confirmed || effects[1].Generation != 2 {
		t.Errorf("the ledger has %+v", effects)
	}
}

// edit changes what the fake gate holds, as an edit and its approval would.
func edit(r *Rig, t *testing.T, request, key string) {
	t.Helper()
	if err := Edit(t.Context(), r.DB, request, key); err != nil {
		t.Fatal(err)
	}
}

func sentRequest(ctx context.Context, q store.Querier, t *testing.T) json.RawMessage {
	t.Helper()
	var request string
	if err := q.QueryRow(ctx, "SELECT request FROM effect").Scan(&request); err != nil {
		t.Fatal(err)
	}
	return json.RawMessage(request)
}

func TestSend_RefusesOtherBytesUnderAKeyThatWasSent(t *testing.T) {
	r, run := approved(t, "write.plain")
	r.Script.OnSend = func(context.Context, *tools.Tool, tools.Sending) tools.Outcome {
		return tools.Outcome{Status: tools.NotDone, Class: tools.ClassTransient, RetryAfter: 2 * time.Minute}
	}
	wantStatus(t, r.Drive(run.ID), engine.Retrying)
	edit(r, t, `{"other":"bytes"}`, r.Effects(run.ID)[0].Key)
	got, err := r.Engine.DriveFrom(t.Context(), run.ID, -1, Person)
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, got, engine.Blocked)
	if got.Error.Code != "tampered" || r.Script.Count("send", "write.plain") != 1 {
		t.Errorf("blocked with %+v, sent %d times", got.Error, r.Script.Count("send", "write.plain"))
	}
}

func TestFreshness_AnApprovedActionOnOldReadsIsProposedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := strings.Replace(ReadThenWrite("write.plain"), `    with: {q: "x"}`, "    with: {q: \"x\"}\n    fresh_for: 1h", 1)
		r := NewRig(t, NewLibrary(t, AllTools...), offline)
		run := r.Drive(r.Begin(r.Lib.Add(t, src), `{}`, "").ID)
		first := run.WaitingFor[0].Subject
		r.Decide(run, engine.Approved, "fine")
		time.Sleep(2 * time.Hour)
		run = r.Drive(run.ID)
		wantStatus(t, run, engine.WaitingApproval)
		if run.WaitingFor[0].Subject == first || r.Script.Count("send", "write.plain") != 0 || r.Script.Count("call", "docs.read") != 2 {
			t.Errorf("waits for %s, sent %d, read %d", run.WaitingFor[0].Subject, r.Script.Count("send", "write.plain"), r.Script.Count("call", "docs.read"))
		}
		if e := r.Effects(run.ID); len(e) != 2 || e[0].Status != engine.Abandoned || e[0].Attempts != 0 {
			t.Errorf("the ledger has %+v", e)
		}
		r.Decide(run, engine.Approved, "fine again")
		wantStatus(t, r.Drive(run.ID), engine.Completed)
		if n := r.Script.Count("send", "write.plain"); n != 1 {
			t.Errorf("sent %d times", n)
		}
		for _, s := range r.Steps(run.ID) {
			if s.Path == "write" && s.Pass == 1 && s.Status != "cancelled" {
				t.Errorf("the first pass of the write is %s", s.Status)
			}
		}
	})
}

func TestClock_SetBackStopsSending(t *testing.T) {
	back := time.Duration(0)
	now := func() time.Time { return time.Now().Add(-back) }
	r := NewRigClock(t, NewLibrary(t, AllTools...), now, offline)
	run := r.Drive(r.Begin(r.Lib.Add(t, ReadThenWrite("write.plain")), `{}`, "").ID)
	r.Decide(run, engine.Approved, "fine")
	back = time.Hour
	got := r.Drive(run.ID)
	wantStatus(t, got, engine.Blocked)
	if got.Error.Code != "clock_suspect" || r.Script.Count("send", "write.plain") != 0 {
		t.Errorf("blocked with %+v, sent %d times", got.Error, r.Script.Count("send", "write.plain"))
	}
	back = 0
	got, err := r.Engine.DriveFrom(t.Context(), run.ID, -1, Person)
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, got, engine.Completed)
}

func TestAttention_ListsWhatNobodyStarted(t *testing.T) {
	r, run := approved(t, "write.plain")
	queued := r.Begin(r.Lib.Add(t, ReadThenWrite("write.plain")), `{}`, "q")
	if list := attention(r); len(list) != 0 {
		t.Errorf("at once the list is %+v", list)
	}
	r.Exec(`UPDATE run SET wake_at = wake_at - 120000000`)
	list := attention(r)
	if len(list) != 2 || list[0].Cause != engine.CauseNotStarted || list[0].Run != run.ID || list[1].Cause != engine.CauseOverdue || list[1].Run != queued.ID {
		t.Fatalf("the list is %+v", list)
	}
	for _, a := range list {
		if a.Since.IsZero() || a.Next == "" || a.Blocks == "" {
			t.Errorf("an entry does not say enough: %+v", a)
		}
	}
}

func TestState_IsWhatTheCheckpointsAddUpTo(t *testing.T) {
	r, run := approved(t, "write.plain")
	wantStatus(t, r.Drive(run.ID), engine.Completed)
	r.View(func(ctx context.Context, q store.Querier) error {
		state, err := r.Engine.State(ctx, q, Tenant, run.ID)
		if err != nil || !state.Over() || state.Finish.Status != engine.Completed {
			t.Errorf("the state is %+v, %v", state, err)
		}
		all, err := r.Engine.Checkpoints(ctx, q, Tenant, run.ID)
		if err != nil {
			return err
		}
		for i, c := range all {
			if c.Version != int64(i)+1 || c.Digest == "" || (i > 0) != (c.Previous != "") || c.Creator == (engine.Creator{}) {
				t.Errorf("checkpoint %d is %+v", i+1, c)
			}
		}
		return nil
	})
}
