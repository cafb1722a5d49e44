package desk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"countersign/internal/desk"
	"countersign/internal/engine"
	"countersign/internal/instance"
	"countersign/internal/sealed"
	"countersign/internal/store"
	"countersign/internal/testkit"
)

// canary is what must reach the shop and nothing else.
const canary = "DE89 3704 0044 canary"

// secretive puts definitions in force in which the note of a refund is
// sensitive, as input of the workflow and as parameter of the tool, and so is
// the customer that the order names.
func (w *world) secretive() {
	w.t.Helper()
	w.redefine("tools/shop.refund.yaml", "\neditable:", "\nsensitive: [/note]\neditable:")
	w.redefine("tools/shop.order.yaml", "\nsummary:", "\nsensitive_output: [/customer]\nsummary:")
	w.redefine("workflows/refund.yaml", "    why: {type: string", "    note: {type: string, default: \"\"}\n    why: {type: string",
		"\nsteps:", "\nsensitive: [/note]\nsteps:", `note: "Refund for order ${input.order_id}"`, `note: "${input.note}"`)
	_, err := w.inst.LoadDefinitions(w.t.Context())
	w.must(err)
}

// redefine makes version 2 of a definition.
func (w *world) redefine(file string, replace ...string) {
	w.t.Helper()
	w.redefineAs(file, 2, replace...)
}

var versionLine = regexp.MustCompile(`(?m)^version: \d+$`)

func (w *world) redefineAs(file string, version int, replace ...string) {
	w.t.Helper()
	path := filepath.Join(w.dir, file)
	text, err := os.ReadFile(path)
	w.must(err)
	out := string(text)
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(out, replace[i]) {
			w.t.Fatalf("%s has no %q", file, replace[i])
		}
		out = strings.Replace(out, replace[i], replace[i+1], 1)
	}
	w.must(os.WriteFile(path, []byte(versionLine.ReplaceAllString(out, fmt.Sprint("version: ", version))), 0o644))
}

const canaryInput = `{"order_id":"4180","amount":12500,"why":"The parcel arrived damaged.","note":"` + canary + `"}`

func (w *world) refundWithCanary(key string) (engine.Run, desk.Approval) {
	w.t.Helper()
	run, _, err := w.desk.StartRun(w.t.Context(), w.principal("dev"), desk.StartRun{Workflow: "refund", Key: key, Input: json.RawMessage(canaryInput)})
	w.must(err)
	run = w.waitFor(run, engine.WaitingApproval)
	return run, w.request("ana", run)
}

// wantNoCanary looks for the canary in every byte of the database.
func (w *world) wantNoCanary() {
	w.t.Helper()
	if strings.Contains(testkit.Bytes(w.t, filepath.Join(w.dir, instance.DatabaseFile)), canary) {
		w.t.Error("the sensitive value stands in the database")
	}
}

func (w *world) lastNote() string {
	w.t.Helper()
	past, err := w.ledger.Effects()
	w.must(err)
	var body struct{ Note string }
	w.must(json.Unmarshal(past[len(past)-1].Body, &body))
	return body.Note
}

// A sensitive value goes from the input to the target, through a crash of the
// process, and stands nowhere on the way.
func TestSensitive_ReachesTheTargetAndNothingElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.secretive()
	run, a := w.refundWithCanary("once")
	w.close()
	w.open()
	w.start()
	w.approve("ben", w.request("ben", run))
	run = w.waitFor(run, engine.Completed)
	w.wantRefunds(1)
	if got := w.lastNote(); got != canary {
		t.Errorf("the shop got the note %q, want the value itself", got)
	}
	c := caller{t: t, base: w.serve(), token: w.token("ben", true, "approvals:read", "runs:read")}
	for what, path := range map[string]string{"request": "/api/v1/approvals/" + a.ID, "receipt": "/api/v1/audit/receipt/" + a.ID,
		"run": "/api/v1/runs/" + string(run.ID), "steps": "/api/v1/runs/" + string(run.ID) + "/steps"} {
		if raw := c.send("GET", path, "").raw; strings.Contains(raw, canary) {
			t.Errorf("the %s shows the value: %s", what, raw)
		}
	}
	if !strings.Contains(string(a.Params), sealed.Mark) || !strings.Contains(string(a.Subject), sealed.Mark) {
		t.Errorf("the subject has no commitment: %s", a.Params)
	}
	w.wantNoCanary()
	if out := w.output(run, "order"); !strings.Contains(out, `"customer":{"$commit"`) || !strings.Contains(out, `"currency":"EUR"`) {
		t.Errorf("the output of the step is %s", out)
	}
}

