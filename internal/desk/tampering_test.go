package desk_test

import (
	"fmt"
	"strings"
	"testing"

	"countersign/internal/canon"
	"countersign/internal/desk"
	"countersign/internal/engine"
)

// An outsider with the database file changes something after the approval and
// before the sending. Nothing may be sent, the run must block, and the log
// must say why.
func TestSend_TamperedAfterApproval_NothingIsSentAndTheLogSaysWhy(t *testing.T) {
	cases := map[string]func(t *testing.T, a desk.Approval) []string{
		"one byte of the parameters": func(_ *testing.T, a desk.Approval) []string {
			return []string{`UPDATE request SET params = replace(params, '12500', '12600')`}
		},
		"one byte of the stored subject": func(_ *testing.T, a desk.Approval) []string {
			return []string{`UPDATE revision SET subject = replace(subject, 'arrived damaged', 'arrived damageD')`}
		},
		"the frozen request in the subject": func(_ *testing.T, a desk.Approval) []string {
			return []string{`UPDATE revision SET subject = replace(subject, '/shop/refunds"', '/shop/refundz"')`}
		},
		"the stored subject, so that it is no JSON": func(_ *testing.T, a desk.Approval) []string {
			return []string{`UPDATE revision SET subject = replace(subject, '"action":', '"action";')`}
		},
		"the digest of the frozen request": func(_ *testing.T, a desk.Approval) []string {
			return []string{`UPDATE request SET request_digest = 'sha256:' || substr(request_digest, 9) || '0'`}
		},
		"subject and digest together": func(t *testing.T, a desk.Approval) []string {
			return rewritten(t, a, func(s map[string]any) { s["reason"] = "The parcel never arrived." })
		},
		"amount, every hash and every column together": func(t *testing.T, a desk.Approval) []string {
			return rewritten(t, a, func(s map[string]any) {
				s["params"].(map[string]any)["amount"] = 49_900
				s["request"].(map[string]any)["body"].(map[string]any)["amount"] = 49_900
				s["summary"] = "Refund 499.00 EUR on order 4180"
			})
		},
		"the execution deadline": func(_ *testing.T, a desk.Approval) []string {
			return []string{`UPDATE request SET execute_by = execute_by + 1`}
		},
		"the author of the decision": func(_ *testing.T, a desk.Approval) []string {
			return []string{`UPDATE decision SET person_name = 'Ben', person = '` + a.Eligible.Can[len(a.Eligible.Can)-1].ID + `'`}
		},
		"the audit entry of the decision": func(_ *testing.T, a desk.Approval) []string {
			return []string{`UPDATE audit_entry SET body = replace(body, '"Ana"', '"Ann"') WHERE action = 'approval.approve'`}
		},
	}
	for what, change := range cases {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			run, a := w.approvedAtRest(12_500)
			w.tamper(change(t, a)...)
			w.wantAlarm(run, a)
		})
	}
}

func TestSend_DecisionRowAddedByHand_NothingIsSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.refund(12_500, engine.WaitingApproval)
	a := w.request("ana", run)
	w.tamper(fmt.Sprintf(`INSERT INTO decision (tenant, id, request, revision, digest, person, person_name, turn, verdict, groups, authority, rule, policy, policy_version, auth, channel, comment, decided_at)
		VALUES ('default', 'dec_01m8qp3jh70vjd548bdsv710xx', '%s', 1, '%s', '%s', 'Ana', 1, 'approve', '["finance"]', 'finance', 'refunds', 'default', 1, 'password', 'browser', '', %d)`,
		a.ID, a.Digest, a.Eligible.Can[0].ID, a.CreatedAt.UnixMicro()+1),
		fmt.Sprintf(`UPDATE request SET status = 'approved', votes = 1, execute_by = %d`, a.CreatedAt.UnixMicro()+3_600_000_001),
		`UPDATE run SET wake_at = 0, signals = signals + 1`)
	w.wantAlarm(run, a)
}

func TestSend_StatusSetByHand_NothingIsSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.refund(12_500, engine.WaitingApproval)
	a := w.request("ana", run)
	w.tamper(fmt.Sprintf(`UPDATE request SET status = 'approved', execute_by = %d`, a.CreatedAt.UnixMicro()+3_600_000_000),
		`UPDATE run SET wake_at = 0, signals = signals + 1`)
	w.wantAlarm(run, a)
}

func TestSend_RefusedVoteTurnedIntoAQuorum_NothingIsSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.refund(75_000, engine.WaitingApproval)
	w.idle()
	a := w.request("ana", run)
	w.approve("ana", a)
	w.tamper(`UPDATE request SET status = 'approved', votes = 2, execute_by = decide_by`, `UPDATE run SET wake_at = 0, signals = signals + 1`)
	w.wantAlarm(run, a)
}

