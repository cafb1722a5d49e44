package main

import (
	"context"
	"fmt"
	"path"
	"time"

	"countersign/internal/desk"
	"countersign/internal/identity"
	"countersign/internal/instance"
)

type approvalRetractCmd struct {
	place
	person
	ID     string `arg:"" help:"Approval id."`
	Reason string `help:"Why." required:""`
}

func (c approvalRetractCmd) Run(ctx context.Context, e env) error {
	return reconsider(ctx, e, deciding{place: c.place, person: c.person, ID: c.ID},
		func(h *client, out *desk.Approval) error {
			return h.call(ctx, "POST", path.Join("/approvals", escape(c.ID), "retract"), map[string]any{"reason": c.Reason}, out)
		},
		func(i *instance.Instance, p identity.Principal) (desk.Approval, error) {
			return i.Desk.Retract(ctx, p, c.ID, c.Reason)
		})
}

type approvalExtendCmd struct {
	place
	person
	ID     string        `arg:"" help:"Approval id."`
	By     time.Duration `help:"How much later than now the time to decide ends, for example 48h." required:""`
	Reason string        `help:"Why." required:""`
}

func (c approvalExtendCmd) Run(ctx context.Context, e env) error {
	until := time.Now().Add(c.By).UTC().Truncate(time.Microsecond)
	return reconsider(ctx, e, deciding{place: c.place, person: c.person, ID: c.ID},
		func(h *client, out *desk.Approval) error {
			return h.call(ctx, "POST", path.Join("/approvals", escape(c.ID), "extend"), map[string]any{"decide_by": until, "reason": c.Reason}, out)
		},
		func(i *instance.Instance, p identity.Principal) (desk.Approval, error) {
			return i.Desk.Extend(ctx, p, c.ID, until, c.Reason)
		})
}

// reconsider changes a pending request and prints where it stands.
func reconsider(ctx context.Context, e env, d deciding, remote func(*client, *desk.Approval) error, local func(*instance.Instance, identity.Principal) (desk.Approval, error)) error {
	var out desk.Approval
	err := d.as(ctx, e,
		func(h *client) error { return remote(h, &out) },
		func(i *instance.Instance, p identity.Principal) (err error) {
			out, err = local(i, p)
			return err
		})
	if err != nil {
		return err
	}
	if out.Status != "pending" {
		return showApproval(e.out, out)
	}
	_, err = fmt.Fprintf(e.out, "%s waits for a decision until %s\n", out.ID, out.DecideBy.Format(instantForm))
	return err
}
