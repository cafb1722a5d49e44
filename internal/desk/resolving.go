package desk

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"countersign/internal/canon"
	"countersign/internal/engine"
	"countersign/internal/id"
	"countersign/internal/identity"
	"countersign/internal/problem"
	"countersign/internal/store"
	"countersign/internal/tools"
)

// Resolve records a person's word on an unknown effect, with evidence, and
// lets the run go on accordingly; of critical risk, once a second person has
// said the same: until then the effect stays unknown, and the view says how
// far it is. A receipt must fit the tool's output before anything is stored.
//
// Problems: forbidden, invalid (with pointers), not_unknown, lease_held,
// already_finished, still_running, statement_differs, not_found.
func (d *Desk) Resolve(ctx context.Context, p identity.Principal, ref string, in Resolve) (EffectView, error) {
	if err := require(p, capOperate, "settle unknown effects"); err != nil {
		return EffectView{}, err
	}
	if p.Kind != identity.KindPerson {
		return EffectView{}, problem.New(problem.Forbidden, "not_a_person", "Only a person can say what happened.")
	}
	evidence, err := words("/evidence", in.Evidence, commentCharsMax)
	if !slices.Contains(engine.Outcomes, in.Outcome) {
		err = cmp.Or(problem.From(err), problem.New(problem.Invalid, "invalid", "Nothing was changed.")).At("/outcome", "say what happened: one of %s", strings.Join(engine.Outcomes, ", "))
	}
	if err != nil {
		return EffectView{}, err
	}
	in.Evidence = evidence
	r, err := d.resolution(ctx, p, ref, in)
	if err != nil {
		return EffectView{}, err
	}
	e, err := d.engine.Resolve(ctx, id.Effect(ref), r, actor(p))
	if err != nil {
		return EffectView{}, err
	}
	var v EffectView
	err = d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		v, err = d.effectView(ctx, q, e)
		return err
	})
	return v, err
}

// resolution checks a statement against the tool, and says who has to agree.
func (d *Desk) resolution(ctx context.Context, p identity.Principal, ref string, in Resolve) (r engine.Resolution, err error) {
	r = engine.Resolution{Outcome: in.Outcome, Evidence: in.Evidence, Receipt: in.Receipt}
	err = d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		e, err := d.engine.Effect(ctx, q, Tenant, id.Effect(ref))
		if err != nil || e.Status != engine.Unknown {
			return err // the engine says why not
		}
		tool, err := d.defs.Tool(ctx, q, e.Tenant, e.ToolDigest)
		if err != nil && len(r.Receipt) > 0 {
			return problem.New(problem.Invalid, "invalid", "Nothing was changed.").At("/receipt", "cannot be checked, because the definition of %s is gone; leave it out", e.Tool).Because(err)
		}
		if r.Receipt, err = fits(tool, r.Receipt); err != nil {
			return err
		}
		two, err := d.needsTwo(ctx, q, e)
		if err != nil || !two {
			return err
		}
		s := Statement{Person: Party{string(p.Person), p.Name}, Outcome: r.Outcome, Evidence: r.Evidence, Receipt: r.Receipt}
		if tool == nil || len(tool.SensitiveOutput) > 0 {
			s.Receipt = nil // it counts as given by whoever is second
		} else if first, err := d.firstSaid(ctx, q, e); err != nil {
			return err
		} else if first != nil && first.Person.ID != string(p.Person) && first.Outcome == s.Outcome && len(s.Receipt) == 0 {
			s.Receipt, r.Receipt = first.Receipt, first.Receipt
		}
		r.Agree = d.agreed(p, s)
		return nil
	})
	return r, err
}

// fits returns a receipt in canonical form if it is what the tool gives.
func fits(tool *tools.Tool, receipt json.RawMessage) (json.RawMessage, error) {
	if len(receipt) == 0 {
		return nil, nil
	}
	raw, err := canon.Canonical(receipt, canon.DefaultLimits)
	if err != nil {
		return nil, below("/receipt", err)
	}
	v, err := canon.Value(raw)
	if err != nil {
		return nil, err
	}
	if shape := tool.OutputSchema(); shape != nil {
		if err := shape.Validate(v); err != nil {
			p := *problem.From(below("/receipt", err))
			p.Message = "The receipt is not what " + tool.Name + " gives; nothing was changed."
			return nil, &p
		}
	}
	return raw, nil
}
