package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"countersign/internal/approvals"
	"countersign/internal/demo/standin"
	"countersign/internal/desk"
	"countersign/internal/engine"
	"countersign/internal/id"
	"countersign/internal/problem"
	"countersign/internal/tools"
)

// workers is how many calls a load has under way at the same time.
const workers = 6

// load is the people and the agent of a folder, busy over the API. What it
// chooses depends on its seed and on the number of the step alone.
type load struct {
	*folder
	seed         uint64
	agent, judge string // tokens: who starts runs, who decides and operates

	base    atomic.Pointer[string] // where the console answers; it moves with every start
	steps   atomic.Uint64
	answers atomic.Int64 // calls that were answered
	mayOpen atomic.Int64 // runs that may still be started
	ended   atomic.Bool  // nothing new is begun
	busy    sync.WaitGroup

	mu        sync.Mutex // protects what follows: what the console said 2xx to
	started   map[string]id.Run
	decided   []decision
	cancelled map[id.Run]bool
}

// decision is a verdict that the console acknowledged.
type decision struct{ approval, digest, verdict string }

// newLoad makes the tokens and begins.
func newLoad(f *folder, seed uint64) *load {
	f.Helper()
	l := &load{folder: f, seed: seed, started: map[string]id.Run{}, cancelled: map[id.Run]bool{}}
	f.must("user", "add", "dev@example.org", "--name", "Dev", "--role", "builder", "--password-stdin")
	l.agent = f.token("agent", "dev@example.org", "runs:write", "runs:read")
	l.judge = f.token("judge", somebody, "runs:read", "approvals:read", "approvals:decide", "operate", "audit:read")
	for range workers {
		l.busy.Go(func() {
			for !l.ended.Load() {
				l.step(l.steps.Add(1))
			}
		})
	}
	return l
}

// end waits for the steps under way.
func (l *load) end() {
	l.ended.Store(true)
	l.busy.Wait()
}

// choices are those of one step.
func (l *load) choices(n uint64) *rand.Rand { return rand.New(rand.NewPCG(l.seed, n)) }

// step starts a run, decides a request, settles an effect or cancels a run.
func (l *load) step(n uint64) {
	r := l.choices(n)
	switch what := r.IntN(16); {
	case what < 6 && l.mayOpen.Add(-1) >= 0:
		l.start(n, r)
	case what < 13:
		l.decide(r)
	case what < 15:
		l.settle(r)
	default:
		l.cancel(n)
	}
}

// call sends one call, where the console is now. It reports whether an answer
// came; a refusal is one.
func (l *load) call(token, method, path string, in, out any) (answered bool, err error) {
	base := l.base.Load()
	if base == nil {
		<-time.After(time.Millisecond) // between two lives
		return false, errors.New("the console is down")
	}
	c := client{base: *base + "/api/v1", token: token}
	err = c.call(l.Context(), method, path, in, out)
	refused, answered := errors.AsType[*problem.Error](err)
	switch {
	case err == nil:
		answered = true
	case !answered:
		<-time.After(time.Millisecond) // it is being killed, or it is gone
	case refused.Code == "internal":
		l.Errorf("%s %s: %v", method, path, err)
	}
	if answered {
		l.answers.Add(1)
	}
	return answered, err
}

// insist sends one call until it is answered or the load has ended: whoever
// does not hear an answer asks again, in the same words.
func (l *load) insist(token, method, path string, in, out any) error {
	for {
		answered, err := l.call(token, method, path, in, out)
		if answered || l.ended.Load() {
			return err
		}
	}
}

