package main

import (
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"countersign/internal/desk"
	"countersign/internal/engine"

	"github.com/google/go-cmp/cmp"
)

// toolKind is one of the ways in which a tool acts, with a sample of it.
type toolKind struct {
	name, workflow, step, input string
	asks                        bool // what a kill leaves open is for a person to settle
	happened                    func(f *folder) []deed
}

// deed is one effect at the oracle.
type deed struct {
	what string
	key  string // the idempotency key it came with; empty for a file, which has none
}

var toolKinds = []toolKind{
	{name: "http", workflow: "refund", step: "refund", input: `{"order_id":"1001","amount":4000,"why":"It came broken."}`, happened: deeds("refund")},
	{name: "exec", workflow: "restart-service", step: "restart", input: `{"service":"search","why":"It leaks."}`, asks: true, happened: deeds("restart")},
	{name: "file", workflow: "weekly-report", step: "publish", input: `{}`, happened: publications},
}

func deeds(kind string) func(f *folder) []deed {
	return func(f *folder) (all []deed) {
		for _, e := range f.happened(kind) {
			all = append(all, deed{e.ID, e.Key})
		}
		return all
	}
}

// publications are the files written. A file that is written again is another
// one: its inode is part of what it is.
func publications(f *folder) (all []deed) {
	for path, info := range f.pages() {
		all = append(all, deed{what: path + " " + inode(info)})
	}
	return all
}

// The built program is killed in every window the engine names, for every kind
// of tool, and driven on by the command line. The oracle never has more than
// one effect and never one without a row in the ledger; what only a person can
// find out is unknown until they say so.
func TestKill_EveryWindowOfEveryToolKind(t *testing.T) {
	var left leftovers
	t.Run("at", func(t *testing.T) {
		for _, k := range toolKinds {
			for _, w := range engine.Windows {
				t.Run(k.name+"/"+w.Name, func(t *testing.T) {
					if testing.Short() && w.Of != "effect" {
						t.Skip("short: one window of each kind, between the target's answer and our record of it")
					}
					t.Parallel()
					left.add(k, k.survives(newFolder(t), w))
				})
			}
		}
	})
	if left.n == len(toolKinds)*len(engine.Windows) {
		left.cover(t)
	}
}

// remains is what a kill left behind.
type remains struct {
	ledger string // status of the effect's row; empty: there is none
	deeds  int    // at the oracle
}

// survives kills a run in the window, drives it on until it has ended, with a
// person's word where it needs one, and returns what the kill left behind.
func (k toolKind) survives(f *folder, w engine.Window) remains {
	point := w.Name + ":" + k.step
	status, _, stderr := f.run("run", "start", k.workflow, "--key", "one", "--input", k.input, "--crash-at", point)
	if status == exitOK {
		f.approve()
		status, _, stderr = f.run("run", "resume", "key:one", "--crash-at", point)
	}
	if status != exitCrash || !strings.Contains(stderr, "rehearsed crash at "+point) {
		f.Fatalf("exit status %d, want %d: the run does not pass the window\n%s", status, exitCrash, stderr)
	}
	killed := f.story()
	done := k.happened(f)
	left := k.judge(f, killed, done)
	if k.asks && left.ledger == engine.Sent {
		k.settle(f, done)
	}
	if !engine.Final(killed.Run.Status) {
		f.drive(exitOK)
	}
	k.atTheEnd(f, killed, done)
	return left
}

// story is everything the program knows of the run.
func (f *folder) story() (s runStory) {
	f.Helper()
	f.read(&s, "run", "show", "key:one")
	return s
}

// approve approves the one request that waits.
func (f *folder) approve() {
	f.Helper()
	var waiting desk.Page[desk.Approval]
	f.read(&waiting, "approval", "list", "--status", "pending")
	if len(waiting.Items) != 1 {
		f.Fatalf("%d requests wait, want 1", len(waiting.Items))
	}
	a := waiting.Items[0]
	f.must("approval", "approve", a.ID, "--digest", a.Digest, "--as", somebody, "--password-stdin")
}

// drive resumes the run, and approves what it asks for, until it ends with the
// status or waits for a person.
func (f *folder) drive(want int) {
	f.Helper()
	status, stdout, stderr := f.run("run", "resume", "key:one")
	if strings.Contains(stdout, engine.WaitingApproval) {
		f.approve()
		status, stdout, stderr = f.run("run", "resume", "key:one")
	}
	if status != want {
		f.Fatalf("resume: exit status %d, want %d\n%s%s", status, want, stdout, stderr)
	}
}

