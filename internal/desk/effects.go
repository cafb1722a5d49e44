package desk

import (
	"context"

	"countersign/internal/engine"
	"countersign/internal/id"
	"countersign/internal/identity"
	"countersign/internal/problem"
	"countersign/internal/store"
)

// EffectList lists the effects of a status. Only unknown ones are listed
// across runs; a run lists its own.
func (d *Desk) EffectList(ctx context.Context, p identity.Principal, f EffectQuery) (page Page[engine.Effect], err error) {
	if err := require(p, capRunsRead, "read effects"); err != nil {
		return page, err
	}
	if f.Status != "" && f.Status != engine.Unknown {
		return page, problem.New(problem.Invalid, "invalid_query", "Effects are listed across runs only when unknown.").At("status", "must be unknown")
	}
	err = d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		page.Items, err = d.engine.UnknownEffects(ctx, q, Tenant)
		return err
	})
	return page, err
}

// Effect returns one ledger row. Problems: not_found, forbidden.
func (d *Desk) Effect(ctx context.Context, p identity.Principal, ref string) (e engine.Effect, err error) {
	if err := require(p, capRunsRead, "read effects"); err != nil {
		return e, err
	}
	err = d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		e, err = d.engine.Effect(ctx, q, Tenant, id.Effect(ref))
		return err
	})
	return e, err
}

// Resolve records a person's word on an unknown effect, with evidence, and
// lets the run go on accordingly. Problems: forbidden, invalid, conflict,
// not_found.
func (d *Desk) Resolve(ctx context.Context, p identity.Principal, ref string, in Resolve) (engine.Effect, error) {
	if err := require(p, capOperate, "settle unknown effects"); err != nil {
		return engine.Effect{}, err
	}
	if p.Kind != identity.KindPerson {
		return engine.Effect{}, problem.New(problem.Forbidden, "not_a_person", "Only a person can say what happened.")
	}
	evidence, err := words("/evidence", in.Evidence, commentCharsMax)
	if err != nil {
		return engine.Effect{}, err
	}
	return d.engine.Resolve(ctx, id.Effect(ref), engine.Resolution{Outcome: in.Outcome, Evidence: evidence, Receipt: in.Receipt}, actor(p))
}

// Attention lists what a person must look at, most urgent first.
func (d *Desk) Attention(ctx context.Context, p identity.Principal) (out []engine.Attention, err error) {
	if err := require(p, capRunsRead, "read runs"); err != nil {
		return nil, err
	}
	err = d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		out, err = d.engine.Attention(ctx, q, Tenant)
		return err
	})
	return out, err
}
