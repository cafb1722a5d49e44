package approvals

import (
	"context"
	"strings"

	"countersign/internal/id"
	"countersign/internal/store"
)

// Satisfied reports whether the votes on the current revision meet present,
// the verdict of the policy in force on present facts, with the people as they
// are now. If not, why is a sentence. Problem: not_found.
func (b *Book) Satisfied(ctx context.Context, q store.Querier, tenant string, request id.Approval, present Verdict) (ok bool, why string, err error) {
	r, err := b.Get(ctx, q, tenant, request)
	if err != nil {
		return false, "", err
	}
	var voters []Person
	for _, d := range r.Decisions {
		if d.Verdict == VerdictApprove {
			p, err := b.person(ctx, q, tenant, d.Person)
			if err != nil {
				return false, "", err
			}
			if p.Name == string(p.ID) {
				p.Name = d.PersonName // gone; the name it was decided under
			}
			voters = append(voters, p)
		}
	}
	ok, why = r.satisfied(present, voters)
	return ok, why, nil
}

// satisfied is Satisfied without reading.
func (r Request) satisfied(present Verdict, voters []Person) (bool, string) {
	switch present.Effect {
	case Allow:
		return true, ""
	case Deny:
		return false, "The policy in force denies it (rule " + present.Rule + ")."
	case Approve:
	default:
		return false, "The policy in force gives no verdict."
	}
	l := r.law.under(present)
	var can [][]int
	var lost []string
	for _, p := range voters {
		s := l.standing(p, VerdictApprove)
		if !s.May {
			lost = append(lost, p.Name+", who approved it, "+now(s.Why))
			continue
		}
		can = append(can, s.groups)
	}
	if count(l.Groups, can).complete {
		return true, ""
	}
	if len(lost) > 0 {
		return false, strings.Join(lost, "; ") + ". It now needs " + needs(l.Groups) + "."
	}
	if len(voters) == 0 {
		return false, "The policy in force asks for " + needs(l.Groups) + ", and nobody has approved it."
	}
	return false, "The policy in force needs " + needs(l.Groups) + ", which the votes given do not fill."
}

// now turns "is not active here" into "is no longer active here".
func now(why string) string {
	if rest, ok := strings.CutPrefix(why, "is not "); ok {
		return "is no longer " + rest
	}
	return why
}
