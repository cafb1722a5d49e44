package engine_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/internal/engine"
	. "countersign/internal/engine/enginetest"
	"countersign/internal/id"
	"countersign/internal/problem"
	"countersign/internal/store"
	"countersign/internal/testkit"
	"countersign/internal/tools"
)

func TestResume_OneOfFiftyDrives(t *testing.T) {
	r, run := standing(t, "write.plain")
	release := make(chan struct{})
	var mu sync.Mutex
	driving, most := 0, 0
	r.Script.OnCall = func(context.Context, *tools.Tool, tools.Sending) tools.Outcome {
		mu.Lock()
		driving++
		most = max(most, driving)
		mu.Unlock()
		<-release
		mu.Lock()
		driving--
		mu.Unlock()
		return Done(`{"text":"x"}`)
	}
	var wg sync.WaitGroup
	won, refused := 0, map[string]int{}
	for range 50 {
		wg.Go(func() {
			_, err := r.Engine.Resume(t.Context(), run.ID, run.Version, Person)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won++
				return
			}
			p := problem.From(err)
			refused[p.Code]++
			if p.Code == "lease_held" && (p.Details["holder"] != "driver-1" || p.Details["until"] == nil) {
				t.Errorf("lease_held says %v", p.Details)
			}
		})
	}
	wg.Wait()
	close(release)
	if won != 1 || refused["lease_held"] != 49 || most > 1 {
		t.Errorf("%d won, %v refused, %d drove at once", won, refused, most)
	}
	for range 500 {
		if run = r.Run(run.ID); run.Status == engine.WaitingApproval {
			break
		}
		time.Sleep(2 * time.Millisecond)
	}
	wantStatus(t, run, engine.WaitingApproval)
}

func TestResume_ComparesTheVersion(t *testing.T) {
	r, run := standing(t, "write.plain")
	now := r.Drive(run.ID)
	_, err := r.Engine.Resume(t.Context(), run.ID, run.Version, Person)
	wantCode(t, err, "version_conflict")
	if got := problem.From(err).Details["version"]; got != now.Version {
		t.Errorf("the conflict names version %v, want %d", got, now.Version)
	}
}

func TestResume_OfAFinishedRunStartsNothing(t *testing.T) {
	r, run := approved(t, "write.plain")
	wantStatus(t, r.Drive(run.ID), engine.Completed)
	_, err := r.Engine.Resume(t.Context(), run.ID, -1, Person)
	wantCode(t, err, "already_finished")
	if got := problem.From(err).Details["status"]; got != engine.Completed {
		t.Errorf("the conflict names the end %v", got)
	}
	if n := r.Script.Count("send", "write.plain"); n != 1 {
		t.Errorf("sent %d times", n)
	}
}

func TestResume_BlocksOnAnAlteredRecord(t *testing.T) {
	for name, alter := range map[string]string{
		"one byte of a read's output": `UPDATE checkpoint SET output = replace(output, 'read', 'reaD') WHERE kind = 'step_completed'`,
		"output and its digest":       `UPDATE checkpoint SET output = '{"text":"x"}', output_digest = 'sha256:00' WHERE kind = 'step_completed'`,
		"an event":                    `UPDATE checkpoint SET event = replace(event, '"pass":1', '"pass":2') WHERE kind = 'step_completed'`,
		"its creator":                 `UPDATE checkpoint SET creator = '{"driver":"x"}' WHERE version = 2`,
		"its time":                    `UPDATE checkpoint SET created_at = created_at + 1 WHERE version = 2`,
		"a missing checkpoint":        `DELETE FROM checkpoint WHERE version = 2`,
		"a cut tail":                  `DELETE FROM checkpoint WHERE version = 3`,
		"one that does not parse":     `UPDATE checkpoint SET creator = '{' WHERE version = 2`,
		"one too many": `INSERT INTO checkpoint SELECT tenant, run, version + 1, path, pass, kind, event, output, output_digest, creator, engine,
			state_schema, digest, previous, created_at FROM checkpoint WHERE version = 3`,
		"the input":      `UPDATE run SET input = '{"text":"x"}'`,
		"the tools":      `UPDATE run SET tools = '{}'`,
		"the run's head": `UPDATE run SET head = 'sha256:00'`,
	} {
		t.Run(name, func(t *testing.T) {
			r, run := approved(t, "write.plain")
			testkit.Outsider(t, r.Path, alter)
			got := r.Drive(run.ID)
			wantStatus(t, got, engine.Blocked)
			if got.Error.Code != "tampered" || r.Script.Count("send", "write.plain") != 0 {
				t.Errorf("blocked with %+v, sent %d times", got.Error, r.Script.Count("send", "write.plain"))
			}
			if list := attention(r); len(list) != 1 || list[0].Cause != engine.CauseTampered {
				t.Errorf("the attention list is %+v", list)
			}
			if got, err := r.Engine.Cancel(t.Context(), run.ID, "tampered with", Person); err != nil || got.Status != engine.Cancelled {
				t.Errorf("cancel of an altered run: %s, %v", got.Status, err)
			}
		})
	}
}

