package approvals

// Status is where a request stands.
type Status string

// The statuses. Only pending, approved and allowed go on; the others are the
// end of a request.
const (
	Pending   Status = "pending"
	Approved  Status = "approved"  // every group complete
	Allowed   Status = "allowed"   // by the policy, without a person
	Denied    Status = "denied"    // by the policy
	Rejected  Status = "rejected"  // by a person
	Expired   Status = "expired"   // at decide-by or execute-by
	Withdrawn Status = "withdrawn" // by the initiator, or with the run
)

// Statuses are all of them.
var Statuses = []Status{Pending, Approved, Allowed, Denied, Rejected, Expired, Withdrawn}

// Superseded is the status of a revision that has a successor; a request
// never has it.
const Superseded Status = "superseded"

// Open reports whether something can still happen to the request.
func (s Status) Open() bool { return s == Pending || s == Approved || s == Allowed }

// The verdicts of a decision.
const (
	VerdictApprove = "approve"
	VerdictReject  = "reject"
)

// event is what happens to a request.
type event string

const (
	evVote          event = "vote"     // an approval that leaves places open
	evComplete      event = "complete" // the approval that fills the last place
	evReject        event = "reject"
	evRetract       event = "retract"
	evExtend        event = "extend"
	evReviseAsk     event = "revise: ask" // a new revision that must be approved
	evReviseAllow   event = "revise: allow"
	evReviseDeny    event = "revise: deny"
	evRevoke        event = "revoke"
	evWithdraw      event = "withdraw"
	evDecideByOver  event = "decide-by over"
	evExecuteByOver event = "execute-by over"
)

var events = []event{evVote, evComplete, evReject, evRetract, evExtend, evReviseAsk, evReviseAllow, evReviseDeny,
	evRevoke, evWithdraw, evDecideByOver, evExecuteByOver}

// transitions is the whole life of a request (DESIGN section 6). What is not
// here does not happen.
var transitions = map[Status]map[event]Status{
	Pending: {
		evVote: Pending, evComplete: Approved, evReject: Rejected, evRetract: Pending, evExtend: Pending,
		evReviseAsk: Pending, evReviseAllow: Allowed, evReviseDeny: Denied,
		evWithdraw: Withdrawn, evDecideByOver: Expired,
	},
	Approved: {
		evReviseAsk: Pending, evReviseAllow: Allowed, evReviseDeny: Denied,
		evRevoke: Pending, evWithdraw: Withdrawn, evExecuteByOver: Expired,
	},
	Allowed: {
		evReviseAsk: Pending, evReviseAllow: Allowed, evReviseDeny: Denied,
		evRevoke: Pending, evWithdraw: Withdrawn, evExecuteByOver: Expired,
	},
}

// next is the status after the event; ok is false where it cannot happen.
func next(s Status, e event) (after Status, ok bool) {
	after, ok = transitions[s][e]
	return after, ok
}

// revising is the event of a new revision that a verdict of effect e rules on.
func revising(e Effect) event {
	switch e {
	case Allow:
		return evReviseAllow
	case Deny:
		return evReviseDeny
	}
	return evReviseAsk
}

// opening is the status a request begins with.
func opening(e Effect) Status {
	switch e {
	case Allow:
		return Allowed
	case Deny:
		return Denied
	}
	return Pending
}
