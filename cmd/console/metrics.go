package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"

	"countersign/internal/instance"
	"countersign/internal/server"
)

// listenMetrics opens the listener for /metrics; nil where none is configured.
func listenMetrics(address string) (net.Listener, error) {
	if address == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w; choose another address in console.yaml (metrics.listen)", err)
	}
	return l, nil
}

func closeListener(l net.Listener) error {
	if l == nil {
		return nil
	}
	return l.Close()
}

// serveMetrics answers scrapes until the function it returns is called.
func serveMetrics(ctx context.Context, e env, i *instance.Instance, l net.Listener, logger *slog.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.ServeMetrics(ctx, l, i.Telemetry.Handler(), logger); err != nil {
			logger.Error("answer scrapes", "error", err)
		}
	}()
	fmt.Fprintf(e.out, "metrics on http://%s/metrics\n", l.Addr())
	return func() {
		cancel()
		<-ended
	}
}
