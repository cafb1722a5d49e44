package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"text/tabwriter"

	"countersign/internal/demo"
)

// demoCmd is everything ready to try.
type demoCmd struct {
	logging
	Listen    string `help:"Loopback address to listen on." default:"127.0.0.1:8080"`
	Data      string `help:"Folder to keep the demo in; without it everything goes when it ends." type:"path"`
	Documents string `help:"Folder of Markdown that the weekly report draws on, in place of the sample." type:"path"`
	JSON      bool   `help:"Print {url, accounts, tokens} as JSON and nothing else." name:"json"`

	console string // program that restarts stand-in services, in place of this one: for tests
}

// Help is the longer text of --help.
func (demoCmd) Help() string {
	return "It answers on this machine only: everybody knows its passphrase. Tokens are new at each start."
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
	d, err := demo.Open(ctx, demo.Options{Dir: dir, Documents: c.Documents, Own: own(listener), Console: c.console, Logger: logger})
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
	return serve(ctx, env{in: e.in, out: io.Discard, err: e.err}, d.Instance, listener, logger)
}

// welcome says where the demo is and what to try.
func (c demoCmd) welcome(e env, url string, d *demo.Demo) error {
	if c.JSON {
		return printJSON(e.out, map[string]any{"url": url, "accounts": d.Accounts, "tokens": d.Tokens})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n  Countersign's demo is on %s\n  Everybody's passphrase: %s\n\n", url, demo.Passphrase)
	t := tabwriter.NewWriter(&b, 0, 4, 2, ' ', 0)
	for _, a := range d.Accounts {
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s\n", a.Email, a.Name, strings.Join(a.Roles, ", "), a.Can)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	kept := "Everything is kept in " + c.Data + "."
	if c.Data == "" {
		kept = "Nothing is kept when it ends; --data DIR keeps it."
	}
	fmt.Fprintf(&b, `
  What to try:
  1. As Ana, open what waits for you: Ben has agreed to a refund of 750.00 EUR, and it needs two.
     Change an amount and see what the policy makes of it; approve, and watch it happen.
  2. Read the refund that hides characters and claims to be approved already, and reject it.
  3. Needs attention has a restart that nobody can say happened: find out, and say so.
  4. As Chloe, open Audit and verify the log.

  Token of the agent:     %s
  Token of the operator:  %s
  Tokens are new at each start; those shown before work no more.
  %s Press Ctrl-C to end.

`, d.Tokens["agent"], d.Tokens["operator"], kept)
	_, err := io.WriteString(e.out, b.String())
	return err
}
