package tools

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func query(t *testing.T, w *World, tool *Tool, cfg Config, sentAt time.Time) Answer {
	t.Helper()
	p := prepared(t, tool, refundParams)
	a := w.Query(t.Context(), tool, frozen(t, tool, refundParams, cfg), Sending{Key: "key 1", Effect: "eff_1", SentAt: sentAt, Config: cfg, Params: p})
	n := 0
	for _, b := range []bool{a.Happened, a.DidNot, a.Unknown} {
		if b {
			n++
		}
	}
	if n != 1 || len(a.Evidence) == 0 || a.Outcome.Message == "" {
		t.Errorf("not exactly one answer with evidence: %+v", a)
	}
	return a
}

func TestQuery_AsksWithTheKeyAndNeverBelievesTooSoon(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	tool := compile(t, refundYAML) // timeout 2s, settle 1s
	var asked string
	body, status := "", 200
	cfg := server(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.Method + " " + r.RequestURI + " " + r.Header.Get("X-Key")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
	for _, c := range []struct {
		status                    int
		body                      string
		ago                       time.Duration
		happened, didNot, unknown bool
	}{
		{200, `{"items":[{"id":"re_1"}]}`, 0, true, false, false},
		{200, `{"items":[]}`, 0, false, false, true},
		{200, `{"items":[]}`, 3 * time.Second, false, false, true},
		{200, `{"items":[]}`, 3*time.Second + time.Microsecond, false, true, false},
		{200, `{"items":[1,2]}`, time.Hour, false, false, true},
		{200, `{}`, time.Hour, false, false, true},
		{200, `text`, time.Hour, false, false, true},
		{404, `{"items":[]}`, time.Hour, false, false, true},
		{500, `{"items":[{"id":"re_1"}]}`, time.Hour, false, false, true},
	} {
		status, body = c.status, c.body
		w := world(t)
		w.Now = func() time.Time { return now }
		a := query(t, w, tool, cfg, now.Add(-c.ago))
		if a.Happened != c.happened || a.DidNot != c.didNot || a.Unknown != c.unknown {
			t.Errorf("%d %s after %s: %+v", c.status, c.body, c.ago, a)
		}
		if a.Happened && (a.Outcome.Status != Confirmed || string(a.Outcome.Output) != `{"id":"re_1"}`) {
			t.Errorf("%+v", a.Outcome)
		}
		if strings.Contains(string(a.Evidence), "shop-token-value") {
			t.Errorf("evidence shows a secret: %s", a.Evidence)
		}
	}
	if asked != "GET /refunds?key=key%201 " {
		t.Errorf("asked %q", asked)
	}
	body, status = `{"items":[]}`, 200
	w := world(t)
	w.Now = func() time.Time { return now }
	if a := query(t, w, tool, cfg, now); !a.After.After(now.Add(3 * time.Second)) {
		t.Errorf("hint %s", a.After)
	}
	if a := query(t, w, tool, cfg, time.Time{}); !a.Unknown {
		t.Errorf("believed without knowing when it was sent: %+v", a)
	}
}

func TestQuery_WithoutAnAnswerIsUnknown(t *testing.T) {
	tool := compile(t, refundYAML)
	if a := query(t, world(t), tool, Config{"shop": "http://127.0.0.1:1"}, time.Now().Add(-time.Hour)); !a.Unknown {
		t.Errorf("%+v", a)
	}
	w := world(t)
	w.Allow = nil
	if a := query(t, w, tool, answering(t, 200, `{"items":[]}`), time.Now().Add(-time.Hour)); !a.Unknown || !strings.Contains(a.Outcome.Message, "loopback") {
		t.Errorf("%+v", a)
	}
	exec := compile(t, execYAML)
	p := prepared(t, exec, `{"service":"a"}`)
	if a := w.Query(t.Context(), exec, frozen(t, exec, `{"service":"a"}`, nil), Sending{Key: "k", Effect: "eff_1", Params: p}); !a.Unknown {
		t.Errorf("a tool that cannot be asked: %+v", a)
	}
}

func TestQuery_AProgramCanBeAsked(t *testing.T) {
	src := execYAML + `reconcile:
  exec: {argv: [/bin/sh, -c, "exit $1", sh, "${params.count}"], ok: "exit in [1, 2]"}
  happened: "exit == 1"
  did_not: "exit == 2"
  settle: 1s
`
	tool := compile(t, src)
	for params, want := range map[string]string{`{"service":"a","count":1}`: "happened", `{"service":"a","count":2}`: "did_not", `{"service":"a","count":3}`: "unknown"} {
		p := prepared(t, tool, params)
		a := world(t).Query(t.Context(), tool, frozen(t, tool, params, nil), Sending{Key: "k", Effect: "eff_1", SentAt: time.Now().Add(-time.Hour), Params: p})
		got := map[bool]string{a.Happened: "happened", a.DidNot: "did_not", a.Unknown: "unknown"}[true]
		if got != want {
			t.Errorf("%s: %s, want %s (%s)", params, got, want, a.Outcome.Message)
		}
	}
}

func TestReadings_PreconditionAndPreview(t *testing.T) {
	tool, w := compile(t, refundYAML), world(t)
	p := prepared(t, tool, refundParams)
	for body, want := range map[string]Reading{
		`{"state":"paid","refundable":5,"version":3}`: {OK: true, Met: true, Pin: []byte("3")},
		`{"state":"paid","refundable":4,"version":3}`: {OK: true, Met: false, Pin: []byte("3"), Error: "it asks for body.state == 'paid' && params.amount <= body.refundable"},
	} {
		got := w.Precondition(t.Context(), tool, Sending{Params: p, Config: answering(t, 200, body)})
		want.At, want.Value = got.At, got.Value
		if diff := cmp.Diff(want, got); diff != "" || len(got.Value) == 0 {
			t.Errorf("%s: %s", body, diff)
		}
	}
	for _, body := range []string{`{}`, `text`, `{"version":1}`, `{"state":"paid","refundable":"x","version":1}`} {
		if got := w.Precondition(t.Context(), tool, Sending{Params: p, Config: answering(t, 200, body)}); got.OK || got.Met || got.Error == "" {
			t.Errorf("%s: %+v", body, got)
		}
	}
	if got := w.Precondition(t.Context(), tool, Sending{Params: p, Config: answering(t, 500, `{"state":"paid","refundable":5,"version":3}`)}); got.OK || got.Met {
		t.Errorf("%+v", got)
	}
	if got := w.Preview(t.Context(), tool, Sending{Params: p, Config: answering(t, 200, `{"fee":1}`)}); !got.OK || string(got.Value) != `{"fee":1}` {
		t.Errorf("%+v", got)
	}
	if got := w.Preview(t.Context(), tool, Sending{Params: p, Config: answering(t, 200, `"`+strings.Repeat("x", ReadingBytesMax)+`"`)}); got.OK {
		t.Error("a preview past the limit was kept")
	}
	closed := world(t)
	closed.Allow = nil
	if got := closed.Preview(t.Context(), tool, Sending{Params: p, Config: answering(t, 200, `{}`)}); got.OK || !strings.Contains(got.Error, "loopback") {
		t.Errorf("%+v", got)
	}
	plain := compile(t, execYAML)
	if got := w.Precondition(t.Context(), plain, Sending{Params: prepared(t, plain, `{}`), Config: nil}); !got.OK || !got.Met || got.Pin != nil {
		t.Errorf("none declared: %+v", got)
	}
}

func TestSend_ExecGetsParamsAndKeyAndReportsHowItEnded(t *testing.T) {
	tool := compile(t, edited(t, execYAML, "cat; echo $1", `printf '{\"in\":%s,\"arg\":\"%s\",\"key\":\"%s\",\"svc\":\"%s\",\"token\":\"%s\",\"home\":\"%s\"}' \"$(cat)\" \"$1\" \"$COUNTERSIGN_IDEMPOTENCY_KEY\" \"$PARAM_SERVICE\" \"$TOKEN\" \"$HOME\"`))
	t.Setenv("HOME", "/root")
	o := send(t, world(t), tool, nil, `{"service":"a"}`)
	want := `{"arg":"--service=a","home":"","in":{"count":1,"service":"a"},"key":"key-1","svc":"a","token":"***"}`
	if o.Status != Confirmed || string(o.Output) != want {
		t.Errorf("%+v\n%s", o, o.Output)
	}
}

func TestSend_ExecOutcomes(t *testing.T) {
	declared := edited(t, execYAML, "timeout: 5s", "timeout: 300ms\n  not_done: \"exit == 75\"\n  refused: \"exit == 77\"")
	for script, want := range map[string]struct {
		status Status
		class  string
	}{
		"exit 0":                      {Confirmed, ""},
		"exit 1":                      {Unknown, ClassUnknown},
		"echo no >&2; exit 75":        {NotDone, ClassTransient},
		"exit 77":                     {Refused, ClassRefused},
		"kill -9 $$":                  {Unknown, ClassUnknown},
		"trap '' TERM; sleep 3600; :": {Unknown, ClassUnknown},
		"head -c 2000000 /dev/zero":   {Confirmed, ClassIncompatible},
	} {
		tool := compile(t, edited(t, declared, "cat; echo $1", script))
		o := send(t, world(t), tool, nil, `{"service":"a"}`)
		if o.Status != want.status || o.Class != want.class {
			t.Errorf("%s: %s %s %s", script, o.Status, o.Class, o.Message)
		}
	}
	missing := compile(t, edited(t, execYAML, "[/bin/sh,", "[/no/such/program,"))
	if o := send(t, world(t), missing, nil, `{"service":"a"}`); o.Status != NotDone || o.Class != ClassPermanent {
		t.Errorf("%+v", o)
	}
}

func TestSend_ExecRefusesToStartBesideAnEarlierTry(t *testing.T) {
	tool, w := compile(t, execYAML), world(t)
	lock, err := w.lockEffect("eff_1")
	if err != nil {
		t.Fatal(err)
	}
	if o := send(t, w, tool, nil, `{"service":"a"}`); o.Status != Unknown || o.Code != CodeStillRunning {
		t.Errorf("%+v", o)
	}
	lock.Close()
	if o := send(t, w, tool, nil, `{"service":"a"}`); o.Status != Confirmed {
		t.Errorf("%+v", o)
	}
}

func TestSend_ExecKeepsTextWhereDeclared(t *testing.T) {
	tool := compile(t, edited(t, edited(t, execYAML, "cat; echo $1", "echo 5"), "timeout: 5s", "timeout: 5s\n  stdout: text"))
	if o := send(t, world(t), tool, nil, `{"service":"a"}`); string(o.Output) != `"5\n"` {
		t.Errorf("%s", o.Output)
	}
}

func fileSending(t *testing.T, w *World, tool *Tool, cfg Config, params string) (Frozen, Sending) {
	t.Helper()
	p := prepared(t, tool, params)
	r := w.Precondition(t.Context(), tool, Sending{Params: p, Config: cfg})
	if !r.OK || !r.Met {
		t.Fatalf("precondition: %+v", r)
	}
	return frozen(t, tool, params, cfg), Sending{Key: "k", Effect: "eff_1", Config: cfg, Params: p, Pin: r.Pin}
}

// Every instant at which a file write can stop leaves a state the query tells
// apart: nothing or a temporary file is did_not, the new content is happened,
// anything else is unknown.
func TestFileTool_WhereverItStopsTheQueryKnows(t *testing.T) {
	const params = `{"page":"w1","body":"new"}`
	for _, before := range []string{"", "old"} {
		tool, w := compile(t, fileYAML), world(t)
		cfg := Config{"kb": t.TempDir()}
		path := filepath.Join(cfg["kb"], "reports", "w1.md")
		if before != "" {
			write(t, path, before)
		}
		f, s := fileSending(t, w, tool, cfg, params)
		if a := w.Query(t.Context(), tool, f, s); !a.DidNot {
			t.Errorf("before anything: %+v", a)
		}
		temp := filepath.Join(filepath.Dir(path), tempPrefix+"eff_1.tmp")
		write(t, temp, "ne")
		if a := w.Query(t.Context(), tool, f, s); !a.DidNot {
			t.Errorf("after the temporary file: %+v", a)
		}
		if _, err := os.Stat(temp); err == nil {
			t.Error("the temporary file of a crash is still there")
		}
		if before == "" { // linked, temporary file not yet removed
			write(t, temp, "new")
			if err := os.Link(temp, path); err != nil {
				t.Fatal(err)
			}
			if a := w.Query(t.Context(), tool, f, s); !a.Happened {
				t.Errorf("after the link: %+v", a)
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
		o := w.Send(t.Context(), tool, f, s)
		if o.Status != Confirmed || o.Class != "" || read(t, path) != "new" || o.ExternalRef != "reports/w1.md" {
			t.Errorf("send: %+v", o)
		}
		a := w.Query(t.Context(), tool, f, s)
		if !a.Happened || string(a.Outcome.Output) != string(o.Output) {
			t.Errorf("after: %+v", a)
		}
		if o := w.Send(t.Context(), tool, f, s); o.Status != Confirmed {
			t.Errorf("again: %+v", o)
		}
		write(t, path, "somebody else's")
		if a := w.Query(t.Context(), tool, f, s); !a.Unknown {
			t.Errorf("neither: %+v", a)
		}
		if o := w.Send(t.Context(), tool, f, s); o.Status != NotDone || o.Code != CodePinChanged || read(t, path) != "somebody else's" {
			t.Errorf("changed since approved: %+v", o)
		}
	}
}

func TestFileTool_NeedsThePinAndAFreeLock(t *testing.T) {
	tool, w := compile(t, fileYAML), world(t)
	cfg := Config{"kb": t.TempDir()}
	f, s := fileSending(t, w, tool, cfg, `{"page":"w1","body":"new"}`)
	lock, err := w.lockEffect("eff_1")
	if err != nil {
		t.Fatal(err)
	}
	if o := w.Send(t.Context(), tool, f, s); o.Status != Unknown || o.Code != CodeStillRunning {
		t.Errorf("%+v", o)
	}
	if a := w.Query(t.Context(), tool, f, s); !a.Unknown {
		t.Errorf("asked while it is being written: %+v", a)
	}
	lock.Close()
	s.Pin = nil
	if o := w.Send(t.Context(), tool, f, s); o.Status != NotDone || o.Class != ClassBug || len(entries(t, cfg["kb"])) != 0 {
		t.Errorf("%+v", o)
	}
	if a := w.Query(t.Context(), tool, f, s); !a.Unknown {
		t.Errorf("%+v", a)
	}
}

func TestFileTool_ReadingsShowWhatItReplaces(t *testing.T) {
	tool, w := compile(t, fileYAML), world(t)
	cfg := Config{"kb": t.TempDir()}
	p := prepared(t, tool, `{"page":"w1","body":"new"}`)
	if r := w.Precondition(t.Context(), tool, Sending{Params: p, Config: cfg}); string(r.Pin) != `"absent"` || string(r.Value) != `{"exists":false,"path":"reports/w1.md"}` {
		t.Errorf("%s %s", r.Pin, r.Value)
	}
	write(t, filepath.Join(cfg["kb"], "reports/w1.md"), "old")
	r := w.Preview(t.Context(), tool, Sending{Params: p, Config: cfg})
	if want := `{"digest":"` + digestOf([]byte("old")) + `","exists":true,"path":"reports/w1.md","size":3,"text":"old"}`; string(r.Value) != want || string(r.Pin) != `"`+digestOf([]byte("old"))+`"` {
		t.Errorf("%s %s", r.Pin, r.Value)
	}
	if r := w.Preview(t.Context(), tool, Sending{Params: p, Config: Config{"kb": "/no/such/folder"}}); r.OK || r.Error == "" {
		t.Errorf("%+v", r)
	}
}

func TestFileTool_AMissingRootIsNotDone(t *testing.T) {
	tool, w := compile(t, fileYAML), world(t)
	f := frozen(t, tool, `{"page":"w1","body":"new"}`, Config{"kb": "/no/such/folder"})
	if o := w.Send(t.Context(), tool, f, Sending{Effect: "eff_1", Pin: []byte(`"absent"`)}); o.Status != NotDone || o.Class != ClassPermanent {
		t.Errorf("%+v", o)
	}
}

func TestCall_CollectsAFolder(t *testing.T) {
	tool, w := examples(t)["docs.collect"], world(t)
	cfg := Config{"documents": t.TempDir()}
	write(t, filepath.Join(cfg["documents"], "d/a.md"), "# A\n")
	p := prepared(t, tool, `{"folder":"d"}`)
	o := w.Call(t.Context(), tool, frozen(t, tool, `{"folder":"d"}`, cfg), Sending{Config: cfg, Params: p})
	want := `{"count":1,"documents":[{"digest":"` + digestOf([]byte("# A\n")) + `","path":"d/a.md","size":4,"text":"# A\n","title":"A"}]}`
	if o.Status != Confirmed || string(o.Output) != want {
		t.Errorf("%+v\n%s", o, o.Output)
	}
	p = prepared(t, tool, `{"folder":"none"}`)
	if o := w.Call(t.Context(), tool, frozen(t, tool, `{"folder":"none"}`, cfg), Sending{Config: cfg, Params: p}); o.Status != Failed || o.Class != ClassPermanent {
		t.Errorf("%+v", o)
	}
	if _, err := tool.Freeze(prepared(t, tool, `{"folder":"../x"}`), cfg); err == nil {
		t.Error("a folder outside the root was accepted")
	}
}
