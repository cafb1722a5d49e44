package engine_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"countersign/internal/engine"
	. "countersign/internal/engine/enginetest"
	"countersign/internal/tools"
	"pgregory.net/rapid"
)

// outsideWorld is a target that may lose answers; it knows what it did.
type outsideWorld struct {
	mu   sync.Mutex
	did  map[string]int // by idempotency key
	next []string       // what happens to the following sendings
}

func (o *outsideWorld) send(_ context.Context, t *tools.Tool, s tools.Sending) tools.Outcome {
	o.mu.Lock()
	defer o.mu.Unlock()
	fate := "done"
	if len(o.next) > 0 {
		fate, o.next = o.next[0], o.next[1:]
	}
	_, keyed := t.CanResend()
	do := func() {
		if o.did[s.Key] == 0 || !keyed {
			o.did[s.Key]++
		}
	}
	switch fate {
	case "refused":
		if o.did[s.Key] > 0 { // it knows the key, and answers as before
			return Done(`{}`)
		}
		return tools.Outcome{Status: tools.Refused, Class: tools.ClassRefused}
	case "not done":
		return tools.Outcome{Status: tools.NotDone, Class: tools.ClassTransient}
	case "lost before":
		return tools.Outcome{Status: tools.Unknown, Class: tools.ClassUnknown}
	case "lost after":
		do()
		return tools.Outcome{Status: tools.Unknown, Class: tools.ClassUnknown}
	}
	do()
	return Done(`{}`)
}

func (o *outsideWorld) query(_ context.Context, _ *tools.Tool, s tools.Sending) tools.Answer {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.did[s.Key] > 0 {
		return tools.Answer{Happened: true, Outcome: Done(`{}`)}
	}
	return tools.Answer{DidNot: true}
}

// Random lives of runs: kills in random windows, lost answers, decisions,
// cancels, people who tell the truth. Whatever happens, nothing is done twice,
// nothing is done without a ledger row, and once the faults stop every run ends.
func TestSimulation_NothingTwiceNothingHiddenEverythingEnds(t *testing.T) {
	r := NewRig(t, NewLibrary(t, AllTools...), offline, func(o *engine.Options) {
		o.PollEvery, o.MaxTakeovers, o.Logger = time.Millisecond, 1000, slog.New(slog.DiscardHandler)
	})
	windows := make([]string, len(engine.Windows))
	for i, w := range engine.Windows {
		windows[i] = w.Name
	}
	rapid.Check(t, func(rt *rapid.T) {
		world := &outsideWorld{did: map[string]int{}}
		r.Script.OnSend, r.Script.OnQuery = world.send, world.query
		tool := rapid.SampledFrom([]string{"write.plain", "write.key", "write.query", "write.keyquery"}).Draw(rt, "tool")
		policy := rapid.SampledFrom([]string{engine.Allowed, engine.Pending}).Draw(rt, "policy")
		r.Gate.Policy = func(engine.Proposal) string { return policy }
		run := r.Begin(r.Lib.Add(t, ReadThenWrite(tool)), `{}`, "")
		life := &life{t: rt, r: r, run: run, world: world}
		for range rapid.IntRange(0, 8).Draw(rt, "length") {
			life.step(rapid.SampledFrom([]string{"crash", "crash", "drive", "approve", "reject", "cancel", "resolve"}).Draw(rt, "what"), windows)
			life.check()
		}
		world.next = nil
		r.Restart()
		for range 40 {
			if life.now(); engine.Final(life.run.Status) {
				break
			}
			r.Exec(`UPDATE step SET retry_at = 0 WHERE retry_at > 0`) // time passes
			r.Exec(`UPDATE effect SET reconcile_at = 1 WHERE status = 'unknown' AND reconcile_at IS NOT NULL`)
			for _, what := range []string{"drive", "approve", "resolve"} {
				life.step(what, windows)
				life.check()
			}
		}
		if life.now(); !engine.Final(life.run.Status) {
			rt.Fatalf("without faults the run stays %s (%+v), waiting for %+v", life.run.Status, life.run.Error, life.run.WaitingFor)
		}
	})
}

type life struct {
	t     *rapid.T
	r     *Rig
	run   engine.Run
	world *outsideWorld
}

func (l *life) now() { l.run = l.r.Run(l.run.ID) }

func (l *life) step(what string, windows []string) {
	l.now()
	if engine.Final(l.run.Status) {
		return
	}
	switch what {
	case "crash":
		l.world.next = rapid.SliceOfN(rapid.SampledFrom([]string{"done", "refused", "not done", "lost before", "lost after"}), 0, 3).Draw(l.t, "fates")
		point := rapid.SampledFrom(windows).Draw(l.t, "window") + ":" + rapid.SampledFrom([]string{"look", "write", "sum"}).Draw(l.t, "step")
		hook := CrashAt(l.r.T, point)
		l.r.Restart(func(o *engine.Options) { o.Crash = hook })
		l.r.CrashingDrive(l.run.ID)
		l.r.Restart()
	case "drive":
		if _, err := l.r.Engine.Resume(context.Background(), l.run.ID, -1, engine.Actor{Kind: engine.ActorEngine}); err != nil {
			l.t.Fatalf("resume: %v", err)
		}
		for l.now(); l.run.Lease.Owner != ""; l.now() {
			time.Sleep(100 * time.Microsecond)
		}
	case "approve", "reject":
		if l.run.Status == engine.WaitingApproval {
			l.r.Exec(fmt.Sprintf(`UPDATE fake_request SET status = '%s' WHERE id = '%s' AND status = 'pending'`,
				map[string]string{"approve": engine.Approved, "reject": engine.Rejected}[what], l.run.WaitingFor[0].Subject))
		}
	case "cancel":
		_, _ = l.r.Engine.Cancel(context.Background(), l.run.ID, "enough", Person)
	case "resolve":
		l.resolve()
	}
}

// resolve has a person look at the target and say what is there.
func (l *life) resolve() {
	for _, e := range l.r.Effects(l.run.ID) {
		if e.Status != engine.Unknown {
			continue
		}
		said := engine.DidNotSendAgain
		if l.world.did[e.Key] > 0 {
			said = engine.Happened
		}
		_, _ = l.r.Engine.Resolve(context.Background(), e.ID, engine.Resolution{Outcome: said, Evidence: "I looked."}, Person)
	}
}

// check is the promises: at most once, never silently.
func (l *life) check() {
	l.t.Helper()
	effects := l.r.Effects(l.run.ID)
	l.now()
	for key, n := range l.world.did {
		i := slices.IndexFunc(effects, func(e engine.Effect) bool { return e.Key == key })
		switch {
		case n > 1:
			l.t.Fatalf("it happened %d times under %s", n, key)
		case i < 0:
			l.t.Fatalf("it happened under %s, and the ledger does not know", key)
		case !slices.Contains([]string{engine.Confirmed, engine.Unknown, engine.Sent}, effects[i].Status):
			l.t.Fatalf("it happened, and the ledger says %s (the run is %s)", effects[i].Status, l.run.Status)
		}
	}
	for _, e := range effects {
		if e.Status == engine.Confirmed && l.world.did[e.Key] == 0 {
			l.t.Fatalf("the ledger says confirmed, and nothing happened")
		}
	}
	if l.run.Status == engine.Completed && len(l.world.did) != 1 {
		l.t.Fatalf("the run completed, and %d things happened", len(l.world.did))
	}
}
