package desk_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"countersign/internal/desk"
	"countersign/internal/engine"
	"countersign/internal/identity"
	"countersign/internal/problem"
	"countersign/internal/sealed"
)

// goodwill starts a run that asks how much is refunded on order 4180.
func (w *world) goodwill() engine.Run {
	w.t.Helper()
	run, _, err := w.desk.StartRun(w.t.Context(), w.principal("dev"), desk.StartRun{Workflow: "goodwill", Input: json.RawMessage(`{"order_id":"4180"}`)})
	w.must(err)
	return w.waitFor(run, engine.WaitingInput)
}

func (w *world) answer(who string, run engine.Run, value string) (desk.Question, error) {
	w.t.Helper()
	return w.desk.Answer(w.t.Context(), w.principal(who), string(run.ID), desk.Answer{Step: "details", Value: json.RawMessage(value)})
}

// asked is what the run asks, as the person sees it.
func (w *world) asked(who string, run engine.Run) desk.Question {
	w.t.Helper()
	page, err := w.desk.RunQuestions(w.t.Context(), w.principal(who), string(run.ID))
	w.must(err)
	if len(page.Items) == 0 {
		w.t.Fatalf("run %s asks nothing", run.ID)
	}
	return page.Items[len(page.Items)-1]
}

const wellMeant = `{"amount":1500,"why":"A chipped mug."}`

func TestAnswer_FromTheQuestionToTheRefund(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.goodwill()
	if got := w.who(run); got != "Ana and Ben" {
		t.Errorf("the run waits for %q, want Ana and Ben", got)
	}
	q := w.asked("ana", run)
	if !q.You || !strings.HasPrefix(q.Text, "How much of order 4180 should be refunded to ") || len(q.Fields) != 2 || q.Fields[0].Pointer != "/amount" {
		t.Errorf("Ana is asked %s", asJSON(t, q))
	}
	if dev := w.asked("dev", run); dev.You || dev.Why != "You may not answer this. People with the role operator or finance can." {
		t.Errorf("Dev is told %q", dev.Why)
	}
	for name, want := range map[string]int{"ana": 1, "ben": 1, "chloe": 0, "dev": 0} {
		open, err := w.desk.OpenQuestions(t.Context(), w.principal(name))
		w.must(err)
		counts, err := w.desk.Counts(t.Context(), w.principal(name))
		w.must(err)
		if len(open.Items) != want || counts.ForMe != want {
			t.Errorf("%s has %d questions and %d things to do, want %d", name, len(open.Items), counts.ForMe, want)
		}
	}
	done, err := w.answer("ana", run, wellMeant)
	w.must(err)
	if done.Status != engine.QuestionAnswered || done.AnsweredBy.Name != "Ana" || string(done.Answer) != wellMeant {
		t.Errorf("answered: %s", asJSON(t, done))
	}
	w.waitFor(run, engine.Completed)
	w.wantRefunds(1)
	for action, want := range map[string]string{"run.ask": "engine", "run.answer": "Ana"} {
		if e := w.entries(action, string(run.ID)); len(e) != 1 || e[0].Actor.Name != want && e[0].Actor.Kind != want {
			t.Errorf("%s: entries %s, want one by %s", action, asJSON(t, e), want)
		}
	}
}

// A rejection asks again; the answer that was given stays where it was.
func TestAnswer_AfterARejectionItIsAskedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.goodwill()
	_, err := w.answer("ana", run, `{"amount":9000,"why":"It was late."}`)
	w.must(err)
	w.waitFor(run, engine.WaitingApproval)
	_, err = w.decide("ben", "reject", w.request("ben", run))
	w.must(err)
	w.waitFor(run, engine.WaitingInput)
	_, err = w.desk.Answer(t.Context(), w.principal("ana"), string(run.ID), desk.Answer{Step: "details", Pass: 1, Value: json.RawMessage(wellMeant)})
	w.wantProblem(err, "already_answered") // a page of the first question answers the first question
	if q := w.asked("ana", run); q.Pass != 2 || q.Status != engine.QuestionOpen {
		t.Errorf("asked anew: %s", asJSON(t, q))
	}
	_, err = w.answer("ana", run, wellMeant)
	w.must(err)
	w.waitFor(run, engine.Completed)
	w.wantRefunds(1)
}

