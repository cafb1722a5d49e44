package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"countersign/internal/engine"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Limits of what is on its way to the collector.
const (
	queueMax      = 8192             // spans; later ones are dropped and counted
	batchMax      = 512              // spans in one request
	batchEvery    = 2 * time.Second  // a span waits no longer for others
	exportTimeout = 10 * time.Second // of one request, repetitions included
)

// variables of the environment that name a collector, as OpenTelemetry has
// them; the exporter reads these and its others (headers, certificates) itself.
var variables = []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"}

// traces sends spans to a collector. A span that finds the queue full is
// dropped; nobody ever waits.
type traces struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	log      *slog.Logger

	queued                  atomic.Int64
	sent, dropped, rejected atomic.Uint64
	failing                 atomic.Bool
	once                    sync.Once
}

// newTraces returns nil when no collector is named.
func newTraces(ctx context.Context, o Options) (*traces, error) {
	options, on, err := collector(o.Endpoint)
	if err != nil || !on {
		return nil, err
	}
	exporter, err := otlptracehttp.New(ctx, append(options, otlptracehttp.WithTimeout(exportTimeout))...)
	if err != nil {
		return nil, fmt.Errorf("prepare sending traces: %w", err)
	}
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "countersign"), attribute.String("service.version", o.Version)),
		resource.WithFromEnv(), resource.WithTelemetrySDK())
	if err != nil {
		return nil, fmt.Errorf("describe this program for traces: %w", err)
	}
	t := &traces{log: o.Logger}
	batch := sdktrace.NewBatchSpanProcessor(counting{exporter, t}, sdktrace.WithMaxQueueSize(queueMax+batchMax), sdktrace.WithMaxExportBatchSize(batchMax),
		sdktrace.WithBatchTimeout(batchEvery), sdktrace.WithExportTimeout(2*exportTimeout))
	t.provider = sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.AlwaysSample()), sdktrace.WithIDGenerator(given{}),
		sdktrace.WithResource(about), sdktrace.WithSpanProcessor(bounded{batch, t}))
	t.tracer = t.provider.Tracer("countersign/internal/engine")
	return t, nil
}

// collector says whether and where to spans go: to the endpoint, else where
// the environment says.
func collector(endpoint string) (options []otlptracehttp.Option, on bool, err error) {
	if os.Getenv("OTEL_SDK_DISABLED") == "true" || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return nil, false, nil
	}
	if endpoint == "" {
		for _, v := range variables {
			on = on || os.Getenv(v) != ""
		}
		return nil, on, nil
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, false, fmt.Errorf("the OTLP endpoint must be like http://127.0.0.1:4318, not %q", endpoint)
	}
	if !strings.HasSuffix(u.Path, "/v1/traces") {
		u = u.JoinPath("v1", "traces")
	}
	return []otlptracehttp.Option{otlptracehttp.WithEndpointURL(u.String())}, true, nil
}

// span hands a span over with the ids it has.
func (t *traces) span(s engine.Span) {
	id, ok := idsOf(s)
	if !ok {
		return
	}
	ctx := context.WithValue(context.Background(), idKey{}, id)
	if id.parent.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{TraceID: id.trace, SpanID: id.parent, TraceFlags: trace.FlagsSampled, Remote: true}))
	}
	_, span := t.tracer.Start(ctx, nameOf(s), trace.WithTimestamp(s.Start), trace.WithSpanKind(kindOf(s)), trace.WithAttributes(attributesOf(s)...))
	if bad(s) {
		span.SetStatus(codes.Error, "")
	}
	span.End(trace.WithTimestamp(s.End))
}

// close sends what is queued until ctx ends.
func (t *traces) close(ctx context.Context) (err error) {
	t.once.Do(func() { err = t.provider.Shutdown(ctx) })
	return err
}

// counters are what became of spans.
func (t *traces) counters() []prometheus.Collector {
	of := func(outcome string, v func() uint64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: namespace, Name: "spans_total", Help: "Spans, by what became of them: sent, rejected by or not delivered to the collector, dropped because the queue was full.",
			ConstLabels: prometheus.Labels{"outcome": outcome}}, func() float64 { return float64(v()) })
	}
	return []prometheus.Collector{of("sent", t.sent.Load), of("dropped", t.dropped.Load), of("rejected", t.rejected.Load)}
}

// bounded lets at most queueMax spans be on their way.
type bounded struct {
	sdktrace.SpanProcessor
	t *traces
}

// OnEnd queues a span or drops it.
func (b bounded) OnEnd(s sdktrace.ReadOnlySpan) {
	if b.t.queued.Add(1) > queueMax {
		b.t.queued.Add(-1)
		b.t.dropped.Add(1)
		return
	}
	b.SpanProcessor.OnEnd(s)
}

// counting counts what was delivered. A collector that fails is logged once,
// and once more when it is back.
type counting struct {
	sdktrace.SpanExporter
	t *traces
}

// ExportSpans sends one batch.
func (c counting) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := c.SpanExporter.ExportSpans(ctx, spans)
	c.t.queued.Add(-int64(len(spans)))
	if err != nil {
		c.t.rejected.Add(uint64(len(spans)))
		if !c.t.failing.Swap(true) {
			c.t.log.Warn("traces cannot be delivered; they are dropped until the collector answers", "error", err)
		}
		return nil
	}
	c.t.sent.Add(uint64(len(spans)))
	if c.t.failing.Swap(false) {
		c.t.log.Info("traces are delivered again")
	}
	return nil
}
