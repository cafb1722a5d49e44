package enginetest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"countersign/internal/engine"
	"countersign/internal/engine/enginetest"
	"countersign/internal/id"
	"countersign/internal/problem"
	"countersign/internal/store"
	"countersign/internal/testkit"
	"countersign/internal/tools"
	"countersign/internal/workflow"
)

// depthMax bounds what happens inside of what happens.
const depthMax = 2

// runsMax is how many runs a world has.
const runsMax = 5

// actionsMax is how much happens before nothing goes wrong any more.
const actionsMax = 60

var errDisk = errors.New("fault of the simulation")

// simulation is one seeded world.
type simulation struct {
	t     *testing.T
	rng   *rand.Rand
	seed  uint64
	story []string

	db      *store.DB
	gate    *enginetest.Gate
	lib     *enginetest.Library
	target  *simTarget
	engines [2]*engine.Engine
	epoch   int64
	owners  int

	runs      []id.Run
	decisions map[id.Approval]string // those that were acknowledged
	answers   map[answered]string    // digests of those that were acknowledged
	flows     []*workflow.Workflow

	calm   bool // nothing goes wrong any more
	paused bool // the process stands still: leases are not renewed
	depth  int
	faults []fault       // on the commits to come
	jump   time.Duration // of the wall clock
}

// answered is a question that somebody was told they answered.
type answered struct {
	run  id.Run
	pass int
}

// fault makes a commit fail: before it, or with its answer lost.
type fault struct {
	in    int // commits from now
	point string
}

func newSimulation(t *testing.T, seed uint64) *simulation {
	s := &simulation{t: t, rng: rand.New(rand.NewPCG(seed, 42)), seed: seed, gate: &enginetest.Gate{DecideWithin: 6 * time.Hour, ExecuteWithin: 3 * time.Hour},
		decisions: map[id.Approval]string{}, answers: map[answered]string{}}
	s.target = &simTarget{s: s, pin: 1}
	s.gate.Policy = func(engine.Proposal) string {
		if s.rng.IntN(20) == 0 {
			return engine.Denied
		}
		return []string{engine.Pending, engine.Pending, engine.Allowed}[s.rng.IntN(3)]
	}
	s.lib = enginetest.NewLibrary(t, enginetest.AllTools...)
	for _, tool := range []string{"write.keyquery", "write.key", "write.query", "write.plain", "write.pinned"} {
		s.flows = append(s.flows, s.lib.Add(t, enginetest.ReadThenWrite(tool)))
	}
	s.flows = append(s.flows, s.lib.Add(t, enginetest.AskThenWrite("write.keyquery")), s.lib.Add(t, enginetest.AskThenWrite("write.plain")))
	s.db = testkit.OpenWith(t, store.Options{Lines: enginetest.Lines(), Now: s.now, Fault: s.commitFault, Logger: slog.New(slog.DiscardHandler)})
	s.restart()
	return s
}

func (s *simulation) now() time.Time { return time.Now().Add(s.jump) }

func (s *simulation) tell(format string, args ...any) {
	s.story = append(s.story, fmt.Sprintf("%s%s %s", strings.Repeat("    ", s.depth), time.Now().Format("15:04:05.000"), fmt.Sprintf(format, args...)))
}

func (s *simulation) fail(format string, args ...any) {
	s.t.Helper()
	s.t.Fatalf("seed %d: %s\n%s", s.seed, fmt.Sprintf(format, args...), strings.Join(s.story, "\n"))
}

// goesWrong is true once in n times, while things go wrong.
func (s *simulation) goesWrong(n int) bool { return !s.calm && s.rng.IntN(n) == 0 }