// start starts a run under a key of its own.
func (l *load) start(n uint64, r *rand.Rand) {
	key := runKey(n)
	asked := map[string]any{"run_key": key}
	switch r.IntN(3) {
	case 0:
		asked["workflow"], asked["input"] = "refund", map[string]any{"order_id": fmt.Sprint(100_000 + n), "amount": 500 + r.IntN(3500), "why": "It came broken."}
		l.breakShop(r)
	case 1:
		asked["workflow"], asked["input"] = "restart-service", map[string]any{"service": "search", "why": "It leaks."}
	case 2:
		asked["workflow"], asked["input"] = "weekly-report", map[string]any{"week": fmt.Sprintf("%04d-W%02d", 1000+n/100, n%100)}
	}
	var run engine.Run
	if err := l.insist(l.agent, "POST", "/runs", asked, &run); err != nil {
		if !l.ended.Load() {
			l.Errorf("start %v: %v", asked, err)
		}
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.started[key] = run.ID
}

// cancel cancels the run that was started last before step n.
func (l *load) cancel(n uint64) {
	l.mu.Lock()
	var run id.Run
	for ; n > 0 && run == ""; n-- {
		run = l.started[runKey(n)]
	}
	l.mu.Unlock()
	if run == "" || l.insist(l.agent, "POST", "/runs/"+string(run)+"/cancel", map[string]any{"reason": "Not needed."}, nil) != nil {
		return // there is none, or it has ended
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancelled[run] = true
}

// runKey is the key of the run that step n starts.
func runKey(n uint64) string { return fmt.Sprintf("load-%d", n) }

// breakShop has the shop lose an answer or be busy now and then.
func (l *load) breakShop(r *rand.Rand) {
	faults := []string{"lose_answer", "error_after", "busy", "", "", "", "", ""}
	l.shop.Break("refund", faults[r.IntN(len(faults))])
}

// decide approves, or now and then rejects, one of the requests that wait.
func (l *load) decide(r *rand.Rand) {
	var waiting desk.Page[desk.Approval]
	if _, err := l.call(l.judge, "GET", "/approvals?status=pending", nil, &waiting); err != nil || len(waiting.Items) == 0 {
		return
	}
	verdict := approvals.VerdictApprove
	if r.IntN(8) == 0 {
		verdict = approvals.VerdictReject
	}
	l.vote(waiting.Items[r.IntN(len(waiting.Items))], verdict)
}

// vote gives the verdict, again if it hears nothing, and remembers it if the
// console acknowledged it.
func (l *load) vote(a desk.Approval, verdict string) {
	d := decision{a.ID, a.Digest, verdict}
	err := l.insist(l.judge, "POST", "/approvals/"+a.ID+"/decision", map[string]any{"verdict": verdict, "digest": a.Digest, "comment": "Seen."}, nil)
	if err != nil {
		return // somebody was quicker, or the request is not what it was
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.decided = append(l.decided, d)
}

// settle looks at one of the blocked runs and does what it asks of a person:
// to say what became of an effect, truthfully, or to have another try.
func (l *load) settle(r *rand.Rand) {
	var blocked desk.Page[engine.Run]
	if _, err := l.call(l.judge, "GET", "/runs?status=blocked", nil, &blocked); err != nil || len(blocked.Items) == 0 {
		return
	}
	l.help(blocked.Items[r.IntN(len(blocked.Items))])
}

func (l *load) help(run engine.Run) {
	if run.Error.Code == "outcome_unknown" {
		l.tell(run.WaitingFor[0].Subject)
		return
	}
	_, _ = l.call(l.judge, "POST", "/runs/"+string(run.ID)+"/resume", map[string]any{"expected_version": run.Version}, nil) // somebody may be quicker
}

// tell says what became of an unknown effect: what the oracle says once
// nothing of it runs any more.
func (l *load) tell(effect string) {
	var e engine.Effect
	var run engine.Run
	if _, err := l.call(l.judge, "GET", "/effects/"+effect, nil, &e); err != nil {
		return
	}
	if _, err := l.call(l.judge, "GET", "/runs/"+string(e.Run), nil, &run); err != nil {
		return
	}
	world := tools.World{LockDir: filepath.Join(l.dir, "locks")}
	if running, err := world.StillRunning(effect); running || err != nil {
		return
	}
	said := engine.DidNotSendAgain
	if engine.Final(run.Status) {
		said = engine.DidNotStop
	}
	if slices.ContainsFunc(l.happened("restart"), func(d standin.Effect) bool { return d.Key == e.Key }) {
		said = engine.Happened
	}
	_, _ = l.call(l.judge, "POST", "/effects/"+effect+"/resolve", map[string]any{"outcome": said, "evidence": "The oracle says so."}, nil) // somebody may be quicker
}
