package desk_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"countersign/internal/desk"
	"countersign/internal/engine"
	"countersign/internal/problem"
)

// What can change between the approval and the sending: nothing may be sent
// on the old footing, and the page must say what happens now.

const strictRules = `  - name: refunds
    when: "tool == 'shop.refund'"
    approve: {groups: [{role: finance, need: 2}], decide_within: 24h, execute_within: 1h}
`

const closedRules = `  - name: refunds
    when: "tool == 'shop.refund'"
    deny: true
`

func TestMeanwhile_ApproverDisabled_IsAskedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run, _ := w.approvedAtRest(12_500)
	w.must(w.desk.SetActive(t.Context(), w.principal("chloe"), w.principal("ana").Person, false))
	w.start()
	now := w.askedAgain(run)
	if _, err := w.decide("ana", "approve", now); err == nil {
		t.Error("Ana is disabled and decided")
	}
	w.approve("ben", now)
	w.waitFor(run, engine.Completed)
	w.wantRefunds(1)
}

func TestMeanwhile_ApproverLostTheRole_IsAskedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run, _ := w.approvedAtRest(12_500)
	w.must(w.desk.SetRoles(t.Context(), w.principal("chloe"), w.principal("ana").Person, []string{"approver"}))
	w.start()
	now := w.askedAgain(run)
	_, err := w.decide("ana", "approve", now)
	w.wantProblem(err, "not_eligible")
	w.wantRefunds(0)
}

func TestMeanwhile_InitiatorDisabled_BlocksUntilEnabled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run, _ := w.approvedAtRest(12_500)
	dev := w.principal("dev").Person
	w.must(w.desk.SetActive(t.Context(), w.principal("chloe"), dev, false))
	w.start()
	w.waitFor(run, engine.Blocked)
	if a := w.request("ben", run); a.RunStatus != engine.Blocked || !strings.Contains(a.RunReason, "Dev") || !strings.Contains(a.RunReason, "no longer active") {
		t.Errorf("the page says %q (%s), want that Dev is no longer active", a.RunReason, a.RunStatus)
	}
	w.wantRefunds(0)
	w.must(w.desk.SetActive(t.Context(), w.principal("chloe"), dev, true))
	_, err := w.desk.Resume(t.Context(), w.principal("ana"), string(run.ID), -1)
	w.must(err)
	w.waitFor(run, engine.Completed)
	w.wantRefunds(1)
}

func TestMeanwhile_PolicyStricter_TheOldVoteIsNotEnough(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run, _ := w.approvedAtRest(12_500)
	w.policy(2, strictRules)
	w.start()
	now := w.askedAgain(run)
	if now.PolicyVersion != 2 || now.Groups[0].Need != 2 {
		t.Errorf("revision 2 is under version %d and needs %d, want 2 and 2", now.PolicyVersion, now.Groups[0].Need)
	}
	w.approve("ana", now)
	w.wantRefunds(0)
	w.approve("ben", now)
	w.waitFor(run, engine.Completed)
	w.wantRefunds(1)
}

func TestMeanwhile_PolicyDenies_NothingIsSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run, _ := w.approvedAtRest(12_500)
	w.policy(2, closedRules)
	w.start()
	w.eventually(func() (bool, string) {
		a := w.request("ben", run)
		return a.Status == "withdrawn" && strings.Contains(a.ClosedWhy, "policy"), "the request is " + a.Status + ": " + a.ClosedWhy
	})
	w.eventually(func() (bool, string) {
		r, err := w.desk.Run(t.Context(), desk.Terminal(), string(run.ID))
		w.must(err)
		return !r.FinishedAt.IsZero(), "the run is " + r.Status
	})
	w.wantRefunds(0)
}

func TestMeanwhile_OrderChangedAtTheShop_IsAskedAgain(t *testing.T) {
	for name, moves := range map[string][]string{
		"its state": {"disputed"},
		"its version only, back in the same state": {"disputed", "paid"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			run, _ := w.approvedAtRest(12_500)
			for _, state := range moves {
				w.moveOrder(state)
			}
			w.start()
			w.askedAgain(run)
		})
	}
}

func TestMeanwhile_WaitingRequest_IsJudgedAnewWhenItIsSent(t *testing.T) {
	cases := map[string]func(w *world){
		"the policy became stricter": func(w *world) { w.policy(2, strictRules) },
		"the order was disputed":     func(w *world) { w.moveOrder("disputed") },
		"the initiator was disabled": func(w *world) {
			w.must(w.desk.SetActive(w.t.Context(), w.principal("chloe"), w.principal("dev").Person, false))
		},
	}
	for what, change := range cases {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			run := w.refund(12_500, engine.WaitingApproval)
			change(w)
			a := w.request("ana", run)
			w.approve("ana", a)
			w.eventually(func() (bool, string) {
				now := w.request("ben", run)
				again := now.Status == "pending" && now.Revision == 2 && now.Why != ""
				stuck := now.RunStatus == engine.Blocked && now.RunReason != ""
				return again || stuck, fmt.Sprintf("the request is %s at revision %d, the run %s", now.Status, now.Revision, now.RunStatus)
			})
			w.wantRefunds(0)
		})
	}
}

