package desk

import (
	"context"
	"fmt"

	"countersign/internal/approvals"
	"countersign/internal/engine"
	"countersign/internal/id"
	"countersign/internal/identity"
	"countersign/internal/problem"
	"countersign/internal/store"
)

// Approval returns a request with its current revision, everything the decider
// is shown, and what became of it. Problems: not_found, forbidden.
func (d *Desk) Approval(ctx context.Context, p identity.Principal, ref string) (out Approval, err error) {
	if err := require(p, capApprovalsRead, "read approval requests"); err != nil {
		return out, err
	}
	err = d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		s, err := d.asStored(ctx, q, id.Approval(ref))
		if err != nil {
			return err
		}
		out, err = d.wholeView(ctx, q, s, p)
		return err
	})
	return out, err
}

// wholeView fills in a request. Of one whose subject cannot be read it shows
// what the row and the history say; nobody decides on a changed one.
func (d *Desk) wholeView(ctx context.Context, q store.Querier, s stored, p identity.Principal) (Approval, error) {
	out := requestView(s.Request)
	fills := []func(context.Context, store.Querier, approvals.Request, identity.Principal, *Approval) error{
		d.fillEligible, d.fillHistory, d.fillRefusal, d.fillOutcome}
	if !s.unreadable {
		fills = append(fills, d.fillMeanwhile, d.fillChanges, d.fillLabels)
	}
	for _, fill := range fills {
		if err := fill(ctx, q, s.Request, p, &out); err != nil {
			return out, err
		}
	}
	if out.Alarm = s.alarm(); out.Alarm != "" {
		out.Eligible.You, out.Eligible.Why, out.Eligible.Can = false, "the stored record of it was changed", []Party{}
	}
	return out, nil
}

// itemView is what a list row shows.
func itemView(i approvals.Item) Approval {
	out := Approval{
		ID: string(i.ID), Kind: i.Kind, Revision: i.Revision, Status: string(i.Status), Digest: i.Digest, ParamsHash: i.ParamsHash,
		Tool: i.Tool, ToolDigest: i.ToolDigest, ToolVersion: i.ToolVersion, Target: i.Target, Title: i.Title, Summary: i.Summary, Risk: i.Risk,
		Initiator: Party{ID: string(i.Initiator), Name: i.InitiatorName}, OnBehalfOf: i.OnBehalfOf, Run: string(i.Run), Step: i.Path, Workflow: i.Workflow,
		Key: i.Key, Policy: i.Policy, PolicyVersion: i.PolicyVersion, Rule: i.Rule, DecideBy: i.DecideBy, ExecuteBy: i.ExecuteBy,
		RunVersion: i.RunVersion, CreatedAt: i.CreatedAt, Outcome: i.Outcome, ClosedBy: i.ClosedByName, ClosedWhy: i.ClosedWhy, ClosedAt: i.ClosedAt,
		StartedAt: i.StartedAt, UpdatedAt: i.UpdatedAt,
		Editable: []string{}, Sensitive: []string{}, PolicyTrace: []RuleTrace{}, Groups: []Group{}, Decisions: []DecisionView{}, Changes: []Change{}, Meanwhile: []string{}, Timeline: []Moment{},
		Eligible: Eligible{Can: []Party{}, Excluded: []Excluded{}, DeadEnd: i.DeadEnd},
	}
	if i.ExecuteWithin > 0 {
		out.ExecuteWithin = i.ExecuteWithin.String()
	}
	for _, g := range i.Groups {
		out.Groups = append(out.Groups, Group{Name: g.Name, Need: g.Need, Have: g.Have})
	}
	return out
}

func requestView(r approvals.Request) Approval {
	out := itemView(r.Item)
	out.Params, out.Document, out.Request, out.Reason, out.Impact = r.Params, r.Document, r.FrozenRequest, r.Reason, r.Impact
	out.Editable, out.Sensitive = append(out.Editable, r.Editable...), append(out.Sensitive, r.Sensitive...)
	out.Supersedes, out.Why, out.Subject = r.Supersedes, r.Why, r.Subject
	if r.Preview != nil {
		out.Preview, out.PreviewAt = r.Preview.Value, r.Preview.At
		if !r.Preview.OK {
			out.PreviewError = r.Preview.Error
		}
	}
	out.Precondition, out.PreconditionMet = preconditionText(r.Precondition)
	if r.Precondition != nil {
		out.PreconditionAt = r.Precondition.At
	}
	for _, t := range r.Ruling.Trace {
		out.PolicyTrace = append(out.PolicyTrace, RuleTrace{Rule: t.Rule, Matched: t.Matched, Why: t.Why})
	}
	return out
}