func TestAnswer_WhoMayNotChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.goodwill()
	_, err := w.answer("dev", run, wellMeant)
	w.wantProblem(err, "not_eligible")
	_, err = w.answer("dev", run, `{"amount":"no number"}`)
	w.wantProblem(err, "not_eligible") // whoever may not answer learns nothing of the form's faults
	machine := w.principal("ana")
	machine.Kind, machine.Token, machine.Scopes = identity.KindMachine, "tok_1", identity.Scopes
	personal := w.principal("ana")
	personal.Token, personal.Scopes = "tok_2", []string{"runs:read", "runs:write", "operate"}
	for code, p := range map[string]identity.Principal{"not_a_person": machine, "missing_scope": personal, "not_eligible": desk.Terminal()} {
		_, err := w.desk.Answer(t.Context(), p, string(run.ID), desk.Answer{Step: "details", Value: json.RawMessage(wellMeant)})
		w.wantProblem(err, code)
	}
	ana := w.principal("ana") // signed in with the roles of then
	w.active("ana", false)
	_, err = w.desk.Answer(t.Context(), ana, string(run.ID), desk.Answer{Step: "details", Value: json.RawMessage(wellMeant)})
	w.wantProblem(err, "not_eligible")
	_, err = w.answer("ben", run, `{"amount":0,"more":1}`)
	if p := problem.From(err); p.Kind != problem.Invalid || len(p.Fields) == 0 {
		t.Errorf("an answer that does not fit: %v", err)
	}
	if now := w.waitFor(run, engine.WaitingInput); now.Version != run.Version || w.asked("ben", run).Status != engine.QuestionOpen {
		t.Errorf("the run went on to version %d", now.Version)
	}
	if n := len(w.entries("run.answer", string(run.ID))); n != 6 {
		t.Errorf("%d refused attempts are recorded, want 6: the slip of the pen is none", n)
	}
}

func TestAnswer_OfTwoAtOnceOneWins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.goodwill()
	people := []string{"ana", "ben"}
	principals := []identity.Principal{w.principal("ana"), w.principal("ben")}
	errs := make([]error, 2)
	var both sync.WaitGroup
	for i, p := range principals {
		both.Go(func() {
			_, errs[i] = w.desk.Answer(t.Context(), p, string(run.ID), desk.Answer{Step: "details", Value: json.RawMessage(wellMeant)})
		})
	}
	both.Wait()
	won := 0
	if errs[0] != nil {
		won = 1
	}
	w.must(errs[won])
	p := w.wantProblem(errs[1-won], "already_answered")
	if winner := w.principal(people[won]).Name; p.Details["by"] != winner {
		t.Errorf("the other is told %v, want %s", p.Details, winner)
	}
	w.waitFor(run, engine.Completed)
	w.wantRefunds(1)
}

func TestAnswer_WhatIsSensitiveIsSealed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.redefine("workflows/goodwill.yaml", "    who: {roles: [operator, finance]}", "    who: {roles: [operator, finance]}\n    sensitive: [/why]",
		`reason: "${steps.details.output.why}"`, `reason: "See the answer."`, `note: "A goodwill for order ${input.order_id}"`, `note: "${steps.details.output.why}"`)
	_, err := w.inst.LoadDefinitions(t.Context())
	w.must(err)
	run := w.goodwill()
	secret := `{"amount":1500,"why":"` + canary + `"}`
	done, err := w.answer("ana", run, secret)
	w.must(err)
	if strings.Contains(asJSON(t, done), canary) || !sealed.In(done.Answer) {
		t.Errorf("the answer is kept as %s", done.Answer)
	}
	again, err := w.answer("ana", run, secret)
	w.must(err)
	if again.AnswerDigest != done.AnswerDigest {
		t.Errorf("the same answer once more has another digest")
	}
	w.waitFor(run, engine.Completed)
	if got := w.lastNote(); got != canary {
		t.Errorf("the shop was sent the note %q", got)
	}
	w.wantNoCanary()
}

func TestAPI_AnswersWithAPersonalTokenAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.goodwill()
	base := w.serve()
	ana := caller{t, base, w.token("ana", true, "runs:read", "approvals:decide")}
	machine := caller{t, base, w.token("ana", false, "runs:read", "runs:write", "operate")}
	at := "/api/v1/runs/" + string(run.ID) + "/answers"
	open := ana.must(200, ana.send("GET", "/api/v1/questions", ""))
	if items := open.body["items"].([]any); len(items) != 1 || items[0].(map[string]any)["run"] != string(run.ID) || items[0].(map[string]any)["you"] != true {
		t.Errorf("Ana's questions are %s", open.raw)
	}
	if none := machine.must(200, machine.send("GET", "/api/v1/questions", "")); len(none.body["items"].([]any)) != 0 {
		t.Errorf("a machine's questions are %s", none.raw)
	}
	good := `{"step":"details","answer":` + wellMeant + `}`
	machine.wantProblem(403, "not_a_person", machine.send("POST", at, good))
	ana.wantProblem(422, "invalid", ana.send("POST", at, `{"answer":{}}`))
	ana.wantProblem(422, "invalid", ana.send("POST", at, `{"step":"details","answr":{}}`))
	ana.wantProblem(404, "not_found", ana.send("POST", at, `{"step":"refund","answer":{}}`))
	bad := ana.send("POST", at, `{"step":"details","answer":{"amount":0,"why":"x"}}`)
	ana.wantProblem(422, "invalid", bad)
	if !strings.Contains(bad.raw, `"/amount"`) {
		t.Errorf("it does not say where: %s", bad.raw)
	}
	done := ana.must(200, ana.send("POST", at, good))
	if done.body["status"] != "answered" || done.body["answer"] == nil {
		t.Errorf("answered: %s", done.raw)
	}
	ana.must(200, ana.send("POST", at, good))
	again := ana.send("POST", at, `{"step":"details","answer":{"amount":1,"why":"x"}}`)
	ana.wantProblem(409, "already_answered", again)
	if !strings.Contains(again.raw, "Ana has answered this already") {
		t.Errorf("it does not say who: %s", again.raw)
	}
	w.waitFor(run, engine.Completed)
	past := ana.must(200, ana.send("GET", at, ""))
	if items := past.body["items"].([]any); len(items) != 1 || items[0].(map[string]any)["status"] != "answered" {
		t.Errorf("the run's questions are %s", past.raw)
	}
}

// A question that nobody may answer is listed under what needs attention, and
// the run says what is missing.
func TestQuestion_ThatNobodyCanAnswerNeedsAttention(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.goodwill()
	listed := func(when string, want int) {
		t.Helper()
		all, err := w.desk.Attention(t.Context(), w.principal("chloe"))
		w.must(err)
		counts, err := w.desk.Counts(t.Context(), w.principal("chloe"))
		w.must(err)
		if len(all) != want || counts.Attention != want {
			t.Errorf("%s %d things need attention and the rail counts %d, want %d: %s", when, len(all), counts.Attention, want, asJSON(t, all))
		}
		for _, a := range all {
			if a.Cause != desk.CauseUnanswerable || a.Run != run.ID || !strings.Contains(a.Why, "operator or finance") || !strings.Contains(a.Next, "Otherwise it expires at ") {
				t.Errorf("listed is %s", asJSON(t, a))
			}
		}
	}
	listed("with Ana and Ben", 0)
	w.active("ana", false)
	listed("with Ben alone", 0)
	w.active("ben", false)
	listed("with nobody", 1)
	if got := w.who(run); got != "somebody with the role operator or finance; nobody has it" {
		t.Errorf("the run waits for %q", got)
	}
	w.visitor(w.serve(), "chloe").shows(200, "/attention", nil, "Nobody can answer it")
	w.active("ben", true)
	listed("with Ben again", 0)
}