// askedAgain waits for the next revision and fails unless it is pending, says
// why, shows no vote, and nothing was sent.
func (w *world) askedAgain(run engine.Run) (now desk.Approval) {
	w.t.Helper()
	w.eventually(func() (bool, string) {
		now = w.request("ben", run)
		return now.Revision == 2, fmt.Sprintf("the request is %s at revision %d; run %s %s", now.Status, now.Revision, now.RunStatus, now.RunReason)
	})
	w.waitFor(run, engine.WaitingApproval)
	now = w.request("ben", run)
	if now.Status != "pending" || now.Why == "" || now.Groups[0].Have != 0 {
		w.t.Errorf("revision 2 is %s with %d votes because %q, want pending, none and a reason", now.Status, now.Groups[0].Have, now.Why)
	}
	if len(w.entries("approval.renewed", now.ID)) != 1 {
		w.t.Error("the log does not say that the request was renewed")
	}
	w.wantRefunds(0)
	return now
}

// moveOrder changes the order at the shop.
func (w *world) moveOrder(state string) {
	w.t.Helper()
	rec := httptest.NewRecorder()
	w.shop.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodPost, "/shop/orders/4180/state", strings.NewReader(`{"state":"`+state+`"}`)))
	if rec.Code != http.StatusOK {
		w.t.Fatalf("move the order: %d %s", rec.Code, rec.Body)
	}
}

func TestResume_FiftyAtOnce_OneDrives(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run, _ := w.approvedAtRest(12_500)
	run, err := w.desk.Run(t.Context(), desk.Terminal(), string(run.ID))
	w.must(err)
	w.shop.Break("refund", "slow") // the driver is still at it when the others come
	ana := w.principal("ana")
	errs := make([]error, 50)
	begin := make(chan struct{})
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			<-begin
			_, errs[i] = w.desk.Resume(context.WithoutCancel(t.Context()), ana, string(run.ID), run.Version)
		})
	}
	close(begin)
	all.Wait()
	drivers := 0
	for _, err := range errs {
		switch {
		case err == nil:
			drivers++
		case !problem.HasCode(err, "lease_held") && !problem.HasCode(err, "version_conflict"):
			t.Errorf("a resume got %v, want lease_held or version_conflict", err)
		}
	}
	if drivers != 1 {
		t.Errorf("%d of 50 resumes drive, want 1", drivers)
	}
	w.waitFor(run, engine.Completed)
	w.wantRefunds(1)
	_, err = w.desk.Resume(t.Context(), ana, string(run.ID), -1)
	if p := w.wantProblem(err, "already_finished"); !strings.Contains(asJSON(t, p), "completed") {
		t.Errorf("the refusal %s does not say completed", asJSON(t, p))
	}
	w.wantRefunds(1)
}

func TestWakeUp_LostHint_ThePollerContinues(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.refund(12_500, engine.WaitingApproval)
	a := w.request("ana", run)
	w.inst.Hub.Close() // no open page hears of anything any more
	// The decision is made by another process beside the one that drives: no
	// hint of it reaches the engine, only the rows do.
	other := w.beside()
	ana := w.principal("ana")
	_, err := other.Desk.Decide(t.Context(), ana, a.ID, desk.Decide{Verdict: "approve", Digest: a.Digest})
	w.must(err)
	w.waitFor(run, engine.Completed)
	w.wantRefunds(1)
}

func TestRestart_BetweenDecisionAndSending_OneEffect(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run, a := w.approvedAtRest(12_500)
	w.idle()
	w.wantRefunds(0)
	w.idle()
	w.start()
	w.waitFor(run, engine.Completed)
	w.idle()
	w.start()
	w.wantRefunds(1)
	if sent := w.entries("effect.sent", ""); len(sent) != 1 || sent[0].Digest != a.Digest {
		t.Errorf("the log has the sendings %+v, want one of the approved digest", sent)
	}
	steps, err := w.desk.Steps(t.Context(), desk.Terminal(), string(run.ID))
	w.must(err)
	for _, s := range steps.Items {
		if s.Attempts > 1 {
			t.Errorf("step %s has %d attempts, want at most one", s.Path, s.Attempts)
		}
	}
}
