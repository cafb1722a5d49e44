package desk_test

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/internal/desk"
	"countersign/internal/engine"
	"countersign/internal/problem"
)

func TestDecide_HundredAtOnce_OneWinsAndOneEffectFollows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.refund(12_500, engine.WaitingApproval)
	a := w.request("ana", run)
	people := []string{"ana", "ben"}
	verdicts := []string{"approve", "reject"}
	type answer struct {
		who, verdict string
		d            desk.Decided
		err          error
	}
	answers := make([]answer, 100)
	ana, ben := w.principal("ana"), w.principal("ben")
	var all sync.WaitGroup
	begin := make(chan struct{})
	for i := range answers {
		all.Go(func() {
			// Each person always says the same, so that every loser meets the other's word or their own.
			answers[i].who, answers[i].verdict = people[i%2], verdicts[i%2]
			p := ana
			if i%2 == 1 {
				p = ben
			}
			<-begin
			answers[i].d, answers[i].err = w.desk.Decide(t.Context(), p, a.ID, desk.Decide{Verdict: answers[i].verdict, Digest: a.Digest, Comment: "Seen."})
		})
	}
	close(begin)
	all.Wait()
	winner, won := "", 0
	for _, got := range answers {
		if got.err == nil && !got.d.Replayed {
			winner, won = got.who, won+1
		}
	}
	if won != 1 {
		t.Fatalf("%d decisions won, want 1", won)
	}
	for _, got := range answers {
		switch {
		case got.who == winner && got.err != nil:
			t.Errorf("%s repeated the winning %s and got %v, want the same answer", got.who, got.verdict, got.err)
		case got.who != winner && !problem.HasCode(got.err, "already_decided"):
			t.Errorf("%s got %v, want already_decided", got.who, got.err)
		case got.who != winner && !strings.Contains(got.err.Error(), w.principal(winner).Name):
			t.Errorf("%s got %q, which does not name the winner %s", got.who, got.err, winner)
		}
	}
	verdict, refunds, ends := "approve", 1, engine.Completed
	if winner == "ben" {
		verdict, refunds, ends = "reject", 0, engine.RunRejected
	}
	w.waitFor(run, ends)
	w.wantRefunds(refunds)
	made := 0
	for _, v := range verdicts {
		for _, e := range w.entries("approval."+v, a.ID) {
			if !strings.HasPrefix(e.Outcome, "refused") {
				made++
				if e.Action != "approval."+verdict {
					t.Errorf("the log has a decision %s, but %s won", e.Action, winner)
				}
			}
		}
	}
	if made != 1 {
		t.Errorf("the log has %d decisions, want 1", made)
	}
	if sent := w.entries("effect.sent", ""); len(sent) != refunds {
		t.Errorf("the log has %d sendings, want %d", len(sent), refunds)
	}
}

func TestDecide_ARejectionStandsInTheTimelineOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.refund(12_500, engine.WaitingApproval)
	a := w.request("ana", run)
	_, err := w.desk.Decide(t.Context(), w.principal("ana"), a.ID, desk.Decide{Verdict: "reject", Digest: a.Digest, Comment: "Wrong order."})
	w.must(err)
	var said []string
	for _, m := range w.request("ana", run).Timeline {
		if m.Who == "Ana" && strings.HasPrefix(m.What, "rejected") {
			said = append(said, m.What)
		}
	}
	if len(said) != 1 || said[0] != "rejected revision 1" {
		t.Errorf("the timeline says %q, want one rejection, of revision 1", said)
	}
}

func TestDecide_QuorumOfTwo_OnePersonCountsOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.refund(75_000, engine.WaitingApproval)
	a := w.request("ana", run)
	if len(a.Groups) != 1 || a.Groups[0].Need != 2 {
		t.Fatalf("groups are %+v, want one that needs two", a.Groups)
	}
	if d := w.approve("ana", a); d.Complete || d.Status != "pending" {
		t.Fatalf("after one of two: %+v, want pending", d)
	}
	if d := w.approve("ana", a); !d.Replayed || d.Complete {
		t.Errorf("the second time of the same person: %+v, want the first answer again", d)
	}
	if now := w.request("ben", run); now.Groups[0].Have != 1 || now.Status != "pending" {
		t.Errorf("the request has %d votes and is %s, want 1 and pending", now.Groups[0].Have, now.Status)
	}
	w.wantRefunds(0)
	if d := w.approve("ben", a); !d.Complete || d.Status != "approved" {
		t.Errorf("after two of two: %+v, want approved", d)
	}
	w.waitFor(run, engine.Completed)
	w.wantRefunds(1)
}

func TestDecide_AfterAnEdit_StalePageIsRefusedWithWhatChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.refund(12_500, engine.WaitingApproval)
	page := w.request("ben", run)
	_, err := w.desk.Edit(t.Context(), w.principal("ana"), page.ID, desk.Edit{Digest: page.Digest, Edits: []desk.FieldEdit{{Pointer: "/amount", Value: json.RawMessage("9000")}}})
	w.must(err)
	_, err = w.decide("ben", "approve", page)
	p := w.wantProblem(err, "stale_digest")
	if !strings.Contains(asJSON(t, p.Details), "12500") || !strings.Contains(asJSON(t, p.Details), "9000") {
		t.Errorf("the refusal says %s, which shows not both amounts", asJSON(t, p.Details))
	}
	_, err = w.desk.Edit(t.Context(), w.principal("ben"), page.ID, desk.Edit{Digest: page.Digest, Edits: []desk.FieldEdit{{Pointer: "/amount", Value: json.RawMessage("8000")}}})
	w.wantProblem(err, "stale_digest")
	if now := w.request("ben", run); now.Status != "pending" || now.Revision != 2 || len(now.Decisions) != 0 {
		t.Errorf("the request is %s at revision %d with %d decisions, want pending, 2, none", now.Status, now.Revision, len(now.Decisions))
	}
	w.wantRefunds(0)
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

