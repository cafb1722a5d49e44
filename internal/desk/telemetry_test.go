package desk_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"

	"countersign/internal/engine"
	"countersign/internal/telemetry/collectortest"
)

// noise is a log that several goroutines write.
type noise struct {
	mu  sync.Mutex // protects buf
	buf bytes.Buffer
}

func (n *noise) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.buf.Write(p)
}

func (n *noise) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.buf.String()
}

func (w *world) scrape() string {
	w.t.Helper()
	rec := httptest.NewRecorder()
	w.inst.Telemetry.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if rec.Code != http.StatusOK {
		w.t.Fatalf("scrape: %d", rec.Code)
	}
	return rec.Body.String()
}

func (w *world) wantLines(page string, lines ...string) {
	w.t.Helper()
	for _, line := range lines {
		if !strings.Contains("\n"+page, "\n"+line+"\n") {
			w.t.Errorf("the scrape has no line %q", line)
		}
	}
}

// A refund with a sensitive note is asked for, approved after a restart and paid. Metrics, traces and logs tell all of it,
// and neither the value, nor a secret, nor any other parameter.
// bareAmount is that of the refund, standing alone: its digits come up by chance
// inside the durations and sizes that are measured.
var bareAmount = regexp.MustCompile(`(^|[^0-9.e-])12500([^0-9]|$)`)

func TestTelemetry_TellsWhatHappenedAndNoValue(t *testing.T) {
	t.Parallel()
	collector, log := collectortest.New(t), &noise{}
	w := newWorld(t)
	w.close()
	w.config.OTLP, w.config.Metrics = collector.URL, "127.0.0.1:0"
	w.logger = slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	w.open()
	w.start()
	w.secretive()
	run, a := w.refundWithCanary("once")
	w.refundWithCanary("once") // the same again
	before := w.scrape()
	w.wantLines(before,
		`countersign_runs_open{status="waiting_approval"} 1`, `countersign_runs_open{status="blocked"} 0`, `countersign_approvals_pending 1`,
		`countersign_unknown_effects 0`, `countersign_unknown_effects_oldest_seconds 0`, `countersign_repeats_answered_total{kind="run"} 1`,
		`countersign_database_readable 1`, `countersign_effects_total{status="prepared",tool="shop.refund"} 1`)
	w.close()
	w.open()
	w.start()
	w.approve("ben", w.request("ben", run))
	run = w.waitFor(run, engine.Completed)
	w.wantRefunds(1)
	inst := w.inst
	w.close()
	if inst.Telemetry != nil {
		t.Error("closing left the telemetry open")
	}

	names := map[string]int{}
	for _, s := range collector.Spans() {
		names[strings.Fields(s.Name)[0]]++
		if s.Trace != run.TraceID {
			t.Errorf("span %q is of trace %s, the run's is %s", s.Name, s.Trace, run.TraceID)
		}
		if s.Attributes["countersign.subject"] == a.ID && s.Attributes["countersign.outcome"] != "approved" {
			t.Errorf("the wait ended as %v", s.Attributes)
		}
	}
	if names["approval"] != 1 || names["run"] != 1 || names["send"] != 1 || names["drive"] < 2 {
		t.Errorf("there are spans %v", names)
	}
	if !strings.Contains(log.String(), `"msg":"tool call"`) {
		t.Errorf("the log tells nothing:\n%s", log)
	}
	for what, text := range map[string]string{"log": log.String(), "scrape": before, "traces": collector.Bytes()} {
		for _, private := range []string{canary, "the-shop-token", "The parcel arrived damaged"} {
			if strings.Contains(text, private) {
				t.Errorf("the %s holds %q", what, private)
			}
		}
		if bareAmount.MatchString(text) {
			t.Errorf("the %s holds the amount", what)
		}
	}
	if strings.Contains(before, string(run.ID)) || strings.Contains(before, a.ID) {
		t.Error("a label is an id")
	}
}
