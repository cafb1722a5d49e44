package main

import (
	"context"
	"fmt"
	"time"
)

// clockCmd is the time by which the console decides.
type clockCmd struct {
	Accept clockAcceptCmd `cmd:"" help:"Accept the time of this machine although it went back." example:"console clock accept --data ./data --reason 'the clock had run ahead'"`
}

type clockAcceptCmd struct {
	folderOnly
	Reason string `help:"Why the present time is right." required:""`
}

// Help says when this is needed.
func (clockAcceptCmd) Help() string {
	return "When the clock of the machine goes back by more than five minutes, nothing is decided and nothing is sent: a deadline that\n" +
		"has passed would come back. Put the clock right first. If the present time is the right one, accept it; runs that were\n" +
		"blocked for it are then resumed like any other."
}

func (c clockAcceptCmd) Run(ctx context.Context, e env) error {
	i, err := c.open(ctx, e)
	if err != nil {
		return err
	}
	defer i.Close()
	back, err := i.Desk.AcceptClock(ctx, operator(), c.Reason)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.out, "Accepted: the clock is %s back.\n", back.Round(time.Second))
	return err
}