// output is what a step recorded.
func (w *world) output(run engine.Run, path string) (out string) {
	w.t.Helper()
	w.must(w.inst.DB.View(w.t.Context(), func(ctx context.Context, q store.Querier) error {
		return q.QueryRow(ctx, "SELECT output FROM checkpoint WHERE run = $1 AND path = $2 AND output IS NOT NULL", string(run.ID), path).Scan(&out)
	}))
	return out
}

func TestSensitive_SameRunKeyAndInput_GiveTheSameRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.secretive()
	run, _ := w.refundWithCanary("once")
	again, created, err := w.desk.StartRun(t.Context(), w.principal("dev"), desk.StartRun{Workflow: "refund", Key: "once", Input: json.RawMessage(canaryInput)})
	if err != nil || created || again.ID != run.ID {
		t.Errorf("the same input: run %s, created %v, %v", again.ID, created, err)
	}
	_, _, err = w.desk.StartRun(t.Context(), w.principal("dev"), desk.StartRun{Workflow: "refund", Key: "once", Input: json.RawMessage(strings.Replace(canaryInput, canary, "another", 1))})
	w.wantProblem(err, "run_key_taken")
}

func TestSensitive_EditedValue_IsSealedAndSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.secretive()
	run := w.refund(12_500, engine.WaitingApproval)
	first := w.request("ana", run)
	edit := desk.Edit{Digest: first.Digest, Edits: []desk.FieldEdit{{Pointer: "/note", Value: json.RawMessage(`"` + canary + `"`)}}}
	outcome, err := w.desk.CheckEdit(t.Context(), w.principal("ana"), first.ID, edit)
	w.must(err)
	a, err := w.desk.Edit(t.Context(), w.principal("ana"), first.ID, edit)
	w.must(err)
	_, stale := w.decide("ben", "approve", first)
	for what, shown := range map[string]string{"request": asJSON(t, a), "outcome": asJSON(t, outcome), "refusal": asJSON(t, w.wantProblem(stale, "stale_digest").Details)} {
		if strings.Contains(shown, canary) {
			t.Errorf("the %s shows the value: %s", what, shown)
		}
	}
	if !slices.ContainsFunc(a.Changes, func(c desk.Change) bool { return c.Pointer == "/params/note" }) {
		t.Errorf("the change is not named: %s", asJSON(t, a.Changes))
	}
	fields, err := w.desk.EditForm(t.Context(), w.principal("ana"), a)
	w.must(err)
	for _, f := range fields {
		if f.Pointer == "/note" && (!f.Sealed || f.Default != "") {
			t.Errorf("the form shows the value: %+v", f)
		}
	}
	w.approve("ben", a)
	w.waitFor(run, engine.Completed)
	if got := w.lastNote(); got != canary {
		t.Errorf("the shop got the note %q", got)
	}
	w.wantNoCanary()
}

// A question that needs the value is asked with it, also when a person asks.
func TestSensitive_AskingTheTarget_UsesTheValue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.redefine("tools/shop.refund.yaml", "?key=${idempotency_key}", "?key=${idempotency_key}&note=${params.note}")
	w.secretive()
	run, a := w.refundWithCanary("")
	w.approve("ben", a)
	w.waitFor(run, engine.Completed)
	effects, err := w.desk.RunEffects(t.Context(), desk.Terminal(), string(run.ID))
	w.must(err)
	asked, err := w.desk.AskTarget(t.Context(), desk.Terminal(), string(effects.Items[0].ID))
	if err != nil || !asked.Happened || strings.Contains(string(asked.Body), canary) {
		t.Errorf("the target says %+v with %s, %v", asked, asked.Body, err)
	}
}

func TestSensitive_ForgedCommitment_IsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.secretive()
	_, a := w.refundWithCanary("")
	forged := asJSON(t, sealed.Commitment(sealed.Prefix+strings.Repeat("00", 32)).Leaf())
	_, _, err := w.desk.StartRun(t.Context(), w.principal("dev"), desk.StartRun{Workflow: "refund", Input: json.RawMessage(strings.Replace(canaryInput, `"`+canary+`"`, forged, 1))})
	w.wantProblem(err, "invalid")
	_, err = w.desk.Edit(t.Context(), w.principal("ana"), a.ID, desk.Edit{Digest: a.Digest, Edits: []desk.FieldEdit{{Pointer: "/note", Value: json.RawMessage(forged)}}})
	w.wantProblem(err, "invalid")
}

