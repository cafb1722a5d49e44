package desk

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"countersign/internal/approvals"
	"countersign/internal/identity"
	"countersign/internal/problem"
	"countersign/internal/store"
)

// fillMeanwhile says what changed since the revision was made and nothing was
// sent yet, and what follows if it is approved as it is. What stands at the
// target is not among it: reading that is for the moment of sending.
func (d *Desk) fillMeanwhile(ctx context.Context, q store.Querier, r approvals.Request, _ identity.Principal, out *Approval) error {
	if !r.Status.Open() || !r.StartedAt.IsZero() {
		return nil
	}
	gone, err := d.initiatorGone(ctx, q, r)
	if err != nil {
		return err
	}
	if gone != "" {
		out.Meanwhile = append(out.Meanwhile, gone+" Nothing is sent while that is so: once approved, the run stops until an administrator enables the person, or somebody cancels it.")
	}
	v, _, err := d.present(ctx, q, r, r.Params, r.Target, d.now())
	if err != nil {
		return err
	}
	if says := otherwise(r, v); says != "" {
		out.Meanwhile = append(out.Meanwhile, says)
	}
	return nil
}

// otherwise says how the policy in force differs from what this revision
// asks; empty where it does not, or where it asks nobody any more.
func otherwise(r approvals.Request, v approvals.Verdict) string {
	switch {
	case v.Effect == approvals.Deny:
		return "The policy in force now denies this (rule " + v.Rule + "). Nothing is sent: once approved, the request ends as withdrawn."
	case v.Effect == approvals.Approve && !slices.EqualFunc(r.Ruling.Groups, v.Groups, sameGroup):
		return "The policy in force now asks for " + asked(v.Groups) + " (rule " + v.Rule + "). Unless the approvals given here fill that too, nothing is sent and it is asked again as a new revision."
	}
	return ""
}

func sameGroup(a, b approvals.Group) bool {
	return a.Role == b.Role && a.Need == b.Need && slices.Equal(a.People, b.People)
}

// asked joins groups for a sentence: "2 of finance and 1 of legal".
func asked(groups []approvals.Group) string {
	all := make([]string, 0, len(groups))
	for _, g := range groups {
		all = append(all, fmt.Sprint(g))
	}
	return strings.Join(all, " and ")
}

// initiatorGone says in a sentence that the person behind the request no
// longer counts; empty while they do.
func (d *Desk) initiatorGone(ctx context.Context, q store.Querier, r approvals.Request) (string, error) {
	if r.Initiator == Terminal().Person {
		return "", nil // the data folder itself is the authority
	}
	who, err := folk{d.people}.Person(ctx, q, r.Tenant, r.Initiator)
	if problem.HasCode(err, "not_found") || err == nil && !who.Active {
		return r.InitiatorName + ", who started this, is no longer active here.", nil
	}
	return "", err
}
