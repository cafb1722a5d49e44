package engine

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"

	"countersign/internal/canon"
	"countersign/internal/id"
	"countersign/internal/problem"
	"countersign/internal/sealed"
	"countersign/internal/store"
	"countersign/internal/tools"
	"countersign/internal/vault"
	"countersign/internal/workflow"
)

// errNoVault is told when something sensitive comes and the engine was given
// no vault.
var errNoVault = errors.New("engine: there is no vault for sensitive values")

func (e *Engine) box(ctx context.Context, q store.Querier, tenant string, run id.Run) (*vault.Box, error) {
	if e.o.Vault == nil {
		return nil, errNoVault
	}
	return e.o.Vault.Box(ctx, q, tenant, run)
}

// boxOf gives the box of one run, read when it is first needed.
type boxOf func(ctx context.Context) (*vault.Box, error)

// boxInto reads the box of a run into b once it is needed, on a snapshot of
// its own: call it outside a transaction.
func (e *Engine) boxInto(b **vault.Box, tenant string, run id.Run) boxOf {
	return func(ctx context.Context) (*vault.Box, error) {
		if *b != nil {
			return *b, nil
		}
		err := e.o.DB.View(ctx, func(ctx context.Context, q store.Querier) (err error) {
			*b, err = e.box(ctx, q, tenant, run)
			return err
		})
		return *b, err
	}
}

// boxed is the session's box.
func (s *session) boxed(ctx context.Context) (*vault.Box, error) {
	return s.e.boxInto(&s.box, s.run.Tenant, s.run.ID)(ctx)
}

// opener opens sealed values on snapshots of their own.
func (e *Engine) opener(box boxOf) tools.Opener {
	return func(ctx context.Context, c sealed.Commitment) (v any, err error) {
		b, err := box(ctx)
		if err != nil {
			return nil, err
		}
		err = e.o.DB.View(ctx, func(ctx context.Context, q store.Querier) error {
			v, err = b.Value(ctx, q, c)
			return err
		})
		return v, err
	}
}

// prepared applies defaults to parameters and validates them with what is
// sealed in place, and seals it again together with what the tool says is
// sensitive.
func (e *Engine) prepared(ctx context.Context, box boxOf, t *tools.Tool, params json.RawMessage) (json.RawMessage, error) {
	if !sealed.In(params) && len(t.Sensitive) == 0 {
		return t.PrepareParams(params)
	}
	b, err := box(ctx)
	if err != nil {
		return nil, err
	}
	var clear json.RawMessage
	var stood []string
	err = e.o.DB.View(ctx, func(ctx context.Context, q store.Querier) error {
		clear, stood, err = b.OpenToSeal(ctx, q, params, t.Sensitive)
		return err
	})
	if err != nil {
		return nil, err
	}
	ready, err := t.PrepareParams(clear, stood...)
	if err != nil {
		return nil, err
	}
	return b.Seal(ready, append(slices.Clone(t.Sensitive), stood...))
}

// sealOutput seals what the tool says is sensitive in its output. An output
// that cannot be sealed is not kept.
func (s *session) sealOutput(ctx context.Context, log *slog.Logger, t *tools.Tool, out tools.Outcome) tools.Outcome {
	if len(t.SensitiveOutput) == 0 || len(out.Output) == 0 {
		return out
	}
	b, err := s.boxed(ctx)
	if err == nil {
		out.Output, err = b.Seal(out.Output, t.SensitiveOutput)
	}
	if err != nil {
		log.Error("seal output", "tool", t.Name, "error", err)
		out.Output, out.Class, out.Code, out.Message = nil, tools.ClassBug, "seal", "The output holds sensitive values that could not be sealed."
	}
	return out
}

// sealReceipt does so with the output that a person states.
func (e *Engine) sealReceipt(ctx context.Context, tx *store.Tx, eff Effect, output json.RawMessage) (json.RawMessage, error) {
	t, err := e.o.Library.Tool(ctx, tx, eff.Tenant, eff.ToolDigest)
	if missing(err) || err == nil && len(t.SensitiveOutput) == 0 {
		return output, nil
	}
	if err != nil {
		return nil, err
	}
	b, err := e.box(ctx, tx, eff.Tenant, eff.Run)
	if err != nil {
		return nil, err
	}
	if output, err = b.Seal(output, t.SensitiveOutput); err != nil {
		return nil, err
	}
	return output, b.Save(ctx, tx)
}

// sealInput seals the input of a run that is being made.
func (e *Engine) sealInput(ctx context.Context, tx *store.Tx, c Creation, run id.Run) (json.RawMessage, error) {
	if len(c.Workflow.Sensitive) == 0 {
		return c.Input, nil
	}
	if e.o.Vault == nil {
		return nil, errNoVault
	}
	b := e.o.Vault.NewBox(c.Tenant, run)
	input, err := b.Seal(c.Input, c.Workflow.Sensitive)
	if err != nil {
		return nil, err
	}
	return input, b.Save(ctx, tx)
}

// clearInput is the input of a run as it was given. One that was erased
// differs from everything.
func (e *Engine) clearInput(ctx context.Context, q store.Querier, r Run) (json.RawMessage, error) {
	if !sealed.In(r.Input) {
		return r.Input, nil
	}
	b, err := e.box(ctx, q, r.Tenant, r.ID)
	if err != nil {
		return nil, err
	}
	input, err := b.Open(ctx, q, r.Input)
	if errors.Is(err, vault.ErrGone) {
		return nil, nil
	}
	return input, err
}

// unopened returns why a sealed value of a request cannot be opened now, or
// "". Nothing is sent then.
func (s *session) unopened(ctx context.Context, q store.Querier, request json.RawMessage) (string, error) {
	if !sealed.In(request) {
		return "", nil
	}
	doc, err := canon.Value(request)
	if err != nil {
		return "", err
	}
	if s.box == nil {
		if s.box, err = s.e.box(ctx, q, s.run.Tenant, s.run.ID); err != nil {
			return "", err
		}
	}
	_, err = sealed.ReplaceAll(doc, func(c sealed.Commitment) (any, error) { return s.box.Value(ctx, q, c) })
	if shut(err) {
		return problem.From(err).Message, nil
	}
	return "", err
}

// unsealed is the failure of parameters that cannot be prepared: what is gone
// or altered blocks the run, anything else fails the step.
func unsealed(err error) error {
	if shut(err) {
		return &workflow.Failure{Class: workflow.Incompatible, Code: codeTampered, Message: problem.From(err).Message}
	}
	return nil
}

// shut reports whether a sealed value is gone or altered, so that it never
// opens.
func shut(err error) bool { return errors.Is(err, vault.ErrGone) || errors.Is(err, vault.ErrAltered) }
