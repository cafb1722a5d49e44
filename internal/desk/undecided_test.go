package desk_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"countersign/internal/desk"
	"countersign/internal/engine"
)

// What can change while a request is still undecided: whoever tries to decide
// meets it, nothing is sent on the old footing, and page and API say what
// happens now.

// approving is the form that approves what a shows.
func approving(a desk.Approval) url.Values {
	return url.Values{"verdict": {"approve"}, "digest": {a.Digest}}
}

// wantUndecided fails unless the request is as it was, without votes, and
// nothing was sent.
func (w *world) wantUndecided(run engine.Run, a desk.Approval) {
	w.t.Helper()
	now := w.request("chloe", run)
	if now.Status != "pending" || now.Revision != a.Revision || len(now.Decisions) != 0 {
		w.t.Errorf("the request is %s at revision %d with %d decisions, want pending at %d and none", now.Status, now.Revision, len(now.Decisions), a.Revision)
	}
	w.wantRefunds(0)
}

func (w *world) active(who string, is bool) {
	w.t.Helper()
	w.must(w.desk.SetActive(w.t.Context(), w.principal("chloe"), w.principal(who).Person, is))
}

func TestUndecided_ApproverDisabled_IsRefusedAndOthersCan(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	base := w.serve()
	run := w.refund(12_500, engine.WaitingApproval)
	a := w.request("ana", run)
	ana, ben := w.visitor(base, "ana"), w.visitor(base, "ben")
	program := caller{t, base, w.token("ana", true, "approvals:read", "approvals:decide")}
	signedIn := w.principal("ana")
	w.active("ana", false)

	ana.shows(http.StatusUnauthorized, "/approvals/"+a.ID+"/decision", approving(a), "Nothing was changed")
	if got := program.send("POST", "/api/v1/approvals/"+a.ID+"/decision", `{"verdict":"reject","comment":"No.","digest":"`+a.Digest+`"}`); got.status != http.StatusUnauthorized {
		t.Errorf("the disabled person's token got %d, want 401: %s", got.status, got.raw)
	}
	// A session that was looked up just before is no better.
	_, err := w.desk.Decide(t.Context(), signedIn, a.ID, desk.Decide{Verdict: "approve", Digest: a.Digest})
	if p := w.wantProblem(err, "not_eligible"); p.Message != "You can't decide this: Ana is not active here. Ben can." {
		t.Errorf("Ana is told %q", p.Message)
	}
	w.wantUndecided(run, a)
	if now := w.request("ben", run); len(now.Eligible.Can) != 1 || now.Eligible.Can[0].Name != "Ben" || now.Eligible.DeadEnd != "" {
		t.Errorf("eligible are %s, want Ben alone and no dead end", asJSON(t, now.Eligible))
	}
	ben.shows(http.StatusSeeOther, "/approvals/"+a.ID+"/decision", approving(a))
	w.waitFor(run, engine.Completed)
	w.wantRefunds(1)
}

