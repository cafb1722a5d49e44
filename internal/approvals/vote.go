package approvals

import (
	"strings"
	"time"

	"countersign/internal/problem"
)

// CommentBytesMax bounds what a person writes to a decision, a revision or a
// remark.
const CommentBytesMax = 16 << 10

// vote is one person's verdict on one digest at one moment.
type vote struct {
	person  Person
	digest  string
	verdict string
	comment string
	now     time.Time
	suspect bool // the clock is not to be trusted
}

// ruled is what a vote does.
type ruled struct {
	replay *DecisionRecord // it was cast before; nothing happens
	event  event
	groups []int // the person stands in, by index
	place  int   // the group whose place the person fills, or -1
}

// refusal is a vote of somebody who may not; Decide adds who can.
type refusal struct{ Standing }

func (r refusal) Error() string { return r.Code + ": " + r.Why }

// rule says what a vote does to a request, or why nothing. It is pure: the
// whole of deciding but its storage.
func (r Request) rule(v vote) (ruled, error) {
	if err := v.check(); err != nil {
		return ruled{}, err
	}
	if done, err := r.castBefore(v); done != nil || err != nil {
		return ruled{replay: done}, err
	}
	if err := r.closed(v.now); err != nil {
		return ruled{}, err
	}
	s := r.law.standing(v.person, v.verdict)
	switch {
	case !s.May:
		return ruled{}, refusal{s}
	case v.suspect:
		return ruled{}, ErrClockSuspect
	case v.digest != r.Digest:
		return ruled{}, ErrStaleDigest.With("digest", r.Digest).With("revision", r.Revision)
	}
	return r.weigh(v, s.groups)
}

// check refuses a vote that says too little.
func (v vote) check() error {
	bad := invalid("The decision was not recorded.")
	switch {
	case v.verdict != VerdictApprove && v.verdict != VerdictReject:
		return bad.At("/verdict", "must be approve or reject")
	case v.digest == "":
		return bad.At("/digest", "say which revision you decide: the digest that its page shows")
	case v.verdict == VerdictReject && strings.TrimSpace(v.comment) == "":
		return bad.At("/comment", "say why; the run and the agent are told")
	case len(v.comment) > CommentBytesMax:
		return bad.At("/comment", "is %d bytes long; at most %d are kept", len(v.comment), CommentBytesMax)
	}
	return nil
}

// castBefore returns the same vote if it stands already. Another one of the
// same person on this revision is refused, since a person decides once.
func (r Request) castBefore(v vote) (*DecisionRecord, error) {
	for i, d := range r.Decisions {
		if d.Person != v.person.ID || d.Digest != v.digest || d.Digest != r.Digest {
			continue
		}
		if d.Verdict == v.verdict {
			return &r.Decisions[i], nil
		}
		p := decidedBy(d)
		p.Message = "You decided this already: " + d.Verdict + " at " + d.DecidedAt.Format(timeForm) + "."
		if r.Status == Pending {
			p.Message += " Take that back first."
		}
		return nil, p
	}
	return nil, nil
}

// closed is why nothing can be decided any more, or nil.
func (r Request) closed(now time.Time) error {
	switch r.Status {
	case Approved, Rejected:
		return r.decided()
	case Allowed, Denied:
		p := ErrAlreadyDecided.With("decision", map[string]any{"person": "", "name": "policy", "verdict": string(r.Status), "decided_at": r.CreatedAt, "revision": r.Revision})
		p.Message = "The policy decided this: it is " + string(r.Status) + " by the rule " + r.Rule + "."
		return p
	case Withdrawn:
		return r.withdrawn()
	case Expired:
		return r.over()
	}
	if !now.Before(r.DecideBy) {
		return r.over()
	}
	return nil
}

// decided names the winner: the rejection, else the last approval.
func (r Request) decided() error {
	var winner *DecisionRecord
	for i := range r.Decisions {
		if winner == nil || winner.Verdict != VerdictReject {
			winner = &r.Decisions[i]
		}
	}
	if winner == nil {
		return ErrAlreadyDecided
	}
	return decidedBy(*winner)
}

func decidedBy(d DecisionRecord) *problem.Error {
	p := ErrAlreadyDecided.With("decision", map[string]any{"id": string(d.ID), "person": string(d.Person), "name": d.PersonName,
		"verdict": d.Verdict, "decided_at": d.DecidedAt, "revision": d.Revision, "comment": d.Comment})
	word := "approved"
	if d.Verdict == VerdictReject {
		word = "rejected"
	}
	p.Message = d.PersonName + " " + word + " this at " + d.DecidedAt.Format(timeForm) + "."
	return p
}

func (r Request) withdrawn() error {
	p := ErrRunNotWaiting.With("by", r.ClosedByName).With("at", r.ClosedAt).With("why", r.ClosedWhy)
	p.Message = "This was withdrawn at " + r.ClosedAt.Format(timeForm)
	if r.ClosedByName != "" {
		p.Message += " by " + r.ClosedByName
	}
	if r.ClosedWhy != "" {
		p.Message += ": " + r.ClosedWhy
	}
	p.Message = strings.TrimRight(p.Message, ".") + ". Nothing waits for a decision any more."
	return p
}

func (r Request) over() error {
	if r.Status == Expired && !r.ExecuteBy.IsZero() {
		p := ErrExpired.With("execute_by", r.ExecuteBy)
		p.Message = "This was approved but not started by " + r.ExecuteBy.Format(timeForm) + "; the approval is over."
		return p
	}
	p := ErrExpired.With("decide_by", r.DecideBy)
	p.Message = "The time to decide this was over at " + r.DecideBy.Format(timeForm) + "."
	return p
}

// weigh counts the vote with those that stand.
func (r Request) weigh(v vote, groups []int) (ruled, error) {
	out := ruled{event: evReject, groups: groups, place: -1}
	if v.verdict == VerdictApprove {
		can := append(recordedGroups(r.law.Groups, r.Decisions), groups)
		t := count(r.law.Groups, can)
		out.event, out.place = evVote, t.who[len(can)-1]
		if t.complete {
			out.event = evComplete
		}
	}
	if _, ok := next(r.Status, out.event); !ok {
		return ruled{}, ErrRunNotWaiting
	}
	return out, nil
}