// A sealed value that was changed, or is gone, stops everything before it.
func TestSensitive_ValueAlteredOrGoneAfterApproval_NothingIsSent(t *testing.T) {
	for name, statement := range map[string]string{
		"altered": `UPDATE sealed_value SET ciphertext = ` + testkit.OtherByte("ciphertext", 21),
		"gone":    `DELETE FROM sealed_value`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.secretive()
			run, _ := w.refundWithCanary("")
			w.idle()
			w.approve("ben", w.request("ben", run))
			w.tamper(statement)
			run = w.waitFor(run, engine.Blocked)
			w.wantRefunds(0)
			if run.Error == nil || !strings.Contains(strings.ToLower(run.Error.Message), "sensitive value") {
				t.Errorf("the run does not say why: %v", run.Error)
			}
		})
	}
}

func TestReveal_WhoMayDecideOrAudit_IsShownAndRecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.secretive()
	_, a := w.refundWithCanary("")
	for _, who := range []string{"ben", "chloe"} {
		got, err := w.desk.Reveal(t.Context(), w.principal(who), a.ID, "/note")
		if err != nil || string(got) != `"`+canary+`"` {
			t.Errorf("%s is shown %s, %v", who, got, err)
		}
	}
	if got := w.entries("sensitive.revealed", a.ID); len(got) != 2 || got[0].Actor.Name != "Ben" || got[1].Actor.Name != "Chloe" {
		t.Errorf("entries: %v", got)
	}
	_, err := w.desk.Reveal(t.Context(), w.principal("dev"), a.ID, "/note")
	w.wantProblem(err, "forbidden")
	_, err = w.desk.Reveal(t.Context(), w.principal("ben"), a.ID, "/amount")
	w.wantProblem(err, "not_found")
	w.wantNoCanary()
}

// A rule of the policy sees the value that the record only commits to.
func TestSensitive_PolicyJudgesTheValueItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.secretive()
	w.policy(2, `  - name: no-canaries
    when: "tool == 'shop.refund' && params.note.contains('canary')"
    deny: true
  - name: rest
    when: "true"
    approve: {groups: [{role: finance, need: 1}]}
`)
	run, _, err := w.desk.StartRun(t.Context(), w.principal("dev"), desk.StartRun{Workflow: "refund", Input: json.RawMessage(canaryInput)})
	w.must(err)
	if run = w.waitFor(run, engine.Failed); run.Error == nil || !strings.Contains(run.Error.Message, "no-canaries") {
		t.Errorf("the run ended %s with %v, want it denied by the rule", run.Status, run.Error)
	}
}

// Erasing takes the value out of everything and leaves what proves the rest.
func TestErase_TheValueIsGoneAndTheRecordStillHolds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.secretive()
	run, a := w.refundWithCanary("once")
	_, err := w.desk.Erase(t.Context(), w.principal("chloe"), string(run.ID), "Asked for.")
	w.wantProblem(err, "run_open")
	w.approve("ben", a)
	w.waitFor(run, engine.Completed)
	_, err = w.desk.Erase(t.Context(), w.principal("ana"), string(run.ID), "Asked for.")
	w.wantProblem(err, "forbidden")
	_, err = w.desk.Erase(t.Context(), w.principal("chloe"), string(run.ID), " ")
	w.wantProblem(err, "invalid")

	out, err := w.desk.Erase(t.Context(), w.principal("chloe"), string(run.ID), "Asked for.")
	if err != nil || out.Values != 2 {
		t.Fatalf("erased %d values, %v; want the note and the customer", out.Values, err)
	}
	_, err = w.desk.Reveal(t.Context(), w.principal("ben"), a.ID, "/note")
	w.wantProblem(err, "sensitive_gone")
	if got := w.request("ana", run); got.Digest != a.Digest || got.Alarm != "" {
		t.Errorf("the request has digest %s and alarm %q", got.Digest, got.Alarm)
	}
	report, err := w.desk.Verify(t.Context(), w.principal("chloe"))
	if err != nil || !report.OK {
		t.Errorf("the log does not verify: %+v, %v", report, err)
	}
	if got := w.entries("sensitive.erased", string(run.ID)); len(got) != 1 || got[0].Actor.Name != "Chloe" {
		t.Errorf("entries: %v", got)
	}
	_, _, err = w.desk.StartRun(t.Context(), w.principal("dev"), desk.StartRun{Workflow: "refund", Key: "once", Input: json.RawMessage(canaryInput)})
	w.wantProblem(err, "run_key_taken") // nobody can say any more that the input is the same
	w.wantNoCanary()
}