const briefRules = `  - name: refunds
    when: "tool == 'shop.refund'"
    approve: {groups: [{role: finance, need: 1}], decide_within: 1s, execute_within: 1h}
`

func TestDecide_PastTheDeadline_IsExpired(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.policy(2, briefRules)
	run := w.refund(12_500, engine.WaitingApproval)
	w.idle() // nobody sweeps: the decision itself must know the time
	a := w.request("ana", run)
	w.eventually(func() (bool, string) { return time.Now().After(a.DecideBy), "the deadline never came" })
	_, err := w.decide("ana", "approve", a)
	w.wantProblem(err, "expired")
	w.start()
	w.waitFor(run, engine.RunExpired)
	if now := w.request("ana", run); now.Status != "expired" {
		t.Errorf("the request is %s, want expired", now.Status)
	}
	w.wantRefunds(0)
}

func TestDecide_CancelledRun_NothingWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.refund(12_500, engine.WaitingApproval)
	a := w.request("ana", run)
	_, err := w.desk.Cancel(t.Context(), w.principal("ana"), string(run.ID), "The customer changed their mind.")
	w.must(err)
	w.waitFor(run, engine.Cancelled)
	_, err = w.decide("ana", "approve", a)
	w.wantProblem(err, "run_not_waiting")
	w.wantRefunds(0)
}

func TestDecide_WithoutTheRole_SaysWhoCan(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.request("chloe", w.refund(12_500, engine.WaitingApproval))
	_, err := w.decide("chloe", "approve", a)
	p := w.wantProblem(err, "not_eligible")
	for _, who := range []string{"Ana", "Ben"} {
		if !strings.Contains(p.Message, who) && !strings.Contains(asJSON(t, p.Details), who) {
			t.Errorf("the refusal %q %s does not say that %s can", p.Message, asJSON(t, p.Details), who)
		}
	}
	refused := w.entries("approval.approve", a.ID)
	if len(refused) != 1 || refused[0].Outcome != "refused: not_eligible" {
		t.Errorf("the log has %+v, want one refused attempt", refused)
	}
}

func TestDecide_OwnRequest_IsRefusedOnEveryWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.refundBy("ana", 12_500, engine.WaitingApproval)
	a := w.request("ana", run)
	if a.Eligible.You {
		t.Error("the page offers Ana to decide on what she started")
	}
	_, err := w.decide("ana", "approve", a)
	w.wantProblem(err, "self_approval")
	// An initiator may correct the amount, but that makes nobody's request of it.
	edited, err := w.desk.Edit(t.Context(), w.principal("ana"), a.ID, desk.Edit{Digest: a.Digest, Edits: []desk.FieldEdit{{Pointer: "/amount", Value: json.RawMessage("9000")}}})
	if err == nil {
		a = edited
	}
	_, err = w.decide("ana", "approve", a)
	w.wantProblem(err, "self_approval")
	w.wantRefunds(0)
	w.approve("ben", a)
	w.waitFor(run, engine.Completed)
	w.wantRefunds(1)
}

func TestDecide_WhoEdited_DoesNotCountForTheirOwnChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.refund(75_000, engine.WaitingApproval)
	a := w.request("ana", run)
	edited, err := w.desk.Edit(t.Context(), w.principal("ana"), a.ID, desk.Edit{Digest: a.Digest, Edits: []desk.FieldEdit{{Pointer: "/amount", Value: json.RawMessage("80000")}}})
	w.must(err)
	excluded := slices.ContainsFunc(edited.Eligible.Excluded, func(x desk.Excluded) bool { return x.Name == "Ana" })
	_, err = w.decide("ana", "approve", edited)
	if excluded != (err != nil) {
		t.Errorf("the page says excluded %v, the decision says %v", excluded, err)
	}
	if now := w.request("ben", run); now.Status != "pending" {
		t.Errorf("the request is %s, want pending", now.Status)
	}
	w.wantRefunds(0)
}

func TestDecide_MachineToken_NeverDecides(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.request("ana", w.refund(12_500, engine.WaitingApproval))
	p := w.principal("ana")
	p.Kind, p.Token, p.Scopes = "machine", "tok_x", []string{"approvals:read", "approvals:decide"}
	_, err := w.desk.Decide(t.Context(), p, a.ID, desk.Decide{Verdict: "approve", Digest: a.Digest})
	w.wantProblem(err, "not_a_person")
	_, err = w.desk.Edit(t.Context(), p, a.ID, desk.Edit{Digest: a.Digest, Edits: []desk.FieldEdit{{Pointer: "/amount", Value: json.RawMessage("1")}}})
	w.wantProblem(err, "not_a_person")
	_, err = w.desk.Revoke(t.Context(), p, a.ID, "no")
	w.wantProblem(err, "not_a_person")
}
