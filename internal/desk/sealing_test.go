package desk_test

import (
	"encoding/json"
	"strings"
	"testing"

	"countersign/internal/desk"
	"countersign/internal/engine"
	"countersign/internal/sealed"
)

// Words of people become outputs and feedback: they cannot name a sealed value
// either, not even inside of a text.
func TestSensitive_ForgedCommitmentInWordsOfPeople_IsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.secretive()
	run, a := w.refundWithCanary("")
	var params struct {
		Note json.RawMessage `json:"note"`
	}
	w.must(json.Unmarshal(a.Params, &params))
	text := "Pay it to " + string(params.Note)
	_, err := w.desk.Decide(t.Context(), w.principal("ben"), a.ID, desk.Decide{Verdict: "reject", Digest: a.Digest, Comment: text})
	w.wantProblem(err, "invalid")
	w.wantProblem(w.desk.Comment(t.Context(), w.principal("ben"), a.ID, text), "invalid")
	_, err = w.desk.Edit(t.Context(), w.principal("ana"), a.ID, desk.Edit{Digest: a.Digest, Edits: []desk.FieldEdit{{Pointer: "/note", Value: json.RawMessage(asJSON(t, text))}}})
	w.wantProblem(err, "invalid")
	_, err = w.desk.Cancel(t.Context(), w.principal("ana"), string(run.ID), text)
	w.wantProblem(err, "invalid")
}

func TestResolve_ReceiptWithAForgedCommitment_IsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, e := w.unknown("high")
	leaf := sealed.Commitment(sealed.Prefix + strings.Repeat("00", 32)).Leaf()
	for _, state := range []any{leaf, "see " + asJSON(t, leaf)} {
		_, err := w.resolve("ana", e, engine.Happened, asJSON(t, map[string]any{"id": "re_1", "state": "done", "more": state}))
		w.wantProblem(err, "receipt")
	}
	w.wantUnknown(e)
}

// Why a rule could not be evaluated is recorded and shown: it may not repeat
// the value that the rule was judged on.
func TestSensitive_PolicyThatCannotBeEvaluated_DoesNotRepeatTheValue(t *testing.T) {
	t.Parallel()
	for name, when := range map[string]string{"no number": "decimal(params.note) > decimal('5')", "no key": "{'a': 1}[params.note] == 1", "no pattern": "'x'.matches(params.note + '(')"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.secretive()
			w.policy(2, "  - name: odd\n    when: \""+when+"\"\n    approve: {groups: [{role: finance, need: 1}]}\n")
			_, a := w.refundWithCanary("")
			if a.Rule == "odd" || strings.Contains(asJSON(t, a), canary) {
				t.Errorf("the request shows the value, or the rule could be evaluated: %s", asJSON(t, a))
			}
			w.wantNoCanary()
		})
	}
}

// What an action makes sensitive is judged by its value from the beginning, and
// so is what an edit makes: a commitment is unequal to everything.
func TestSensitive_PolicyJudgesWhatIsSealedForTheFirstTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.secretive()
	w.redefineAs("workflows/refund.yaml", 3, `note: "${input.note}"`, `note: "For ${input.note}."`)
	_, err := w.inst.LoadDefinitions(t.Context())
	w.must(err)
	w.policy(2, `  - name: others
    when: "params.note != 'For `+canary+`.' && params.note != '`+canary+`'"
    approve: {groups: [{role: approver, need: 1}]}
  - name: canaries
    when: "true"
    approve: {groups: [{role: finance, need: 2}]}
`)
	_, a := w.refundWithCanary("")
	if a.Rule != "canaries" {
		t.Errorf("the text with the value is judged by %s", a.Rule)
	}
	edit := func(value string) string {
		t.Helper()
		in := desk.Edit{Digest: a.Digest, Edits: []desk.FieldEdit{{Pointer: "/note", Value: json.RawMessage(asJSON(t, value))}}}
		checked, err := w.desk.CheckEdit(t.Context(), w.principal("ana"), a.ID, in)
		w.must(err)
		a, err = w.desk.Edit(t.Context(), w.principal("ana"), a.ID, in)
		w.must(err)
		return checked.Rule + ", " + a.Rule
	}
	if got := edit("harmless"); got != "others, others" {
		t.Errorf("another value is judged by %s", got)
	}
	if got := edit(canary); got != "canaries, canaries" {
		t.Errorf("the value that an edit gives is judged by %s", got)
	}
}

// A parameter that is sensitive and joined from one reaches the target whole.
func TestSensitive_JoinedText_ReachesTheTargetWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.secretive()
	w.redefineAs("workflows/refund.yaml", 3, `note: "${input.note}"`, `note: "For ${input.note}."`)
	_, err := w.inst.LoadDefinitions(t.Context())
	w.must(err)
	run, a := w.refundWithCanary("")
	w.approve("ben", a)
	w.waitFor(run, engine.Completed)
	if got, want := w.lastNote(), "For "+canary+"."; got != want {
		t.Errorf("the shop got the note %q, want %q", got, want)
	}
	w.wantNoCanary()
}
