package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"text/tabwriter"

	"countersign/internal/demo"
)

type demoCmd struct {
	logging
	Listen    string `help:"Loopback address to listen on." default:"127.0.0.1:8080"`
	Data      string `help:"Folder to keep the demo in; without it everything goes when it ends." type:"path"`
	Documents string `help:"Folder of Markdown that the weekly report draws on, in place of the sample." type:"path"`
	JSON      bool   `help:"Print {url, accounts, tokens} as JSON and nothing else." name:"json"`
}

// Help is the longer text of --help.
func (demoCmd) Help() string {
	return "Example: console demo\n\nIt answers on this machine only: everybody knows its passphrase. The agent's token is new at each start."
}

func (c demoCmd) Run(ctx context.Context, e env) (err error) {
	listener, err := listenLoopback(c.Listen)
	if err != nil {
		return err
	}
	dir := c.Data
	if dir == "" {
		if dir, err = os.MkdirTemp("", "countersign-demo-*"); err != nil {
			return errors.Join(err, listener.Close())
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	logger := c.logger(e, slog.LevelError)
	d, err := demo.Open(ctx, demo.Options{Dir: dir, Documents: c.Documents, Own: own(listener), Logger: logger})
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	url := "http://" + listener.Addr().String()
	if err := c.welcome(e, url, d); err != nil {
		return err
	}
	agent, stop := context.WithCancel(ctx)
	lively := make(chan struct{})
	go func() {
		defer close(lively)
		d.Agent(agent)
	}()
	defer func() { stop(); <-lively }()
	return serve(ctx, env{in: e.in, out: nothing{}, err: e.err}, d.Instance, listener, logger, true)
}

// nothing takes what serve would print: the demo has said it already.
type nothing struct{}

func (nothing) Write(p []byte) (int, error) { return len(p), nil }

// welcome says where the demo is and what to try.
func (c demoCmd) welcome(e env, url string, d *demo.Demo) error {
	if c.JSON {
		return printJSON(e.out, map[string]any{"url": url, "accounts": d.Accounts, "tokens": d.Tokens})
	}
	fmt.Fprintf(e.out, "\n  Countersign's demo is on %s\n\n", url)
	t := tabwriter.NewWriter(e.out, 0, 4, 2, ' ', 0)
	for _, a := range d.Accounts {
		fmt.Fprintf(t, "  %s\t%s\t%s\n", a.Email, a.Password, strings.Join(a.Roles, ", "))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprint(e.out, `
  Try: sign in as Ana and open what waits for you; change the amount of a
  refund and see what the policy makes of it; approve, and watch it happen.
  Needs attention has a restart that nobody can say happened. As Chloe, open
  Audit and verify the log. Press Ctrl-C to end.

`)
	return err
}