// judge compares the ledger with the oracle right after the kill.
func (k toolKind) judge(f *folder, s runStory, done []deed) remains {
	f.Helper()
	r := remains{deeds: len(done)}
	if len(s.Effects) > 0 {
		r.ledger = s.Effects[0].Status
	}
	if len(done) > 1 || len(s.Effects) > 1 {
		f.Fatalf("%d effects happened and the ledger has %d rows; want one of each at most", len(done), len(s.Effects))
	}
	if len(done) == 1 && r.ledger != engine.Sent && r.ledger != engine.Confirmed {
		f.Errorf("it happened, and its row in the ledger is %q", r.ledger)
	}
	if len(done) == 0 && r.ledger == engine.Confirmed {
		f.Error("the ledger says that it happened; it did not")
	}
	return r
}

// settle has the run stop at an unknown effect, for good, until a person says
// what the oracle says.
func (k toolKind) settle(f *folder, done []deed) {
	f.Helper()
	for range 2 { // a second resume learns no more than the first, and sends nothing
		f.drive(exitBlocked)
		if diff := cmp.Diff(done, k.happened(f), cmp.AllowUnexported(deed{})); diff != "" {
			f.Fatalf("a resume of a blocked run changed what happened: %s", diff)
		}
	}
	var unknown desk.Page[engine.Effect]
	f.read(&unknown, "effect", "list")
	if len(unknown.Items) != 1 || unknown.Items[0].Status != engine.Unknown {
		f.Fatalf("unknown effects: %+v, want one", unknown.Items)
	}
	said := engine.DidNotSendAgain
	if len(done) == 1 {
		said = engine.Happened
	}
	f.must("effect", "resolve", string(unknown.Items[0].ID), "--outcome", said, "--evidence", "The oracle says so.", "--as", somebody, "--password-stdin")
}

// atTheEnd checks a run that has ended: it happened once, under the key of its
// one row; what had happened or was finished at the kill was not done again.
func (k toolKind) atTheEnd(f *folder, killed runStory, done []deed) {
	f.Helper()
	s, all := f.story(), k.happened(f)
	if s.Run.Status != engine.Completed {
		f.Errorf("the run is %s (%+v), want completed", s.Run.Status, s.Run.Error)
	}
	if len(all) != 1 || len(done) == 1 && all[0] != done[0] {
		f.Errorf("it happened as %v, and as %v before the kill; want it once", all, done)
	}
	if len(s.Effects) != 1 || s.Effects[0].Status != engine.Confirmed {
		f.Fatalf("the ledger has %+v, want one row that is confirmed", s.Effects)
	}
	if len(all) == 1 && all[0].key != "" && all[0].key != s.Effects[0].Key {
		f.Errorf("it happened under the key %s, the ledger has %s", all[0].key, s.Effects[0].Key)
	}
	for _, was := range killed.Steps {
		if was.Status == "completed" && !slices.ContainsFunc(s.Steps, func(now engine.Step) bool { return reflect.DeepEqual(was, now) }) {
			f.Errorf("step %s was finished when the kill came, and is not what it was: %+v", was.Path, was)
		}
	}
	f.verify()
}

// leftovers is what the kills of a whole matrix left behind, by kind.
type leftovers struct {
	mu  sync.Mutex // protects all and n: cases run at the same time
	n   int
	all map[string]map[remains]int
}

func (l *leftovers) add(k toolKind, r remains) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[string]map[remains]int{}
	}
	if l.all[k.name] == nil {
		l.all[k.name] = map[remains]int{}
	}
	l.n++
	l.all[k.name][r]++
}

// cover fails the test unless the kills came before, between and after: a
// matrix that never leaves an effect behind whose outcome is open proves
// nothing.
func (l *leftovers) cover(t *testing.T) {
	t.Helper()
	for _, k := range toolKinds {
		for _, r := range []remains{{"", 0}, {engine.Prepared, 0}, {engine.Sent, 0}, {engine.Sent, 1}, {engine.Confirmed, 1}} {
			if l.all[k.name][r] == 0 {
				t.Errorf("%s: no kill left %+v behind; they left %v", k.name, r, l.all[k.name])
			}
		}
	}
	t.Logf("%d kills left behind: %v", l.n, l.all)
}
