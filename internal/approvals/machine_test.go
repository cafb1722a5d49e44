package approvals

import (
	"slices"
	"testing"
)

// Every pair of status and event; what the table does not name must not
// happen. This is DESIGN section 6, written a second time.
func TestNext_EveryPairOfStatusAndEvent(t *testing.T) {
	want := map[Status]map[event]Status{
		Pending: {evVote: Pending, evComplete: Approved, evReject: Rejected, evRetract: Pending, evExtend: Pending,
			evReviseAsk: Pending, evReviseAllow: Allowed, evReviseDeny: Denied, evRevoke: "", evWithdraw: Withdrawn,
			evDecideByOver: Expired, evExecuteByOver: ""},
		Approved: {evVote: "", evComplete: "", evReject: "", evRetract: "", evExtend: "",
			evReviseAsk: Pending, evReviseAllow: Allowed, evReviseDeny: Denied, evRevoke: Pending, evWithdraw: Withdrawn,
			evDecideByOver: "", evExecuteByOver: Expired},
		Allowed: {evVote: "", evComplete: "", evReject: "", evRetract: "", evExtend: "",
			evReviseAsk: Pending, evReviseAllow: Allowed, evReviseDeny: Denied, evRevoke: Pending, evWithdraw: Withdrawn,
			evDecideByOver: "", evExecuteByOver: Expired},
		Denied: {}, Rejected: {}, Expired: {}, Withdrawn: {},
	}
	for _, s := range Statuses {
		for _, e := range events {
			got, ok := next(s, e)
			if w := want[s][e]; got != w || ok != (w != "") {
				t.Errorf("next(%s, %s) = %q, %v; want %q", s, e, got, ok, w)
			}
		}
	}
}

// Silence is never consent: only a completed quorum or the policy's own word
// leads to a status that may be executed.
func TestNext_OnlyCompletionOrThePolicyLeadsToExecution(t *testing.T) {
	for _, s := range Statuses {
		for _, e := range events {
			after, ok := next(s, e)
			if ok && after == Approved && e != evComplete {
				t.Errorf("%s leads from %s to approved", e, s)
			}
			if ok && after == Allowed && e != evReviseAllow {
				t.Errorf("%s leads from %s to allowed", e, s)
			}
		}
	}
}

func TestStatuses_KnowWhatIsOpen(t *testing.T) {
	for _, s := range Statuses {
		moves := false
		for _, e := range events {
			_, ok := next(s, e)
			moves = moves || ok
		}
		if s.Open() != moves {
			t.Errorf("%s.Open() = %v, but events that move it: %v", s, s.Open(), moves)
		}
	}
	if slices.Contains(Statuses, Superseded) {
		t.Error("a request is never superseded, its revisions are")
	}
}
