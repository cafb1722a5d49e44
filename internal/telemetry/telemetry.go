// Package telemetry makes metrics and traces of what the engine and the desk
// tell: counters and histograms that Prometheus scrapes, and spans that are
// sent to a collector by OTLP over HTTP.
//
// It guarantees that whoever tells it something never waits and never fails,
// that labels come from definitions and fixed words alone and are bounded in
// number, and that it holds neither input, parameters nor output. It must not
// know how anything is decided or stored.
package telemetry

import (
	"context"
	"log/slog"
	"net/http"

	"countersign/internal/desk"
	"countersign/internal/engine"
)

// Options says what is made of what is told.
type Options struct {
	Endpoint string // of the OTLP collector, as http://host:4318; empty: as the environment says, else none
	Version  string // of this program
	Logger   *slog.Logger
}

// Telemetry is an engine.Observer. It is safe for concurrent use.
type Telemetry struct {
	metrics *metrics
	traces  *traces // nil: off
}

var _ engine.Observer = (*Telemetry)(nil)

// New starts what the options and the environment ask for. A wrong endpoint is
// an error; a collector that does not answer is not.
func New(ctx context.Context, o Options) (*Telemetry, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	tr, err := newTraces(ctx, o)
	if err != nil {
		return nil, err
	}
	return &Telemetry{metrics: newMetrics(tr), traces: tr}, nil
}

// Tracing reports whether spans go anywhere.
func (t *Telemetry) Tracing() bool { return t.traces != nil }

// Note counts a fact.
func (t *Telemetry) Note(f engine.Fact) { t.metrics.note(f) }

// Span queues a span for the collector, or counts it as dropped.
func (t *Telemetry) Span(s engine.Span) {
	if t.traces != nil {
		t.traces.span(s)
	}
}

// Watch has every scrape ask for the vitals.
func (t *Telemetry) Watch(vitals func(context.Context) (desk.Vitals, error)) {
	t.metrics.registry.MustRegister(&vital{read: vitals})
}

// Handler answers a scrape, at any path but best at /metrics.
func (t *Telemetry) Handler() http.Handler { return t.metrics.handler() }

// Close sends what is queued until ctx ends. It may be called twice.
func (t *Telemetry) Close(ctx context.Context) error {
	if t.traces == nil {
		return nil
	}
	return t.traces.close(ctx)
}
