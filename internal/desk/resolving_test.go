package desk_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"countersign/internal/desk"
	"countersign/internal/engine"
)

// unknown makes the refund a tool of the risk that cannot be asked what
// happened, and returns a run and its effect after the answer was lost.
func (w *world) unknown(risk string) (engine.Run, engine.Effect) {
	w.t.Helper()
	name := filepath.Join(w.dir, "tools", "shop.refund.yaml")
	raw, err := os.ReadFile(name)
	w.must(err)
	text := strings.NewReplacer("version: 1\nsemantic", "version: 2\nsemantic", "risk: high", "risk: "+risk).Replace(string(raw))
	head, rest, found := strings.Cut(text, "idempotency:")
	_, tail, also := strings.Cut(rest, "precondition:")
	if !found || !also {
		w.t.Fatal("the sample tool has other parts than this test knows")
	}
	w.must(os.WriteFile(name, []byte(head+"precondition:"+tail), 0o600))
	_, err = w.inst.LoadDefinitions(w.t.Context())
	w.must(err)
	w.shop.Break("refund", "lose_answer")
	run := w.refund(1_500, engine.Blocked)
	effects, err := w.desk.RunEffects(w.t.Context(), desk.Terminal(), string(run.ID))
	w.must(err)
	if len(effects.Items) != 1 || effects.Items[0].Status != engine.Unknown {
		w.t.Fatalf("the effects are %s, want one that is unknown", asJSON(w.t, effects.Items))
	}
	return run, effects.Items[0]
}

const found = "The shop's list shows it."

func (w *world) resolve(who string, e engine.Effect, outcome, receipt string) (desk.EffectView, error) {
	w.t.Helper()
	return w.desk.Resolve(w.t.Context(), w.principal(who), string(e.ID), desk.Resolve{Outcome: outcome, Evidence: found, Receipt: json.RawMessage(receipt)})
}

// wantUnknown fails unless nothing moved since the effect became unknown.
func (w *world) wantUnknown(e engine.Effect) desk.EffectView {
	w.t.Helper()
	now, err := w.desk.Effect(w.t.Context(), w.principal("ana"), string(e.ID))
	w.must(err)
	if now.Status != engine.Unknown || now.Attempts != e.Attempts {
		w.t.Errorf("the effect is %s after %d attempts, want unknown after %d", now.Status, now.Attempts, e.Attempts)
	}
	w.wantRefunds(1)
	return now
}

func TestResolve_ReceiptThatIsNotTheToolsOutput_IsRefusedBeforeAnythingIsStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run, e := w.unknown("high")
	entries := len(w.entries("", ""))
	for receipt, pointer := range map[string]string{
		`{"id":"re_1"}`: "/receipt", `"re_1"`: "/receipt", `[]`: "/receipt", `{"id":"re_1","id":"re_2","state":"done"}`: "", `{"id":`: "",
	} {
		_, err := w.resolve("ana", e, engine.Happened, receipt)
		if err == nil {
			t.Fatalf("the receipt %s is taken", receipt)
		}
		if p := w.wantProblem(err, codeOf(err)); p.Kind != "invalid" && p.Kind != "malformed" || pointer != "" && (len(p.Fields) == 0 || !strings.HasPrefix(p.Fields[0].Pointer, pointer)) {
			t.Errorf("the receipt %s is refused with %s, want it to name %s", receipt, asJSON(t, p), pointer)
		}
	}
	for outcome, pointers := range map[string][]string{"": {"/evidence", "/outcome"}, "maybe": {"/evidence", "/outcome"}, engine.GiveUp: {"/evidence"}} {
		_, err := w.desk.Resolve(t.Context(), w.principal("ana"), string(e.ID), desk.Resolve{Outcome: outcome, Evidence: " "})
		var named []string
		for _, f := range w.wantProblem(err, "invalid").Fields {
			named = append(named, f.Pointer)
		}
		if !slices.Equal(named, pointers) {
			t.Errorf("the outcome %q without evidence names %q, want %q", outcome, named, pointers)
		}
	}
	if now := w.wantUnknown(e); len(now.Late) != 0 || len(w.entries("", "")) != entries {
		t.Errorf("refused receipts left %s and %d audit entries", asJSON(t, now.Late), len(w.entries("", ""))-entries)
	}
	done, err := w.resolve("ana", e, engine.Happened, `{"id":"re_1","state":"done"}`)
	w.must(err)
	if done.Status != engine.Confirmed || done.Needed != 1 {
		t.Errorf("after one person of a high risk the effect is %s, needs %d", done.Status, done.Needed)
	}
	if ended := w.waitFor(run, engine.Completed); !strings.Contains(string(ended.Output), "re_1") {
		t.Errorf("the run ends with %s, want the receipt's id", ended.Output)
	}
}

