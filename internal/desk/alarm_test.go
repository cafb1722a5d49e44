package desk_test

import (
	"net/http"
	"strings"
	"testing"

	"countersign/internal/desk"
	"countersign/internal/engine"
)

const unreadable = `UPDATE revision SET subject = replace(subject, '"action":', '"action";')`

// A request whose subject is no JSON any more is shown with its row and an
// alarm, is decided by nobody, and can be cancelled.
func TestAlarm_SubjectUnreadable_IsShownAndCannotBeDecided(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.refund(12_500, engine.WaitingApproval)
	a := w.request("ana", run)
	w.tamper(unreadable)
	base := w.serve()
	ana, ben := w.visitor(base, "ana"), w.visitor(base, "ben")
	program := caller{t, base, w.token("ana", true, "approvals:read", "approvals:decide", "runs:read")}

	view := program.must(200, program.send("GET", "/api/v1/approvals/"+a.ID, ""))
	if !strings.Contains(text(t, view, "alarm"), "was changed") || text(t, view, "summary") != a.Summary || view.body["params"] != nil {
		t.Errorf("the API shows %s, want the row's summary, no parameters and an alarm", view.raw)
	}
	ana.shows(200, "/approvals/"+a.ID, nil, "The record of this request was changed", "Nothing is sent on it", a.Summary, "You cannot decide this: the stored record of it was changed.")
	for path, form := range map[string]bool{"/decision": true, "/edit": false} {
		if form {
			ana.shows(http.StatusConflict, "/approvals/"+a.ID+path, approving(a), "Your decision was not recorded", "cannot be read any more")
		} else if status, page := ana.visit("/approvals/"+a.ID+path, nil); status >= 500 {
			t.Errorf("%s: status %d: %.300s", path, status, page)
		}
	}
	ben.shows(http.StatusNotFound, "/approvals/"+a.ID+"/value?path=/amount", nil)
	ben.shows(200, "/approvals/"+a.ID+"/subject", nil, `"action";`)
	for _, list := range []string{"/inbox", "/approvals", "/runs/" + string(run.ID), "/attention"} {
		ana.shows(200, list, nil)
	}
	w.wantRefunds(0)
	_, err := w.desk.Cancel(t.Context(), w.principal("ana"), string(run.ID), "The record was changed.")
	w.must(err)
	w.waitFor(run, engine.Cancelled)
	if now := w.request("ana", run); now.Status != "withdrawn" || now.Alarm == "" {
		t.Errorf("after cancelling, the request is %s with the alarm %q", now.Status, now.Alarm)
	}
	w.wantRefunds(0)
}

// One that can be read, but does not agree with itself, is shown as it is
// stored, and not offered to anybody.
func TestAlarm_ColumnChanged_IsShownWithTheRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.refund(12_500, engine.WaitingApproval)
	if a := w.request("ana", run); a.Alarm != "" {
		t.Fatalf("nothing was changed, and the alarm is %q", a.Alarm)
	}
	w.tamper(`UPDATE request SET params = replace(params, '12500', '12600')`)
	a := w.request("ana", run)
	if a.Eligible.You || !strings.Contains(a.Alarm, "the parameters beside the subject was changed") || !strings.Contains(string(a.Params), "12500") {
		t.Errorf("Ana may decide: %v; alarm %q; shown %s", a.Eligible.You, a.Alarm, a.Params)
	}
}

// What was sent is in the ledger, whatever became of the subject.
func TestAlarm_SubjectUnreadable_TheEffectAndTheActionAreStillShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	base := w.serve()
	agent := caller{t, base, w.token("dev", false, "actions:propose")}
	proposed := agent.must(http.StatusCreated, agent.send("POST", "/api/v1/actions", strings.Replace(proposal, "12500", "1500", 1)))
	action := text(t, proposed, "id")
	w.eventually(func() (bool, string) {
		done := agent.send("GET", "/api/v1/actions/"+action, "")
		return done.body["status"] == engine.Confirmed, done.raw
	})
	w.tamper(unreadable)
	agent.base = w.serve()
	story := agent.must(200, agent.send("GET", "/api/v1/actions/"+action, ""))
	if text(t, story, "status") != engine.Confirmed || story.body["params"] != nil {
		t.Errorf("the action is shown as %s, want confirmed without parameters", story.raw)
	}
	effects, err := w.desk.RunEffects(t.Context(), desk.Terminal(), text(t, story, "run"))
	w.must(err)
	shown, err := w.desk.EffectStory(t.Context(), w.principal("ana"), string(effects.Items[0].ID))
	w.must(err)
	if len(shown.Request) == 0 || shown.Summary == "" {
		t.Errorf("the effect shows the request %s and the summary %q, want what was sent and the row's summary", shown.Request, shown.Summary)
	}
}
