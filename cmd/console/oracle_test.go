package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"countersign/internal/approvals"
	"countersign/internal/desk"
	"countersign/internal/engine"
)

// roundsMax is how often people are asked at the end: what they settle may be
// sent again, and end unknown again.
const roundsMax = 10

// judgeAll compares what the console says with what happened: as the kills
// left it, and again when people have settled what was theirs to settle.
func (l *load) judgeAll() {
	l.Helper()
	runs := l.settled()
	left := map[string]int{}
	for _, r := range runs {
		left[r.Status]++
		l.reasoned(r)
	}
	l.compare(runs, false)
	for range roundsMax {
		if runs = l.settled(); !l.conclude(runs) {
			break
		}
	}
	rows := l.compare(runs, true)
	l.acknowledged(runs, rows)
	l.Logf("%d calls answered, %d runs taken over, %d effects unknown in between; %d runs, left by the last kill as %v, then all ended",
		l.answers.Load(), l.entries("run.takeover"), l.entries("effect.unknown"), len(runs), left)
	l.Logf("acknowledged: %d starts, %d decisions, %d cancels; %d effects in the ledger; %d refunds, %d restarts and %d pages happened",
		len(l.started), len(l.decided), len(l.cancelled), len(rows), len(l.happened("refund")), len(l.happened("restart")), len(l.pages()))
}

// get reads what must be there.
func (l *load) get(path string, out any) {
	l.Helper()
	if _, err := l.call(l.judge, "GET", path, nil, out); err != nil {
		l.Fatalf("GET %s: %v", path, err)
	}
}

// settled waits until no run goes on by itself, and returns them all.
func (l *load) settled() []engine.Run {
	l.Helper()
	moving := func(r engine.Run) bool {
		return !engine.Final(r.Status) && r.Status != engine.WaitingApproval && r.Status != engine.Blocked
	}
	for begun := time.Now(); ; <-time.After(50 * time.Millisecond) {
		runs := l.runs()
		i := slices.IndexFunc(runs, moving)
		if i < 0 {
			return runs
		}
		if time.Since(begun) > answerMax {
			l.Fatalf("after %v a run is still %s: %+v", answerMax, runs[i].Status, runs[i])
		}
	}
}

func (l *load) runs() []engine.Run { return all[engine.Run](l, "/runs?") }

// entries counts the audit entries of an action.
func (l *load) entries(action string) int {
	return len(all[json.RawMessage](l, "/audit/entries?action="+action+"&"))
}

// all reads every page of a list.
func all[T any](l *load, path string) (items []T) {
	l.Helper()
	for next := ""; ; {
		var page desk.Page[T]
		l.get(path+"limit=200&cursor="+url.QueryEscape(next), &page)
		items = append(items, page.Items...)
		if next = page.Next; next == "" {
			return items
		}
	}
}

// reasoned fails the test unless a run that has not ended says what it waits
// for and what to do about it.
func (l *load) reasoned(r engine.Run) {
	l.Helper()
	switch {
	case engine.Final(r.Status):
	case len(r.WaitingFor) == 0 || r.WaitingFor[0].NextAction == "":
		l.Errorf("the run %s is %s and does not say what for", r.ID, r.Status)
	case r.Status == engine.Blocked && (r.Error == nil || r.Error.Code != "outcome_unknown" && r.Error.Code != "keeps_failing"):
		l.Errorf("the run %s is blocked because of %+v", r.ID, r.Error)
	}
}

// conclude does what open runs wait for, and settles what ended runs left
// unknown. It reports whether there was something to do.
func (l *load) conclude(runs []engine.Run) (some bool) {
	l.Helper()
	for _, r := range runs {
		switch r.Status {
		case engine.Blocked:
			l.help(r)
		case engine.WaitingApproval:
			var a desk.Approval
			l.get("/approvals/"+r.WaitingFor[0].Subject, &a)
			l.vote(a, approvals.VerdictApprove)
		default:
			continue
		}
		some = true
	}
	var unknown desk.Page[engine.Effect]
	l.get("/effects?status=unknown", &unknown)
	for _, e := range unknown.Items {
		l.tell(string(e.ID))
	}
	return some || len(unknown.Items) > 0
}

// ledger is every row of the console's ledger, by idempotency key.
type ledger map[string]engine.Effect

// compare sets the ledger against the oracles. When all has ended nothing may
// be open any more.
func (l *load) compare(runs []engine.Run, ended bool) ledger {
	l.Helper()
	rows, published := ledger{}, map[string]string{}
	for _, r := range runs {
		var page desk.Page[engine.Effect]
		l.get("/runs/"+string(r.ID)+"/effects", &page)
		for _, e := range page.Items {
			rows[e.Key] = e
			if e.Tool == "kb.publish" && (e.Status == engine.Confirmed || e.Status == engine.Unknown) {
				published[pageOf(r)] = e.Status
			}
		}
		if ended && !engine.Final(r.Status) {
			l.Errorf("the run %s is %s: %+v", r.ID, r.Status, r.WaitingFor)
		}
	}
	l.keyed(rows, ended)
	l.written(runs, published)
	return rows
}

