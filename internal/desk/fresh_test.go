package desk_test

import (
	"strings"
	"testing"

	"countersign/internal/desk"
	"countersign/internal/engine"
	"countersign/internal/identity"
)

// signedIn is the person with a session of their own.
func (w *world) signedIn(name string) identity.Principal {
	w.t.Helper()
	token, err := w.desk.SignIn(w.t.Context(), identity.Credentials{Email: name + "@example.org", Password: "correct horse " + name, Address: "127.0.0.1"}, "test")
	w.must(err)
	p, err := w.desk.SessionPrincipal(w.t.Context(), token)
	w.must(err)
	return p
}

func TestDecide_PolicyWantsThePassword_OldSessionsAndTokensAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.policy(2, "  - name: careful\n    when: \"tool == 'shop.refund'\"\n    approve:\n      groups: [{role: finance, need: 1}]\n      reauthenticate: true\n")
	run := w.refund(12_500, engine.WaitingApproval)
	a := w.request("ana", run)
	approve := desk.Decide{Verdict: "approve", Digest: a.Digest}
	token, err := w.desk.TokenPrincipal(t.Context(), w.token("ana", true, "approvals:decide"))
	w.must(err)
	_, err = w.desk.Decide(t.Context(), token, a.ID, approve)
	w.wantProblem(err, "reauthenticate")
	old := w.signedIn("ana")
	w.tamper(`UPDATE session SET created_at = created_at - 3600000000`)
	_, err = w.desk.Decide(t.Context(), old, a.ID, approve)
	w.wantProblem(err, "reauthenticate")
	_, err = w.desk.Decide(t.Context(), w.signedIn("ana"), a.ID, approve)
	w.must(err)
}

func TestDecide_RefusedMachine_LeavesAShortEntry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.request("ana", w.refund(12_500, engine.WaitingApproval))
	p, err := w.desk.TokenPrincipal(t.Context(), w.token("dev", false, "runs:write"))
	w.must(err)
	_, err = w.desk.Decide(t.Context(), p, a.ID, desk.Decide{Verdict: "approve", Digest: strings.Repeat("x", 1<<16)})
	w.wantProblem(err, "not_a_person")
	if all := w.entries("approval.approve", a.ID); len(all) != 1 || all[0].Outcome != "refused: not_a_person" || len(all[0].Digest) > 100 {
		t.Errorf("the log has %d entries of the attempt, want a short one", len(all))
	}
}

func TestStartRun_OnBehalfOfSomebodyEndless_IsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, _, err := w.desk.StartRun(t.Context(), w.principal("dev"), desk.StartRun{Workflow: "refund", OnBehalfOf: strings.Repeat("x", 1<<16),
		Input: []byte(`{"order_id":"4180","amount":12500,"why":"The parcel arrived damaged."}`)})
	w.wantProblem(err, "on_behalf_of")
}