func TestUndecided_LastApproverGone_IsFlaggedUntilSomebodyCan(t *testing.T) {
	gone := map[string]func(w *world, who string){
		"disabled": func(w *world, who string) { w.active(who, false) },
		"without the role": func(w *world, who string) {
			w.must(w.desk.SetRoles(w.t.Context(), w.principal("chloe"), w.principal(who).Person, []string{"approver", "operator"}))
		},
	}
	for how, leave := range gone {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			base := w.serve()
			run := w.refund(12_500, engine.WaitingApproval)
			a := w.request("ana", run)
			chloe, dev := w.visitor(base, "chloe"), w.visitor(base, "dev")
			program := caller{t, base, w.token("chloe", true, "approvals:read", "runs:read")}
			if w.deadEnd(program, a.ID) != "" || w.attention(a) != 0 {
				t.Fatal("it is flagged although Ana and Ben can decide")
			}
			leave(w, "ana")
			if w.deadEnd(program, a.ID) != "" {
				t.Error("it is flagged although Ben can decide")
			}
			leave(w, "ben")
			if got, want := w.deadEnd(program, a.ID), "needs 1 of finance; nobody can"; got != want {
				t.Errorf("the API says the dead end is %q, want %q", got, want)
			}
			if w.attention(a) != 1 {
				t.Error("what needs attention does not list the request")
			}
			chloe.shows(200, "/attention", nil, "Nobody can decide it", "It needs 1 of finance; nobody can.", "Let an administrator give somebody the role")
			chloe.shows(200, "/approvals/"+a.ID, nil, "Nobody can complete this as things are", "needs 1 of finance; nobody can")
			dev.shows(200, "/waiting", nil, "nobody can complete it")
			w.wantUndecided(run, a)

			w.must(w.desk.SetRoles(t.Context(), w.principal("chloe"), w.principal("ben").Person, []string{"finance"}))
			w.active("ben", true)
			if w.deadEnd(program, a.ID) != "" || w.attention(a) != 0 {
				t.Error("it is still flagged although Ben is back")
			}
			w.approve("ben", a)
			w.waitFor(run, engine.Completed)
			w.wantRefunds(1)
		})
	}
}

// deadEnd is what the API says about the request, in its view and in the list,
// which must agree.
func (w *world) deadEnd(c caller, approval string) string {
	w.t.Helper()
	of := func(v any) string {
		who, _ := v.(map[string]any)["eligible"].(map[string]any)
		s, _ := who["dead_end"].(string)
		return s
	}
	one := of(c.must(200, c.send("GET", "/api/v1/approvals/"+approval, "")).body)
	items, _ := c.must(200, c.send("GET", "/api/v1/approvals?status=pending", "")).body["items"].([]any)
	if len(items) != 1 || of(items[0]) != one {
		w.t.Errorf("the request says %q, the list %s", one, asJSON(w.t, items))
	}
	return one
}

// attention is how often the request is listed as what nobody can decide; the
// number in the rail must fit the list.
func (w *world) attention(a desk.Approval) (n int) {
	w.t.Helper()
	all, err := w.desk.Attention(w.t.Context(), w.principal("chloe"))
	w.must(err)
	counts, err := w.desk.Counts(w.t.Context(), w.principal("chloe"))
	w.must(err)
	if counts.Attention != len(all) {
		w.t.Errorf("the rail counts %d, the list has %d", counts.Attention, len(all))
	}
	for _, x := range all {
		if x.Cause == desk.CauseDeadEnd && string(x.Approval) == a.ID {
			n++
		}
	}
	return n
}

func TestUndecided_ApproverLostTheRole_IsRefusedWithTheReason(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	base := w.serve()
	run := w.refund(12_500, engine.WaitingApproval)
	a := w.request("ana", run)
	ana := w.visitor(base, "ana")
	ana.shows(200, "/approvals/"+a.ID, nil, "Approve refund")
	program := caller{t, base, w.token("ana", true, "approvals:read", "approvals:decide")}
	w.must(w.desk.SetRoles(t.Context(), w.principal("chloe"), w.principal("ana").Person, []string{"approver"}))

	ana.shows(http.StatusForbidden, "/approvals/"+a.ID+"/decision", approving(a), "Your decision was not recorded", "You can't decide this: Ana is not in finance. Ben can.")
	ana.shows(200, "/approvals/"+a.ID, nil, "You cannot decide this: Ana is not in finance.", "Ben")
	rejecting := program.send("POST", "/api/v1/approvals/"+a.ID+"/decision", `{"verdict":"reject","comment":"No.","digest":"`+a.Digest+`"}`)
	program.wantProblem(http.StatusForbidden, "not_eligible", rejecting)
	view := program.must(200, program.send("GET", "/api/v1/approvals/"+a.ID, ""))
	if you, _ := view.body["eligible"].(map[string]any); you["you"] != false || you["why"] != "Ana is not in finance." {
		t.Errorf("the API says of Ana %s", asJSON(t, you))
	}
	if refused := w.entries("approval.approve", a.ID); len(refused) != 1 || refused[0].Outcome != "refused: not_eligible" {
		t.Errorf("the log has %+v of the attempt, want that it was refused", refused)
	}
	w.wantUndecided(run, a)
}

