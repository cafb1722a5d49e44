package desk_test

import (
	"strings"
	"testing"

	"countersign/internal/desk"
	"countersign/internal/engine"
)

// who is what the run says of who can act, which the list must say too.
func (w *world) who(run engine.Run) string {
	w.t.Helper()
	now, err := w.desk.Run(w.t.Context(), desk.Terminal(), string(run.ID))
	w.must(err)
	page, err := w.desk.Runs(w.t.Context(), desk.Terminal(), desk.RunQuery{})
	w.must(err)
	if len(now.WaitingFor) != 1 || len(page.Items) != 1 || len(page.Items[0].WaitingFor) != 1 {
		w.t.Fatalf("the run waits for %s, the list says %s", asJSON(w.t, now.WaitingFor), asJSON(w.t, page.Items))
	}
	if listed := page.Items[0].WaitingFor[0].Who; listed != now.WaitingFor[0].Who {
		w.t.Errorf("the run says %q, the list %q", now.WaitingFor[0].Who, listed)
	}
	return now.WaitingFor[0].Who
}

func TestRun_SaysWhoCanAct(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	base := w.serve()
	run := w.refund(75_000, engine.WaitingApproval) // two of finance
	says := func(when, want string) {
		t.Helper()
		if got := w.who(run); got != want {
			t.Errorf("%s the run waits for %q, want %q", when, got, want)
		}
	}
	says("at first", "Ana and Ben")
	w.visitor(base, "dev").shows(200, "/runs/"+string(run.ID), nil, "waits for Ana and Ben")
	w.approve("ana", w.request("ana", run))
	says("after Ana's vote", "Ben")
	w.active("ben", false)
	says("with Ben disabled", "nobody: needs 2 of finance; only Ana can")
	w.active("ben", true)
	w.active("dev", false)
	w.approve("ben", w.request("ben", run))
	w.waitFor(run, engine.Blocked)
	says("blocked", "Chloe and Ana")
	w.visitor(base, "ana").shows(200, "/runs/"+string(run.ID), nil, "waits for Chloe and Ana")
	resumed, err := w.desk.Resume(t.Context(), w.principal("ana"), string(run.ID), -1)
	w.must(err)
	if resumed.Outcome == engine.OutcomeBlocked && !strings.Contains(asJSON(t, resumed.Run.WaitingFor), "Chloe and Ana") {
		t.Errorf("the answer to a resume does not say who can act: %s", asJSON(t, resumed.Run.WaitingFor))
	}
	w.wantRefunds(0)
}