func TestResolve_Critical_MovesWhenTwoSayTheSame(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	base := w.serve()
	run, e := w.unknown("critical")
	path := "/effects/" + string(e.ID)
	ana, chloe := w.visitor(base, "ana"), w.visitor(base, "chloe")
	program := caller{t, base, w.token("chloe", true, "operate", "runs:read")}
	ana.shows(200, path, nil, "0 of 2 have said what happened")

	happened := url.Values{"outcome": {"happened"}, "evidence": {found}, "receipt": {`{"id":"re_1","state":"done"}`}}
	for range 2 { // a second click of the same person is no second person
		ana.shows(http.StatusSeeOther, path+"/resolve", happened)
		now := w.wantUnknown(e)
		if want := "1 of 2 has said it: Ana says that it happened (" + found + "). A second person must say the same before it moves. Chloe can."; now.Said != want || len(now.Statements) != 1 {
			t.Errorf("the effect says %q of %s, want %q", now.Said, asJSON(t, now.Statements), want)
		}
	}
	chloe.shows(200, path, nil, "1 of 2 has said it: Ana says that it happened", "Ana on", "It happened. "+found)
	chloe.shows(200, "/attention", nil, "1 of 2 has said it: Ana says that it happened")
	_, err := w.desk.Resume(t.Context(), w.principal("ana"), string(run.ID), -1)
	w.must(err)
	w.waitFor(run, engine.Blocked)
	w.wantUnknown(e)

	differing := program.send("POST", "/api/v1"+path+"/resolve", `{"outcome":"did_not_send_again","evidence":"I see none."}`)
	program.wantProblem(http.StatusConflict, "statement_differs", differing)
	if !strings.Contains(differing.raw, "Ana said at") || !strings.Contains(differing.raw, "that it happened") {
		t.Errorf("the refusal does not say what the first said: %s", differing.raw)
	}
	chloe.shows(http.StatusConflict, path+"/resolve", url.Values{"outcome": {"give_up"}, "evidence": {"I see none."}}, "Ana said at", "that it happened", "I see none.")
	otherReceipt := program.send("POST", "/api/v1"+path+"/resolve", `{"outcome":"happened","evidence":"Seen.","receipt":{"id":"re_2","state":"done"}}`)
	program.wantProblem(http.StatusConflict, "statement_differs", otherReceipt)
	w.wantUnknown(e)

	done := program.must(200, program.send("POST", "/api/v1"+path+"/resolve", `{"outcome":"happened","evidence":"I see it too."}`))
	if done.body["status"] != engine.Confirmed || len(done.body["statements"].([]any)) != 2 {
		t.Errorf("after the second person: %s", done.raw)
	}
	if ended := w.waitFor(run, engine.Completed); !strings.Contains(string(ended.Output), "re_1") {
		t.Errorf("the run ends with %s, want the receipt that the first gave", ended.Output)
	}
	w.wantRefunds(1)
	var said []string
	for _, entry := range w.entries("effect.stated", string(e.ID)) {
		said = append(said, entry.Actor.Name+": "+entry.Outcome)
	}
	if want := "Ana: happened, 1 of 2; Ana: happened, 1 of 2; Chloe: happened, 2 of 2"; strings.Join(said, "; ") != want {
		t.Errorf("the log says %q, want %q", said, want)
	}
	ana.shows(200, path, nil, "2 of 2 said", "Chloe on")
}