// commitFault is the store's hook. A process that stands still commits nothing.
func (s *simulation) commitFault(point string) error {
	if point == store.FaultBeforeCommit && s.paused {
		return errDisk
	}
	if len(s.faults) == 0 || point != store.FaultBeforeCommit && point != store.FaultAfterCommit {
		return nil
	}
	f := &s.faults[0]
	if point == store.FaultBeforeCommit {
		f.in--
	}
	if f.in > 0 || f.point != point {
		return nil
	}
	s.faults = s.faults[1:]
	s.tell("  [commit fails: %s]", point)
	return errDisk
}

// restart is a new process: two engines of the next epoch.
func (s *simulation) restart() {
	s.epoch++
	for i := range s.engines {
		s.replace(i)
	}
}

// replace is a new driver in the place of one that died.
func (s *simulation) replace(i int) {
	s.owners++
	s.engines[i] = engine.New(engine.Options{DB: s.db, Gate: s.gate, Recorder: enginetest.Recorder{}, Library: s.lib, World: s.target,
		Config: tools.Config{"target": "http://target.invalid", "program": "/bin/true", "ledger": "/ledger", "root": "/root"},
		Owner:  fmt.Sprint("driver-", s.owners), Epoch: s.epoch, Crash: s.window, Jitter: func() float64 { return 0 }, Now: s.now,
		Logger: slog.New(slog.DiscardHandler)})
}

// window is what may happen at an instant around a commit: nothing, a crash,
// something else, or a pause that outlasts the lease.
func (s *simulation) window(window, path string, pass int) {
	switch {
	case s.goesWrong(25):
		s.tell("* the process dies at %s:%s@%d", window, path, pass)
		panic(engine.Crashed{Window: window, Path: path})
	case s.goesWrong(20):
		s.tell("* the driver stands still at %s:%s@%d", window, path, pass)
		s.paused = true
		s.sleep(engine.LeaseDefault + time.Duration(s.rng.IntN(30))*time.Second)
		s.paused = false
		s.takeOver()
	case s.goesWrong(10):
		s.meanwhile(window + ":" + path)
	}
}

// takeOver has another driver go on with what the one that stood still holds,
// before that one wakes up and goes on, too.
func (s *simulation) takeOver() {
	if s.depth >= depthMax || s.rng.IntN(4) == 0 {
		return
	}
	s.depth++
	defer func() { s.depth-- }()
	for _, run := range s.runs {
		if now := s.look(run); now.Lease.Owner != "" && now.Lease.Until.Before(s.now()) {
			s.drive(run, -1, engine.Actor{Kind: engine.ActorEngine, ID: "engine", Name: "engine"})
		}
	}
}

// meanwhile lets something else happen inside of what is happening.
func (s *simulation) meanwhile(where string) {
	if s.calm || s.depth >= depthMax || s.rng.IntN(4) > 0 {
		return
	}
	s.depth++
	defer func() { s.depth-- }()
	s.tell("(%s)", where)
	s.act()
}

func (s *simulation) sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// play is the two phases and what must hold at the end.
func (s *simulation) play(aloud bool) {
	for range actionsMax {
		s.step()
	}
	s.calm, s.faults, s.paused = true, nil, false
	s.tell("--- nothing goes wrong any more")
	s.settleDown()
	s.judge()
	if aloud {
		s.t.Log(strings.Join(s.story, "\n"))
	}
}

// step is one thing that happens, crash included.
func (s *simulation) step() {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		if _, crashed := v.(engine.Crashed); !crashed {
			s.tell("panic: %v", v)
			panic(fmt.Sprintf("%v\n%s", v, strings.Join(s.story, "\n")))
		}
		s.depth, s.paused = 0, false
		if s.rng.IntN(3) == 0 {
			i := s.rng.IntN(2)
			s.tell("one driver is replaced")
			s.replace(i)
			s.replace(1 - i)
			return
		}
		s.tell("the process starts again")
		s.restart()
	}()
	if len(s.faults) == 0 && s.goesWrong(4) {
		for range 2 { // in pairs
			point := []string{store.FaultBeforeCommit, store.FaultAfterCommit}[s.rng.IntN(2)]
			s.faults = append(s.faults, fault{1 + s.rng.IntN(12), point})
		}
	}
	s.act()
}

