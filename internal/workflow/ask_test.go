package workflow_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"countersign/internal/problem"
	"countersign/internal/workflow"

	"github.com/google/go-cmp/cmp"
)

const refundAsked = `
- {id: order, call: shop.order}
- id: details
  ask: "What amount should be refunded for ${steps.order.output.name}?"
  form: {type: object, required: [amount], additionalProperties: false, properties: {amount: {type: integer, minimum: 1}, note: {type: string, default: ""}}}
  who: {roles: [support, operator]}
  answer_within: 3d
  on_expire: {ask_again: true, max_passes: 2}
- {id: pay, action: shop.refund, with: {amount: "${steps.details.output.amount}"}}
`

func TestAsk_PutsTheQuestionAndItsAnswerIsTheOutput(t *testing.T) {
	r := start(t, compile(t, refundAsked), `{}`)
	r.call("order", 1, `{"name":"a lamp"}`)
	task := r.want(workflow.TaskAsk, "details", 1)
	if want := "What amount should be refunded for a lamp?"; task.Question != want || !task.Until.Equal(begin.Add(72*time.Hour)) {
		t.Errorf("asks %q until %s, want %q until 72 hours later", task.Question, task.Until, want)
	}
	if diff := cmp.Diff([]string{"support", "operator"}, task.Step.Roles); diff != "" {
		t.Errorf("who may answer: %s", diff)
	}
	r.apply(workflow.Event{Kind: workflow.AskOpened, Path: "details", Pass: 1, Until: task.Until})
	if wait := r.want(workflow.TaskWait, "details", 1); wait.Wait != workflow.WaitAnswer || !wait.Until.Equal(task.Until) {
		t.Errorf("waits for %s until %s", wait.Wait, wait.Until)
	}
	r.now = begin.Add(time.Hour)
	r.apply(workflow.Event{Kind: workflow.AskAnswered, Path: "details", Pass: 1, Output: json.RawMessage(`{"amount":40,"note":""}`)})
	if got := r.propose("pay", 1).Params; string(got) != `{"amount":40}` {
		t.Errorf("pay is proposed with %s", got)
	}
}

func TestAsk_AskedAgainWhenNobodyAnswers(t *testing.T) {
	r := start(t, compile(t, refundAsked), `{}`)
	r.call("order", 1, `{"name":"x"}`)
	for pass := 1; pass <= 2; pass++ {
		task := r.want(workflow.TaskAsk, "details", pass)
		r.apply(workflow.Event{Kind: workflow.AskOpened, Path: "details", Pass: pass, Until: task.Until})
		r.now = task.Until
		r.want(workflow.TaskWait, "details", pass)
		r.apply(workflow.Event{Kind: workflow.AskExpired, Path: "details", Pass: pass})
	}
	if f := r.finish(workflow.RunExpired, ""); f.Error.Message != "The time to answer passed." {
		t.Errorf("the run says %q", f.Error.Message)
	}
}

func TestAsk_WithoutADeadlineNeverExpires(t *testing.T) {
	r := start(t, compile(t, `[{id: a, ask: Why, form: {type: object}}]`), `{}`)
	if task := r.want(workflow.TaskAsk, "a", 1); !task.Until.IsZero() || !cmp.Equal(task.Step.Roles, []string{"operator"}) {
		t.Errorf("until %s, roles %v", task.Until, task.Step.Roles)
	}
	if _, err := r.w.Apply(r.s, workflow.Event{Kind: workflow.AskOpened, Path: "a", Pass: 1, Until: begin}); err == nil {
		t.Error("a deadline comes from nowhere")
	}
	r.apply(workflow.Event{Kind: workflow.AskOpened, Path: "a", Pass: 1})
	if _, err := r.w.Apply(r.s, workflow.Event{Kind: workflow.AskExpired, Path: "a", Pass: 1}); err == nil {
		t.Error("it expires")
	}
}

func TestAsk_AnEmptyQuestionFailsTheStep(t *testing.T) {
	r := start(t, compile(t, `[{id: a, ask: "${input.q}", form: {type: object}}]`), `{"q":" "}`)
	if f := r.finish(workflow.RunFailed, ""); !strings.Contains(f.Error.Message, "a: ask `${input.q}`: is empty") {
		t.Errorf("the run says %q", f.Error.Message)
	}
}

func TestAsk_AStaleReadDoesNotTakeTheQuestionBack(t *testing.T) {
	w := compile(t, `
- {id: look, call: docs.collect, fresh_for: 1h}
- {id: a, ask: "${steps.look.output}", form: {type: object}}
- {id: pay, action: shop.refund, with: {x: "${steps.look.output}", y: "${steps.a.output}"}}
`)
	r := start(t, w, `{}`)
	r.call("look", 1, `"one"`)
	r.want(workflow.TaskAsk, "a", 1)
	r.apply(workflow.Event{Kind: workflow.AskOpened, Path: "a", Pass: 1})
	r.now = begin.Add(2 * time.Hour)
	if stale := w.Stale(r.s, "a", r.now); len(stale) != 0 {
		t.Errorf("an open question is stale: %v", stale)
	}
	if _, err := w.Apply(r.s, workflow.Event{Kind: workflow.StepRefreshed, Path: "look", Pass: 1}); err == nil {
		t.Error("the read is refreshed under an open question")
	}
	r.apply(workflow.Event{Kind: workflow.AskAnswered, Path: "a", Pass: 1, Output: json.RawMessage(`{}`)})
	r.call("look", 2, `"two"`) // the answer stays, the read is done again
	if got := r.propose("pay", 1).Params; string(got) != `{"x":"two","y":{}}` {
		t.Errorf("pay is proposed with %s", got)
	}
}

func TestPrepareAnswer(t *testing.T) {
	step, _ := compile(t, refundAsked).Step("details")
	got, err := step.PrepareAnswer(json.RawMessage(`{ "amount": 40 }`))
	if err != nil || string(got) != `{"amount":40,"note":""}` {
		t.Errorf("prepared %s, %v; want it canonical with defaults", got, err)
	}
	for _, bad := range []string{``, `{}`, `{"amount":"40"}`, `{"amount":0}`, `{"amount":1,"more":2}`, `[]`, `{"amount":1,"amount":2}`, `{`} {
		if got, err := step.PrepareAnswer(json.RawMessage(bad)); err == nil {
			t.Errorf("%s is an answer: %s", bad, got)
		} else if _, ok := errors.AsType[*problem.Error](err); !ok {
			t.Errorf("%s: %v is not a problem for a person", bad, err)
		}
	}
	open, _ := compile(t, `[{id: a, ask: Why, form: {type: object}}]`).Step("a")
	if _, err := open.PrepareAnswer(json.RawMessage(`{"x":{"$commit":"v1:00"}}`)); err == nil {
		t.Error("a forged sealed value is an answer")
	}
}

func TestPrepareAnswer_NeverRepeatsWhatIsSensitive(t *testing.T) {
	step, _ := compile(t, `[{id: a, ask: Why, form: {type: object, properties: {iban: {type: string, maxLength: 3}}}, sensitive: [/iban]}]`).Step("a")
	_, err := step.PrepareAnswer(json.RawMessage(`{"iban":"AT611904"}`))
	if err == nil || strings.Contains(dump(problem.From(err)), "AT611904") {
		t.Errorf("the message is %s", dump(problem.From(err)))
	}
}
