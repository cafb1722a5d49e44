package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"time"

	"countersign/internal/demo/standin"
)

// standInsCmd serves the stand-ins, or is one of them: the restart tool runs
// `console stand-ins restart`.
type standInsCmd struct {
	Serve   standInsServeCmd   `cmd:"" default:"withargs" help:"Serve the stand-in shop and planner." example:"console stand-ins serve --data ./stand-ins"`
	Restart standInsRestartCmd `cmd:"" help:"Restart a stand-in service: what the sample tool ops.restart runs." example:"console stand-ins restart --service search --data ./stand-ins"`
}

type standInsServeCmd struct {
	Listen string `help:"Loopback address to listen on." default:"127.0.0.1:8099"`
	Data   string `help:"Folder of their ledger." default:"./stand-ins" type:"path"`
	Token  string `help:"Token the shop asks for." default:"demo-shop-token"`
}

func (c standInsServeCmd) Run(ctx context.Context, e env) error {
	listener, err := listenLoopback(c.Listen)
	if err != nil {
		return err
	}
	ledger, err := standin.OpenLedger(c.Data)
	if err != nil {
		return err
	}
	fmt.Fprintf(e.out, "stand-ins on http://%s, ledger in %s\n", listener.Addr(), c.Data)
	h := &http.Server{Handler: standin.NewServer(ledger, c.Token).Handler(), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		<-ctx.Done()
		_ = h.Close() // the ledger is synced with each effect; nothing waits
	}()
	if err := h.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// listenLoopback listens on an address of this machine only; any other is
// refused, since what answers there trusts everybody.
func listenLoopback(addr string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("%q is not host:port", addr)
	}
	ip, err := netip.ParseAddr(host)
	if host != "localhost" && (err != nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("refusing to listen on %s: this is for trying things and trusts everybody who reaches it; use 127.0.0.1, and console serve for others", addr)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("%w; give another address with --listen", err)
	}
	return l, nil
}

type standInsRestartCmd struct {
	Data    string `help:"Folder of the stand-ins' ledger." required:"" type:"path"`
	Service string `help:"Which service." required:""`
	Drain   int    `help:"Seconds to wait before." default:"1"`
}

func (c standInsRestartCmd) Run(e env) error {
	ledger, err := standin.OpenLedger(c.Data)
	if err != nil {
		return err
	}
	effect, err := ledger.Restart(c.Service, time.Duration(c.Drain)*time.Second, os.Getenv("COUNTERSIGN_IDEMPOTENCY_KEY"))
	if err != nil {
		return err
	}
	return json.NewEncoder(e.out).Encode(json.RawMessage(effect.Body))
}