func attention(r *Rig) (list []engine.Attention) {
	r.View(func(ctx context.Context, q store.Querier) (err error) {
		list, err = r.Engine.Attention(ctx, q, Tenant)
		return err
	})
	return list
}

func TestResume_BlocksWhenADefinitionIsGone(t *testing.T) {
	for _, what := range []string{"workflow", "tool"} {
		t.Run(what, func(t *testing.T) {
			r, run := approved(t, "write.plain")
			w := r.Lib.Add(t, ReadThenWrite("write.plain"))
			if what == "workflow" {
				r.Lib.Forget(w.Digest)
			} else {
				r.Lib.Forget(r.Lib.ByName(t, "write.plain").Digest)
			}
			got := r.Drive(run.ID)
			wantStatus(t, got, engine.Blocked)
			if got.Error.Code != "cannot_continue" || got.Version != run.Version || r.Script.Count("send", "write.plain") != 0 {
				t.Errorf("blocked with %+v at version %d", got.Error, got.Version)
			}
			if list := attention(r); len(list) != 1 || list[0].Cause != engine.CauseVersion || list[0].Next == "" {
				t.Errorf("the attention list is %+v", list)
			}
			if what == "workflow" { // put back, a person resumes
				r.Lib.Keep(w)
				if got, err := r.Engine.DriveFrom(t.Context(), run.ID, got.Version, Person); err != nil || got.Status != engine.Completed {
					t.Errorf("after it was put back: %s, %v", got.Status, err)
				}
			}
		})
	}
}

func TestResume_KeepsToItsOwnDefinition(t *testing.T) {
	r, run := approved(t, "write.plain")
	newer := strings.Replace(strings.Replace(ReadThenWrite("write.plain"), "version: 1", "version: 2", 1), "id: sum", "id: other", 1)
	r.Lib.Add(t, strings.Replace(newer, "steps.sum", "steps.other", 1))
	got := r.Drive(run.ID)
	wantStatus(t, got, engine.Completed)
	if got.WorkflowVersion != 1 {
		t.Errorf("it ended as version %d", got.WorkflowVersion)
	}
}

func TestResume_OfAnotherTenantsOrNoRun(t *testing.T) {
	r, _ := standing(t, "write.plain")
	_, err := r.Engine.Resume(t.Context(), "run_none", -1, Person)
	wantCode(t, err, "not_found")
}

func TestPoison_IsSetAsideAndOthersGoOn(t *testing.T) {
	r, run := standing(t, "write.plain")
	other := r.Begin(r.Lib.Add(t, ReadThenWrite("write.plain")), `{}`, "other")
	for i := range 3 {
		hook := CrashAt(t, "before:look")
		r.Restart(func(o *engine.Options) { o.Crash = hook })
		if !r.CrashingDrive(run.ID) {
			t.Fatalf("no crash in round %d", i)
		}
	}
	r.Restart()
	if err := r.Engine.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	settle(t, r, run.ID, engine.Blocked)
	settle(t, r, other.ID, engine.WaitingApproval)
	got := r.Run(run.ID)
	if got.Error.Code != "keeps_failing" || r.Script.Count("call", "docs.read") != 1 {
		t.Errorf("blocked with %+v after %d reads", got.Error, r.Script.Count("call", "docs.read"))
	}
	if list := attention(r); len(list) != 1 || list[0].Cause != engine.CausePoison {
		t.Errorf("the attention list is %+v", list)
	}
	if _, err := r.Engine.Resume(t.Context(), run.ID, got.Version, Person); err != nil {
		t.Fatal(err)
	}
	settle(t, r, run.ID, engine.WaitingApproval)
}