func preconditionText(p *approvals.Reading) (text string, met bool) {
	switch {
	case p == nil:
		return "", true
	case !p.OK:
		return "The precondition could not be read" + because(p.Error) + ".", false
	case !p.Met:
		return "The precondition does not hold" + because(p.Error) + ".", false
	}
	return "The precondition held when this was asked, at version " + pinText(p.Pin) + " of the target; it is checked again right before sending.", true
}

func (d *Desk) fillEligible(ctx context.Context, q store.Querier, r approvals.Request, p identity.Principal, out *Approval) error {
	e, err := d.book.Eligibility(ctx, q, r.Tenant, r.ID, p.Person)
	if err != nil {
		return err
	}
	out.Eligible.You = e.May && p.Kind == identity.KindPerson && may(p, capDecide)
	out.Eligible.Why, out.Eligible.DeadEnd = e.Why, e.DeadEnd
	if p.Kind != identity.KindPerson {
		out.Eligible.Why = "a machine's token never decides"
	}
	for _, c := range e.Can {
		out.Eligible.Can = append(out.Eligible.Can, Party{ID: string(c.ID), Name: c.Name})
	}
	for _, x := range e.Excluded {
		out.Eligible.Excluded = append(out.Eligible.Excluded, Excluded{Party{ID: string(x.Person.ID), Name: x.Person.Name}, x.Why})
	}
	return nil
}

// fillRefusal links an earlier rejection of the same parameters.
func (d *Desk) fillRefusal(ctx context.Context, q store.Querier, r approvals.Request, _ identity.Principal, out *Approval) error {
	refused, err := d.book.PreviouslyRejected(ctx, q, r.Tenant, r.Initiator, r.Tool, r.ParamsHash)
	if err != nil || refused.Request == "" || refused.Request == r.ID || refused.At.After(r.CreatedAt) {
		return err
	}
	out.PreviousRefusal = fmt.Sprintf("%s rejected exactly these parameters on %s: %s", refused.ByName, refused.At.Format(instantForm), refused.Comment)
	return nil
}

// fillOutcome adds the ledger row and where the run stands.
func (d *Desk) fillOutcome(ctx context.Context, q store.Querier, r approvals.Request, _ identity.Principal, out *Approval) error {
	run, err := d.engine.Run(ctx, q, r.Tenant, r.Run)
	if err != nil {
		return err
	}
	out.RunStatus = run.Status
	if run.Status == engine.Blocked && run.Error != nil {
		out.RunReason = run.Error.Message
	}
	if r.Action == "" {
		return nil
	}
	e, err := d.engine.EffectOf(ctx, q, r.Tenant, r.Action)
	if problem.HasCode(err, "not_found") {
		return nil
	}
	out.Effect = &e
	return err
}

// explained puts a verdict into words for people.
func (d *Desk) explained(ctx context.Context, q store.Querier, v approvals.Verdict) (Explanation, error) {
	out := Explanation{Effect: string(v.Effect), Rule: v.Rule, Groups: []GroupView{}, Trace: []RuleTrace{}}
	for _, t := range v.Trace {
		out.Trace = append(out.Trace, RuleTrace{Rule: t.Rule, Matched: t.Matched, Why: t.Why})
	}
	for _, g := range v.Groups {
		view := GroupView{Name: g.Name, Need: g.Need, Can: []Party{}}
		people, err := d.members(ctx, q, g)
		if err != nil {
			return out, err
		}
		for _, m := range people {
			view.Can = append(view.Can, Party{ID: string(m.ID), Name: m.Name})
		}
		out.Groups = append(out.Groups, view)
	}
	return out, nil
}

// members returns the active people who stand in a group.
func (d *Desk) members(ctx context.Context, q store.Querier, g approvals.Group) (out []approvals.Person, err error) {
	people := folk{d.people}
	all, err := people.WithRole(ctx, q, Tenant, g.Role)
	for _, p := range g.People {
		who, err := people.Person(ctx, q, Tenant, p)
		if err != nil {
			return nil, err
		}
		all = append(all, who)
	}
	for _, p := range all {
		if p.Active {
			out = append(out, p)
		}
	}
	return out, err
}
