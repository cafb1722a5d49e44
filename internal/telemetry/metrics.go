package telemetry

import (
	"net/http"
	"time"

	"countersign/internal/engine"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// namespace begins the name of every metric.
const namespace = "countersign"

// Buckets in seconds: a tool answers within milliseconds or minutes, a step or
// a person takes up to days.
var (
	tryBuckets  = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}
	stepBuckets = []float64{.005, .025, .1, .5, 1, 5, 30, 60, 300, 1800, 3600, 4 * 3600, 24 * 3600, 7 * 24 * 3600}
	waitBuckets = []float64{1, 10, 30, 60, 300, 900, 1800, 3600, 2 * 3600, 4 * 3600, 8 * 3600, 24 * 3600, 3 * 24 * 3600, 7 * 24 * 3600}
)

// How long and how many scrapes may be under way.
const (
	scrapeTimeout = 10 * time.Second
	scrapesMax    = 3
)

type metrics struct {
	registry *prometheus.Registry
	names    *names

	runs, steps, tries, queries, retries, resumes, takeovers, blocked, effects, repeats, failures *prometheus.CounterVec
	fenced                                                                                        *prometheus.CounterVec
	stepTook, tryTook, approvalTook                                                               *prometheus.HistogramVec
}

func newMetrics(tr *traces) *metrics {
	m := &metrics{registry: prometheus.NewRegistry(), names: newNames()}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.runs = m.counter("runs_finished_total", "Runs that ended, by the status they ended with.", "workflow", "status")
	m.steps = m.counter("steps_finished_total", "Passes of steps that ended, by outcome.", "workflow", "step", "outcome")
	m.failures = m.counter("step_failures_total", "Passes of steps that ended with a failure, by its class.", "workflow", "step", "class")
	m.stepTook = m.histogram("step_duration_seconds", "From the beginning of a pass to its end, waits included.", stepBuckets, "workflow", "step")
	m.tries = m.counter("tries_total", "Calls and sends of tools, by what the answer proved.", "workflow", "step", "tool", "outcome")
	m.tryTook = m.histogram("try_duration_seconds", "How long a tool took for one try.", tryBuckets, "workflow", "step", "tool")
	m.retries = m.counter("retries_total", "Failed tries that are repeated, by class of failure.", "workflow", "step", "class")
	m.queries = m.counter("queries_total", "Questions to targets about effects of unknown outcome, by answer.", "tool", "outcome")
	m.effects = m.counter("effects_total", "Transitions of effects, by the status they came to.", "tool", "status")
	m.approvalTook = m.histogram("approval_wait_seconds", "From asking people to the decision or the end of the request.", waitBuckets, "workflow", "status")
	m.resumes = m.counter("resumes_total", "Claims of runs, by cause.", "workflow", "cause")
	m.takeovers = m.counter("lease_takeovers_total", "Runs taken from a driver that had not given them up: its process is gone (restart), or its lease ran out (timeout).", "cause")
	m.fenced = m.counter("drivers_fenced_total", "Drivers that found that another had taken their run.")
	m.blocked = m.counter("runs_blocked_total", "Runs that stopped until a person acts, by cause.", "workflow", "cause", "class")
	m.repeats = m.counter("repeats_answered_total", "Requests that were answered with what an earlier one did.", "kind")
	m.fenced.WithLabelValues() // these are shown from the start
	for _, cause := range []string{engine.TakeoverRestart, engine.TakeoverTimeout} {
		m.takeovers.WithLabelValues(cause)
	}
	if tr != nil {
		m.registry.MustRegister(tr.counters()...)
	}
	return m
}

func (m *metrics) counter(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
	m.registry.MustRegister(c)
	return c
}

func (m *metrics) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}, labels)
	m.registry.MustRegister(h)
	return h
}

func (m *metrics) note(f engine.Fact) {
	workflow, step := m.names.of(f.Workflow, f.Step)
	tool, class, took := m.names.tool(f.Tool), classOf(f.Class), max(0, f.Took.Seconds())
	switch f.Kind {
	case engine.FactRun:
		m.runs.WithLabelValues(workflow, f.Outcome).Inc()
	case engine.FactStep:
		m.steps.WithLabelValues(workflow, step, f.Outcome).Inc()
		m.stepTook.WithLabelValues(workflow, step).Observe(took)
		if f.Class != "" {
			m.failures.WithLabelValues(workflow, step, class).Inc()
		}
	case engine.FactTry:
		m.tries.WithLabelValues(workflow, step, tool, f.Outcome).Inc()
		m.tryTook.WithLabelValues(workflow, step, tool).Observe(took)
	case engine.FactQuery:
		m.queries.WithLabelValues(tool, f.Outcome).Inc()
	case engine.FactRetry:
		m.retries.WithLabelValues(workflow, step, class).Inc()
	case engine.FactResume:
		m.resumes.WithLabelValues(workflow, f.Outcome).Inc()
	case engine.FactTakeover:
		m.takeovers.WithLabelValues(f.Outcome).Inc()
	case engine.FactFenced:
		m.fenced.WithLabelValues().Inc()
	case engine.FactBlocked:
		m.blocked.WithLabelValues(workflow, f.Outcome, class).Inc()
	case engine.FactEffect:
		m.effects.WithLabelValues(tool, f.Outcome).Inc()
	case engine.FactApproval:
		m.approvalTook.WithLabelValues(workflow, f.Outcome).Observe(took)
	case engine.FactRepeat:
		m.repeats.WithLabelValues(f.Outcome).Inc()
	}
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, Timeout: scrapeTimeout, MaxRequestsInFlight: scrapesMax, Registry: m.registry})
}
