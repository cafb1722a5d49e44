package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"time"

	"countersign/internal/instance"
	"countersign/internal/server"
	"countersign/internal/store"
)

type serveCmd struct {
	logging
	Data   string `help:"The data folder." required:"" type:"path"`
	Listen string `help:"Address to listen on, in place of the configuration's."`
	Config string `help:"Configuration file, in place of console.yaml in the data folder." type:"path"`
}

// Help is the longer text of --help.
func (serveCmd) Help() string {
	return "The first start prints a link with which the first administrator is made. Definitions are read from the folders workflows, tools and policies of the data folder."
}

func (c serveCmd) Run(ctx context.Context, e env) error {
	config, err := instance.LoadConfig(c.Data, c.Config)
	if err != nil {
		return err
	}
	if c.Listen != "" {
		config.Listen = c.Listen
	}
	listener, err := net.Listen("tcp", config.Listen)
	if err != nil {
		return fmt.Errorf("%w; choose another address with --listen", err)
	}
	logger := c.logger(e, slog.LevelInfo)
	scraped, err := listenMetrics(config.Metrics)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	i, err := instance.Open(ctx, instance.Options{Dir: c.Data, Config: config, Drive: true, Holder: "console serve on " + listener.Addr().String(), Own: own(listener, scraped), Logger: logger, Version: thisBuild().Version})
	if err != nil {
		return errors.Join(err, listener.Close(), closeListener(scraped))
	}
	defer i.Close()
	if scraped != nil {
		defer serveMetrics(ctx, e, i, scraped, logger)()
	}
	warnings, err := i.LoadDefinitions(ctx)
	if err != nil {
		return err
	}
	for _, w := range warnings {
		logger.Warn(w)
	}
	return serve(ctx, e, i, listener, logger)
}

// own lists the addresses listeners are reached at, so that no tool does.
func own(listeners ...net.Listener) (all []netip.AddrPort) {
	for _, l := range listeners {
		if l == nil {
			continue
		}
		if a, err := netip.ParseAddrPort(l.Addr().String()); err == nil {
			all = append(all, a)
		}
	}
	return all
}

// drainPatience is how long a stopping process waits for calls under way.
const drainPatience = 20 * time.Second

// serve drives runs and answers requests until ctx ends.
func serve(ctx context.Context, e env, i *instance.Instance, listener net.Listener, logger *slog.Logger) error {
	base := i.Config.BaseURL
	if base == "" {
		base = "http://" + listener.Addr().String()
	}
	s, err := server.New(server.Options{Desk: i.Desk, Hub: i.Hub, BaseURL: base, Proxies: i.Config.Proxies, Version: thisBuild().Version, Logger: logger})
	if err != nil {
		return err
	}
	if err := i.Desk.Start(ctx); err != nil {
		return err
	}
	setup, err := i.Desk.NewSetup(ctx)
	if err != nil {
		return err
	}
	if setup != "" {
		fmt.Fprintf(e.out, "first start: make the first administrator at %s/setup?token=%s (works once, for a day)\n", base, setup)
	}
	fmt.Fprintf(e.out, "console on %s\n", base)
	served := s.Serve(ctx, listener)
	drain, stop := draining(ctx, e)
	defer stop()
	return errors.Join(served, i.Desk.Stop(drain))
}

// draining is how long a stopping process waits for calls under way: until its
// patience ends or somebody asks once more. What is cut off then is unknown
// until it is settled. Whoever has to wait is told.
func draining(ctx context.Context, e env) (context.Context, func()) {
	again, unlisten := signal.NotifyContext(context.WithoutCancel(ctx), os.Interrupt, syscall.SIGTERM)
	drain, cancel := context.WithTimeout(again, drainPatience)
	waits := time.AfterFunc(time.Second, func() {
		fmt.Fprintf(e.err, "stopping: calls under way are waited for, at most %s; Ctrl-C once more cuts them off, and what they did is unknown then\n", drainPatience)
	})
	return drain, func() { waits.Stop(); cancel(); unlisten() }
}

// openFolder opens a data folder for a command. A command that drives runs is
// refused, with the server's name, while one holds the folder.
func openFolder(ctx context.Context, dir string, drive bool, crash func(window, path string, pass int), logger *slog.Logger) (*instance.Instance, error) {
	config, err := instance.LoadConfig(dir, "")
	if err != nil {
		return nil, err
	}
	i, err := instance.Open(ctx, instance.Options{Dir: dir, Config: config, Drive: drive, Holder: "a console command", Crash: crash, Logger: logger, Version: thisBuild().Version})
	var held *store.HeldError
	if errors.As(err, &held) {
		return nil, fmt.Errorf("%w, or talk to it with --server URL --token T instead of --data", err)
	}
	return i, err
}
