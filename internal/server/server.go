// Package server is the console's listener: it puts pages and the API behind
// the shared edge, each in its own group, and ends cleanly.
//
// It guarantees that the API never reads a cookie and pages never read a
// bearer token, because the two are mounted apart, and that no request
// outlives the server. It must not know SQL, or what a use case does.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"countersign/internal/desk"
	"countersign/internal/live"
	"countersign/internal/server/api"
	"countersign/internal/server/browser"
	"countersign/internal/server/edge"

	"github.com/labstack/echo/v4"
)

// Time limits of a connection. Writing has none of its own: event streams and
// waiting reads end by their own limits.
const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 30 * time.Second
	idleTimeout       = 2 * time.Minute
	drainTimeout      = 10 * time.Second
)

// Options is what a server is made of.
type Options struct {
	Desk    *desk.Desk
	Hub     *live.Hub
	BaseURL string         // the address people use
	Proxies []netip.Prefix // peers whose X-Forwarded-For is believed
	Version string
	Logger  *slog.Logger
}

// Server answers requests for one desk.
type Server struct {
	echo   *echo.Echo
	hub    *live.Hub
	logger *slog.Logger
}

// New returns a server with all routes.
func New(o Options) (*Server, error) {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.IPExtractor = remote(o.Proxies)
	e.Use(edge.References, edge.Headers, edge.Recover(o.Logger), edge.Hosts(o.BaseURL), edge.Limit)
	e.GET("/healthz", func(c echo.Context) error { return c.String(http.StatusOK, "alive\n") })
	e.GET("/readyz", ready(o.Desk))
	programs := api.Options{Desk: o.Desk, Hub: o.Hub, BaseURL: o.BaseURL, Version: o.Version, Logger: o.Logger}
	api.Mount(e.Group("/api/v1"), programs)
	pages, err := browser.New(browser.Options{Desk: o.Desk, Hub: o.Hub, BaseURL: o.BaseURL, Version: o.Version, Logger: o.Logger})
	if err != nil {
		return nil, fmt.Errorf("prepare the pages: %w", err)
	}
	pages.Mount(e)
	e.HTTPErrorHandler = func(err error, c echo.Context) {
		if api.Owns(c) {
			api.Fail(o.Logger, err, c)
			return
		}
		pages.Fail(err, c)
	}
	return &Server{echo: e, hub: o.Hub, logger: o.Logger}, nil
}

// remote says whose address counts as the client's: the peer's, or what a
// trusted proxy says.
func remote(proxies []netip.Prefix) echo.IPExtractor {
	if len(proxies) == 0 {
		return echo.ExtractIPDirect()
	}
	trust := []echo.TrustOption{echo.TrustLoopback(false), echo.TrustLinkLocal(false), echo.TrustPrivateNet(false)}
	for _, p := range proxies {
		_, network, err := net.ParseCIDR(p.String())
		if err == nil {
			trust = append(trust, echo.TrustIPRange(network))
		}
	}
	return echo.ExtractIPFromXFFHeader(trust...)
}

// ready answers whether the console can do its work, and nothing else.
func ready(d *desk.Desk) echo.HandlerFunc {
	return func(c echo.Context) error {
		ctx, cancel := context.WithTimeout(c.Request().Context(), 2*time.Second)
		defer cancel()
		if err := d.Ready(ctx); err != nil {
			return c.String(http.StatusServiceUnavailable, "not ready\n")
		}
		return c.String(http.StatusOK, "ready\n")
	}
}

// Handler is the server as a handler, for tests.
func (s *Server) Handler() http.Handler { return s.echo }

// Routes lists method and path of every route, for the test that holds them
// against who may call them.
func (s *Server) Routes() []*echo.Route { return s.echo.Routes() }

// Serve answers on the listener until ctx ends, then lets requests finish for
// a while. Event streams end at once.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	h := &http.Server{
		Handler: s.echo, ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: edge.HeaderBytesMax, ErrorLog: slog.NewLogLogger(s.logger.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1) // Serve's one result
	go func() { ended <- h.Serve(l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("listen: %w", err)
	case <-ctx.Done():
	}
	s.hub.Close()
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	if err := h.Shutdown(drain); err != nil {
		return errors.Join(err, h.Close())
	}
	return nil
}
