package approvals

import (
	"fmt"
	"slices"
	"strings"

	"countersign/internal/id"
	"countersign/internal/problem"
)

// law says who may decide a revision. It is computed from the subject and
// copied beside it for lists.
type law struct {
	Initiators         []id.Person `json:"initiators"` // the initiator and whoever counts as one
	Editors            []id.Person `json:"editors,omitzero"`
	Groups             []Group     `json:"groups,omitzero"`
	InitiatorMayDecide bool        `json:"initiator_may_decide,omitzero"`
	EditorMayApprove   *bool       `json:"editor_may_approve,omitzero"`
}

// under returns the law with what a present verdict says in place of what was
// said when the request was made.
func (l law) under(v Verdict) law {
	l.Groups, l.InitiatorMayDecide, l.EditorMayApprove = v.Groups, v.InitiatorMayDecide, v.EditorMayApprove
	return l
}

// single reports whether one approval is enough.
func (l law) single() bool { return len(l.Groups) == 1 && l.Groups[0].Need == 1 }

// editorMayApprove is DESIGN section 7: what the policy says, else only where
// one approval is enough.
func (l law) editorMayApprove() bool {
	if l.EditorMayApprove != nil {
		return *l.EditorMayApprove
	}
	return l.single()
}

// Standing is whether one person may decide one revision.
type Standing struct {
	May    bool
	Code   string // not_eligible or self_approval, when not
	Why    string // a clause that follows the person's name, when not
	groups []int
}

// standing is the one rule of who may decide (DESIGN section 7): somebody
// active who stands in one of the groups, not the initiator or whoever counts
// as one, and not an editor of the content where that is not allowed. An
// editor may always reject.
func (l law) standing(p Person, verdict string) Standing {
	groups := stands(l.Groups, p)
	own := slices.Contains(l.Initiators, p.ID)
	switch {
	case !p.Active:
		return Standing{Code: "not_eligible", Why: "is not active here"}
	case own && !l.InitiatorMayDecide:
		return Standing{Code: "self_approval", Why: "is the initiator"}
	case len(groups) == 0:
		return Standing{Code: "not_eligible", Why: "is not in " + l.circle()}
	case verdict == VerdictApprove && slices.Contains(l.Editors, p.ID) && !l.editorMayApprove():
		return Standing{Code: "self_approval", Why: "edited this revision"}
	}
	return Standing{May: true, groups: groups}
}

// circle names the groups: "finance" or "finance or legal".
func (l law) circle() string {
	if len(l.Groups) == 0 {
		return "any group that may decide"
	}
	names := make([]string, len(l.Groups))
	for i, g := range l.Groups {
		names[i] = g.Name
	}
	return strings.Join(names, " or ")
}

// Excluded is somebody who stands in a group but may not decide.
type Excluded struct {
	Person Person
	Why    string // a clause that follows the name
}

// Eligibility is who may decide a revision.
type Eligibility struct {
	May      bool // the person asked about may approve
	Why      string
	Can      []Person // may approve
	Excluded []Excluded
	DeadEnd  string // why it cannot be completed as things are; empty if it can
}

// eligibility divides the candidates and says whether they could complete it.
func (l law) eligibility(candidates []Person) Eligibility {
	var e Eligibility
	var can [][]int
	for _, p := range candidates {
		s := l.standing(p, VerdictApprove)
		if !s.May {
			e.Excluded = append(e.Excluded, Excluded{p, s.Why})
			continue
		}
		e.Can = append(e.Can, p)
		can = append(can, s.groups)
	}
	if len(l.Groups) > 0 && !count(l.Groups, can).complete {
		e.DeadEnd = l.deadEnd(e)
	}
	return e
}

// namesMax bounds the names in a sentence.
const namesMax = 5

// deadEnd says why nobody can complete it: "needs 2 of finance; only Ana can,
// Ben is the initiator".
func (l law) deadEnd(e Eligibility) string {
	text := "needs " + needs(l.Groups) + "; "
	switch n := len(e.Can); n {
	case 0:
		text += "nobody can"
	default:
		text += "only " + someNames(e.Can) + " can"
	}
	for i, x := range e.Excluded {
		if i == namesMax {
			text += fmt.Sprintf(", and %d more may not", len(e.Excluded)-i)
			break
		}
		text += ", " + x.Person.Name + " " + x.Why
	}
	return text
}

func someNames(people []Person) string {
	var names []string
	for i, p := range people {
		if i == namesMax {
			names = append(names, fmt.Sprintf("%d more", len(people)-i))
			break
		}
		names = append(names, p.Name)
	}
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// refuse is the problem of somebody who may not decide.
func (l law) refuse(p Person, s Standing, can []Person) error {
	who := make([]Party, 0, len(can))
	for _, c := range can {
		who = append(who, Party{c.ID, c.Name})
	}
	ask := "Nobody can at the moment; tell an administrator."
	if len(can) > 0 {
		ask = someNames(can) + " can."
	}
	if s.Code == "self_approval" {
		what := "You started this, so somebody else has to decide it."
		if s.Why != "is the initiator" {
			what = "You edited this, so somebody else has to approve it."
		}
		return problem.New(problem.Forbidden, "self_approval", "%s %s", what, ask).With("can", who)
	}
	return problem.New(problem.Forbidden, "not_eligible", "You can't decide this: %s %s. %s", p.Name, s.Why, ask).With("why", s.Why).With("can", who)
}
