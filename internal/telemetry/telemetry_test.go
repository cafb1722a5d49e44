package telemetry_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/internal/engine"
	. "countersign/internal/engine/enginetest"
	"countersign/internal/telemetry"
	"countersign/internal/telemetry/collectortest"
	"countersign/internal/tools"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

// nowhere is what the tools name; a script answers in its place.
var nowhere = tools.Config{"target": "http://127.0.0.1:1"}

func start(t *testing.T, endpoint string) *telemetry.Telemetry {
	t.Helper()
	out, err := telemetry.New(t.Context(), telemetry.Options{Endpoint: endpoint, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { flush(t, out) })
	return out
}

// flush sends what is queued.
func flush(t *testing.T, tel *telemetry.Telemetry) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := tel.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
}

func scrape(t *testing.T, tel *telemetry.Telemetry) string {
	t.Helper()
	w := httptest.NewRecorder()
	tel.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("scrape: %d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// want looks for whole lines of a scrape.
func want(t *testing.T, page string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains("\n"+page, "\n"+line+"\n") {
			t.Errorf("the scrape has no line %q", line)
		}
	}
	if t.Failed() {
		for line := range strings.Lines(page) {
			if strings.HasPrefix(line, "countersign_") && !strings.Contains(line, "_bucket") {
				t.Log(strings.TrimSpace(line))
			}
		}
	}
}

// A run is sent for, its process dies with the answer unrecorded, and another
// process ends it: one trace, whose every span hangs below another, and of
// which the tool was told each time.
func TestTrace_IsOneAcrossACrash(t *testing.T) {
	collector := collectortest.New(t)
	first, second := start(t, collector.URL), start(t, collector.URL)
	var mu sync.Mutex
	told := map[string]string{}
	r := NewRig(t, NewLibrary(t, AllTools...), func(o *engine.Options) {
		o.Config, o.Observer, o.Crash = nowhere, first, CrashAt(t, "after-effect:write")
	})
	tell := func(what string, s tools.Sending) {
		mu.Lock()
		defer mu.Unlock()
		told[what] = s.Trace
	}
	r.Script.OnSend = func(_ context.Context, _ *tools.Tool, s tools.Sending) tools.Outcome {
		tell("send", s)
		return Done(`{"ok":true}`)
	}
	r.Script.OnQuery = func(_ context.Context, _ *tools.Tool, s tools.Sending) tools.Answer {
		tell("query", s)
		return tools.Answer{Happened: true, Outcome: Done(`{"ok":true}`)}
	}
	run := r.Begin(r.Lib.Add(t, ReadThenWrite("write.query")), `{"text":"private"}`, "")
	r.Decide(r.Drive(run.ID), engine.Approved, "")
	if !r.CrashingDrive(run.ID) {
		t.Fatal("the drive did not crash")
	}
	r.Restart(func(o *engine.Options) { o.Observer = second })
	if got := r.Drive(run.ID); got.Status != engine.Completed {
		t.Fatalf("the run is %s: %v", got.Status, got.Error)
	}
	r.DB.Close() // and with it what follows the commits
	flush(t, first)
	flush(t, second)

	byID, names := map[string]collectortest.Span{}, map[string]int{}
	for _, s := range collector.Spans() {
		if _, twice := byID[s.ID]; twice {
			t.Errorf("span %s came twice", s.Name)
		}
		byID[s.ID] = s
		names[s.Name]++
		if s.Trace != run.TraceID || s.Attributes["countersign.run"] != string(run.ID) {
			t.Errorf("span %s is of trace %s and run %s", s.Name, s.Trace, s.Attributes["countersign.run"])
		}
		if s.Nanos < 0 {
			t.Errorf("span %s ends before it starts", s.Name)
		}
	}
	for _, s := range byID {
		if _, ok := byID[s.Parent]; !ok && s.Name != "run "+run.Workflow {
			t.Errorf("span %s hangs below nothing", s.Name)
		}
	}
	for name, n := range map[string]int{"run " + run.Workflow: 1, "drive " + run.Workflow: 3, "call docs.read": 1, "attempt write": 1, "send write.query": 1, "query write.query": 1} {
		if names[name] != n {
			t.Errorf("%d spans are named %q, want %d; there are %v", names[name], name, n, names)
		}
	}
	for what, parent := range map[string]string{"send": "attempt write", "query": "drive " + run.Workflow} {
		parts := strings.Split(told[what], "-")
		if len(parts) != 4 || parts[1] != run.TraceID || parts[3] != "01" || !strings.HasPrefix(byID[parts[2]].Name, what) {
			t.Errorf("the tool was told %q at %s", told[what], what)
			continue
		}
		if got := byID[byID[parts[2]].Parent].Name; got != parent {
			t.Errorf("%s is below %q, want %q", what, got, parent)
		}
	}
	for _, s := range byID {
		if strings.HasPrefix(s.Name, "send") && (s.Attributes["countersign.outcome"] != engine.OutcomeLost || !s.Failed || s.Attributes["countersign.attempt"] != "1" || s.Attributes["countersign.idempotency_key"] == "") {
			t.Errorf("the send whose answer nobody recorded: %+v", s)
		}
	}
}

func TestMetrics_TellWhatTheEngineDid(t *testing.T) {
	tel := start(t, "")
	r := NewRig(t, NewLibrary(t, AllTools...), func(o *engine.Options) { o.Config, o.Observer = nowhere, tel })
	fail := true
	r.Script.OnCall = func(context.Context, *tools.Tool, tools.Sending) tools.Outcome {
		if fail {
			fail = false
			return tools.Outcome{Status: tools.Failed, Class: tools.ClassTransient, Message: "private"}
		}
		return Done(`{"text":"read"}`)
	}
	run := r.Begin(r.Lib.Add(t, ReadThenWrite("write.query")), `{"text":"private"}`, "")
	got := r.Drive(run.ID)
	if got.Status == engine.WaitingApproval {
		r.Decide(got, engine.Approved, "")
		got = r.Drive(run.ID)
	}
	if got.Status != engine.Completed {
		t.Fatalf("the run is %s: %v", got.Status, got.Error)
	}
	r.DB.Close()
	page := scrape(t, tel)
	w := fmt.Sprintf("workflow=%q", run.Workflow)
	want(t, page,
		`countersign_runs_finished_total{status="completed",`+w+`} 1`,
		`countersign_steps_finished_total{outcome="completed",step="look",`+w+`} 1`,
		`countersign_step_duration_seconds_count{step="write",`+w+`} 1`,
		`countersign_tries_total{outcome="failed",step="look",tool="docs.read",`+w+`} 1`,
		`countersign_tries_total{outcome="confirmed",step="look",tool="docs.read",`+w+`} 1`,
		`countersign_retries_total{class="transient",step="look",`+w+`} 1`,
		`countersign_resumes_total{cause="start",`+w+`} 1`,
		`countersign_resumes_total{cause="retry",`+w+`} 1`,
		`countersign_resumes_total{cause="approval",`+w+`} 1`,
		`countersign_effects_total{status="prepared",tool="write.query"} 1`,
		`countersign_effects_total{status="sent",tool="write.query"} 1`,
		`countersign_effects_total{status="confirmed",tool="write.query"} 1`)
	problems, err := promlint.New(strings.NewReader(page)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "countersign_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	if strings.Contains(page, "private") || strings.Contains(page, string(run.ID)) {
		t.Error("the scrape names a value or a run")
	}
}

// A collector that does not answer costs spans, and nobody's time.
func TestTraces_NobodyWaitsForTheCollector(t *testing.T) {
	release := make(chan struct{})
	dead := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(dead.Close)
	tel := start(t, dead.URL)
	const n = 10_000 // more than are kept
	for i := range n {
		tel.Span(engine.Span{Kind: engine.SpanRun, Trace: fmt.Sprintf("%032x", i+1), ID: fmt.Sprintf("%016x", i+1), Start: time.Unix(1, 0), End: time.Unix(2, 0)})
	}
	if dropped := spans(t, tel, "dropped"); dropped == 0 || dropped == n {
		t.Errorf("of %d spans %d were dropped", n, dropped)
	}
	close(release)
	flush(t, tel)
	if all := spans(t, tel, "dropped") + spans(t, tel, "sent") + spans(t, tel, "rejected"); all != n {
		t.Errorf("%d of %d spans are accounted for", all, n)
	}
}

func spans(t *testing.T, tel *telemetry.Telemetry, outcome string) (n int) {
	t.Helper()
	for line := range strings.Lines(scrape(t, tel)) {
		if rest, ok := strings.CutPrefix(line, `countersign_spans_total{outcome="`+outcome+`"} `); ok {
			if _, err := fmt.Sscan(rest, &n); err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("no spans are counted as %s", outcome)
	return 0
}

// However many names there were, the series stay bounded, and a word a target
// made up is none.
func TestMetrics_LabelsAreBounded(t *testing.T) {
	tel := start(t, "")
	for i := range 5000 {
		tel.Note(engine.Fact{Kind: engine.FactRetry, Workflow: fmt.Sprint("w", i), Step: "s", Class: fmt.Sprint("class-", i)})
	}
	page := scrape(t, tel)
	if n := strings.Count(page, "\ncountersign_retries_total{"); n != 2001 {
		t.Errorf("there are %d series, want 2000 and one for the others", n)
	}
	want(t, page, `countersign_retries_total{class="other",step="other",workflow="other"} 3000`)
}

func TestNew_RefusesAnEndpointThatIsNone(t *testing.T) {
	for _, endpoint := range []string{"collector:4318", "http://", "ftp://x", "http://[::1"} {
		if _, err := telemetry.New(t.Context(), telemetry.Options{Endpoint: endpoint}); err == nil || !strings.Contains(err.Error(), "http://127.0.0.1:4318") {
			t.Errorf("%q: %v", endpoint, err)
		}
	}
}

func TestNew_HeedsTheEnvironment(t *testing.T) {
	for name, c := range map[string]struct {
		set      map[string]string
		endpoint string
		on       bool
	}{
		"nothing":     {nil, "", false},
		"endpoint":    {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, "", true},
		"for traces":  {map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:4318/v1/traces"}, "", true},
		"disabled":    {map[string]string{"OTEL_SDK_DISABLED": "true"}, "http://127.0.0.1:4318", false},
		"no exporter": {map[string]string{"OTEL_TRACES_EXPORTER": "none"}, "http://127.0.0.1:4318", false},
		"configured":  {nil, "http://127.0.0.1:4318", true},
	} {
		t.Run(name, func(t *testing.T) {
			for k, v := range c.set {
				t.Setenv(k, v)
			}
			if got := start(t, c.endpoint).Tracing(); got != c.on {
				t.Errorf("tracing is %v, want %v", got, c.on)
			}
		})
	}
}
