package main

import (
	"context"
	"errors"
	"fmt"
	"path"

	"countersign/internal/desk"
	"countersign/internal/engine"
	"countersign/internal/instance"
)

type runCorrectCmd struct {
	place
	ID     string `arg:"" help:"Run id, or key:K."`
	Plan   bool   `help:"Only list what would be proposed."`
	Reason string `help:"Why."`
	JSON   bool   `help:"As JSON."`
}

// Help says what it does and what it does not.
func (runCorrectCmd) Help() string {
	return "What a run did is not undone: new actions are proposed that correct it, newest first, as each tool declares under\n" +
		"compensate. Each is approved like any other and has a key of its own, so that nothing is corrected twice."
}

func (c runCorrectCmd) Run(ctx context.Context, e env) error {
	if c.Plan {
		return c.plan(ctx, e)
	}
	if c.Reason == "" {
		return errors.New("say why: --reason WHY; or --plan to see what would be proposed")
	}
	var run engine.Run
	err := c.beside(ctx, e,
		func(h *client) error {
			return h.call(ctx, "POST", path.Join("/runs", escape(c.ID), "corrections"), map[string]any{"reason": c.Reason}, &run)
		},
		func(i *instance.Instance) (err error) {
			run, err = i.Desk.Correct(ctx, operator(), c.ID, c.Reason)
			return err
		})
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(e.out, run)
	}
	_, err = fmt.Fprintf(e.out, "%s corrects it; it goes on when somebody drives it and approves.\n", run.ID)
	return err
}

func (c runCorrectCmd) plan(ctx context.Context, e env) error {
	var page desk.Page[desk.Correction]
	err := c.beside(ctx, e,
		func(h *client) error {
			return h.call(ctx, "GET", path.Join("/runs", escape(c.ID), "corrections"), nil, &page)
		},
		func(i *instance.Instance) (err error) {
			page.Items, err = i.Desk.CorrectionPlan(ctx, operator(), c.ID)
			return err
		})
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(e.out, page)
	}
	return table(e.out, "EFFECT\tSTEP\tDID\tCORRECTED BY\tWHICH", page.Items, func(x desk.Correction) string {
		by, which := x.Tool, x.Summary
		if by == "" {
			by, which = "nothing", x.Why
		}
		return fmt.Sprintf("%s\t%s\t%s\t%s\t%s", x.Effect, x.Step, x.Did, by, which)
	})
}
