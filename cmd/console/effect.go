package main

import (
	"context"
	"fmt"
	"path"

	"countersign/internal/desk"
	"countersign/internal/engine"
	"countersign/internal/identity"
	"countersign/internal/instance"
)

// effectCmd is settling effects whose outcome nobody knows.
type effectCmd struct {
	List    effectListCmd    `cmd:"" help:"List unknown effects." example:"console effect list --data ./data"`
	Resolve effectResolveCmd `cmd:"" help:"Say what happened, with evidence." example:"console effect resolve eff_… --outcome happened --evidence 'seen in the service log' --data ./data --as ops@example.org"`
}

type effectListCmd struct {
	place
	JSON bool `help:"As JSON."`
}

func (c effectListCmd) Run(ctx context.Context, e env) error {
	var page desk.Page[desk.EffectView]
	err := c.beside(ctx, e,
		func(h *client) error { return h.call(ctx, "GET", "/effects?status=unknown", nil, &page) },
		func(i *instance.Instance) (err error) {
			page, err = i.Desk.EffectList(ctx, operator(), desk.EffectQuery{Status: engine.Unknown})
			return err
		})
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(e.out, page)
	}
	err = table(e.out, "EFFECT\tRUN\tSTEP\tTOOL\tSENT\tKEY", page.Items, func(x desk.EffectView) string {
		return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s", x.ID, x.Run, x.Path, x.Tool, x.SentAt.Format(instantForm), x.Key)
	})
	for _, x := range page.Items {
		if x.Said != "" {
			fmt.Fprintf(e.out, "%s: %s\n", x.ID, printable(x.Said))
		}
	}
	return err
}

type effectResolveCmd struct {
	place
	person
	ID       string `arg:"" help:"Effect id."`
	Outcome  string `help:"What happened: ${enum}." enum:"happened,did_not_send_again,did_not_stop,give_up" required:""`
	Evidence string `help:"How you know." required:""`
	Receipt  string `help:"What the target answered, with happened: JSON, or a file of JSON. It becomes the step's output."`
	JSON     bool   `help:"As JSON."`
}

func (c effectResolveCmd) Run(ctx context.Context, e env) error {
	in := desk.Resolve{Outcome: c.Outcome, Evidence: c.Evidence}
	wire := map[string]any{"outcome": c.Outcome, "evidence": c.Evidence}
	if c.Receipt != "" {
		receipt, err := jsonOrFile(c.Receipt)
		if err != nil {
			return err
		}
		in.Receipt, wire["receipt"] = receipt, receipt
	}
	var out desk.EffectView
	err := deciding{place: c.place, person: c.person, ID: c.ID}.as(ctx, e,
		func(h *client) error {
			return h.call(ctx, "POST", path.Join("/effects", escape(c.ID), "resolve"), wire, &out)
		},
		func(i *instance.Instance, p identity.Principal) (err error) {
			out, err = i.Desk.Resolve(ctx, p, c.ID, in)
			return err
		})
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(e.out, out)
	}
	if out.Status == engine.Unknown {
		_, err = fmt.Fprintf(e.out, "%s is still unknown: %s\n", out.ID, printable(out.Said))
		return err
	}
	_, err = fmt.Fprintf(e.out, "%s is %s; a running console goes on by itself, otherwise: console run resume %s\n", out.ID, out.Status, out.Run)
	return err
}