// once drives the run one time, as the loop does: it does not wait for retries.
func once(t *testing.T, r *Rig, run id.Run) engine.Run {
	t.Helper()
	if _, err := r.Engine.Resume(t.Context(), run, -1, engine.Actor{Kind: engine.ActorEngine}); err != nil {
		t.Fatal(err)
	}
	for range 5000 {
		if got := r.Run(run); got.Lease.Owner == "" {
			return got
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("the drive does not end")
	return engine.Run{}
}

// settle waits until a run that others drive has the status.
func settle(t *testing.T, r *Rig, run id.Run, status string) {
	t.Helper()
	for range 2000 {
		if r.Run(run).Status == status {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
	wantStatus(t, r.Run(run), status)
}

func TestStart_TakesOverWhatAnOlderProcessLeft(t *testing.T) {
	r, run := standing(t, "write.plain")
	hook := CrashAt(t, "before:look")
	r.Restart(func(o *engine.Options) { o.Crash = hook })
	if !r.CrashingDrive(run.ID) {
		t.Fatal("no crash")
	}
	if got := r.Run(run.ID); got.Status != engine.Running || got.Lease.Owner == "" {
		t.Fatalf("a dead driver leaves %s with lease %+v", got.Status, got.Lease)
	}
	r.Restart()
	if err := r.Engine.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	settle(t, r, run.ID, engine.WaitingApproval)
	if n := r.Recorded("run.takeover"); n != 1 {
		t.Errorf("%d takeovers on record", n)
	}
	r.Decide(r.Run(run.ID), engine.Approved, "")
	settle(t, r, run.ID, engine.Completed)
	if err := r.Engine.Start(t.Context()); err != nil {
		t.Errorf("a second Start: %v", err)
	}
	for range 2 {
		if err := r.Engine.Stop(t.Context()); err != nil {
			t.Errorf("Stop: %v", err)
		}
	}
}

func TestStart_FindsWhatNobodyHintedAt(t *testing.T) {
	r, run := standing(t, "write.plain")
	if err := r.Engine.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	settle(t, r, run.ID, engine.WaitingApproval)
	// The decision and the wake-up commit, and no hint ever comes.
	r.Exec(`UPDATE fake_request SET status = 'approved'`)
	r.Exec(`UPDATE run SET wake_at = 1, signals = signals + 1`)
	settle(t, r, run.ID, engine.Completed)
}

func TestStop_LetsDrivesFinishAndQueuesTheRest(t *testing.T) {
	r, run := standing(t, "write.plain")
	began, release := make(chan struct{}), make(chan struct{})
	r.Script.OnCall = func(context.Context, *tools.Tool, tools.Sending) tools.Outcome {
		close(began)
		<-release
		return Done(`{"text":"x"}`)
	}
	if err := r.Engine.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-began
	go func() { time.Sleep(10 * time.Millisecond); close(release) }()
	if err := r.Engine.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := r.Run(run.ID)
	if got.Status != engine.Queued || got.Lease.Owner != "" || got.Version != 2 {
		t.Errorf("a stopped run is %s at version %d with lease %+v; want it queued after its read", got.Status, got.Version, got.Lease)
	}
	_, err := r.Engine.Resume(t.Context(), run.ID, -1, Person)
	wantCode(t, err, "stopping")
}

func TestStop_CutsWhatTakesTooLong(t *testing.T) {
	r, run := approved(t, "write.plain")
	began := make(chan struct{})
	r.Script.OnSend = func(ctx context.Context, _ *tools.Tool, _ tools.Sending) tools.Outcome {
		close(began)
		<-ctx.Done()
		return tools.Outcome{Status: tools.Unknown, Class: tools.ClassUnknown, Message: "cut"}
	}
	if err := r.Engine.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-began
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := r.Engine.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	if e := r.Effects(run.ID)[0]; e.Status != engine.Unknown {
		t.Errorf("a cut sending is %s", e.Status)
	}
}
