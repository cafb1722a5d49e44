package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
)

// scrapeBytesMax bounds the headers of a scrape.
const scrapeBytesMax = 16 << 10

// ServeMetrics answers GET /metrics on a listener of its own until ctx ends.
// It asks nobody who they are: whoever may connect may read.
func ServeMetrics(ctx context.Context, l net.Listener, metrics http.Handler, logger *slog.Logger) error {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	h := &http.Server{Handler: mux, ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout, WriteTimeout: readTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: scrapeBytesMax, ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug)}
	stop := context.AfterFunc(ctx, func() { _ = h.Close() })
	defer stop()
	if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("listen: %w", err)
	}
	return nil
}