// pageOf is the file that a run of the weekly report publishes.
func pageOf(r engine.Run) string {
	var in struct{ Week string }
	_ = json.Unmarshal(r.Input, &in) // canonical; a run of another workflow has no week
	return "reports/" + in.Week + ".md"
}

// keyed compares what carries an idempotency key.
func (l *load) keyed(rows ledger, ended bool) {
	l.Helper()
	times := map[string]int{}
	for _, e := range append(l.happened("refund"), l.happened("restart")...) {
		times[e.Key]++
		switch row, ok := rows[e.Key]; {
		case times[e.Key] > 1:
			l.Errorf("%s under the key %s happened %d times", e.Kind, e.Key, times[e.Key])
		case !ok:
			l.Errorf("%s %s happened, and the ledger has no row of its key %s", e.Kind, e.ID, e.Key)
		case row.Status != engine.Confirmed && (ended || row.Status != engine.Unknown):
			l.Errorf("%s %s happened, and the ledger says %s", e.Kind, e.ID, row.Status)
		}
	}
	for key, e := range rows {
		switch {
		case e.Status == engine.Confirmed && e.Tool != "kb.publish" && times[key] != 1:
			l.Errorf("the ledger says that %s with the key %s happened; it did %d times", e.Tool, key, times[key])
		case ended && (e.Status == engine.Sent || e.Status == engine.Unknown):
			l.Errorf("%s with the key %s is still %s", e.Tool, key, e.Status)
		}
	}
}

// written compares the pages on disk.
func (l *load) written(runs []engine.Run, published map[string]string) {
	l.Helper()
	files := l.pages()
	for path := range files {
		if published[path] == "" {
			l.Errorf("%s is on disk, and no row of the ledger says so", path)
		}
	}
	for path, status := range published {
		if files[path] == nil && status == engine.Confirmed {
			l.Errorf("the ledger says that %s was written; it is not there", path)
		}
	}
	for _, r := range runs {
		var out struct{ Digest string }
		if r.Workflow != "weekly-report" || r.Status != engine.Completed {
			continue
		}
		l.ok(json.Unmarshal(r.Output, &out))
		raw, err := os.ReadFile(filepath.Join(l.kb, pageOf(r)))
		if got := fmt.Sprintf("sha256:%x", sha256.Sum256(raw)); err != nil || got != out.Digest {
			l.Errorf("%s has the digest %s, the run wrote %s (%v)", pageOf(r), got, out.Digest, err)
		}
	}
}

// acknowledged compares what the console said 2xx to with what it knows now.
func (l *load) acknowledged(runs []engine.Run, rows ledger) {
	l.Helper()
	byKey := map[string]engine.Run{}
	for _, r := range runs {
		byKey[r.Key] = r
	}
	for key, run := range l.started {
		if byKey[key].ID != run {
			l.Errorf("the start of %s was acknowledged as %s; now it is %q", key, run, byKey[key].ID)
		}
	}
	for _, r := range runs {
		if l.cancelled[r.ID] && r.Status != engine.Cancelled {
			l.Errorf("the cancel of %s was acknowledged; now it is %s", r.ID, r.Status)
		}
	}
	rejected, approved := map[string]bool{}, map[string]bool{}
	for _, d := range l.decided {
		var a desk.Approval
		l.get("/approvals/"+d.approval, &a)
		if !slices.ContainsFunc(a.Decisions, func(v desk.DecisionView) bool { return v.Verdict == d.verdict && v.Digest == d.digest }) {
			l.Errorf("the verdict %+v was acknowledged and is lost; there are %+v", d, a.Decisions)
		}
		rejected[d.approval] = rejected[d.approval] || d.verdict == approvals.VerdictReject
		approved[d.approval] = approved[d.approval] || d.verdict == approvals.VerdictApprove
	}
	for _, e := range rows {
		if rejected[string(e.Approval)] && e.Attempts > 0 {
			l.Errorf("%s with the key %s was rejected and sent %d times", e.Tool, e.Key, e.Attempts)
		}
		if e.Status == engine.Confirmed && !approved[string(e.Approval)] {
			l.allowed(e)
		}
	}
}

// allowed fails the test unless the policy allowed the effect, or somebody
// approved it whom nobody told that it was heard.
func (l *load) allowed(e engine.Effect) {
	l.Helper()
	var a desk.Approval
	l.get("/approvals/"+string(e.Approval), &a)
	if a.Rule != "small-refunds" && len(a.Decisions) == 0 {
		l.Errorf("%s with the key %s happened, and nobody approved it", e.Tool, e.Key)
	}
}
