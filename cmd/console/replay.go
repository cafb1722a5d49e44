package main

import (
	"context"
	"fmt"
	"path"

	"countersign/internal/engine"
	"countersign/internal/instance"
)

type runReplayCmd struct {
	place
	ID   string `arg:"" help:"Run id, or key:K."`
	JSON bool   `help:"As JSON."`
}

func (c runReplayCmd) Run(ctx context.Context, e env) error {
	var r engine.Replay
	err := c.beside(ctx, e,
		func(h *client) error {
			return h.call(ctx, "POST", path.Join("/runs", escape(c.ID), "replay"), map[string]any{}, &r)
		},
		func(i *instance.Instance) (err error) {
			r, err = i.Desk.Replay(ctx, operator(), c.ID)
			return err
		})
	switch {
	case err != nil:
		return err
	case c.JSON:
		err = printJSON(e.out, r)
	default:
		err = printReplay(e, r)
	}
	if err == nil && len(r.Differences) > 0 {
		err = exit(exitFailed)
	}
	return err
}

func printReplay(e env, r engine.Replay) error {
	if len(r.Differences) == 0 {
		_, err := fmt.Fprintf(e.out, "%s: %d of %d checkpoints planned anew, as they are recorded\n", r.Run, r.Walked, r.Version)
		return err
	}
	return table(e.out, "CHECKPOINT\tSTEP\tRECORDED\tNOW", r.Differences, func(d engine.Difference) string {
		return fmt.Sprintf("%d\t%s@%d\t%s\t%s", d.Version, d.Path, d.Pass, d.Recorded, d.Now)
	})
}