func TestUndecided_InitiatorDisabled_TheRunStopsBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	base := w.serve()
	run := w.refund(12_500, engine.WaitingApproval)
	a := w.request("ana", run)
	ana := w.visitor(base, "ana")
	w.active("dev", false)
	w.says(base, ana, a, "Dev, who started this, is no longer active here. Nothing is sent while that is so")
	ana.shows(http.StatusSeeOther, "/approvals/"+a.ID+"/decision", approving(a))
	w.waitFor(run, engine.Blocked)
	ana.shows(200, "/approvals/"+a.ID, nil, "Blocked: nothing was sent", "Dev, who started this, is no longer active here", "An administrator can enable the person and resume the run, or cancel it.")
	w.wantRefunds(0)
	w.active("dev", true)
	if now := w.request("ana", run); len(now.Meanwhile) != 0 {
		t.Errorf("Dev is back and the request still says %q", now.Meanwhile)
	}
	_, err := w.desk.Resume(t.Context(), w.principal("ana"), string(run.ID), -1)
	w.must(err)
	w.waitFor(run, engine.Completed)
	w.wantRefunds(1)
}

// says fails unless page and API tell, before anybody decides, what changed.
func (w *world) says(base string, v visitor, a desk.Approval, text string) {
	w.t.Helper()
	v.shows(200, "/approvals/"+a.ID, nil, text)
	program := caller{w.t, base, w.token("chloe", true, "approvals:read")}
	view := program.must(200, program.send("GET", "/api/v1/approvals/"+a.ID, ""))
	if told, _ := view.body["meanwhile"].([]any); len(told) != 1 || !strings.Contains(fmt.Sprint(told[0]), text) {
		w.t.Errorf("the API says %v, want %q", view.body["meanwhile"], text)
	}
}

func TestUndecided_PolicyStricter_OneVoteIsNotEnough(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	base := w.serve()
	run := w.refund(12_500, engine.WaitingApproval)
	a := w.request("ana", run)
	ana := w.visitor(base, "ana")
	if len(a.Meanwhile) != 0 {
		t.Errorf("nothing changed, and the request says %q", a.Meanwhile)
	}
	w.policy(2, strictRules)
	w.says(base, ana, a, "The policy in force now asks for 2 of finance (rule refunds).")
	ana.shows(http.StatusSeeOther, "/approvals/"+a.ID+"/decision", approving(a))
	now := w.askedAgain(run)
	if now.PolicyVersion != 2 || now.Groups[0].Need != 2 || len(now.Meanwhile) != 0 {
		t.Errorf("revision 2 is under version %d, needs %d and says %q; want 2, 2 and nothing", now.PolicyVersion, now.Groups[0].Need, now.Meanwhile)
	}
	ana.shows(200, "/approvals/"+a.ID, nil, "This is revision 2", "Changed since it was approved: The policy in force needs 2 of finance, which the votes given do not fill.", "finance, 0 of 2")
	ana.shows(http.StatusConflict, "/approvals/"+a.ID+"/decision", approving(a), "Your decision was not recorded") // the old page
	w.approve("ana", now)
	w.wantRefunds(0)
	w.approve("ben", now)
	w.waitFor(run, engine.Completed)
	w.wantRefunds(1)
}

func TestUndecided_PolicyDenies_ApprovingSendsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	base := w.serve()
	run := w.refund(12_500, engine.WaitingApproval)
	a := w.request("ana", run)
	ana := w.visitor(base, "ana")
	w.policy(2, closedRules)
	w.says(base, ana, a, "The policy in force now denies this (rule refunds).")
	ana.shows(http.StatusSeeOther, "/approvals/"+a.ID+"/decision", approving(a))
	w.eventually(func() (bool, string) {
		now := w.request("ben", run)
		return now.Status == "withdrawn", "the request is " + now.Status
	})
	ana.shows(200, "/approvals/"+a.ID, nil, "Withdrawn", "the policy now denies it", "Nothing was sent.")
	w.wantRefunds(0)
}

