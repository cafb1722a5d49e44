// Package demo is a console with everything ready to try: sample definitions,
// four people, an agent that keeps asking for things, and stand-ins for the
// outside world.
//
// It guarantees that nothing in it is faked: people, requests, decisions and
// outcomes come about through the same use cases as anywhere, against
// stand-ins whose ledger can be asked what really happened; and that a data
// folder it made works again at the next start. It must not know HTML or
// flags, and it is for loopback only: its passphrase is known to everybody.
package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"time"

	"countersign/internal/demo/standin"
	"countersign/internal/identity"
	"countersign/internal/instance"
)

// Options says how a demo is opened.
type Options struct {
	Dir       string           // the data folder, made if it is missing
	Documents string           // folder of Markdown to report on; empty for the sample documents
	Own       []netip.AddrPort // the console's own listeners, which tools never reach
	Console   string           // program that restarts stand-in services; empty for this one
	Every     time.Duration    // how often the agent asks for something; zero for EveryDefault
	Logger    *slog.Logger
}

// EveryDefault is how often the agent asks for something new.
const EveryDefault = 45 * time.Second

// Demo is an open demo: an instance whose desk is not started, and stand-ins
// that answer.
type Demo struct {
	Instance *instance.Instance
	Accounts []Account
	Tokens   map[string]string // secrets by name, new at each start

	cast   cast
	shop   *standin.Server
	http   *http.Server
	served chan struct{} // closed when the stand-ins answer no more
	every  time.Duration
	logger *slog.Logger
}

// Open writes out what is missing in the folder, serves the stand-ins on a
// loopback port of their own, opens the instance with the sample definitions
// and finds or adds the people. The caller starts the desk.
func Open(ctx context.Context, o Options) (_ *Demo, err error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	d := &Demo{every: o.Every, logger: o.Logger}
	if d.every <= 0 {
		d.every = EveryDefault
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	files, err := prepare(o.Dir, o.Documents)
	if err != nil {
		return nil, err
	}
	world, err := d.serveStandIns(files)
	if err != nil {
		return nil, err
	}
	d.Instance, err = instance.Open(ctx, instance.Options{Dir: o.Dir, Config: files.config(world, o.Console), Drive: true,
		Holder: "console demo", Own: o.Own, Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	warnings, err := d.Instance.LoadDefinitions(ctx)
	if err != nil {
		return nil, err
	}
	for _, w := range warnings {
		o.Logger.Warn(w)
	}
	return d, d.populate(ctx)
}

// serveStandIns answers on a free loopback port and returns the address.
func (d *Demo) serveStandIns(f folder) (string, error) {
	ledger, err := standin.OpenLedger(filepath.Join(f.dir, standInsFolder))
	if err != nil {
		return "", err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listen for the stand-ins: %w", err)
	}
	d.shop = standin.NewServer(ledger, f.shopToken)
	d.http = &http.Server{Handler: d.shop.Handler(), ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(d.logger.Handler(), slog.LevelDebug)}
	d.served = make(chan struct{})
	go func() {
		defer close(d.served)
		if err := d.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			d.logger.Error("the stand-ins stopped answering", "cause", err)
		}
	}()
	return "http://" + l.Addr().String(), nil
}

// Close ends the stand-ins and closes the instance, whose desk the caller
// stopped. It may be called twice.
func (d *Demo) Close() error {
	var errs []error
	if d.Instance != nil {
		errs = append(errs, d.Instance.Close())
	}
	if d.http != nil {
		errs = append(errs, d.http.Close())
		<-d.served
	}
	return errors.Join(errs...)
}

// cast is who acts in what the demo does by itself.
type cast struct {
	agent    identity.Principal // Dev's agent
	ana, ben identity.Principal
}
