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
func (d *Desk) EffectList(ctx context.Context, p identity.Principal, f EffectQuery) (page Page[EffectView], err error) {
	if err := require(p, capRunsRead, "read effects"); err != nil {
		return page, err
	}
	if f.Status != "" && f.Status != engine.Unknown {
		return page, problem.New(problem.Invalid, "invalid_query", "Effects are listed across runs only when unknown.").At("status", "must be unknown")
	}
	page.Items = []EffectView{}
	err = d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		all, err := d.engine.UnknownEffects(ctx, q, Tenant)
		for _, e := range all {
			v, err := d.effectView(ctx, q, e)
			if err != nil {
				return err
			}
			page.Items = append(page.Items, v)
		}
		return err
	})
	return page, err
}

// Effect returns one ledger row with what people said of it. Problems:
// not_found, forbidden.
func (d *Desk) Effect(ctx context.Context, p identity.Principal, ref string) (v EffectView, err error) {
	if err := require(p, capRunsRead, "read effects"); err != nil {
		return v, err
	}
	err = d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		e, err := d.engine.Effect(ctx, q, Tenant, id.Effect(ref))
		if err != nil {
			return err
		}
		v, err = d.effectView(ctx, q, e)
		return err
	})
	return v, err
}

// Asked is what a target said when it was asked about an effect now.
type Asked struct {
	Happened, DidNot bool // neither: it did not say
	Message          string
	Body             []byte // JSON
}

// AskTarget asks the target about an unknown effect, and changes nothing.
// Problems: forbidden, not_found, cannot_ask.
func (d *Desk) AskTarget(ctx context.Context, p identity.Principal, ref string) (out Asked, err error) {
	if err := require(p, capOperate, "ask targets"); err != nil {
		return out, err
	}
	answer, err := d.engine.Ask(ctx, Tenant, id.Effect(ref))
	if err != nil {
		return out, err
	}
	return Asked{Happened: answer.Happened, DidNot: answer.DidNot, Message: answer.Outcome.Message, Body: answer.Evidence}, nil
}

// EffectStory is a ledger row with what a page shows beside it.
type EffectStory struct {
	Effect   EffectView
	Request  []byte // JSON: what was sent, secrets by name, sensitive values sealed
	Summary  string // what it was about
	CanQuery bool
	Resend   string // how long the key protects a second sending; empty: not declared
	Risk     string
	Run      engine.Run
}

// EffectStory returns one ledger row with its request. Problems: not_found,
// forbidden.
func (d *Desk) EffectStory(ctx context.Context, p identity.Principal, ref string) (out EffectStory, err error) {
	if err := require(p, capRunsRead, "read effects"); err != nil {
		return out, err
	}
	err = d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		e, err := d.engine.Effect(ctx, q, Tenant, id.Effect(ref))
		if err != nil {
			return err
		}
		if out.Effect, err = d.effectView(ctx, q, e); err != nil {
			return err
		}
		out.Request = out.Effect.Request()
		if out.Run, err = d.engine.Run(ctx, q, Tenant, out.Effect.Run); err != nil {
			return err
		}
		if s, err := d.asStored(ctx, q, out.Effect.Approval); err == nil {
			out.Summary, out.Risk = s.Summary, s.Risk
		}
		if t, err := d.defs.Tool(ctx, q, Tenant, out.Effect.ToolDigest); err == nil {
			out.CanQuery = t.CanQuery()
			if ttl, ok := t.CanResend(); ok {
				out.Resend = ttl.String()
			}
		}
		return nil
	})
	return out, err
}