// act is one thing that somebody does.
func (s *simulation) act() {
	if len(s.runs) == 0 || s.rng.IntN(5) == 0 && len(s.runs) < runsMax {
		s.begin()
		return
	}
	run := s.pick()
	switch n := s.rng.IntN(100); {
	case n < 8:
		s.begin()
	case n < 45:
		s.drive(run, -1, engine.Actor{Kind: engine.ActorEngine, ID: "engine", Name: "engine"})
	case n < 60 && s.look(run).Status == engine.WaitingInput:
		s.answer(run)
	case n < 60:
		s.decide(run, []string{engine.Approved, engine.Approved, engine.Approved, engine.Rejected}[s.rng.IntN(4)])
	case n < 70:
		s.drive(run, s.seen(run), enginetest.Person)
	case n < 78:
		s.resolve(run)
	case n < 81:
		s.cancel(run)
	case n < 84:
		s.answer(run)
	case n < 86:
		s.target.pin++
		s.tell("the object changes to version %d", s.target.pin)
	case n < 88:
		s.jumpClock()
	default:
		d := []time.Duration{50 * time.Millisecond, time.Second, 40 * time.Second, 10 * time.Minute, 2 * time.Hour}[s.rng.IntN(5)]
		s.tell("%s pass", d)
		s.sleep(d)
	}
}

// pick is a run to do something with, mostly one that has not ended.
func (s *simulation) pick() id.Run {
	var open []id.Run
	for _, run := range s.runs {
		if !engine.Final(s.look(run).Status) {
			open = append(open, run)
		}
	}
	if len(open) == 0 || s.rng.IntN(12) == 0 {
		return s.runs[s.rng.IntN(len(s.runs))]
	}
	return open[s.rng.IntN(len(open))]
}

// jumpClock moves the wall clock: forward, or back by no more than what counts
// as a correction.
func (s *simulation) jumpClock() {
	d := time.Duration(s.rng.IntN(20)-4) * time.Minute
	s.jump += d
	s.tell("the clock jumps by %s", d)
}

func (s *simulation) name(run id.Run) string {
	for i, r := range s.runs {
		if r == run {
			return fmt.Sprint("run ", i+1)
		}
	}
	return string(run)
}

func (s *simulation) update(fn func(ctx context.Context, tx *store.Tx) error) error {
	return s.db.Update(context.Background(), fn)
}

func (s *simulation) begin() {
	if len(s.runs) >= runsMax {
		return
	}
	w := s.flows[s.rng.IntN(len(s.flows))]
	var run engine.Run
	err := s.update(func(ctx context.Context, tx *store.Tx) (err error) {
		run, _, err = s.engines[0].Create(ctx, tx, engine.Creation{Tenant: enginetest.Tenant, Workflow: w, Tools: s.lib.Digests(), Input: []byte("{}"),
			Key: fmt.Sprint("k", len(s.runs)), Initiator: "usr_ben", InitiatorName: "Ben", Actor: enginetest.Person})
		return err
	})
	if err != nil {
		s.tell("no run is made: %v", err)
		return
	}
	s.runs = append(s.runs, run.ID)
	s.tell("%s begins: %s", s.name(run.ID), w.Tools)
}

func (s *simulation) drive(run id.Run, expected int64, by engine.Actor) {
	i := s.rng.IntN(2)
	s.tell("%s is driven by %s, engine %d, seen at version %d", s.name(run), by.Kind, i+1, expected)
	now, err := s.engines[i].DriveFrom(context.Background(), run, expected, by)
	s.tell("%s is %s (%v)", s.name(run), now.Status, err)
}

// seen is the version a person has on the screen: sometimes an old one.
func (s *simulation) seen(run id.Run) int64 {
	version := s.look(run).Version
	if s.goesWrong(4) {
		version--
	}
	return version
}