func TestResume_ChangedOutputOfARead_BlocksAndNamesTheCheckpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run, _ := w.approvedAtRest(12_500)
	w.tamper(`UPDATE checkpoint SET output = replace(output, '"refunded":0', '"refunded":1') WHERE path = 'order'`)
	now := w.waitFor(run, engine.Blocked)
	if now.Error == nil || !strings.Contains(now.Error.Message, "checkpoint 2") {
		t.Errorf("the run is blocked for %v, which does not name checkpoint 2", now.Error)
	}
	w.wantRefunds(0)
}

// wantAlarm fails unless the run blocks, nothing happened at the shop, and log
// and page say that the record was changed.
func (w *world) wantAlarm(run engine.Run, a desk.Approval) {
	w.t.Helper()
	now := w.waitFor(run, engine.Blocked)
	w.wantRefunds(0)
	if alarms := w.entries("approval.tampered", a.ID); len(alarms) != 1 || alarms[0].Outcome != "blocked" || alarms[0].PayloadDigest == "" {
		w.t.Errorf("the log has %+v, want one entry approval.tampered with its reason", alarms)
	}
	if now.Error == nil || !strings.Contains(now.Error.Message, "was changed") {
		w.t.Errorf("the run is blocked for %v, which does not say that the record was changed", now.Error)
	}
	// Trying again does not help.
	_, _ = w.desk.Resume(w.t.Context(), w.principal("ana"), string(run.ID), -1)
	w.eventually(func() (bool, string) {
		r, err := w.desk.Run(w.t.Context(), desk.Terminal(), string(run.ID))
		w.must(err)
		return r.Status == engine.Blocked && r.Lease.Owner == "", "after a resume the run is " + r.Status
	})
	w.wantRefunds(0)
}

// rewritten is what an outsider who knows the format would do: change the
// subject, and every hash and column that is computed from it.
func rewritten(t *testing.T, a desk.Approval, change func(subject map[string]any)) []string {
	t.Helper()
	v, err := canon.Value(a.Subject)
	if err != nil {
		t.Fatal(err)
	}
	s := v.(map[string]any)
	change(s)
	params, request := canonical(t, s["params"]), canonical(t, s["request"])
	s["params_hash"], s["request_digest"] = canon.Digest(params), canon.Digest(request)
	subject := canonical(t, s)
	digest := canon.Digest(subject)
	return []string{
		fmt.Sprintf(`UPDATE revision SET subject = %s, digest = '%s', params_hash = '%s'`, quoted(subject), digest, s["params_hash"]),
		fmt.Sprintf(`UPDATE request SET digest = '%s', params = %s, params_hash = '%s', request_digest = '%s', summary = %s`,
			digest, quoted(params), s["params_hash"], s["request_digest"], quoted([]byte(s["summary"].(string)))),
		fmt.Sprintf(`UPDATE decision SET digest = '%s'`, digest),
	}
}

func canonical(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := canon.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func quoted(text []byte) string { return "'" + strings.ReplaceAll(string(text), "'", "''") + "'" }

// Ben's vote was refused because he started it. Under a policy that asks two
// people, the entry of that refusal must not pass for his approval.
func TestSend_RefusedAttemptLinkedAsADecision_NothingIsSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.refund(12_500, engine.WaitingApproval)
	w.idle()
	a := w.request("ana", run)
	ben := w.principal("ben")
	w.must(w.desk.SetRoles(t.Context(), w.principal("chloe"), ben.Person, nil))
	_, err := w.decide("ben", "approve", a)
	w.wantProblem(err, "not_eligible")
	w.must(w.desk.SetRoles(t.Context(), w.principal("chloe"), ben.Person, ben.Roles))
	refused := w.entries("approval.approve", a.ID)[0]
	w.approve("ana", a)
	w.policy(2, "  - name: two\n    when: \"tool == 'shop.refund'\"\n    approve:\n      groups: [{role: finance, need: 2}]\n")
	w.tamper(`UPDATE request SET votes = 2`,
		fmt.Sprintf(`INSERT INTO decision (tenant, id, request, revision, digest, person, person_name, turn, verdict, groups, authority, rule, policy, policy_version, auth, channel, comment, decided_at)
			SELECT tenant, 'dec_01m8qp3jh70vjd548bdsv710xx', request, revision, digest, '%s', 'Ben', 1, verdict, groups, authority, rule, policy, policy_version, auth, channel, comment, %d FROM decision`,
			ben.Person, refused.Time.UnixMicro()),
		fmt.Sprintf(`INSERT INTO decision_entry (tenant, decision, entry) VALUES ('default', 'dec_01m8qp3jh70vjd548bdsv710xx', '%s')`, refused.ID))
	w.wantAlarm(run, a)
}