func TestUndecided_OrderChangedAtTheShop_ApprovingAsksAgain(t *testing.T) {
	cases := map[string]struct {
		moves       []string
		why, finds  string
		goesThrough bool
	}{
		"its state":     {[]string{"disputed"}, "the precondition no longer holds", "The precondition does not hold", false},
		"its pin alone": {[]string{"disputed", "paid"}, "the target changed: its version was", "The precondition held when this was asked", true},
	}
	for what, c := range cases {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			base := w.serve()
			run := w.refund(12_500, engine.WaitingApproval)
			a := w.request("ana", run)
			ana := w.visitor(base, "ana")
			for _, state := range c.moves {
				w.moveOrder(state)
			}
			ana.shows(200, "/approvals/"+a.ID, nil, "it is checked again right before sending")
			ana.shows(http.StatusSeeOther, "/approvals/"+a.ID+"/decision", approving(a))
			now := w.askedAgain(run)
			if !strings.HasPrefix(now.Why, "Changed since it was approved: "+c.why) || strings.HasSuffix(now.Why, "..") || now.PreconditionMet != c.goesThrough {
				t.Errorf("revision 2 says %q, precondition met %v", now.Why, now.PreconditionMet)
			}
			ana.shows(200, "/approvals/"+a.ID, nil, "This is revision 2", "Changed since it was approved: "+c.why, c.finds, "What changed")
			program := caller{t, base, w.token("ana", true, "approvals:read")}
			view := program.must(200, program.send("GET", "/api/v1/approvals/"+a.ID, ""))
			if text(t, view, "why") != now.Why || view.body["supersedes"] != a.Digest || len(view.body["changes"].([]any)) == 0 {
				t.Errorf("the API does not say what changed since revision 1: %s", view.raw)
			}
			w.approve("ben", now)
			if c.goesThrough {
				w.waitFor(run, engine.Completed)
				w.wantRefunds(1)
				return
			}
			w.eventually(func() (bool, string) {
				again := w.request("ben", run)
				return again.Revision == 3 && again.Status == "pending", fmt.Sprintf("the request is %s at revision %d", again.Status, again.Revision)
			})
			w.wantRefunds(0)
		})
	}
}

// Of two that are needed one has voted, and is gone before the second votes:
// the vote no longer counts, and it is asked again.
func TestUndecided_FirstOfTwoVotersGone_TheVoteDoesNotCount(t *testing.T) {
	gone := map[string]struct {
		leave func(w *world)
		why   string
	}{
		"disabled": {func(w *world) { w.active("ana", false) }, "Ana, who approved it, is no longer active here"},
		"without the role": {func(w *world) {
			w.must(w.desk.SetRoles(w.t.Context(), w.principal("chloe"), w.principal("ana").Person, []string{"approver"}))
		}, "Ana, who approved it, is no longer in finance"},
	}
	for how, c := range gone {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			base := w.serve()
			run := w.refund(75_000, engine.WaitingApproval)
			a := w.request("ana", run)
			w.approve("ana", a)
			c.leave(w)
			ben := w.visitor(base, "ben")
			ben.shows(200, "/inbox", nil, "nobody can complete it")
			ben.shows(200, "/approvals/"+a.ID, nil, "needs 2 of finance; only Ben can")
			ben.shows(http.StatusSeeOther, "/approvals/"+a.ID+"/decision", approving(a))
			now := w.askedAgain(run)
			if !strings.Contains(now.Why, c.why) {
				t.Errorf("revision 2 says %q, want %q", now.Why, c.why)
			}
			ben.shows(200, "/approvals/"+a.ID, nil, "This is revision 2", c.why, "needs 2 of finance; only Ben can")
			w.wantRefunds(0)
		})
	}
}
