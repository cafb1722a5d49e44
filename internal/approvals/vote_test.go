package approvals

import (
	"errors"
	"testing"
	"time"

	"countersign/internal/id"
	"countersign/internal/problem"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// voting is a request that needs 2 of finance, with Ana's approval on it.
func voting(s Status) Request {
	r := Request{Item: Item{Status: s, Revision: 2, Digest: "sha256:now", DecideBy: noon.Add(time.Hour), Rule: "big", ClosedByName: "Olga",
		law: law{Initiators: []id.Person{"usr_ivo"}, Groups: []Group{{Name: "finance", Role: "finance", Need: 2}}}}}
	r.Decisions = []DecisionRecord{{ID: "dec_1", Person: "usr_ana", PersonName: "Ana", Verdict: VerdictApprove, Digest: "sha256:now",
		Groups: []string{"finance"}, DecidedAt: noon.Add(-time.Minute)}}
	if s == Approved || s == Rejected {
		last := DecisionRecord{ID: "dec_2", Person: "usr_cleo", PersonName: "Cleo", Verdict: VerdictApprove, Digest: "sha256:now",
			Groups: []string{"finance"}, DecidedAt: noon.Add(-time.Second)}
		if s == Rejected {
			last.Verdict = VerdictReject
		}
		r.Decisions = append(r.Decisions, last)
	}
	return r
}

func ben() Person {
	return Person{ID: "usr_ben", Name: "Ben", Roles: []string{"finance"}, Active: true}
}

// codeOf is the code of a refusal of either kind, or "".
func codeOf(err error) string {
	if no, ok := errors.AsType[refusal](err); ok {
		return no.Code
	}
	if err == nil {
		return ""
	}
	return problem.From(err).Code
}

// Every status with every verdict, by somebody who may decide and has not.
func TestRule_EveryPairOfStatusAndVerdict(t *testing.T) {
	closed := map[Status]string{Approved: "already_decided", Allowed: "already_decided", Denied: "already_decided", Rejected: "already_decided",
		Expired: "expired", Withdrawn: "run_not_waiting", Pending: ""}
	does := map[string]event{VerdictApprove: evComplete, VerdictReject: evReject}
	for _, s := range Statuses {
		for verdict, e := range does {
			out, err := voting(s).rule(vote{ben(), "sha256:now", verdict, "because", noon, false})
			if got := codeOf(err); got != closed[s] {
				t.Errorf("%s, %s: problem %q, want %q", s, verdict, got, closed[s])
			}
			if s == Pending && out.event != e {
				t.Errorf("%s, %s: event %q, want %q", s, verdict, out.event, e)
			}
		}
	}
}

func TestRule_OneFaultAtATime(t *testing.T) {
	cases := []struct {
		name string
		edit func(*Request, *vote)
		want string
	}{
		{"approves", func(*Request, *vote) {}, ""},
		{"unknown verdict", func(_ *Request, v *vote) { v.verdict = "yes" }, "invalid"},
		{"empty verdict", func(_ *Request, v *vote) { v.verdict = "" }, "invalid"},
		{"no digest", func(_ *Request, v *vote) { v.digest = "" }, "invalid"},
		{"reject without a reason", func(_ *Request, v *vote) { v.verdict, v.comment = VerdictReject, " \n " }, "invalid"},
		{"comment too long", func(_ *Request, v *vote) { v.comment = string(make([]byte, CommentBytesMax+1)) }, "invalid"},
		{"page of an older revision", func(_ *Request, v *vote) { v.digest = "sha256:old" }, "stale_digest"},
		{"at decide-by", func(r *Request, v *vote) { v.now = r.DecideBy }, "expired"},
		{"a microsecond before decide-by", func(r *Request, v *vote) { v.now = r.DecideBy.Add(-time.Microsecond) }, ""},
		{"after decide-by", func(r *Request, v *vote) { v.now = r.DecideBy.Add(time.Second) }, "expired"},
		{"clock went back", func(_ *Request, v *vote) { v.suspect = true }, "clock_suspect"},
		{"inactive", func(_ *Request, v *vote) { v.person.Active = false }, "not_eligible"},
		{"lost the role", func(_ *Request, v *vote) { v.person.Roles = nil }, "not_eligible"},
		{"the initiator", func(_ *Request, v *vote) { v.person.ID = "usr_ivo" }, "self_approval"},
		{"the initiator rejects", func(_ *Request, v *vote) { v.person.ID, v.verdict, v.comment = "usr_ivo", VerdictReject, "no" }, "self_approval"},
		{"the initiator, where the policy lets them", func(r *Request, v *vote) { v.person.ID, r.law.InitiatorMayDecide = "usr_ivo", true }, ""},
		{"an editor, two needed", func(r *Request, _ *vote) { r.law.Editors = []id.Person{"usr_ben"} }, "self_approval"},
		{"an editor rejects", func(r *Request, v *vote) {
			r.law.Editors, v.verdict, v.comment = []id.Person{"usr_ben"}, VerdictReject, "no"
		}, ""},
		{"an editor, the policy lets them", func(r *Request, _ *vote) {
			yes := true
			r.law.Editors, r.law.EditorMayApprove = []id.Person{"usr_ben"}, &yes
		}, ""},
		{"an editor, one is enough", func(r *Request, _ *vote) {
			r.law.Editors, r.law.Groups, r.Decisions = []id.Person{"usr_ben"}, []Group{{Name: "finance", Role: "finance", Need: 1}}, nil
		}, ""},
		{"an editor, one is enough, but the policy forbids it", func(r *Request, _ *vote) {
			no := false
			r.law.Editors, r.law.Groups, r.Decisions, r.law.EditorMayApprove = []id.Person{"usr_ben"}, []Group{{Name: "finance", Role: "finance", Need: 1}}, nil, &no
		}, "self_approval"},
		{"no groups at all", func(r *Request, _ *vote) { r.law.Groups = nil }, "not_eligible"},
		{"again the other way", func(_ *Request, v *vote) {
			v.person, v.verdict, v.comment = Person{ID: "usr_ana", Name: "Ana", Roles: []string{"finance"}, Active: true}, VerdictReject, "no"
		}, "already_decided"},
	}
	for _, c := range cases {
		r, v := voting(Pending), vote{ben(), "sha256:now", VerdictApprove, "", noon, false}
		c.edit(&r, &v)
		if _, err := r.rule(v); codeOf(err) != c.want {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestRule_TheSameAgainIsAReplayInEveryStatus(t *testing.T) {
	ana := Person{ID: "usr_ana", Name: "Ana"} // no longer active: the answer to what was done stays
	for _, s := range []Status{Pending, Approved, Rejected, Expired, Withdrawn} {
		out, err := voting(s).rule(vote{ana, "sha256:now", VerdictApprove, "", noon.Add(5 * time.Hour), true})
		if err != nil || out.replay == nil || out.replay.ID != "dec_1" {
			t.Errorf("%s: replay = %+v, %v; want dec_1", s, out.replay, err)
		}
	}
}

func TestRule_AVoteThatLeavesPlacesOpenDoesNotComplete(t *testing.T) {
	r := voting(Pending)
	r.law.Groups = append(r.law.Groups, Group{Name: "legal", Role: "legal", Need: 1})
	out, err := r.rule(vote{ben(), "sha256:now", VerdictApprove, "", noon, false})
	if err != nil || out.event != evVote {
		t.Errorf("event = %q, %v; want a vote that leaves legal open", out.event, err)
	}
}
