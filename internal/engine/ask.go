package engine

import (
	"context"
	"encoding/json"

	"countersign/internal/id"
	"countersign/internal/problem"
	"countersign/internal/store"
	"countersign/internal/tools"
	"countersign/internal/vault"
)

// Request returns the request that was sent, secrets by name; empty before
// the first sending.
func (e Effect) Request() tools.Frozen { return e.request }

// Params are the parameters that were sent, sensitive ones sealed; empty until
// something was.
func (e Effect) Params() json.RawMessage { return e.params }

// Ask asks the target what became of an effect, for a person who looks at it.
// Nothing is written and no state changes: what the engine itself finds out
// goes through Resume. Problems: not_found, cannot_ask.
func (e *Engine) Ask(ctx context.Context, tenant string, effect id.Effect) (ans tools.Answer, err error) {
	var eff Effect
	var tool *tools.Tool
	err = e.o.DB.View(ctx, func(ctx context.Context, q store.Querier) error {
		if eff, err = e.Effect(ctx, q, tenant, effect); err != nil {
			return err
		}
		tool, err = e.o.Library.Tool(ctx, q, tenant, eff.ToolDigest)
		return err
	})
	if err != nil {
		return ans, err
	}
	if !tool.CanQuery() || len(eff.request) == 0 {
		return ans, problem.New(problem.Conflict, "cannot_ask", "%s declares no way to ask what happened.", tool.Name)
	}
	var b *vault.Box
	sending := tools.Sending{Key: eff.Key, Effect: string(eff.ID), Attempt: eff.Attempts, SentAt: eff.SentAt, Config: e.o.Config, Params: eff.params,
		Pin: eff.pin, Open: e.opener(e.boxInto(&b, tenant, eff.Run))}
	return asked(func() tools.Answer { return e.o.World.Query(ctx, tool, eff.request, sending) }), nil
}