func (s *simulation) look(run id.Run) (r engine.Run) {
	s.t.Helper()
	err := s.db.View(context.Background(), func(ctx context.Context, q store.Querier) (err error) {
		r, err = s.engines[0].Run(ctx, q, enginetest.Tenant, run)
		return err
	})
	if err != nil {
		s.fail("read %s: %v", s.name(run), err)
	}
	return r
}

func (s *simulation) effects(run id.Run) (all []engine.Effect) {
	s.t.Helper()
	err := s.db.View(context.Background(), func(ctx context.Context, q store.Querier) (err error) {
		all, err = s.engines[0].Effects(ctx, q, enginetest.Tenant, run)
		return err
	})
	if err != nil {
		s.fail("read the ledger of %s: %v", s.name(run), err)
	}
	return all
}

// decide rules on the open request of the run, if it has one.
func (s *simulation) decide(run id.Run, verdict string) {
	var request id.Approval
	err := s.update(func(ctx context.Context, tx *store.Tx) error {
		request = ""
		if err := tx.QueryRow(ctx, "SELECT id FROM fake_request WHERE run = $1 AND status = 'pending' LIMIT 1", string(run)).Scan(&request); err != nil {
			return err
		}
		if err := tx.ExecOne(ctx, "UPDATE fake_request SET status = $1, author = 'Ana', comment = 'seen' WHERE id = $2 AND status = 'pending'", verdict, string(request)); err != nil {
			return err
		}
		return s.engines[0].Wake(ctx, tx, run)
	})
	if err == nil {
		s.decisions[request] = verdict
		s.tell("Ana says of %s: %s", s.name(run), verdict)
	}
}

// answer has Ana or Ben answer what the run asks: one of two answers, so that
// some are repeated and some come second.
func (s *simulation) answer(run id.Run) {
	who := []engine.Actor{enginetest.Person, {Kind: engine.ActorPerson, ID: "usr_ben", Name: "Ben"}}[s.rng.IntN(2)]
	value := []string{`{"text":"one"}`, `{"text":"two"}`}[s.rng.IntN(2)]
	q, err := s.engines[s.rng.IntN(2)].Answer(context.Background(), engine.Answer{Tenant: enginetest.Tenant, Run: run, Path: "ask", Value: []byte(value)}, who)
	if problem.HasCode(err, "not_found") {
		return
	}
	s.tell("%s answers %s of %s: %v", who.Name, value, s.name(run), err)
	if err != nil {
		return
	}
	key := answered{run, q.Pass}
	if before, ok := s.answers[key]; ok && before != q.AnswerDigest {
		s.fail("I7: two answers to one question of %s were acknowledged", s.name(run))
	}
	s.answers[key] = q.AnswerDigest
}

func (s *simulation) cancel(run id.Run) {
	_, err := s.engines[s.rng.IntN(2)].Cancel(context.Background(), run, "Not needed any more.", enginetest.Person)
	s.tell("Ana cancels %s: %v", s.name(run), err)
}

// resolve has a person say of an unknown effect what the oracle knows, once
// nothing can be on its way any more; or give up.
func (s *simulation) resolve(run id.Run) {
	for _, e := range s.effects(run) {
		if e.Status != engine.Unknown || s.target.onItsWay(e.Key) || !s.now().After(e.SentAt.Add(sendTimeout+settleTime)) {
			continue
		}
		say := engine.DidNotStop
		switch happened := s.target.happened(e.Key) > 0; {
		case happened:
			say = engine.Happened
		case s.rng.IntN(3) > 0:
			say = engine.DidNotSendAgain
		}
		if s.goesWrong(6) {
			say = engine.GiveUp
		}
		_, err := s.engines[0].Resolve(context.Background(), e.ID, engine.Resolution{Outcome: say, Evidence: "Looked at the target."}, enginetest.Person)
		s.tell("Ana says of the effect of %s: %s (%v)", s.name(run), say, err)
	}
}