// The first may say another thing, and then that counts; somebody who lost the
// right has not said it; and what was said of one try says nothing of the next.
func TestResolve_Critical_OnlyWhatStandsCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run, e := w.unknown("critical")
	said := func(who, outcome string, status string) {
		t.Helper()
		now, err := w.resolve(who, e, outcome, "")
		w.must(err)
		if now.Status != status {
			t.Errorf("after %s said %s the effect is %s, want %s", who, outcome, now.Status, status)
		}
	}
	_, err := w.resolve("ben", e, engine.GiveUp, "")
	w.wantProblem(err, "forbidden")
	said("ana", engine.GiveUp, engine.Unknown)
	said("ana", engine.DidNotSendAgain, engine.Unknown) // she looked again
	_, err = w.resolve("chloe", e, engine.GiveUp, "")
	w.wantProblem(err, "statement_differs")

	ana := w.principal("ana")
	w.must(w.desk.SetRoles(t.Context(), w.principal("chloe"), ana.Person, []string{"finance"}))
	if now := w.wantUnknown(e); !strings.HasPrefix(now.Said, "0 of 2") {
		t.Errorf("Ana may not say it any more, and the effect says %q", now.Said)
	}
	said("chloe", engine.DidNotSendAgain, engine.Unknown) // the first of two now
	if now := w.wantUnknown(e); !strings.Contains(now.Said, "Nobody else has the role") {
		t.Errorf("Chloe alone can, and the effect says %q", now.Said)
	}
	w.must(w.desk.SetRoles(t.Context(), w.principal("chloe"), ana.Person, ana.Roles))
	w.shop.Break("refund", "lose_answer")
	said("ana", engine.DidNotSendAgain, engine.NotDone)

	w.eventually(func() (bool, string) {
		now, err := w.desk.Effect(t.Context(), ana, string(e.ID))
		w.must(err)
		return now.Status == engine.Unknown && now.Attempts == 2, fmt.Sprintf("the effect is %s after %d attempts", now.Status, now.Attempts)
	})
	w.waitFor(run, engine.Blocked)
	now, err := w.desk.Effect(t.Context(), ana, string(e.ID))
	w.must(err)
	if len(now.Statements) != 0 || !strings.HasPrefix(now.Said, "0 of 2") {
		t.Errorf("of the second try it says %q, %s", now.Said, asJSON(t, now.Statements))
	}
}

// Two at once are two people, or one after the other: never lost, never moved
// by one.
func TestResolve_Critical_ManyAtOnce_OneOfEachCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run, e := w.unknown("critical")
	results := make(chan error, 20)
	for i := range cap(results) {
		who := w.principal([]string{"ana", "chloe"}[i%2])
		go func() {
			_, err := w.desk.Resolve(t.Context(), who, string(e.ID), desk.Resolve{Outcome: engine.DidNotStop, Evidence: found})
			results <- err
		}()
	}
	for range cap(results) {
		if err := <-results; err != nil && codeOf(err) != "not_unknown" {
			t.Errorf("a statement got %v", err)
		}
	}
	w.eventually(func() (bool, string) {
		r, err := w.desk.Run(t.Context(), desk.Terminal(), string(run.ID))
		w.must(err)
		return !r.FinishedAt.IsZero(), "the run is " + r.Status
	})
	second := 0
	for _, entry := range w.entries("effect.stated", string(e.ID)) {
		if strings.HasSuffix(entry.Outcome, "2 of 2") {
			second++
		}
	}
	if second != 1 {
		t.Errorf("%d statements were the second, want 1", second)
	}
}

// A person with the database file cannot say it for another: what the log does
// not prove nobody said.
func TestResolve_Critical_StatementAddedOrChangedInTheDatabase_DoesNotCount(t *testing.T) {
	for name, c := range map[string]struct {
		first  func(w *world, e engine.Effect)
		change string
	}{
		"a row added": {func(*world, engine.Effect) {}, `INSERT INTO statement (tenant, effect, nr, attempt, turn, person, name, outcome, evidence, entry, at)
			SELECT 'default', e.id, 1, e.attempts, 1, p.id, p.name, 'give_up', 'Seen.', (SELECT id FROM audit_entry LIMIT 1), 1 FROM effect e, person p WHERE p.name = 'Ana'`},
		"another outcome": {func(w *world, e engine.Effect) {
			_, err := w.resolve("ana", e, engine.DidNotStop, "")
			w.must(err)
		}, `UPDATE statement SET outcome = 'give_up'`},
		"another try": {func(w *world, e engine.Effect) {
			_, err := w.resolve("ana", e, engine.GiveUp, "")
			w.must(err)
		}, `UPDATE effect SET attempts = 2; UPDATE statement SET attempt = 2`},
		"another person": {func(w *world, e engine.Effect) {
			_, err := w.resolve("chloe", e, engine.GiveUp, "")
			w.must(err)
		}, `UPDATE statement SET person = (SELECT id FROM person WHERE name = 'Ana'), name = 'Ana'`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			_, e := w.unknown("critical")
			c.first(w, e)
			w.tamper(strings.Split(c.change, "; ")...)
			now, err := w.resolve("chloe", e, engine.GiveUp, "")
			w.must(err)
			if now.Status != engine.Unknown || len(now.Statements) != 1 || now.Statements[0].Person.Name != "Chloe" {
				t.Errorf("Chloe alone made it %s, of %s", now.Status, asJSON(t, now.Statements))
			}
		})
	}
}
